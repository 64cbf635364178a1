# SPDX-License-Identifier: Apache-2.0
"""Small models for the tests of the provider, and a comparison of results."""

import numpy
from onnx import TensorProto, helper, numpy_helper

import provider

OPSET = 17
IR_VERSION = 8
RTOL = 1e-4
ATOL = 1e-5

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL


def value(name, element_type=FLOAT, shape=None):
    """Returns the description of an input or output."""
    return helper.make_tensor_value_info(name, element_type, shape)


def constant(name, content, dtype=numpy.float32):
    """Returns an initializer."""
    return numpy_helper.from_array(numpy.asarray(content, dtype), name)


def model(nodes, inputs, outputs, initializers=(), opset=OPSET, domains=()):
    """Returns a model of one graph."""
    graph = helper.make_graph(list(nodes), 'graph', list(inputs), list(outputs),
                              list(initializers))
    opsets = [helper.make_opsetid('', opset)]
    opsets += [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets,
                             ir_version=IR_VERSION)


def node(op_type, inputs, outputs, **attributes):
    """Returns a node whose name is that of its first output."""
    if isinstance(inputs, str):
        inputs = inputs.split()
    if isinstance(outputs, str):
        outputs = outputs.split()
    return helper.make_node(op_type, inputs, outputs, name='node_' + outputs[0],
                            **attributes)


def perceptron(seed=1, width=64, hidden=48):
    """Returns a model of two layers and a softmax: x [n, width] to y [n, 16]."""
    random = numpy.random.default_rng(seed)
    return model(
        [node('MatMul', 'x w1', 'a'), node('Add', 'a b1', 'b'),
         node('Relu', 'b', 'c'), node('MatMul', 'c w2', 'd'),
         node('Add', 'd b2', 'e'), node('Softmax', 'e', 'y', axis=-1)],
        [value('x', FLOAT, ['n', width])], [value('y', FLOAT, ['n', 16])],
        [constant('w1', random.normal(0, 0.2, (width, hidden))),
         constant('b1', random.normal(0, 0.2, hidden)),
         constant('w2', random.normal(0, 0.2, (hidden, 16))),
         constant('b2', random.normal(0, 0.2, 16))])


def perceptron_input(rows, seed=0, width=64):
    """Returns an input of the perceptron."""
    random = numpy.random.default_rng((seed, rows))
    return {'x': random.normal(0, 1, (rows, width)).astype(numpy.float32)}


# ---- a small transformer ----

def _split_heads(source, target, heads):
    """Returns nodes that turn [batch, length, width] into one matrix per head,
    with a shape that depends on the shape of the input."""
    return [
        node('Concat', 'batch length heads rest', target + '_shape', axis=0),
        node('Reshape', [source, target + '_shape'], target + '_split'),
        node('Transpose', target + '_split', target, perm=heads)]


def _attention_nodes():
    nodes = [
        node('Shape', 'hidden', 'shape'),
        node('Gather', 'shape zero', 'batch', axis=0),
        node('Gather', 'shape one', 'length', axis=0)]
    for name in 'qkv':
        nodes += [node('MatMul', ['hidden', 'w' + name], name + '_product'),
                  node('Add', [name + '_product', 'b' + name], name + '_sum')]
    nodes += _split_heads('q_sum', 'q', [0, 2, 1, 3])
    nodes += _split_heads('k_sum', 'k', [0, 2, 3, 1])
    nodes += _split_heads('v_sum', 'v', [0, 2, 1, 3])
    return nodes + [
        node('MatMul', 'q k', 'scores'), node('Div', 'scores root', 'scaled'),
        node('Softmax', 'scaled', 'weights', axis=-1),
        node('MatMul', 'weights v', 'heads_out'),
        node('Transpose', 'heads_out', 'heads_back', perm=[0, 2, 1, 3]),
        node('Concat', 'batch length rest', 'joined_shape', axis=0),
        node('Reshape', 'heads_back joined_shape', 'joined'),
        node('MatMul', 'joined wo', 'projected'),
        node('Add', 'projected hidden', 'residual'),
        node('LayerNormalization', 'residual scale1 shift1', 'attended')]


