# SPDX-License-Identifier: Apache-2.0
"""Tests Tandem's provider with broken models, inputs and options.

Each case runs in a child process.  The provider must report an error that names
the cause, or compute what ONNX Runtime's CPU provider computes.  A crash or a
hang is one failed case.  The exit status is 0 only if all cases passed.

TANDEM_ONNXRUNTIME_PROVIDER holds the path of the provider library; see
provider.py.  --opencl-layer is needed to test devices that fail: it is the path
of the layer that tests/opencl-layer builds.
"""

import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import random
import sys
import tempfile
import time

# More threads of numpy's BLAS would only take time from the provider.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import numpy  # noqa: E402
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import child_cases  # noqa: E402
import provider  # noqa: E402
import small_models  # noqa: E402
from child_cases import Skipped, case, note  # noqa: E402
from small_models import (BOOL, FLOAT, INT64, check_outputs, constant,  # noqa
                          expect_error, model, node, open_session, value)

VARIANTS = 100  # corrupted models, unless --variants is given
MAX_FLIPPED_BYTES = 8
CHAIN = 2000  # nodes
MEMORY_GIB = 64  # address space in tests of huge sizes
HUGE = 1 << 40
MAX_SQUARED = 1e18
# Older CPU providers do not broadcast all scales of LayerNormalization.
BROADCAST_VERSION = (1, 32)
MAX_OPTION_BYTES = 511


# ---- helpers ----

def floats(*shape, seed=0):
    """Returns random floats."""
    generator = numpy.random.default_rng(seed)
    return generator.normal(0, 1, shape).astype(numpy.float32)


def integers(*values):
    return numpy.array(values, numpy.int64)


def compare(arguments, tested, feeds, **options):
    """Runs the model with the provider and with the CPU provider."""
    session = open_session(tested, arguments.device, **options)
    expected = provider.cpu_session(tested).run(None, feeds)
    check_outputs(session.run(None, feeds), expected)
    return session


def creation_error(tested, device, *texts, **options):
    """Makes a session, which must fail with a message that has all texts."""
    return expect_error(lambda: open_session(tested, device, **options), *texts)


def good_and_bad(arguments, tested, good, bad, *texts, **options):
    """Runs good inputs, then bad ones that must fail with a message that has
    all texts, then good ones again."""
    session = open_session(tested, arguments.device, **options)
    expected = provider.cpu_session(tested).run(None, good)
    for feeds in bad:
        check_outputs(session.run(None, good), expected)
        message = expect_error(lambda: session.run(None, feeds), *texts)
    check_outputs(session.run(None, good), expected)
    return message


def outcome(make_session, feeds):
    """Returns the outputs of a model, or the text of its error."""
    try:
        return make_session().run(None, feeds)
    except Exception as error:
        return '%s: %s' % (type(error).__name__, error)


def check_outcome(actual, expected, what=''):
    """Compares outcomes: if one provider reports an error, the other must,
    too."""
    if isinstance(expected, str) and isinstance(actual, str):
        return
    assert not isinstance(expected, str) and not isinstance(actual, str), (
        '%s: the CPU provider: %.300s; Tandem: %.300s' %
        (what, expected, actual))
    check_outputs(actual, expected, what)


def compare_outcomes(arguments, tested, feeds, what):
    """Runs the model with both providers, which may both report an error."""
    expected = outcome(lambda: provider.cpu_session(tested), feeds)
    actual = outcome(lambda: open_session(tested, arguments.device,
                                          fallback=True), feeds)
    check_outcome(actual, expected, what)


def untyped(name):
    """Returns the description of an output whose dtype is inferred."""
    return onnx.ValueInfoProto(name=name)


# ---- corrupted files ----

def _squares_overflow(content):
    """Returns true if the square of a weight is beyond the range of f32.

    Variances then overflow in the CPU provider, but not in Tandem, which scales
    the rows.  The results of both differ.
    """
    if isinstance(content, str):  # a file
        return False
    weights = onnx.load_from_string(content).graph.initializer
    return any(
        each.data_type == FLOAT and
        numpy.any(numpy.abs(numpy_helper.to_array(each)) > MAX_SQUARED)
        for each in weights)


def _compare_corrupted(content, device, feeds, claim='all'):
    """Runs a corrupted model with both providers."""
    child_cases.limit_memory(MEMORY_GIB)
    expected = outcome(lambda: provider.cpu_session(content, optimize=True),
                       feeds)
    actual = outcome(lambda: open_session(content, device, fallback=True,
                                          claim=claim), feeds)
    if (provider.version() < BROADCAST_VERSION and isinstance(expected, str) and
            'Size of scale and bias' in expected):
        return
    if isinstance(expected, list) and _squares_overflow(content):
        assert isinstance(actual, list), actual
        assert [each.shape for each in actual] == [
            each.shape for each in expected]
    else:
        check_outcome(actual, expected)


def _run_variants(arguments, variants, feeds):
    """Runs each variant in its own process."""
    failures = []
    for number, content in enumerate(variants):
        claim = 'all' if number % 3 else 'cost'
        failure = child_cases.run_forked(
            lambda: _compare_corrupted(content, arguments.device, feeds, claim))
        if failure is not None:
            failures.append('variant %d: %s' % (number, failure))
    assert not failures, '%d of %d variants failed\n%s' % (
        len(failures), len(variants), '\n'.join(failures))


@case
def corrupted_bytes(arguments):
    """Random bytes of a model are changed."""
    content = small_models.transformer().SerializeToString()
    generator = random.Random(arguments.seed)
    variants = []
    for _ in range(arguments.variants):
        changed = bytearray(content)
        for _ in range(generator.randint(1, MAX_FLIPPED_BYTES)):
            changed[generator.randrange(len(changed))] ^= (
                1 << generator.randrange(8))
        variants.append(bytes(changed))
    _run_variants(arguments, variants, small_models.transformer_input(2, 5))


def _change_integers(generator, tensor):
    tensor.raw_data = numpy.full(tensor.dims, generator.choice(
        [-9, -1, 0, 5, HUGE]), numpy.int64).tobytes()


