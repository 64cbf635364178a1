#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models with open dimensions with the default options, on a simulated GPU whose
costs and those of the CPU are scripted in profiles.  Cases at the end test missing
profiles, compiled models and FusedMatMul."""

import ctypes
import itertools
import os
import re
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import helper

import child_cases
import exported_models
import provider
import vision_models
from child_cases import case
from small_models import node

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
DOUBLE, INT32 = onnx.TensorProto.DOUBLE, onnx.TensorProto.INT32
FLOAT16 = onnx.TensorProto.FLOAT16
CURVES = ('elementwise', 'transcendental', 'multi_transcendental', 'reduce',
          'softmax', 'strided', 'gather', 'optimizer', 'norm')


def _save_profile(library, context, device, fixed, per_byte, per_product):
    number, profile = ctypes.c_uint32(), ctypes.c_void_p()
    path = ctypes.create_string_buffer(4096)

    def call(name, *arguments):
        assert getattr(library, name)(*arguments) == 0, name
    call('tandem_device_find', context, device.encode(), ctypes.byref(number))
    call('tandem_profile_create', context, number, ctypes.byref(profile))
    for name in CURVES + ('upload', 'download'):
        for x in (0, 1e9):
            slope = 0.01 if name in ('upload', 'download') else per_byte
            call('tandem_profile_add_curve_point', profile, name.encode(),
                 ctypes.c_double(x), ctypes.c_double(fixed + slope * x))
    for m in (1, 4096):
        for n in (1, 4096):
            for k in (1, 4096):
                call('tandem_profile_add_gemm_point', profile,
                     *(ctypes.c_int64(size) for size in (m, n, k)),
                     ctypes.c_double(fixed + per_product * m * n * k))
    call('tandem_profile_save', profile, None, path, ctypes.c_size_t(4096))
    library.tandem_profile_destroy(profile)


def script_costs():
    """Launches take 10 us on the GPU and 0.1 us on the CPU; large operators are
    1000 times as fast on the GPU."""
    directory = tempfile.mkdtemp()
    plugins = os.environ['TANDEM_PLUGIN_PATH'].split(':')[0]
    os.environ.update(TANDEM_PROFILE_DIR=directory, XDG_CACHE_HOME=directory,
                      TANDEM_BACKENDS='cpu,simulated')
    library = ctypes.CDLL(os.path.join(plugins, 'libtandem.so'))
    context = ctypes.c_void_p()
    assert library.tandem_context_create(None, ctypes.byref(context)) == 0
    _save_profile(library, context, 'simulated:0', 1e4, 0.001, 1e-4)
    _save_profile(library, context, 'cpu', 100, 1, 0.1)
    library.tandem_context_destroy(context)


def model(nodes, inputs, output, constants=()):
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(output, FLOAT, None)],
        [onnx.numpy_helper.from_array(numpy.asarray(content), name)
         for name, content in constants])
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid('', 17)])


def weights(*shape):
    return numpy.random.default_rng(1).standard_normal(shape, numpy.float32)


def report(tested, overrides=(), **options):
    """Returns the placement report of a session with the default options."""
    path = tempfile.mktemp()
    settings = dict(options, explain=path)
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level = 4
    for name, length in overrides:
        session_options.add_free_dimension_override_by_name(name, length)
    session_options.add_provider_for_devices(provider.register(), settings)
    session = onnxruntime.InferenceSession(
        tested.SerializeToString(), session_options, enable_fallback=0)
    with open(path, encoding='utf-8') as file:
        return session, file.read()


def check_taken(tested, feeds, *texts, **options):
    """The model is taken, and computes what the CPU provider computes at each
    size."""
    session, text = report(tested, **options)
    assert ': taken:' in text and 'simulated:0' in text, text
    for each in texts:
        assert each in text, (each, text)
    reference = provider.cpu_session(tested)
    for each in feeds:
        for actual, expected in zip(session.run(None, each),
                                    reference.run(None, each)):
            numpy.testing.assert_allclose(actual, expected, 1e-3, 1e-3)
    return text


@case
def fused_audio(arguments):
    """The result of a fused convolution is not an input of the model."""
    tested = model([node('Conv', 'x w', 'a', strides=[160]),
                    node('Relu', 'a', 'b'), node('Conv', 'b v', 'y')],
                   [('x', FLOAT, [1, 1, 'samples'])], 'y',
                   [('w', weights(512, 1, 400)), ('v', weights(8, 512, 3))])
    text = check_taken(tested, [{'x': weights(1, 1, 16000)}],
                       'assumed shapes x:1x1x16000')
    assert 'a:' not in text.split('assumed')[1], text


@case
def cnn_without_padding(arguments):
    """Convolutions without padding leave nothing of an image of 128."""
    nodes, constants = [], []
    for i in range(7):
        nodes.append(node('Conv', 'x%d w%d' % (i, i), 'x%d' % (i + 1),
                          strides=[2, 2] if i < 5 else [1, 1]))
        constants.append(('w%d' % i, weights(16, 16 if i else 3, 5, 5) / 16))
    tested = model(nodes, [('x0', FLOAT, ['n', 3, 'h', 'w'])], 'x7', constants)
    check_taken(tested, [{'x0': weights(1, 3, 420, 420)}], '1x3x640x640')


def _detector():
    """Features of two scales are joined, as in YOLO: both lengths of the image
    must be multiples of 32."""
    nodes, constants = [], []
    for i in range(5):
        nodes.append(node('Conv', 'x%d w%d' % (i, i), 'x%d' % (i + 1),
                          strides=[2, 2], pads=[1, 1, 1, 1]))
        constants.append(('w%d' % i, weights(32, 32 if i else 3, 3, 3) / 32))
    nodes += [node('Resize', ['x5', '', 'scales'], 'u'),
              node('Concat', 'u x4', 'y', axis=1)]
    constants.append(('scales', numpy.array([1, 1, 2, 2], numpy.float32)))
    return model(nodes, [('x0', FLOAT, ['n', 3, 'height', 'width'])], 'y',
                 constants)


@case
def yolo(arguments):
    """YOLOv8n is taken as one group at the size for which it was exported, also
    at an unusual one."""
    for size in (640, 320, 352):
        tested = vision_models.yolov8n(1, size)
        text = check_taken(tested, [{'input': weights(1, 3, size, size)}]
                           if size == 320 else [],
                           'assumed shapes input:1x3x%dx%d' % (size, size))
        assert len(text.splitlines()) == 2, text


def _small_models():
    """Returns models, inputs, and a part of the report."""
    return [
        # A convolution has a window of 400 samples.
        (model([node('Conv', 'x w', 'y', strides=[160])],
               [('x', FLOAT, [1, 1, 'samples'])], 'y',
               [('w', weights(512, 1, 400))]),
         [{'x': weights(1, 1, n)} for n in (400, 16000)],
         'assumed shapes x:1x1x16000'),
        # 128 elements cannot be reshaped to rows of 80.
        (model([node('Reshape', 'x s', 'r'), node('MatMul', 'r w', 'y')],
               [('x', FLOAT, ['b', 't'])], 'y',
               [('s', numpy.array([-1, 80])), ('w', weights(80, 512))]),
         [{'x': weights(4, 160)}], 'x:1x16000'),
        # The rank of an input is that of the weight of its convolution.
        (model([node('Conv', 'x w', 'y')], [('x', FLOAT, None)], 'y',
               [('w', weights(64, 3, 7, 7))]),
         [{'x': weights(1, 3, 32, 32)}], 'x:1x3x'),
        # The limit of a Range is an input of the model.
        (model([node('Range', 'zero n one', 'r'), node('Cast', 'r', 'f', to=FLOAT),
                node('Unsqueeze', 'f axis', 'u'), node('Mul', 'u scale', 'm'),
                node('MatMul', 'm w', 'y')],
               [('n', INT64, [])], 'y',
               [('zero', numpy.array(0)), ('one', numpy.array(1)),
                ('axis', numpy.array([1])), ('scale', weights(1, 1024)),
                ('w', weights(1024, 1024) / 1024)]),
         [{'n': numpy.array(5)}], ': taken:'),
        # A detector is taken at typical sizes of images.
        (_detector(), [{'x0': weights(1, 3, 64, 96)}], '1x3x224x224'),
        # Keys and values of the past have the lengths of sequences, not of images.
        (exported_models.gpt2(layers=1, width=96, vocabulary=1000),
         [{'input_ids': numpy.arange(5).reshape(1, 5),
           'past.0': weights(2, 1, 12, 3, 8)}],
         'assumed shapes input_ids:1x128;past.0:2x1x12x128x8'),
        # An axis of a sequence that a Transpose moves to the front is no batch.
        (model([node('Transpose', 'x', 'a', perm=[1, 0, 2]),
                node('MatMul', 'a w', 'y')],
               [('x', FLOAT, ['batch', 'time', 256])], 'y',
               [('w', weights(256, 256))]),
         [{'x': weights(2, 9, 256)}], 'x:1x128x256'),
        # An axis named so is the batch, wherever it is.
        (model([node('MatMul', 'x w', 'y')],
               [('x', FLOAT, ['time', 'batch_size', 256])], 'y',
               [('w', weights(256, 256))]),
         [{'x': weights(9, 2, 256)}], 'x:128x1x256'),
        # An image whose axes are all open has three channels.
        (model([node('Exp', 'x', 'e'), node('Sin', 'e', 'y')],
               [('x', FLOAT, ['n', 'c', 'h', 'w'])], 'y'),
         [{'x': weights(1, 5, 8, 8)}], 'x:1x3x224x224'),
        # A call that no device accepts at the assumed sizes splits its group.
        (model([node('MatMul', 'x w', 'm'),
                node('GatherElements', 'm i', 'y', axis=2)],
               [('x', FLOAT, ['b', 't', 1024])], 'y',
               [('w', weights(1024, 1024) / 32),
                ('i', numpy.zeros((3, 1, 2), numpy.int64))]),
         [{'x': weights(3, 2, 1024)}],
         'node "node_y" is left to ONNX Runtime: gather_elements')]


@case
def small_models(arguments):
    for tested, feeds, text in _small_models():
        check_taken(tested, feeds, text)


@case
def sizes_behind_other_nodes(arguments):
    """Sizes behind a node that the provider does not serve (Shrink) follow from
    the inputs of the model."""
    tested = model([node('MatMul', 'x w', 'a'), node('Reshape', 'a s', 'b'),
                    node('Shrink', 'b', 'c', lambd=0.1),
                    node('MatMul', 'c w', 'y')],
                   [('x', FLOAT, ['batch', 'time', 256])], 'y',
                   [('w', weights(256, 256) / 16),
                    ('s', numpy.array([-1, 256]))])
    text = check_taken(tested, [{'x': weights(2, 9, 256)}])
    assert text.count(': taken:') == 2, text
    # Behind the convolutions, the image has 49 elements.
    nodes = [node('Conv', 'x0 w0', 'x1', strides=[32, 32]),
             node('Shrink', 'x1', 'x2', lambd=0.1), node('Exp', 'x2', 'y')]
    tested = model(nodes, [('x0', FLOAT, ['n', 3, 'h', 'w'])], 'y',
                   [('w0', weights(4, 3, 32, 32) / 64)])
    text = check_taken(tested, [{'x0': weights(1, 3, 64, 64)}])
    assert text.count(': taken:') == 1, text
    assert text.count('left to ONNX Runtime') == 2, text
    assert 'not served, so left to ONNX Runtime: 1 Shrink ("node_x2")\n' in text, text


@case
def images_and_text(arguments):
    """Images and texts have lengths of their own, as in CLIP."""
    tested = model(
        [node('Conv', 'image w', 'a', strides=[32, 32]),
         node('Reshape', 'a s', 'b'),
         node('Add', 'b position', 'c'),
         node('ReduceMean', 'c', 'd', axes=[2]),
         node('Gather', 'words ids', 'e'),
         node('Add', 'e place', 'f'),
         node('ReduceMean', 'f', 'g', axes=[1]),
         node('MatMul', 'g d', 'y')],
        [('image', FLOAT, ['batch', 3, 'height', 'width']),
         ('ids', INT64, ['texts', 'length'])], 'y',
        [('w', weights(256, 3, 32, 32) / 64), ('s', numpy.array([0, 0, -1])),
         ('position', weights(1, 256, 49)), ('words', weights(100, 256)),
         ('place', weights(1, 77, 256))])
    text = check_taken(tested, [
        {'image': weights(1, 3, 224, 224),
         'ids': numpy.arange(77).reshape(1, 77)}],
        'image:1x3x224x224', 'ids:1x77')
    assert text.count(': taken:') == 1, text


@case
def given_sizes(arguments):
    """The option and free-dimension overrides decide."""
    text = check_taken(_detector(), [], '1x3x320x320', shapes='x0:1x3x320x320')
    assert '224' not in text, text
    text = check_taken(_detector(), [], overrides=(
        ('n', 1), ('height', 320), ('width', 320)))
    assert 'assumed' not in text, text
    tiny = model([node('Exp', 'x', 'y')], [('x', FLOAT, ['b', 't'])], 'y')
    _, text = report(tiny, shapes='x:1x4')
    assert 'left to ONNX Runtime' in text and 'x:1x4' in text, text


@case
def shapes_that_do_not_fit(arguments):
    """An entry of the option that does not fit the model is reported."""
    for entry, expected in (
            ('images:1x3x320x320', 'no node of the model reads or computes a '
             'tensor "images"'),
            ('x0:3x320x320', '"x0" is given the shape 3x320x320, but has the '
             'shape ?x3x?x? in the model'),
            ('x0:1x4x320x320', '"x0" is given the shape 1x4x320x320, but')):
        check_taken(_detector(), [], expected, shapes=entry)
    # The body of a Loop does not contain the named tensor.
    body = helper.make_graph(
        [node('Identity', 'on', 'on_out'),
         node('MatMul', 's w', 's_out')], 'body',
        [helper.make_tensor_value_info('i', INT64, []),
         helper.make_tensor_value_info('on', onnx.TensorProto.BOOL, []),
         helper.make_tensor_value_info('s', FLOAT, ['b', 't'])],
        [helper.make_tensor_value_info('on_out', onnx.TensorProto.BOOL, []),
         helper.make_tensor_value_info('s_out', FLOAT, ['b', 't'])])
    tested = model([node('Loop', ['n', '', 'x'], 'y', body=body)],
                   [('x', FLOAT, ['b', 't']), ('n', INT64, [])], 'y',
                   [('w', weights(64, 64))])
    _, text = report(tested, shapes='x:64x64')
    assert provider.version() < (1, 24) or 'option shapes' not in text, text


@case
def impossible_node(arguments):
    """A node that can never run splits its group."""
    tested = model([node('MatMul', 'x w', 'm'), node('Reshape', 'm s', 'r'),
                    node('MatMul', 'r v', 'y')],
                   [('x', FLOAT, ['b', 't', 1024])], 'y',
                   [('w', weights(1024, 1024)), ('v', weights(8191, 1)),
                    ('s', numpy.array([-1, 8191]))])
    _, text = report(tested)
    assert 'is left to ONNX Runtime: Reshape' in text, text
    assert 'no multiple of the 8191 elements' in text, text
    assert ': taken:' in text, text


def _warnings(function):
    """Returns what the function prints to stderr, without other warnings than the
    provider's."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile('w+') as file:
        os.dup2(file.fileno(), 2)
        try:
            function()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        file.seek(0)
        # OpenBLAS may not know the processor.
        return [line for line in file
                if 'Tandem' in line and 'OpenBLAS' not in line]


