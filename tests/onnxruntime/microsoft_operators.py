#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares operators of com.microsoft with ONNX Runtime's CPU provider.

These are Attention, MultiHeadAttention, RotaryEmbedding and FusedConv, for which
ONNX has no tests, and a few forms of ONNX's operators that its tests lack.  The
dimensions of inputs are dynamic, unless the provider needs them.  Nodes in forms that the
provider does not serve must stay with ONNX Runtime.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import itertools

import numpy
from onnx import helper

import case_runner
import provider
from small_models import constant, model, output_problem, value

RTOL, ATOL = 1e-4, 1e-5
DOMAIN = 'com.microsoft'
BATCH, HEADS, WIDTH, TOKENS, KEYS, PAST, INPUT = 2, 3, 8, 5, 7, 4, 10
HIDDEN = HEADS * WIDTH


class Case:
    """One node, the content of its inputs, and what must run it.

    inputs: arrays by name; None is an absent input.
    constants: names of inputs that are constants of the model.
    served: False if ONNX Runtime must run the node.
    fixed: names of inputs whose dimensions are part of the model.
    expected: the output, or None if ONNX Runtime's CPU provider computes it.
    domain: that of the operator; '' is ONNX's own.
    """

    def __init__(self, op_type, inputs, outputs=('y',), constants=(),
                 served=True, fixed=(), expected=None, domain=DOMAIN,
                 **attributes):
        self.op_type, self.inputs, self.outputs = op_type, inputs, outputs
        self.constants, self.served = constants, served
        self.fixed, self.expected = fixed, expected
        self.domain, self.attributes = domain, attributes

    def feeds(self):
        return {name: array for name, array in self.inputs.items()
                if array is not None and name not in self.constants}

    def model(self):
        names = [name if array is not None else ''
                 for name, array in self.inputs.items()]
        node = helper.make_node(self.op_type, names, self.outputs, 'node',
                                domain=self.domain, **self.attributes)
        inputs = [value(name, provider.element_type(array.dtype),
                        array.shape if name in self.fixed
                        else [None] * array.ndim)
                  for name, array in self.feeds().items()]
        constants = [constant(name, self.inputs[name], self.inputs[name].dtype)
                     for name in self.constants]
        return model([node], inputs, [value(name) for name in self.outputs],
                     constants, domains=[DOMAIN] if self.domain else [])


def floats(*shape, seed=0):
    random = numpy.random.default_rng((seed, *shape))
    return random.normal(0, 1, shape).astype(numpy.float32)


def padding(*shape):
    """Returns a mask of i32 in which the first key always counts."""
    random = numpy.random.default_rng(shape)
    mask = (random.random(shape) < 0.6).astype(numpy.int32)
    mask[..., 0] = 1
    return mask


def no_keys(*shape):
    """Returns a mask of i32 in which no key of the last image counts."""
    mask = padding(*shape)
    mask[-1] = 0
    return mask


# ---- MultiHeadAttention ----

def multi_head(bias=None, mask=None, added=None, past=0, keys=KEYS,
               value_width=WIDTH, cross=False, **arguments):
    """Returns a case; `cross` means keys and values with four axes."""
    hidden = HEADS * value_width
    inputs = {
        'q': floats(BATCH, TOKENS, HIDDEN),
        'k': (floats(BATCH, HEADS, keys, WIDTH, seed=1) if cross else
              floats(BATCH, keys, HIDDEN, seed=1)),
        'v': (floats(BATCH, HEADS, keys, value_width, seed=2) if cross else
              floats(BATCH, keys, hidden, seed=2)),
        'bias': bias, 'mask': mask, 'added': added}
    if past:
        inputs['past_k'] = floats(BATCH, HEADS, past, WIDTH, seed=3)
        inputs['past_v'] = floats(BATCH, HEADS, past, value_width, seed=4)
        arguments.setdefault('outputs', ('y', 'present_k', 'present_v'))
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    arguments.setdefault('num_heads', HEADS)
    return Case('MultiHeadAttention', inputs, **arguments)