def _structure_variant(generator):
    """Returns the model with changed attributes, dimensions and connections,
    which a change of random bytes rarely hits."""
    changed = small_models.transformer()
    nodes = changed.graph.node
    for _ in range(generator.randint(1, 3)):
        chosen = generator.choice(nodes)
        kind = generator.randrange(4)
        if kind == 0 and chosen.input:
            chosen.input[generator.randrange(len(chosen.input))] = (
                generator.choice([name for each in nodes for name in each.input]))
        elif kind == 1 and chosen.attribute:
            attribute = generator.choice(chosen.attribute)
            if attribute.t.data_type == INT64:
                _change_integers(generator, attribute.t)
            elif attribute.ints:
                attribute.ints[generator.randrange(len(attribute.ints))] = (
                    generator.choice([-9, -1, 0, 1, 7, 2**30]))
            else:
                attribute.i = generator.choice([-9, -1, 0, 1, 7, 2**30])
        elif kind == 2:
            weight = generator.choice(changed.graph.initializer)
            if weight.dims:
                weight.dims[generator.randrange(len(weight.dims))] = (
                    generator.choice([0, 1, 3, HUGE]))
        else:
            _change_integers(generator, generator.choice(
                [each.attribute[0].t for each in nodes
                 if each.op_type == 'Constant' and
                 each.attribute[0].t.data_type == INT64]))
    return changed.SerializeToString()


@case
def corrupted_structure(arguments):
    """Inputs, attributes, dimensions and integers of a model are changed."""
    generator = random.Random(arguments.seed)
    _run_variants(arguments,
                  [_structure_variant(generator)
                   for _ in range(arguments.variants)],
                  small_models.transformer_input(2, 5))


@case
def truncated_files(arguments):
    """Model files end too early."""
    content = small_models.transformer().SerializeToString()
    generator = random.Random(arguments.seed)
    lengths = [0, 1, 2, 10, len(content) - 1, len(content) - 2]
    lengths += [generator.randrange(len(content)) for _ in range(30)]

    def run(length):
        with tempfile.NamedTemporaryFile(suffix='.onnx') as file:
            file.write(content[:length])
            file.flush()
            _compare_corrupted(file.name, arguments.device,
                               small_models.transformer_input(1, 3))
    for length in lengths:
        failure = child_cases.run_forked(lambda: run(length))
        assert failure is None, '%d bytes: %s' % (length, failure)


# ---- operators and opsets ----

def _exp_model(**options):
    return model([node('Exp', 'x', 'y')], [value('x', FLOAT, ['n'])],
                 [value('y')], **options)


@case
def unknown_opset(arguments):
    """The model needs a newer operator set than ONNX Runtime knows."""
    creation_error(_exp_model(opset=999), arguments.device, fallback=True)


@case
def unknown_operator(arguments):
    """An unknown operator is between two that the provider serves."""
    for domain in ('', 'com.example'):
        tested = model(
            [node('Exp', 'x', 'a'),
             node('Frobnicate', 'a', 'b', domain=domain), node('Neg', 'b', 'y')],
            [value('x', FLOAT, ['n'])], [value('y')],
            domains=[domain] if domain else [])
        creation_error(tested, arguments.device, 'Frobnicate', fallback=True)


@case
def operator_without_kernel(arguments):
    """A known operator that nobody runs is between two that are served."""
    tested = model(
        [node('Neg', 'x', 'a'), node('Hardmax', 'a', 'b'), node('Neg', 'b', 'y')],
        [value('x', FLOAT, ['n'])], [value('y')])
    creation_error(tested, arguments.device, 'fallback')
    compare(arguments, tested, {'x': floats(5)}, fallback=True)


@case
def activation_without_parameters(arguments):
    """The CPU provider, to which this node is left, refuses it."""
    tested = model(
        [node('FusedConv', 'x w', 'y', domain='com.microsoft',
              activation='LeakyRelu')],
        [value('x', FLOAT, [1, 2, 5, 5])], [value('y')],
        initializers=[numpy_helper.from_array(floats(3, 2, 3, 3), 'w')],
        domains=['com.microsoft'])
    creation_error(tested, arguments.device, fallback=True)


@case
def rank_nine(arguments):
    """Tensors of rank 9, also between served nodes, are left to the CPU provider."""
    tested = model(
        [node('Exp', 'x', 'a'), node('Reshape', 'a shape', 'b'),
         node('Neg', 'b', 'c'), node('ReduceMax', 'c', 'y', keepdims=0)],
        [value('x', FLOAT, [4, 4])], [value('y'), value('c')],
        [constant('shape', [2, 1, 2, 1, 2, 1, 2, 1, 1], numpy.int64)])
    compare(arguments, tested, {'x': floats(4, 4)}, fallback=True)


@case
def rank_nine_at_run_time(arguments):
    """An input of unknown rank has rank 8 or 9 when the model runs."""
    tested = model([node('Exp', 'x', 'y')], [value('x')], [value('y')])
    session = open_session(tested, arguments.device, fallback=True)
    x = floats(*[1] * 8)
    check_outputs(session.run(None, {'x': x}), [numpy.exp(x)])
    result = outcome(lambda: session, {'x': floats(*[1] * 9)})
    note('rank 9: %s' % (result if isinstance(result, str) else 'computed'))
    if isinstance(result, str):
        assert '8' in result and 'axes' in result, result
    check_outputs(session.run(None, {'x': x}), [numpy.exp(x)])


# ---- wrong inputs at run time ----

@case
def wrong_inputs(arguments):
    """Inputs have another dtype, rank, length or name than the model says."""
    tested = small_models.perceptron()
    good = small_models.perceptron_input(3)
    bad = [{'x': good['x'].astype(numpy.float64)},
           {'x': good['x'].astype(numpy.int64)}, {'x': good['x'][0]},
           {'x': good['x'][:, :-1]}, {'x': good['x'][None]}, {'z': good['x']},
           {}, {'x': None}, {'x': 'text'}, {'x': [['a'] * 64]}]
    good_and_bad(arguments, tested, good, bad)