def check_default_costs(*texts):
    """A large model is taken, a small one is not.  Each time, ONNX Runtime's
    default log has one line, which contains the texts."""
    for size in (2048, 8):
        product = node('MatMul', 'x w', 'y')
        tested = model([product], [('x', FLOAT, [size, size])], 'y',
                       [('w', weights(size, size))])
        found = []
        lines = _warnings(lambda: found.append(report(tested)[1]))  # pylint: disable=cell-var-from-loop
        assert (': taken:' in found[0]) == (size > 8), found
        assert 'simulated:0 with transfers (default costs; ' in found[0], found
        assert len(lines) == 1, lines
        for text in texts + ('only large operators', 'cl-probe --calibrate'):
            assert text in lines[0], (text, lines)


@case
def no_profile(arguments):
    """No device has a profile."""
    directory = tempfile.mkdtemp()
    os.environ.update(TANDEM_PROFILE_DIR=directory, XDG_CACHE_HOME=directory)
    check_default_costs('simulated:0: not calibrated')


@case
def profile_of_another_driver(arguments):
    """Only the CPU has a profile, because the driver of the GPU was updated."""
    os.environ['TANDEM_TEST_PLUGIN'] = 'driver=2'
    check_default_costs(os.environ['TANDEM_PROFILE_DIR'] + '/simulated-',
                        'driver "1", not "2"')