MULTI_HEAD_CASES = {
    'plain': multi_head(),
    'bias': multi_head(floats(3 * HIDDEN)),
    'constant bias': multi_head(floats(3 * HIDDEN), constants=('bias',)),
    'bias, other values': multi_head(floats(2 * HIDDEN + 4 * HEADS),
                                     value_width=4),
    'padding of rank 2': multi_head(mask=padding(BATCH, KEYS)),
    'padding of rank 3': multi_head(mask=padding(BATCH, TOKENS, KEYS)),
    'padding without keys': multi_head(mask=no_keys(BATCH, KEYS)),
    'padding, filter value': multi_head(mask=no_keys(BATCH, KEYS),
                                        mask_filter_value=-3.0),
    'padding and attention bias': multi_head(
        mask=padding(BATCH, KEYS), added=floats(1, HEADS, TOKENS, KEYS)),
    'attention bias': multi_head(added=floats(BATCH, 1, TOKENS, KEYS)),
    'bias, padding, attention bias, scale': multi_head(
        floats(3 * HIDDEN), padding(BATCH, TOKENS, KEYS),
        floats(BATCH, HEADS, TOKENS, KEYS), scale=0.5),
    'past': multi_head(past=PAST, keys=TOKENS),
    'past, bias, padding': multi_head(
        floats(3 * HIDDEN), padding(BATCH, PAST + TOKENS), past=PAST,
        keys=TOKENS),
    'causal, past, padding': multi_head(
        mask=padding(BATCH, PAST + TOKENS), past=PAST, keys=TOKENS,
        unidirectional=1),
    'causal, bias': multi_head(floats(3 * HIDDEN), keys=TOKENS,
                               unidirectional=1),
    'cross': multi_head(cross=True),
    'cross, padding': multi_head(mask=padding(BATCH, KEYS), cross=True),
    'lengths of keys': multi_head(mask=numpy.array([3, 7], numpy.int32),
                                  served=False),
}


# ---- Attention ----

def attention(bias=True, mask=None, past=False, added=None, widths=None,
              **arguments):
    columns = sum(widths or [HIDDEN] * 3)
    inputs = {'x': floats(BATCH, TOKENS, INPUT),
              'w': floats(INPUT, columns, seed=1) / 3,
              'bias': floats(columns, seed=2) if bias else None,
              'mask': mask,
              'past': floats(2, BATCH, HEADS, PAST, WIDTH, seed=3)
                      if past else None,
              'added': added}
    if past:
        arguments.setdefault('outputs', ('y', 'present'))
    if widths is not None:
        arguments['qkv_hidden_sizes'] = widths
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    arguments.setdefault('constants', ('w', 'bias') if bias else ('w',))
    return Case('Attention', inputs, num_heads=HEADS, **arguments)


ALL = PAST + TOKENS
ATTENTION_CASES = {
    'plain': attention(),
    'dynamic weights': attention(constants=()),
    'no bias': attention(bias=False),
    'padding of rank 2': attention(mask=padding(BATCH, TOKENS)),
    'padding of rank 3': attention(mask=padding(BATCH, TOKENS, TOKENS)),
    'padding without keys': attention(mask=no_keys(BATCH, TOKENS)),
    'filter value': attention(mask=no_keys(BATCH, TOKENS),
                              mask_filter_value=-2.0),
    'causal': attention(unidirectional=1),
    'causal, padding': attention(mask=padding(BATCH, TOKENS), unidirectional=1),
    'present only': attention(outputs=('y', 'present'), unidirectional=1),
    'past': attention(past=True),
    'causal, past': attention(past=True, unidirectional=1),
    'causal, past, padding': attention(mask=padding(BATCH, ALL), past=True,
                                       unidirectional=1),
    'attention bias': attention(added=floats(BATCH, HEADS, TOKENS, TOKENS)),
    'attention bias of all heads, padding': attention(
        mask=padding(BATCH, TOKENS), added=floats(1, 1, TOKENS, TOKENS)),
    'scale': attention(scale=0.3),
    'other width of values': attention(widths=[HIDDEN, HIDDEN, 4 * HEADS]),
    'lengths': attention(mask=numpy.array([3, 5], numpy.int32), served=False),
    'ends and starts': attention(mask=numpy.array([3, 5, 1, 0], numpy.int32),
                                 served=False),
}