@case
def lengths_that_do_not_fit(arguments):
    """Inputs of unknown shape do not fit each other when the model runs."""
    a, b = floats(3, 4), floats(5, 6)
    mask = numpy.array([True, False, True])
    for op_type, good, bad in (('Add', (a, a), (a, b)),
                               ('MatMul', (a, floats(4, 2)), (a, b)),
                               ('Where', (mask, a.T, a.T), (mask, a.T, b))):
        names = ['c', 'x', 'z'][-len(good):]
        tested = model([node(op_type, names, 'y')],
                       [value(name, provider.element_type(array.dtype))
                        for name, array in zip(names, good)], [value('y')])
        good_and_bad(arguments, tested, dict(zip(names, good)),
                     [dict(zip(names, bad))], 'node_y')


@case
def failed_run_keeps_the_session(arguments):
    """A run with bad values does not replace Python's session by one of the
    CPU provider, as it does if the provider returns ORT_EP_FAIL."""
    tested = _parameter_model('Reshape', 'x shape', shape=[2])
    session = provider.session(tested, arguments.device)
    session.enable_fallback()  # the default of Python's class
    good = {'x': floats(4, 3), 'shape': integers(6, 2)}
    session.run(None, good)
    bad = {'x': floats(4, 3), 'shape': integers(5, 2)}
    expect_error(lambda: session.run(None, bad), 'node_r')
    assert session.get_providers()[0] == provider.PROVIDER, (
        session.get_providers())
    check_outputs(session.run(None, good), [numpy.exp(good['x'].reshape(6, 2))])


def _parameter_model(op_type, names, outputs='r', **parameters):
    """Returns a model of one operator between others, whose parameters are
    inputs of the model.  parameters: the shape of each."""
    inputs = [value('x', FLOAT, ['a', 'b'])]
    inputs += [value(name, INT64, shape) for name, shape in parameters.items()]
    return model([node(op_type, names, outputs), node('Exp', 'r', 'y')],
                 inputs, [value('y')])


# Operators whose second input is an input of the model: the operator, its outputs,
# x, good integers, and bad ones.
PARAMETERS = [
    ('Reshape', 'r', floats(4, 3), [2, -1],
     [[5, 2], [-1, 5], [-2, 6], [-1, -1], [0, 0, 0], [12, 0], [HUGE, HUGE],
      [HUGE, HUGE, -1], [-1, 0, HUGE], [1] * 8 + [12], [-2**63, -2**63, -1], [],
      [-12, -1]]),
    ('Squeeze', 'r', floats(1, 3), [0],
     [[2], [-3], [1], [HUGE], [-2**63], [0, 5]]),
    ('Unsqueeze', 'r', floats(1, 3), [0],
     [[3], [-4], [HUGE], [0, 0], [0, -4], range(7)]),
    ('ReduceSum', 'r', floats(1, 3), [0], [[2], [-3], [HUGE], [0, 7]]),
    ('Split', 'r s', floats(6, 2), [2, 4],
     [[3, 4], [7, -1], [0, 0], [HUGE, 6 - HUGE], [2**63 - 1, -2**63 + 7]]),
    ('Expand', 'r', floats(3, 1), [3, 4],
     [[2, 2], [3, -1], [-3, 1], [1] * 9, [HUGE, HUGE, 1, 1]])]


@case
def parameters_that_do_not_fit(arguments):
    """Shapes, axes and lengths are inputs of the model and do not fit."""
    for op_type, outputs, x, good, bad in PARAMETERS:
        count = len(good) if op_type == 'Split' else 'k'
        tested = _parameter_model(op_type, 'x p', outputs, p=[count])
        good_and_bad(arguments, tested, {'x': x, 'p': integers(*good)},
                     [{'x': x, 'p': integers(*each)} for each in bad], 'node_r')


def _slice_positions(start, end, step, length):
    """Returns the positions that ONNX's Slice selects on an axis.

    ONNX Runtime's CPU provider differs from ONNX if the end is 2^31 - 1 or
    2^63 - 1 and the step is negative: it sees that as the first element.
    """
    start += length if start < 0 else 0
    end += length if end < 0 else 0
    if step > 0:
        return list(range(min(max(start, 0), length),
                          min(max(end, 0), length), step))
    return list(range(min(max(start, 0), length - 1),
                      min(max(end, -1), length - 1), step))


@case
def slice_out_of_range(arguments):
    """Axes and steps of Slice are inputs of the model and out of range."""
    x = floats(4, 5)
    tested = _parameter_model('Slice', 'x starts ends axes steps', starts=['k'],
                              ends=['k'], axes=['k'], steps=['k'])

    def feeds(starts, ends, axes, steps, x=x):
        return {'x': x, 'starts': integers(*starts), 'ends': integers(*ends),
                'axes': integers(*axes), 'steps': integers(*steps)}
    bad = [feeds([0], [2], [2], [1]), feeds([0], [2], [-3], [1]),
           feeds([0], [2], [2**31], [1]), feeds([0], [2], [0], [0]),
           feeds([0, 0], [2, 2], [0, 9], [1, 1]),
           feeds([0], [2], [-2**63], [1])]
    good_and_bad(arguments, tested, feeds([0], [3], [1], [2]), bad, 'node_r')
    session = open_session(tested, arguments.device)
    limits = [-2**63, -2**63 + 1, -6, -5, -4, -1, 0, 1, 4, 5, 6, 2**63 - 1]
    steps = (1, -1, 3, -3, 2**63 - 1, -2**63 + 1)
    for each, start, end, step in itertools.product((x, x[:, :0]), limits, limits,
                                                    steps):
        positions = _slice_positions(start, end, step, each.shape[1])
        check_outputs(session.run(None, feeds([start], [end], [1], [step], each)),
                      [numpy.exp(each[:, positions])],
                      '%d:%d:%d of %d' % (start, end, step, each.shape[1]))