@case
def unsupported_nodes(arguments):
    """A node that no GPU supports splits its group; the report says why."""
    os.environ['TANDEM_TEST_PLUGIN'] = 'decline=log_softmax+reduce_mean'
    tested = model([node('MatMul', 'x w', 'a'),
                    node('LogSoftmax', 'a', 'b', name='log'),
                    node('MatMul', 'b w', 'c'),
                    node('ReduceMean', 'c', 'd', axes=[1], name='mean'),
                    node('Sub', 'c d', 'e'), node('MatMul', 'e w', 'y')],
                   [('x', FLOAT, ['b', 't', 1024])], 'y',
                   [('w', weights(1024, 1024) / 1024)])
    text = check_taken(
        tested, [{'x': weights(1, 64, 1024)}],
        'node "log" is left to ONNX Runtime: simulated:0 does not support '
        'LogSoftmax', 'node "mean" is left to ONNX Runtime: simulated:0 ')
    assert text.count(': taken:') == 3, text


@case
def lines_of_sessions(arguments):
    """Each session begins with its time, the version and the model."""
    tested = model([node('Exp', 'x', 'y')], [('x', FLOAT, [2, 2])], 'y')
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'report')
        file = os.path.join(directory, 'exp.onnx')
        onnx.save(tested, file)
        for each in (tested, file):
            provider.session(each, 'cpu', explain=path)
        with open(path, encoding='utf-8') as written:
            lines = written.read().splitlines()
    start = r'session of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, Tandem \d\S+: model '
    assert len(lines) == 4, lines
    assert re.fullmatch(start + 'g', lines[0]), lines
    assert re.fullmatch(start + re.escape(file), lines[2]), lines


