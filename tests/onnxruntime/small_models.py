# SPDX-License-Identifier: Apache-2.0
"""Small models for the tests of the provider, and a comparison of results."""

import numpy
from onnx import TensorProto, helper, numpy_helper

import exported_models
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
    """Returns a node, which is named after its first output by default."""
    if isinstance(inputs, str):
        inputs = inputs.split()
    if isinstance(outputs, str):
        outputs = outputs.split()
    attributes.setdefault('name', 'node_' + outputs[0])
    return helper.make_node(op_type, inputs, outputs, **attributes)


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


def transformer(seed=1):
    """Returns one layer of a transformer, whose dimensions are open."""
    return exported_models.bert(1, width=8, heads=2, opset=OPSET, vocabulary=16,
                                seed=seed)


def transformer_input(batch, length, seed=0):
    """Returns an input of the transformer."""
    return exported_models.bert_inputs(batch, length, vocabulary=16, seed=seed)


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