@case
def huge_tensors(arguments):
    """Expand makes tensors of 2^40 elements."""
    child_cases.limit_memory(MEMORY_GIB)
    x = floats(3, 1)
    feeds = [{'x': x, 'shape': integers(3, HUGE)},
             {'x': x, 'shape': integers(HUGE, 3, 1)}]
    good = {'x': x, 'shape': integers(3, 4)}
    tested = _parameter_model('Expand', 'x shape', shape=['k'])
    print(good_and_bad(arguments, tested, good, feeds))
    tested = model([node('Expand', 'x shape', 'y')],
                   [value('x', FLOAT, ['a', 'b']), value('shape', INT64, ['k'])],
                   [value('y')])
    print(good_and_bad(arguments, tested, good, feeds))
    tested = model([node('ConstantOfShape', 'shape', 'c'), node('Exp', 'c', 'y')],
                   [value('shape', INT64, ['k'])], [value('y')])
    print(good_and_bad(arguments, tested, {'shape': integers(3)},
                       [{'shape': integers(HUGE)},
                        {'shape': integers(HUGE, 3)},
                        {'shape': integers(-4)}]))


@case
def gather_out_of_range(arguments):
    """Indices of Gather are out of range when the model runs.  The CPU
    provider reports an error; Tandem writes NaN or 0 to these rows."""
    x = floats(4, 3)
    tested = model([node('Gather', 'x i', 'r'), node('Neg', 'r', 'y')],
                   [value('x', FLOAT, ['a', 'b']), value('i', INT64, ['k'])],
                   [value('y')])
    session = compare(arguments, tested, {'x': x, 'i': integers(0, -4, 3)})
    for bad in (4, -5, HUGE, 2**63 - 1, -2**63):
        result = outcome(lambda: session, {'x': x, 'i': integers(1, bad, -1)})
        if isinstance(result, str):
            assert 'node_r' in result, result
            note('index %d: %s' % (bad, result))
            continue
        rows = result[0]
        check_outputs([rows[0], rows[2]], [-x[1], -x[3]])
        assert numpy.all(numpy.isnan(rows[1]) | (rows[1] == 0)), rows
        note('index %d: %s' % (bad, rows[1]))
    check_outputs(session.run(None, {'x': x, 'i': integers(2)}), [-x[2:3]])


@case
def gather_of_a_shape_out_of_range(arguments):
    """An index into the shape of a tensor is out of range at run time."""
    tested = model(
        [node('Shape', 'x', 's'), node('Gather', 's i', 'g'),
         node('Reshape', 'x g', 'r'), node('Neg', 'r', 'y')],
        [value('x', FLOAT), value('i', INT64, [2])], [value('y')])
    x = floats(2, 3)
    good_and_bad(arguments, tested, {'x': x, 'i': integers(1, 0)},
                 [{'x': x, 'i': integers(0, 2)}, {'x': x, 'i': integers(0, -3)},
                  {'x': x, 'i': integers(-2**63, 0)}], 'node_g',
                 fallback=True)
    tested = model(
        [node('Shape', 'x', 's'), node('Gather', 's i', 'g'),
         node('Concat', 'g rest', 'c', axis=0), node('Reshape', 'x c', 'r'),
         node('Neg', 'r', 'y')],
        [value('x', FLOAT)], [value('y')],
        [constant('i', [1], numpy.int64), constant('rest', [-1], numpy.int64)])
    good_and_bad(arguments, tested, {'x': x}, [{'x': x[0]}], 'node_g')


@case
def range_with_extreme_limits(arguments):
    """Range gets limits whose difference is beyond int64, or step 0."""
    tested = model(
        [node('Range', 'start limit delta', 'r'),
         node('Cast', 'r', 'y', to=FLOAT)],
        [value(name, INT64, []) for name in ('start', 'limit', 'delta')],
        [value('y')])

    def feeds(*numbers):
        return dict(zip(('start', 'limit', 'delta'),
                        [numpy.array(each, numpy.int64) for each in numbers]))
    low, high = -2**63, 2**63 - 1
    child_cases.limit_memory(MEMORY_GIB)
    good_and_bad(arguments, tested, feeds(1, 8, 2),
                 [feeds(low, high, 1), feeds(high, low, -1), feeds(1, 8, 0),
                  feeds(0, HUGE, 1)])
    session = open_session(tested, arguments.device)
    # ONNX Runtime 1.30 computes 0 elements for the limit `high`.
    for each in ((0, -5, 1), (0, 5, -1), (5, 0, -2), (high - 4, high, 3),
                 (0, 0, 1)):
        check_outputs(session.run(None, feeds(*each)),
                      [numpy.array(range(*each), numpy.float32)])


@case
def parameters_of_many_elements(arguments):
    """Integers that are computed on the host have many elements."""
    tested = model(
        [node('Range', 'zero n one', 'r'), node('Cast', 'r', 'y', to=FLOAT)],
        [value('n', INT64, [])], [value('y')],
        [constant('zero', 0, numpy.int64), constant('one', 1, numpy.int64)])
    session = open_session(tested, arguments.device)
    for count in (1000, 65536, 65537, 200000):
        check_outputs(session.run(None, {'n': numpy.array(count)}),
                      [numpy.arange(count, dtype=numpy.float32)])
    fill = helper.make_tensor('fill', INT64, [1], [7])
    tested = model(
        [node('ConstantOfShape', 'shape', 'c', value=fill),
         node('Cast', 'c', 'y', to=FLOAT)],
        [value('shape', INT64, ['k'])], [value('y')])
    session = open_session(tested, arguments.device)
    for shape in ((3, 4), (256, 256), (300, 300)):
        check_outputs(session.run(None, {'shape': integers(*shape)}),
                      [numpy.full(shape, 7, numpy.float32)])


def _normalized(op_type, x):
    """Normalizes the rows of an array."""
    if op_type == 'LayerNormalization':
        x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _check_scale(arguments, op_type, inputs, shape):
    """Tests a scale or, as the third input, a bias of a shape."""
    x = floats(2, 3, 4)
    tested = model([node(op_type, inputs, 'y')],
                   [value(name) for name in inputs.split()],
                   [value('y')],
                   opset=23 if op_type == 'RMSNormalization' else 17)
    feeds = {'x': x, 'g': floats(4), 's': floats(*shape, seed=1)}
    feeds = {name: feeds[name] for name in inputs.split()}
    what = '%s of %s, s of shape %s' % (op_type, inputs, shape)
    result = outcome(lambda: open_session(tested, arguments.device), feeds)
    if isinstance(result, str):
        # The rank may exceed that of x by no axes, so this may be an error.
        assert len(shape) > x.ndim, '%s: %s' % (what, result)
        return
    expected = _normalized(op_type, x) * feeds.get('g', 1)
    scale = feeds['s'].reshape(shape[-x.ndim:])
    expected = expected + scale if 'g' in feeds else expected * scale
    check_outputs(result, [expected.astype(numpy.float32)], what)