@case
def nodes_that_are_not_served(arguments):
    """The report counts them by operator and, if it is the reason, element type."""
    nodes = [node('Cast', 'x', 'd0', to=DOUBLE, name='cast')]
    for i in range(300):
        nodes.append(node('Add', 'd%d d0' % i, 'd%d' % (i + 1), name='add%d' % i))
    nodes += [node('Cast', 'd300', 'f', to=FLOAT, name='back'),
              node('Det', 'f', 'g', name='det'),
              node('Transpose', 'g', 'y', name='move')]
    tested = model(nodes, [('x', FLOAT, [4, 4, 4])], 'y')
    _, text = report(tested)
    assert text.splitlines()[1:] == [
        'not served, so left to ONNX Runtime: 2 Cast of double ("cast", ...), '
        '300 Add of double ("add0", ...), 1 Det ("det")',
        '1 other node left to ONNX Runtime: only shapes are computed, or data are '
        'moved'], text
    types = ('Shrink', 'Hardmax', 'Det', 'NonZero', 'LpNormalization',
             'Multinomial', 'RandomNormalLike', 'RandomUniformLike',
             'EyeLike')
    nodes = [node(each, 'x', ['y%d' % i]) for i, each in enumerate(types)]
    tested = model(nodes, [('x', FLOAT, [4, 4])], 'y0')
    tested.graph.output.extend(helper.make_tensor_value_info(
        'y%d' % i, {'NonZero': INT64, 'Multinomial': INT32}.get(each, FLOAT), None)
        for i, each in enumerate(types) if i > 0)
    _, text = report(tested)
    line, = [line for line in text.splitlines() if line.startswith('not served')]
    assert line.endswith(', and 1 other') and line.count('1 ') == 9, text
    # ONNX Runtime replaces Bernoulli by its function, and asks again. A group is not
    # an unserved node.
    tested = model([node('MatMul', 'x x', 'a'), node('Bernoulli', 'a', 'y')],
                   [('x', FLOAT, [4, 4])], 'y')
    _, text = report(tested, claim='all')
    assert ('\nnot served, so left to ONNX Runtime: 1 RandomUniformLike ('
            '"RandomUniformLike")\n') in text, text
    assert text.count('\nagain, after ONNX Runtime has replaced nodes by simpler '
                      'ones:\n') == 1, text
    tested = model([node('Neg', 'x', 'y')], [('x', FLOAT16, [4])], 'y')
    tested.graph.output[0].type.tensor_type.elem_type = FLOAT16
    _, text = report(tested)
    assert ('not served, so left to ONNX Runtime: 1 Neg of float16 ("node_y"); export '
            'the model in float32\n') in text, text


