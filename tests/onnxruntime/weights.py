# SPDX-License-Identifier: Apache-2.0
"""Tests the memory that the weights of a model take, and weights in files.

Each case runs in a child process.  The exit status is 0 only if all cases
passed.

TANDEM_ONNXRUNTIME_PROVIDER holds the path of the provider library; see
provider.py.
"""

import functools
import gc
import os
import re
import sys
import tempfile

# More threads of numpy's BLAS would only take time from the provider.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import child_cases  # noqa: E402
import provider  # noqa: E402
import small_models  # noqa: E402
from child_cases import case, note, run_forked  # noqa: E402
from small_models import (BOOL, FLOAT, check_outputs, model, node,  # noqa
                          value)

WIDTH = 1024
LAYERS = 63  # of WIDTH x WIDTH elements, 252 MiB together
MIB = 2**20
# The peak of the memory relative to the weights.
MAX_PEAK = 1.2


# ---- models ----

def layers_model(weights):
    """Returns a model that multiplies x [n, WIDTH] with each weight."""
    nodes = [node('MatMul', 'h%d w%d' % (i, i), 'h%d' % (i + 1))
             for i in range(len(weights))]
    nodes[0].input[0] = 'x'
    nodes[-1].output[0] = 'y'
    return model(nodes, [value('x', FLOAT, ['n', WIDTH])], [value('y')],
                 weights)


def merged_model(weights):
    """Returns a model that multiplies x with each three weights, whose products
    the provider computes as one."""
    nodes, last = [], 'x'
    for i in range(0, len(weights), 3):
        nodes += [node('MatMul', [last, 'w%d' % k], 'p%d' % k)
                  for k in range(i, i + 3)]
        nodes += [node('Sub', 'p%d p%d' % (i, i + 1), 's%d' % i),
                  node('Sub', 's%d p%d' % (i, i + 2), 'h%d' % i)]
        last = 'h%d' % i
    nodes[-1].output[0] = 'y'
    return model(nodes, [value('x', FLOAT, ['n', WIDTH])], [value('y')],
                 weights)


def external_weight(name, offset, bytes_=WIDTH * WIDTH * 4,
                    location='weights.bin', shape=(WIDTH, WIDTH)):
    """Returns an initializer whose content is in a file."""
    weight = onnx.TensorProto(name=name, data_type=FLOAT, dims=shape,
                              data_location=onnx.TensorProto.EXTERNAL)
    for key, text in (('location', location), ('offset', offset),
                      ('length', bytes_)):
        weight.external_data.add(key=key, value=str(text))
    return weight


@functools.cache
def _random_layer():
    generator = numpy.random.default_rng(1)
    return (generator.standard_normal((WIDTH, WIDTH), numpy.float32) /
            WIDTH**0.5)


def layer(index):
    """Returns the content of a weight."""
    return numpy.roll(_random_layer(), index)


def write_external(folder, make_model=layers_model, layers=LAYERS):
    """Writes a model whose weights are in one file.  Returns its path."""
    with open(os.path.join(folder, 'weights.bin'), 'wb') as file:
        for i in range(layers):
            file.write(layer(i).tobytes())
    path = os.path.join(folder, 'model.onnx')
    onnx.save(make_model([external_weight('w%d' % i, i * WIDTH * WIDTH * 4)
                          for i in range(layers)]), path)
    return path


def inline_weights(layers):
    return [numpy_helper.from_array(layer(i), 'w%d' % i)
            for i in range(layers)]


def write_inline(folder, make_model=layers_model, layers=LAYERS):
    """Writes a model that contains its weights.  Returns its path."""
    path = os.path.join(folder, 'model.onnx')
    onnx.save(make_model(inline_weights(layers)), path)
    return path


def some_input(rows=4):
    generator = numpy.random.default_rng(rows)
    return {'x': generator.standard_normal((rows, WIDTH), numpy.float32)}


# ---- memory ----

def memory_mib(key):
    """Returns a size from the status of this process: VmRSS or VmHWM."""
    with open('/proc/self/status') as file:
        return int(re.search(r'%s:\s+(\d+) kB' % key, file.read()).group(1)) / 1024


def check_peak(arguments, path, weights_mib=LAYERS * WIDTH * WIDTH * 4 / MIB):
    """Opens and runs a session in a process that did not hold the weights
    before."""
    warm_up = small_models.open_session(small_models.perceptron(),
                                        arguments.device)
    warm_up.run(None, small_models.perceptron_input(4))
    before = memory_mib('VmRSS')
    session = provider.session(path, arguments.device)
    created = memory_mib('VmHWM')
    outputs = session.run(None, some_input())
    peak = memory_mib('VmHWM') - before
    note('weights of %.0f MiB: the memory grew by %.0f MiB until the session '
         'was created, by %.0f MiB until it had run' % (
             weights_mib, created - before, peak))
    if arguments.device != 'cpu':  # the device has copies in this process
        peak = created - before
    assert peak <= MAX_PEAK * weights_mib, (
        'the memory grew by %.0f MiB' % peak)
    return outputs