@case
def ranks_of_scales(arguments):
    """Scales and biases have other ranks than usual.  The reference is numpy,
    because old versions of the CPU provider do not broadcast all of them."""
    for shape in ((4,), (1,), (1, 4), (3, 4), (3, 1), (2, 3, 4), (2, 1, 4),
                  (1, 3, 1), (1, 1, 1, 4)):
        _check_scale(arguments, 'LayerNormalization', 'x s', shape)
        _check_scale(arguments, 'LayerNormalization', 'x g s', shape)
        _check_scale(arguments, 'RMSNormalization', 'x s', shape)


@case
def ranks_of_addends(arguments):
    """The addend of Gemm has other ranks than usual.  If only leading axes of
    length 1 exceed the rank that ONNX allows, the provider may report an error
    or ignore these axes."""
    tested = model([node('Gemm', 'a b c', 'y')],
                   [value(name) for name in 'abc'], [value('y')])
    for shape in ((3,), (2, 1), (1, 3), (2, 3), (1,), (1, 1), (5,), (1, 1, 3),
                  (2, 2, 3), (1, 2, 3), (4, 2, 3)):
        feeds = {'a': floats(2, 4), 'b': floats(4, 3), 'c': floats(*shape)}
        actual = outcome(lambda: open_session(tested, arguments.device,
                                              fallback=True), feeds)
        if len(shape) > 2 and shape[0] == 1:
            if isinstance(actual, str):
                continue
            feeds['c'] = feeds['c'].reshape(shape[1:])
        expected = outcome(lambda: provider.cpu_session(tested), feeds)
        check_outcome(actual, expected, 'Gemm, c of shape %s' % (shape,))


@case
def casts_of_shapes(arguments):
    """Lengths are cast to types that cannot hold them."""
    for target in (onnx.TensorProto.UINT8, onnx.TensorProto.INT32, BOOL):
        tested = model(
            [node('Shape', 'x', 's'), node('Cast', 's', 'c', to=target),
             node('Cast', 'c', 'd', to=INT64), node('Cast', 'd', 'y', to=FLOAT)],
            [value('x', FLOAT)], [value('y')])
        compare_outcomes(arguments, tested, {'x': floats(300, 2, 0)},
                         'cast to dtype %d' % target)


@case
def reductions_of_scalars(arguments):
    """Reductions of a tensor of rank 0."""
    for op_type in ('ReduceMax', 'ReduceLogSum', 'ReduceMean', 'ArgMax',
                    'ArgMin', 'Softmax', 'Flatten'):
        tested = model([node(op_type, 'x', 'y')], [value('x')], [untyped('y')])
        compare_outcomes(arguments, tested,
                         {'x': numpy.array(0.5, numpy.float32)}, op_type)


# ---- special values ----

@case
def special_weights(arguments):
    """Weights are NaN and infinite.  NaN must be in the same places as in the
    CPU provider's result."""
    generator = random.Random(arguments.seed)
    for number in range(8):
        tested = small_models.transformer(number)
        for _ in range(1 + number % 3):
            weights = [each for each in tested.graph.initializer
                       if each.data_type == FLOAT]
            weight = generator.choice(weights)
            content = numpy_helper.to_array(weight).copy()
            content.reshape(-1)[generator.randrange(content.size)] = (
                generator.choice([numpy.nan, numpy.inf, -numpy.inf]))
            weight.CopyFrom(numpy_helper.from_array(content, weight.name))
        compare(arguments, tested, small_models.transformer_input(2, 7))


@case
def special_inputs(arguments):
    """Inputs of the layers are NaN and infinite."""
    tested = small_models.perceptron()
    session = open_session(tested, arguments.device)
    reference = provider.cpu_session(tested)
    for special in (numpy.nan, numpy.inf, -numpy.inf, 3e38, -3e38, 1e-42):
        feeds = small_models.perceptron_input(4)
        feeds['x'][1, 5] = special
        check_outputs(session.run(None, feeds), reference.run(None, feeds),
                      'input %g' % special)


@case
def empty_inputs_of_models(arguments):
    """Whole models with a batch or a sequence of length 0."""
    compare(arguments, small_models.perceptron(),
            small_models.perceptron_input(0))
    # ONNX Runtime does not reshape an empty tensor to a shape with 0 and -1.
    compare_outcomes(arguments, small_models.transformer(),
                     small_models.transformer_input(0, 4), 'transformer')


# ---- options and plugins ----

# The texts that each option's message has, and wrong values.
OPTIONS = {
    'device': (('auto', 'cpu', 'opencl:N'),
               ['opencl:99', 'foo', '', 'opencl:', 'opencl:-1', 'x' * 300,
                'x' * 3000]),
    'claim': (('cost', 'all'), ['xyz', 'ALL', 'y' * 3000]),
    'precision': (('f32', 'tf32'), ['f64']),
    'first_run': (('cpu', 'wait'), ['never']),
    'explain': (('a file that can be written',), ['/nonexistent/report']),
    'shapes': (('NAME:LENGTHxLENGTH', ), ['x', 'x:', ':1', 'x:1x', 'x:1;;y:2'])}