@case
def no_device_to_compare(arguments):
    """The report says why claim=cost leaves a large product to ONNX Runtime."""
    product = node('MatMul', 'x w', 'y')
    tested = model([product], [('x', FLOAT, [2048, 2048])], 'y',
                   [('w', weights(2048, 2048))])

    def check(device, *texts):
        _, text = report(tested, device=device)
        for each in texts + ('1 node', 'left to ONNX Runtime'):
            assert each in text, (each, text)
    check('cpu', 'claim=cost takes no nodes for the device cpu; claim=all')
    os.environ.update(TANDEM_BACKENDS='cpu')  # each context reads it
    # The CPU has a profile.
    check('auto', 'there is no GPU (cl-probe --doctor says why); claim=all')
    os.environ.update(TANDEM_BACKENDS='cpu,opencl')
    check('opencl', 'opencl:0 is not a GPU and was not measured', 'claim=all')
    check('auto', 'there is no GPU')
    os.environ.update(TANDEM_BACKENDS='cpu,simulated', TANDEM_TEST_PLUGIN='open=5')
    check('simulated', 'no time can be predicted for simulated:0; claim=all')


@case
def many_impossible_nodes(arguments):
    """Each of many nodes that can never run splits its group once."""
    nodes = []
    for i in range(20):
        nodes += [node('MatMul', ['x%d' % i, 'w'], ['m%d' % i]),
                  node('Reshape', ['m%d' % i, 's'], ['r%d' % i]),
                  node('MatMul', ['r%d' % i, 'v'], ['x%d' % (i + 1)])]
    tested = model(nodes, [('x0', FLOAT, ['b', 't', 1024])], 'x20',
                   [('w', weights(1024, 1024)), ('v', weights(8191, 1024)),
                    ('s', numpy.array([-1, 8191]))])
    _, text = report(tested)
    assert text.count('is left to ONNX Runtime: Reshape') == 20, text
    assert text.count(': taken:') == 21, text