def check_model(arguments, write):
    """Writes a model in another process, runs it, and compares the result in a
    third one."""
    with tempfile.TemporaryDirectory() as folder:
        problem = run_forked(lambda: write(folder))
        assert problem is None, problem
        path = os.path.join(folder, 'model.onnx')
        outputs = check_peak(arguments, path)
        expected = provider.cpu_session(path).run(None, some_input())
        difference = numpy.abs(outputs[0] - expected[0]).max()
        assert difference <= 1e-4 * numpy.abs(expected[0]).max(), difference


@case
def peak_with_weights_in_a_file(arguments):
    """Weights in a file are mapped, not copied."""
    check_model(arguments, write_external)


@case
def peak_with_merged_weights_in_a_file(arguments):
    """Weights whose products are computed as one are copied one after the
    other."""
    check_model(arguments,
                lambda folder: write_external(folder, merged_model))


@case
def peak_with_weights_in_the_model(arguments):
    """ONNX Runtime's copy of the weights is used."""
    check_model(arguments, write_inline)


@case
def sessions_with_weights_in_the_model(arguments):
    """A session that ends does not take weights from others, in any order."""
    tested = layers_model(inline_weights(3))
    expected = provider.cpu_session(tested).run(None, some_input())
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)):
        sessions = [provider.session(tested, arguments.device)
                    for _ in range(4)]
        for number in order:
            for session in sessions:
                if session is not None:
                    check_outputs(session.run(None, some_input()), expected)
            sessions[number] = session = None
            gc.collect()
            # Overwrites memory that a session freed.
            numpy.full((3, WIDTH, WIDTH), numpy.nan, numpy.float32)


@case
def groups_share_weights_in_the_model(arguments):
    """Two groups of a session, and the branches of If, use one weight."""
    branch = [helper.make_graph([node('MatMul', ['a', weight], 'r' + weight)],
                                weight, [], [value('r' + weight)])
              for weight in ('w0', 'w1')]
    tested = model(
        [node('MatMul', 'x w0', 'b'),
         node('Tan', 'b', 't'),  # Tandem does not serve it
         node('MatMul', 't w0', 'a'),
         node('If', 'condition', 'y', then_branch=branch[0],
              else_branch=branch[1])],
        [value('x', FLOAT, [1, WIDTH]), value('condition', BOOL, [])],
        [value('y')], inline_weights(2))
    reference = provider.cpu_session(tested)
    session = provider.session(tested, arguments.device, fallback=True)
    for condition in (True, False, True):
        feeds = {'x': some_input(1)['x'] / 9,
                 'condition': numpy.array(condition)}
        check_outputs(session.run(None, feeds), reference.run(None, feeds))


@case
def weights_of_the_program(arguments):
    """A program replaces a weight of the model by one of its own."""
    tested = layers_model(inline_weights(2)).SerializeToString()
    other = layer(7)
    options = provider.session_options()
    tensor = onnxruntime.OrtValue.ortvalue_from_numpy(other)
    options.add_initializer('w1', tensor)  # does not keep the tensor
    options.add_provider_for_devices(
        provider.register(), {'device': arguments.device, 'claim': 'all'})
    session = onnxruntime.InferenceSession(tested, options)
    for rows in (4, 5):
        feeds = some_input(rows)
        check_outputs(session.run(None, feeds),
                      [feeds['x'] @ layer(0) @ other])


@case
def merged_weights_in_the_model(arguments):
    """Weights whose products are computed as one, some of which are used
    alone, too."""
    tested = merged_model(inline_weights(3))
    tested.graph.node.extend([node('MatMul', 'y w1', 'z'),
                              node('MatMul', 'z w3', 'end')])
    tested.graph.initializer.extend(inline_weights(4)[3:])
    tested.graph.output.append(value('end'))
    expected = provider.cpu_session(tested).run(None, some_input())
    for _ in range(2):
        session = provider.session(tested, arguments.device)
        check_outputs(session.run(None, some_input()), expected)
        check_outputs(session.run(None, some_input()), expected)


@case
def sessions_share_weights_in_a_file(arguments):
    """Three more sessions of a model do not read its weights again."""
    with tempfile.TemporaryDirectory() as folder:
        problem = run_forked(lambda: write_external(folder))
        assert problem is None, problem
        path = os.path.join(folder, 'model.onnx')
        sessions = [provider.session(path, arguments.device)]
        expected = sessions[0].run(None, some_input())
        before = memory_mib('VmRSS')
        for _ in range(3):
            sessions.append(provider.session(path, arguments.device))
            check_outputs(sessions[-1].run(None, some_input()), expected)
        growth = memory_mib('VmRSS') - before
        note('three more sessions: the memory grew by %.0f MiB' % growth)
        assert growth <= 32, growth
        del sessions[0]
        check_outputs(sessions[-1].run(None, some_input()), expected)
        sessions.clear()
        gc.collect()
        released = before - memory_mib('VmRSS')
        if arguments.device == 'cpu':  # other devices keep memory in pools
            assert released >= 200, 'only %.0f MiB are released' % released