@case
def wrong_options(arguments):
    """The message names the option, its value and the values allowed."""
    for option, (allowed, values) in OPTIONS.items():
        for bad in values:
            texts = (option, bad) + allowed
            if len(bad) > MAX_OPTION_BYTES:
                texts = (option, '%d bytes' % MAX_OPTION_BYTES)
            chosen = {'device': arguments.device, option: bad}
            creation_error(_exp_model(), chosen.pop('device'), *texts,
                           fallback=True, **chosen)
    for name in ('claims', 'Claim', 'y' * 900):
        creation_error(_exp_model(), arguments.device, name[:200], 'device, claim, '
                       'precision, first_run, explain or shapes', fallback=True,
                       **{name: 'all'})
    x = floats(3)
    session = open_session(_exp_model(), arguments.device)
    check_outputs(session.run(None, {'x': x}), [numpy.exp(x)])


@case
def missing_device_in_the_environment(arguments):
    """A session with a device of TANDEM_DEVICE that does not exist is not created. With
    device=cpu, the variable has no effect."""
    name = arguments.device.split(':')[0]
    os.environ['TANDEM_DEVICE'] = name + ':5'
    for device in ('auto', name + ':0'):
        creation_error(_exp_model(), device, 'TANDEM_DEVICE',
                       'there is no device "%s:5"' % name, 'has %s:0' % name,
                       '; unset TANDEM_DEVICE')
    x = floats(3)
    session = open_session(_exp_model(), 'cpu')
    check_outputs(session.run(None, {'x': x}), [numpy.exp(x)])


@case
def options_of_providers(arguments):
    """The argument providers passes options, too. No other option is added to them."""
    if provider.version() < (1, 25):
        raise Skipped('this version does not know plugins there')
    provider.register()
    x = floats(3)
    for options in ({}, {'device': arguments.device, 'claim': 'all'}):
        session = provider.onnxruntime.InferenceSession(
            _exp_model().SerializeToString(), enable_fallback=0,
            providers=[('TandemExecutionProvider', options), 'CPUExecutionProvider'])
        assert session.get_providers()[0] == provider.PROVIDER, session.get_providers()
        check_outputs(session.run(None, {'x': x}), [numpy.exp(x)])


@case
def no_plugin(arguments):
    """No plugin can be loaded; sessions of other providers still work."""
    tested = _exp_model()
    x = floats(3)
    with tempfile.TemporaryDirectory() as empty:
        os.environ['TANDEM_PLUGIN_PATH'] = empty
        os.environ['TANDEM_BACKENDS'] = 'nothing'
        for _ in range(3):
            message = creation_error(tested, arguments.device,
                                     'TandemExecution')
        note(message)
        assert 'plugin' in message.lower(), message
        session = provider.cpu_session(tested)
        check_outputs(session.run(None, {'x': x}), [numpy.exp(x)])


# ---- unusual graphs ----

@case
def if_with_served_branches(arguments):
    """Branches of If read values of the outer graph."""
    def branch(name, op_type):
        nodes = [node('MatMul', 'a w', name + '_m'),
                 node(op_type, [name + '_m'], name + '_e'),
                 node('Add', [name + '_e', 'x'], name)]
        return helper.make_graph(nodes, name, [], [value(name)])
    nodes = [node('Relu', 'x', 'a'),
             node('If', 'c', 'i', then_branch=branch('t', 'Exp'),
                  else_branch=branch('e', 'Tanh')), node('Neg', 'i', 'y')]
    tested = model(nodes, [value('x', FLOAT, ['n', 4]), value('c', BOOL, [])],
                   [value('y')], [constant('w', floats(4, 4))])
    for truth in (True, False):
        compare(arguments, tested, {'x': floats(3, 4), 'c': numpy.array(truth)},
                fallback=True)


@case
def loop_with_served_body(arguments):
    """A loop carries a value and collects another one."""
    body = helper.make_graph(
        [node('MatMul', 'state w', 'm'), node('Tanh', 'm', 't'),
         node('Add', 't x', 'next'), node('ReduceSum', 'next', 'sum'),
         node('Identity', 'go', 'go_on')], 'body',
        [value('i', INT64, []), value('go', BOOL, []),
         value('state', FLOAT, ['n', 4])],
        [value('go_on', BOOL, []), value('next', FLOAT, ['n', 4]),
         value('sum', FLOAT, [1, 1])])
    nodes = [node('Exp', 'x', 'start'),
             node('Loop', ['count', '', 'start'], 'last sums', body=body),
             node('Neg', 'last', 'y')]
    tested = model(nodes, [value('x', FLOAT, ['n', 4]),
                           value('count', INT64, [])],
                   [value('y'), value('sums')], [constant('w', floats(4, 4))])
    for count in (0, 1, 7):
        compare(arguments, tested,
                {'x': floats(3, 4), 'count': numpy.array(count)}, fallback=True)


def _chain(types):
    names = ['v%d' % i for i in range(CHAIN + 1)]
    nodes = []
    for i in range(CHAIN):
        op_type = types[i % len(types)]
        inputs = [names[i], 'c'] if op_type in ('Add', 'Mul') else [names[i]]
        nodes.append(node(op_type, inputs, [names[i + 1]]))
    return model(nodes, [value('v0', FLOAT, ['n', 4])], [value(names[-1])],
                 [constant('c', floats(4) / 8)])


@case
def chain_of_many_nodes(arguments):
    """Models of 2000 nodes in a chain, in one group and in 1000 groups."""
    open_session(_exp_model(), arguments.device)
    for types, fallback in ((['Add', 'Tanh', 'Mul', 'Relu'], False),
                            (['Tanh', 'Atan'], True)):
        tested = _chain(types)
        start = time.monotonic()
        session = open_session(tested, arguments.device, fallback=fallback)
        seconds = time.monotonic() - start
        note('%s: %.2f s to make the session' % (types, seconds))
        feeds = {'v0': floats(3, 4)}
        check_outputs(session.run(None, feeds),
                      provider.cpu_session(tested).run(None, feeds))