@case
def devices_by_size(arguments):
    """Each run uses the device that is faster at its size."""
    tested = model([node('MatMul', 'x w', 'y')], [('x', FLOAT, [1, 't', 64])],
                   'y', [('w', weights(64, 64))])
    path = tempfile.mktemp()
    options = provider.session_options()
    options.add_provider_for_devices(provider.register(), {'explain': path})
    session = provider.onnxruntime.InferenceSession(
        tested.SerializeToString(), options, enable_fallback=0)
    for length, device in ((1024, 'simulated:0'), (1, 'cpu:0')):
        x = weights(1, length, 64)
        actual, = session.run(None, {'x': x})
        numpy.testing.assert_allclose(
            actual, x @ onnx.numpy_helper.to_array(tested.graph.initializer[0]),
            1e-3, 1e-3)
        with open(path, encoding='utf-8') as file:
            step = file.read().splitlines()[-1].split()
        assert step[:2] == ['gemm', device], (length, step)


@case
def cpu_computes_while_kernels_compile(arguments):
    """The report says so once, and lists the operators when they ran on the device."""
    os.environ['TANDEM_TEST_PLUGIN'] = 'ready=8'
    tested = model([node('Exp', 'x', 'a', name='exp'),
                    node('Softmax', 'a', 'y')], [('x', FLOAT, [4, 64])], 'y')
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'report')
        session = provider.session(tested, 'simulated', first_run='cpu', explain=path)
        for _ in range(30):
            session.run(None, {'x': weights(4, 64)})
            time.sleep(0.01)
        with open(path, encoding='utf-8') as file:
            lines = file.read().splitlines()
    assert lines[2:4] == [
        'group 1 (from node exp): computed on the CPU until kernels of 2 operators '
        'are compiled', 'group 1 (from node exp): 2 operators'], lines
    assert [line.split()[1] for line in lines[4:]] == ['simulated:0'] * 2, lines