def _feed_forward_nodes():
    return [
        node('MatMul', 'attended wf', 'inner'),
        node('Add', 'inner bf', 'inner_sum'),
        node('Div', 'inner_sum root2', 'inner_scaled'),
        node('Erf', 'inner_scaled', 'inner_erf'),
        node('Add', 'inner_erf one_f', 'inner_gate'),
        node('Mul', 'inner_sum inner_gate', 'inner_double'),
        node('Mul', 'inner_double half', 'inner_gelu'),
        node('MatMul', 'inner_gelu wg', 'outer'),
        node('Add', 'outer attended', 'outer_residual'),
        node('LayerNormalization', 'outer_residual scale2 shift2', 'encoded'),
        node('ReduceMean', 'encoded', 'mean', axes=[1], keepdims=0),
        node('Tanh', 'mean', 'y')]


def transformer(seed=1, width=8, vocabulary=16, positions=64):
    """Returns one layer of a transformer: ids [batch, length] to y [batch,
    width]."""
    random = numpy.random.default_rng(seed)

    def weight(name, *shape):
        return constant(name, random.normal(0, 0.4, shape))

    initializers = [
        weight('table', vocabulary, width), weight('places', positions, width),
        weight('bq', width), weight('bk', width), weight('bv', width),
        weight('wf', width, 2 * width), weight('bf', 2 * width),
        weight('wg', 2 * width, width),
        constant('heads', [2], numpy.int64), constant('rest', [-1], numpy.int64),
        constant('zero', [0], numpy.int64), constant('one', [1], numpy.int64),
        constant('root', (width / 2) ** 0.5), constant('root2', 2 ** 0.5),
        constant('one_f', 1), constant('half', 0.5)]
    initializers += [weight(name, width, width)
                     for name in ('wq', 'wk', 'wv', 'wo')]
    for index in '12':
        initializers += [constant('scale' + index, numpy.ones(width)),
                         weight('shift' + index, width)]
    nodes = [
        node('Shape', 'ids', 'ids_shape'),
        node('Gather', 'ids_shape one', 'ids_length', axis=0),
        node('Slice', 'places zero ids_length', 'place'),
        node('Gather', 'table ids', 'word'), node('Add', 'word place', 'hidden')]
    return model(nodes + _attention_nodes() + _feed_forward_nodes(),
                 [value('ids', INT64, ['batch', 'length'])],
                 [value('y', FLOAT, ['batch', width])], initializers)


def transformer_input(batch, length, seed=0, vocabulary=16):
    """Returns an input of the transformer."""
    random = numpy.random.default_rng((seed, batch, length))
    return {'ids': random.integers(0, vocabulary, (batch, length))}


# ---- sessions ----

def open_session(model, device, **options):
    """Makes a session, which must use the provider; see provider.session."""
    session = provider.session(model, device, **options)
    assert session.get_providers()[0] == provider.PROVIDER, (
        session.get_providers())
    return session


_kept_sessions = []


def keep_device_open(device):
    """Opens a session that lives as long as the process.

    Sessions that exist at the same time share a device and its compiled kernels.
    Otherwise CLBlast compiles its kernels again for each session, which takes PoCL
    0.3 s.
    """
    ends = [value(name, shape=[1]) for name in 'xy']
    _kept_sessions.append(open_session(
        model([node('Relu', 'x', 'y')], ends[:1], ends[1:]), device))


def expect_error(function, *texts):
    """Calls a function, which must fail with a message that has all texts.

    Returns the message.
    """
    try:
        function()
    except AssertionError:
        raise
    except Exception as error:
        message = str(error)
    else:
        raise AssertionError('there is no error; expected one with %s' %
                             ', '.join(texts))
    for text in texts:
        assert text in message, 'the message lacks "%.100s": %s' % (
            text, message)
    return message


# ---- results ----

def output_problem(actual, expected, rtol, atol):
    """Returns a text that says how an output is wrong, or None.

    NaN equals NaN.
    """
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return 'got %s%s, expected %s%s' % (
            actual.dtype, list(actual.shape), expected.dtype,
            list(expected.shape))
    try:
        numpy.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)
    except AssertionError as error:
        return ' '.join(str(error).split())
    return None


def check_outputs(actual, expected, what=''):
    """Raises AssertionError if outputs differ.  NaN equals NaN."""
    assert len(actual) == len(expected), what
    for index, (have, want) in enumerate(zip(actual, expected)):
        problem = output_problem(have, want, RTOL, ATOL)
        assert problem is None, '%s, output %d: %s' % (what, index, problem)