@case
def overridable_initializers(arguments):
    """Initializers that are inputs, too, are replaced by an input."""
    tested = model(
        [node('MatMul', 'x w', 'm'), node('Add', 'm b', 'r'),
         node('Reshape', 'r shape', 'y')],
        [value('x', FLOAT, ['n', 4]), value('w', FLOAT, [4, 6]),
         value('b', FLOAT, [6]), value('shape', INT64, [2])], [value('y')],
        [constant('w', floats(4, 6)), constant('b', floats(6)),
         constant('shape', [-1, 3], numpy.int64)])
    session = open_session(tested, arguments.device)
    reference = provider.cpu_session(tested)
    x = floats(5, 4, seed=3)
    for extra in ({}, {'w': floats(4, 6, seed=4)}, {'b': floats(6, seed=5)}, {},
                  {'shape': integers(2, -1)}, {},
                  {'w': floats(4, 6, seed=6), 'shape': integers(-1, 1)}):
        feeds = dict(extra, x=x)
        check_outputs(session.run(None, feeds), reference.run(None, feeds),
                      'with %s' % list(extra))


@case
def one_value_many_times(arguments):
    """A value is several inputs of a node and several outputs of the model."""
    tested = model(
        [node('MatMul', 'x x', 'm'), node('Where', 'c m m', 'w'),
         node('Concat', 'm m x', 'k', axis=0), node('Sum', 'x x x x', 's'),
         node('Identity', 'm', 'i'), node('Identity', 'm', 'j'),
         node('Identity', 'x', 'z'), node('Gemm', 'x x x', 'g')],
        [value('x', FLOAT, [4, 4]), value('c', BOOL, [4])],
        [value(name) for name in ('m', 'w', 'k', 's', 'i', 'j', 'z', 'g')])
    feeds = {'x': floats(4, 4), 'c': numpy.array([True, False] * 2)}
    for optimize in (True, False):
        compare(arguments, tested, feeds, optimize=optimize)


@case
def outputs_that_are_inputs(arguments):
    """Outputs of the model are inputs and initializers."""
    tested = model(
        [node('Exp', 'x', 'y')],
        [value('x', FLOAT, ['n']), value('k', INT64, ['n'])],
        [value('y'), value('x', FLOAT, ['n']), value('k', INT64, ['n']),
         value('w', FLOAT, [3])], [constant('w', [1, 2, 3])])
    compare(arguments, tested, {'x': floats(5), 'k': integers(1, 2)},
            fallback=True)
    tested = model([], [value('x', FLOAT, ['n'])], [value('x', FLOAT, ['n'])])
    compare_if_valid(arguments, tested, {'x': floats(5)})
    tested = model([node('Neg', 'w', 'y')], [], [value('y')],
                   [constant('w', [1, 2, 3])])
    for optimize in (True, False):
        compare_if_valid(arguments, tested, {}, optimize=optimize)


def compare_if_valid(arguments, tested, feeds, **options):
    """Compares the results unless the CPU provider refuses the model."""
    expected = outcome(lambda: provider.cpu_session(tested), feeds)
    actual = outcome(lambda: provider.session(
        tested, arguments.device, fallback=True, claim='cost', **options), feeds)
    if not isinstance(expected, str):
        check_outcome(actual, expected)


@case
def unused_outputs_and_inputs(arguments):
    """Optional outputs and inputs of nodes and of the model are not used."""
    inputs = [value('x', FLOAT, ['n', 4]), value('unused', INT64, ['k']),
              value('text', onnx.TensorProto.STRING, ['k'])]
    tested = model(
        [node('Dropout', 'x', ['d', 'mask']),
         node('LayerNormalization', ['d', 'scale', ''], ['l', '', '']),
         node('Split', 'l', ['p', 'q'], axis=1),
         node('Clip', ['p', '', 'high'], ['clipped']),
         node('Exp', 'q', 'never')],
        inputs, [value('clipped')],
        [constant('scale', floats(4)), constant('high', 0.5),
         constant('spare', floats(9))])
    feeds = {'x': floats(3, 4), 'unused': integers(1),
             'text': numpy.array(['a'], object)}
    for optimize in (True, False):
        compare(arguments, tested, feeds, optimize=optimize, fallback=True)


# ---- devices that fail ----