@case
def device_of_the_environment(arguments):
    """TANDEM_DEVICE selects the device unless the option does."""
    tested = model([node('MatMul', 'x w', 'y')],
                   [('x', FLOAT, [1, 64])], 'y', [('w', weights(64, 64))])
    for option, variable, device in (('auto', '', 'cpu:0'),
                                     ('auto', 'simulated', 'simulated:0'),
                                     ('cpu:0', 'simulated', 'cpu:0')):
        os.environ['TANDEM_DEVICE'] = variable
        path = tempfile.mktemp()
        session = provider.session(tested, option, explain=path)
        session.run(None, {'x': weights(1, 64)})
        with open(path, encoding='utf-8') as file:
            step = file.read().splitlines()[-1].split()
        assert step[:2] == ['gemm', device], (option, variable, step)
        del session  # the next context reads the variable


@case
def compiled_models(arguments):
    """ModelCompiler says that it is not supported."""
    options = provider.session_options()
    options.add_provider_for_devices(provider.register(), {'claim': 'all'})
    try:
        onnxruntime.ModelCompiler(
            options, _detector().SerializeToString()).compile_to_bytes()
    except Exception as error:  # pylint: disable=broad-except
        assert 'not supported' in str(error), error
    else:
        raise AssertionError('no error')


@case
def batch_transposed_products(arguments):
    """FusedMatMul moves the first axis after the batch, then transposes."""
    flags = ('transBatchA', 'transA', 'transBatchB', 'transB')
    for rank, *values in itertools.product((3, 4), *[(0, 1)] * 4):
        batch_a, a, batch_b, b = values
        # The operands as [batch..., 5, 4] and [batch..., 4, 6].
        batch = (2, 3)[:rank - 2]
        left, right = weights(*batch, 5, 4), weights(*batch, 4, 6)
        feeds = {}
        for name, x, transposed, moved in (('a', left, a, batch_a),
                                           ('b', right, b, batch_b)):
            x = numpy.swapaxes(x, -1, -2) if transposed else x
            feeds[name] = numpy.moveaxis(x, -2, 0).copy() if moved else x.copy()
        product = node('FusedMatMul', 'a b', 'y', domain='com.microsoft',
                       **dict(zip(flags, values)))
        tested = model([product], [(name, FLOAT, x.shape)
                                   for name, x in feeds.items()], 'y')
        tested.opset_import.append(helper.make_opsetid('com.microsoft', 1))
        actual, = provider.session(tested, 'cpu').run(None, feeds)
        numpy.testing.assert_allclose(actual, left @ right, 1e-4, 1e-4)


if __name__ == '__main__':
    script_costs()
    sys.exit(child_cases.main('open_dimensions', __doc__))