# ---- RotaryEmbedding ----

def rotary(heads_first, single, interleaved, rotary_dim=0, length=20, **more):
    x = (floats(BATCH, HEADS, TOKENS, WIDTH) if heads_first else
         floats(BATCH, TOKENS, HIDDEN))
    angles = floats(length, (rotary_dim or WIDTH) // 2, seed=1)
    random = numpy.random.default_rng(1)
    positions = (numpy.array([6]) if single else
                 random.integers(0, length, (BATCH, TOKENS)))
    inputs = {'x': x, 'positions': positions, 'cos': numpy.cos(angles),
              'sin': numpy.sin(angles)}
    if rotary_dim:
        more.setdefault('num_heads', HEADS)
        more['rotary_embedding_dim'] = rotary_dim
    return Case('RotaryEmbedding', inputs, interleaved=interleaved,
                fixed=('cos', 'sin'), **more)


ROTARY_CASES = {
    'heads %s, %s, interleaved %d, %d columns' % (
        'first' if heads_first else 'last',
        'one position' if single else 'positions', interleaved, columns):
    rotary(heads_first, single, interleaved, columns)
    for heads_first, single, interleaved, columns in itertools.product(
        (False, True), (False, True), (0, 1), (0, 4))}
ROTARY_CASES.update({
    'constant caches': rotary(False, False, 0, constants=('cos', 'sin')),
    'constant position': rotary(False, True, 1, constants=('positions',)),
    'number of heads': rotary(False, False, 0, num_heads=HEADS),
})


# ---- FusedConv ----

# The parameters of each activation that the provider serves.
ACTIVATIONS = {'': (), 'Clip': (-0.5, 0.75), 'HardSigmoid': (0.3, 0.4),
               'LeakyRelu': (0.2,), 'Relu': (), 'Sigmoid': (), 'Tanh': ()}
LENGTHS = (9, 8, 7)


def fused_conv(activation='', spatial=2, bias=True, residual=False, group=1,
               channels=4, strides=None, dilations=None, pads=None, **arguments):
    pads = pads or [1] * 2 * spatial
    attributes = {'group': group, 'strides': strides or [1] * spatial,
                  'dilations': dilations or [1] * spatial, 'pads': pads}
    inputs = {
        'x': floats(BATCH, channels, *LENGTHS[:spatial]),
        'w': floats(6, channels // group, *[3] * spatial, seed=1) / 3,
        'bias': floats(6, seed=2) if bias else None}
    if residual:
        inputs['residual'] = floats(BATCH, 6, *[
            (LENGTHS[i] + pads[i] + pads[spatial + i] -
             2 * attributes['dilations'][i] - 1) // attributes['strides'][i] + 1
            for i in range(spatial)], seed=3)
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    if activation:
        attributes['activation'] = activation
    if ACTIVATIONS.get(activation):
        attributes['activation_params'] = ACTIVATIONS[activation]
    arguments.setdefault('constants', ('w',))
    return Case('FusedConv', inputs, **attributes, **arguments)


FUSED_CONV_CASES = {
    '%s%s%s' % (activation or 'no activation', ', bias' if bias else '',
                ', residual' if residual else ''):
    fused_conv(activation, bias=bias, residual=residual)
    for activation, bias, residual in itertools.product(
        ACTIVATIONS, (False, True), (False, True))}
FUSED_CONV_CASES.update({
    'one axis': fused_conv('LeakyRelu', 1),
    'one axis, residual': fused_conv('Clip', 1, residual=True),
    'three axes': fused_conv('Sigmoid', 3),
    'three axes, residual': fused_conv('HardSigmoid', 3, residual=True),
    'two groups': fused_conv('Clip', group=2),
    'two groups, residual': fused_conv('Tanh', group=2, residual=True),
    'depthwise': fused_conv('LeakyRelu', group=6, channels=6),
    'strides, dilations, padding': fused_conv(
        'HardSigmoid', residual=True, strides=[2, 1], dilations=[1, 2],
        pads=[0, 1, 2, 3]),
    'dynamic weight': fused_conv('Clip', constants=(), fixed=('w',)),
    'HardSwish': fused_conv('HardSwish', served=False),
})


def standard(op_type, x, **arguments):
    """Makes a case of one of ONNX's operators.  Arrays are constant inputs."""
    constants = {name: array for name, array in arguments.items()
                 if isinstance(array, numpy.ndarray)}
    attributes = {name: number for name, number in arguments.items()
                  if name not in constants}
    return Case(op_type, {'x': x, **constants}, constants=tuple(constants),
                domain='', **attributes)


STANDARD_CASES = {
    'Conv, padding beyond the window': standard(
        'Conv', floats(1, 2, 5, 5), w=floats(3, 2, 1, 1), pads=[1, 1, 1, 1]),
    'Conv, many channels and padding on one side': standard(
        'Conv', floats(2, 16, 5, 7), w=floats(24, 16, 2, 2),
        pads=[0, 3, 4, 0]),
    'ConvTranspose, padding beyond the window': standard(
        'ConvTranspose', floats(1, 2, 7, 6), w=floats(2, 3, 2, 2),
        pads=[2, 3, 2, 0]),
    'MaxPool, window longer than the axis': standard(
        'MaxPool', floats(1, 3, 4), kernel_shape=[3], dilations=[2]),
    'MaxPool, last window partly inside': standard(
        'MaxPool', floats(1, 3, 2), kernel_shape=[3], strides=[2],
        ceil_mode=1),
    # ONNX Runtime adds these in f32.
    'AveragePool, sum beyond the range of f32': standard(
        'AveragePool',
        numpy.array([[[3e38, 3e38, 3e38, 1], [1, numpy.inf, 1, 1]]],
                    numpy.float32),
        kernel_shape=[3],
        expected=[[[3e38, 2e38], [numpy.inf] * 2]]),
    'Pad, more elements removed than there are': standard(
        'Pad', floats(2, 4), p=numpy.array([0, -5, 0, 3]),
        v=numpy.array(1.5, numpy.float32)),
    'ReduceSum, axis of length 1': standard(
        'ReduceSum', floats(1, 1000), axes=numpy.array([0]), keepdims=0),
}

CASES = {'%s, %s' % (kind, name): case
         for kind, cases in (('MultiHeadAttention', MULTI_HEAD_CASES),
                             ('Attention', ATTENTION_CASES),
                             ('RotaryEmbedding', ROTARY_CASES),
                             ('FusedConv', FUSED_CONV_CASES),
                             ('ONNX', STANDARD_CASES))
         for name, case in cases.items()}


# ---- runs ----

def problem(case, device, report):
    """Runs a case.  Returns a text that says what is wrong, or None."""
    tested, feeds = case.model(), case.feeds()
    if case.expected is None:
        expected = provider.cpu_session(tested).run(None, feeds)
    else:
        expected = [numpy.array(case.expected, numpy.float32)]
    session = provider.session(tested, device, fallback=not case.served,
                               explain=report)
    outputs = session.run(None, feeds)
    for index, (have, want) in enumerate(zip(outputs, expected)):
        text = output_problem(have, want, RTOL, ATOL)
        if text is not None:
            return 'output %d: %s' % (index, text)
    with open(report, encoding='utf-8') as file:
        if ('no node of the model is served' in file.read()) == case.served:
            return 'the node is%s served' % (' not' if case.served else '')
    return None


if __name__ == '__main__':
    case_runner.main(__doc__, CASES, problem)