@contextlib.contextmanager
def _captured_errors():
    """Sends the standard error stream to a file, which is the value."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            os.dup2(saved, 2)
            os.close(saved)


class _Script(ctypes.Structure):
    """struct layer_script of tests/opencl-layer/layer.h."""
    _fields_ = [('fault', ctypes.c_int), ('function', ctypes.c_char_p),
                ('text', ctypes.c_char_p), ('nth', ctypes.c_uint64),
                ('times', ctypes.c_uint64), ('code', ctypes.c_int32),
                ('pick', ctypes.c_uint32), ('spare_releases', ctypes.c_int),
                ('build_log', ctypes.c_char_p), ('site', ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    """struct layer_counts of tests/opencl-layer/layer.h."""
    _fields_ = [('objects', ctypes.c_uint64 * 24), ('kernels', ctypes.c_uint64),
                ('other', ctypes.c_uint64 * 13), ('faults', ctypes.c_uint64)]


FAULT_CALL, FAULT_AFTER_ENQUEUE = 1, 2
OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY = -5, -6
FAULTS = [
    (FAULT_CALL, b'clEnqueueNDRangeKernel', 1, OUT_OF_RESOURCES),
    (FAULT_CALL, b'clEnqueueNDRangeKernel', 2, OUT_OF_HOST_MEMORY),
    (FAULT_AFTER_ENQUEUE, b'clEnqueueNDRangeKernel', 1, OUT_OF_RESOURCES),
    (FAULT_AFTER_ENQUEUE, b'clEnqueueNDRangeKernel', 2, OUT_OF_RESOURCES),
    (FAULT_CALL, None, 1, OUT_OF_RESOURCES),
    (FAULT_CALL, None, 5, OUT_OF_RESOURCES),
    (FAULT_AFTER_ENQUEUE, None, 1, OUT_OF_RESOURCES)]


def _load_layer(arguments):
    """Lets the OpenCL loader load the layer.  Returns its functions."""
    if not arguments.device.startswith('opencl'):
        raise Skipped('faults are injected into OpenCL devices only')
    if not arguments.opencl_layer:
        raise Skipped('--opencl-layer is not given')
    path = os.path.abspath(arguments.opencl_layer)
    os.environ['OPENCL_LAYERS'] = path
    return ctypes.CDLL(path)


def _counts(layer):
    counts = _Counts()
    layer.layer_counts_read(ctypes.byref(counts))
    return counts


def _run_with_fault(layer, session, feeds, expected, fault, times):
    """Runs the session while OpenCL calls fail."""
    kind, function, nth, code = fault
    script = _Script(fault=kind, function=function, nth=nth, times=times,
                     code=code, spare_releases=1)
    with _captured_errors() as errors:
        layer.layer_set_fault(ctypes.byref(script))
        result = outcome(lambda: session, feeds)
        faults = _counts(layer).faults
        layer.layer_set_fault(None)
        errors.seek(0)
        log = errors.read().decode('utf-8', 'replace').strip()
    name = '%s, call %d, %d times' % (
        (function or b'any function').decode(), nth, times)
    print('%s: %d faults; %s' % (name, faults, log[-400:]))
    assert faults > 0, '%s: no call failed' % name
    if isinstance(result, str):
        note('%s: %s' % (name, result))
        assert 'opencl' in result, result
        return
    check_outputs(result, expected, name)
    # A call that fails once may be retried with success.
    assert (kind == FAULT_CALL and times == 1) or (
        'node' in log and 'computed on the CPU' in log), (
            '%s: no warning; log: %s' % (name, log))


def _check_later_runs(layer, session, feeds, expected):
    """Runs the session again.  Returns the number of kernels that ran."""
    before = _counts(layer).kernels
    for _ in range(3):
        for each, outputs in zip(feeds, expected):
            check_outputs(session.run(None, each), outputs)
    return _counts(layer).kernels - before


def _parts_model():
    """Steps that write only a part of a tensor: a Concat, and tensors of several
    sizes that share memory."""
    return model(
        [node('Sin', 'x', 'a'), node('Cos', 'x', 'b'),
         node('Concat', 'a b', 'c', axis=1), node('Exp', 'c', 'd'),
         node('MatMul', 'd w', 'e'), node('Sin', 'e', 'f'),
         node('MatMul', 'f v', 'g'), node('Cos', 'g', 'y')],
        [value('x', FLOAT, ['n', 8])], [value('y')],
        [constant('w', floats(16, 4) / 4), constant('v', floats(4, 32) / 4)])


def _failing_device_case(arguments, faults, times, needs_device_later,
                         tested=None, feeds=None):
    layer = _load_layer(arguments)
    tested = tested or small_models.perceptron()
    feeds = feeds or [small_models.perceptron_input(i) for i in (3, 5)]
    expected = [provider.cpu_session(tested).run(None, each) for each in feeds]
    session = open_session(tested, arguments.device, log_level=2)
    for _ in range(50):  # until the kernels are compiled
        check_outputs(session.run(None, feeds[0]), expected[0])
        time.sleep(0.02)
    for fault in faults:
        _run_with_fault(layer, session, feeds[0], expected[0], fault, times)
        kernels = _check_later_runs(layer, session, feeds, expected)
        assert kernels > 0 or not needs_device_later, (
            'the device is not used after one failure')
    other = open_session(tested, arguments.device)
    note('%d kernels ran in a new session afterwards' %
         _check_later_runs(layer, other, feeds, expected))


@case
def device_fails_once(arguments):
    """One OpenCL call fails while a session runs.  The CPU computes the result
    and a warning names the node.  Later runs use the device again."""
    _failing_device_case(arguments, FAULTS, 1, True)
    _failing_device_case(arguments, FAULTS, 1, True, _parts_model(),
                         [{'x': floats(3, 8)}, {'x': floats(5, 8)}])


@case
def device_fails_during_a_run(arguments):
    """All OpenCL calls fail until the run ends.  Later runs are correct."""
    for_kernels = [each for each in FAULTS if each[1] is not None]
    _failing_device_case(arguments, for_kernels, 1 << 40, True)


@case
def device_is_lost(arguments):
    """All OpenCL calls fail, so the device is lost.  The CPU computes the
    results of later runs."""
    fault = (FAULT_CALL, None, 1, OUT_OF_RESOURCES)
    _failing_device_case(arguments, [fault], 1 << 40, False)


def _inject_faults(layer, arguments, faults, futures):
    """Injects random faults until the futures are done.  Returns their
    number."""
    generator = random.Random(arguments.seed)
    count = 0
    while not all(future.done() for future in futures):
        kind, function, _, code = generator.choice(faults)
        layer.layer_set_fault(ctypes.byref(_Script(
            fault=kind, function=function, nth=generator.randint(1, 20),
            times=1, code=code, spare_releases=1)))
        time.sleep(0.005)
        count += _counts(layer).faults
    layer.layer_set_fault(None)
    return count


def _failing_threads_case(arguments, kind):
    """Runs a session from four threads while calls fail now and then."""
    layer = _load_layer(arguments)
    tested = small_models.perceptron()
    feeds = [small_models.perceptron_input(i) for i in range(1, 5)]
    expected = [provider.cpu_session(tested).run(None, each) for each in feeds]
    session = open_session(tested, arguments.device)

    def work(number):
        for _ in range(150):
            check_outputs(session.run(None, feeds[number]), expected[number])
    for number in range(4):
        work(number)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work, number) for number in range(4)]
        count = _inject_faults(layer, arguments,
                               [each for each in FAULTS if each[0] == kind], futures)
    note('%d faults' % count)
    assert count > 0
    for future in futures:
        future.result()
    work(1)


@case
def device_rejects_calls_of_threads(arguments):
    """Calls return errors while several threads run a session."""
    _failing_threads_case(arguments, FAULT_CALL)


@case
def device_fails_late_with_threads(arguments):
    """Commands fail after their calls returned, while several threads run a
    session."""
    _failing_threads_case(arguments, FAULT_AFTER_ENQUEUE)


def _add_arguments(parser):
    parser.add_argument('--opencl-layer', metavar='PATH',
                        help='opencl-layer.so, for devices that fail')
    parser.add_argument('--variants', type=int, metavar='NUMBER',
                        default=VARIANTS,
                        help='corrupted models of each kind (default: %d)' %
                        VARIANTS)


if __name__ == '__main__':
    sys.exit(child_cases.main('bad_models', __doc__, _add_arguments))