@case
def file_is_replaced_or_removed(arguments):
    """Sessions keep the file that they opened; a new session opens the new
    one."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_external(folder, layers=2)
        first = provider.session(path, arguments.device)
        expected = provider.cpu_session(path).run(None, some_input())
        weights = os.path.join(folder, 'weights.bin')
        with open(weights + '.new', 'wb') as file:
            for i in (5, 6):
                file.write(layer(i).tobytes())
        os.replace(weights + '.new', weights)
        second = provider.session(path, arguments.device)
        check_outputs(first.run(None, some_input()), expected)
        replaced = provider.cpu_session(path).run(None, some_input())
        os.remove(weights)
        check_outputs(second.run(None, some_input()), replaced)
        check_outputs(first.run(None, some_input(7)), [
            some_input(7)['x'] @ layer(0) @ layer(1)])


@case
def file_is_found(arguments):
    """The path of a file is relative to the model, and a model in memory can
    name the directory."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_external(folder, layers=2)
        expected = provider.cpu_session(path).run(None, some_input())
        os.mkdir(os.path.join(folder, 'other'))
        for directory, relative in ((folder, 'model.onnx'),
                                    (folder + '/other', '../model.onnx'),
                                    ('/', path)):
            os.chdir(directory)
            session = provider.session(relative, arguments.device)
            check_outputs(session.run(None, some_input()), expected, relative)
        with open(path, 'rb') as file:
            content = file.read()
        session = provider.session(content, arguments.device, config={
            'session.model_external_initializers_file_folder_path': folder})
        check_outputs(session.run(None, some_input()), expected, 'in memory')
        os.chdir('/')


BYTES = WIDTH * WIDTH * 4
# Weights whose place in the file is unusual or wrong.  %s stands for the
# directory above that of the model.
PLACES = {
    'the first': {},
    'the second': {'offset': BYTES},
    'beyond the end': {'offset': 10 * BYTES},
    'partly beyond the end': {'offset': BYTES + 4},
    'negative offset': {'offset': -4},
    'largest offset': {'offset': 2**63 - 1},
    'too large offset': {'offset': 2**64},
    'offset is no number': {'offset': 'x'},
    'smaller than the shape': {'bytes_': BYTES - 4},
    'larger than the shape': {'bytes_': BYTES + 4},
    'largest size': {'bytes_': 2**63 - 1},
    'no size': {'bytes_': 0},
    'odd offset': {'location': 'shifted1', 'offset': 1},
    'offset without alignment': {'location': 'shifted6', 'offset': 6},
    'missing file': {'location': 'missing'},
    'empty file': {'location': 'empty'},
    'directory': {'location': 'directory'},
    'no name': {'location': ''},
    'through a directory': {'location': 'directory/../weights.bin'},
    'symbolic link': {'location': 'link'},
    'link to another directory': {'location': 'outward_link'},
    'other directory': {'location': '../other/weights.bin'},
    'other directory, second': {'location': '../other/weights.bin',
                                'offset': BYTES},
    'absolute path': {'location': '%s/other/weights.bin'},
    'absolute path of the model': {'location': '%s/model/weights.bin'},
    'small file elsewhere': {
        'location': '../../../../../../../../etc/passwd'},
    'memory of the process': {'location': '../../../../../../proc/self/mem'},
    'negative shape': {'shape': (-WIDTH, -WIDTH)},
    'empty shape': {'shape': (WIDTH, 0), 'bytes_': 0},
}


def outcome(make_session):
    """Returns the outputs of a model, or the text of its error."""
    try:
        return make_session().run(None, some_input())
    except Exception as error:
        return str(error)


@case
def places_in_a_file(arguments):
    """Wrong places are errors of the CPU provider, too, and the message names
    the weight or what is wrong; other places are read."""
    with tempfile.TemporaryDirectory() as above:
        folder, other = (os.path.join(above, name)
                         for name in ('model', 'other'))
        os.mkdir(folder)
        os.mkdir(other)
        path = write_external(folder, layers=2)
        os.link(os.path.join(folder, 'weights.bin'),
                os.path.join(other, 'weights.bin'))
        for name, shift in (('empty', 0), ('shifted1', 1), ('shifted6', 6)):
            with open(os.path.join(folder, name), 'wb') as file:
                file.write(bytes(shift))
                file.write(layer(0).tobytes() if shift else b'')
        os.mkdir(os.path.join(folder, 'directory'))
        os.symlink('weights.bin', os.path.join(folder, 'link'))
        os.symlink('../other/weights.bin',
                   os.path.join(folder, 'outward_link'))
        for name, place in PLACES.items():
            weight = external_weight('w0', **{
                'offset': 0, **place, 'location': place.get(
                    'location', 'weights.bin').replace('%s', above)})
            onnx.save(layers_model([weight]), path)
            expected = outcome(lambda: provider.cpu_session(path))
            actual = outcome(lambda: provider.session(path, arguments.device,
                                                      fallback=True))
            if isinstance(expected, str):
                assert actual == expected, '%s: %s' % (name, actual)
            else:
                assert not isinstance(actual, str), '%s: %s' % (name, actual)
                check_outputs(actual, expected, name)


if __name__ == '__main__':
    sys.exit(child_cases.main('weights', __doc__))
