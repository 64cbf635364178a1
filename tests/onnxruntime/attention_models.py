#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests which nodes Tandem's provider computes as one attention operator.

Each case is a model of one attention in a form that an exporter writes.  The
results are compared with ONNX Runtime's CPU provider, and the placement report
(option "explain") must list the expected number of attention operators.  Models
that are almost an attention must run as separate operators.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import numpy

import case_runner
import provider
from small_models import (BOOL, FLOAT, constant, model, node, output_problem,
                          value)

RTOL, ATOL = 1e-4, 1e-5
LOWEST = float(numpy.finfo(numpy.float32).min)
WIDTH = 8
# Batch, heads, queries and keys of the runs of each model.
SHAPES = [(2, 3, 5, 5), (1, 1, 1, 9), (2, 2, 70, 300), (1, 3, 5, 5)]
# The operators that an attention replaces.
REPLACED = ('softmax', 'gemm', 'isnan')


class Case:
    """A model and how to test it.

    nodes: the nodes from the inputs q, k, v and those of `inputs` to y.
    inputs: further inputs, as a dictionary of functions that return their content
        for a random generator and a shape (batch, heads, queries, keys).
    count: the number of attention operators, 0 if the model must not be fused.
    absent: further operators that must not run.
    """

    def __init__(self, nodes, inputs=None, constants=(), count=1, absent=(),
                 keys='bhwk', rank=4, shapes=SHAPES, outputs=('y',), opset=17,
                 shape_of=None, ranks=None):
        self.nodes, self.inputs = nodes, inputs or {}
        self.constants, self.count, self.absent = constants, count, absent
        self.keys, self.rank, self.shapes = keys, rank, shapes
        self.outputs, self.opset = outputs, opset
        self.shape_of = shape_of or {}
        self.ranks = ranks or {}

    def feeds(self, shape):
        batch, heads, queries, keys = shape
        random = numpy.random.default_rng(shape)
        sizes = {'b': batch, 'h': heads, 'q': queries, 'k': keys, 'w': WIDTH,
                 '1': 1}
        axes = {'q': 'bhqw', 'k': self.keys, 'v': 'bhkw', **self.shape_of}
        feeds = {}
        for name, letters in axes.items():
            array = random.normal(0, 2, [sizes[letter] for letter in letters])
            feeds[name] = array.astype(numpy.float32)[(0,) * (4 - self.rank)]
        for name, make in self.inputs.items():
            feeds[name] = make(random, shape)
        return feeds

    def model(self):
        inputs = []
        for name, array in self.feeds(self.shapes[0]).items():
            rank = self.ranks.get(name, array.ndim)
            dimensions = None if rank is None else [None] * rank
            inputs.append(value(name, BOOL if array.dtype == bool else FLOAT,
                                dimensions))
        return model(self.nodes, inputs, [value(name) for name in self.outputs],
                     [root(), *self.constants], self.opset, ['com.microsoft'])


def root():
    return constant('root', WIDTH ** 0.5)


# ---- masks ----

def padding(random, shape):
    """Returns a mask [batch, 1, 1, keys] of 0 and the lowest float."""
    del random
    batch, _, _, keys = shape
    visible = numpy.arange(keys)[None] < keys - numpy.arange(batch)[:, None]
    mask = numpy.where(visible, 0, LOWEST).astype(numpy.float32)
    return mask[:, None, None]


def no_keys(random, shape):
    """Returns a mask that hides all keys from the last image of a batch."""
    mask = padding(random, shape)
    mask[-1] = LOWEST
    return mask


def bias(random, shape):
    return random.normal(0, 1, shape).astype(numpy.float32)


def visible(random, shape):
    """Returns a condition that is true for at least one key of each query."""
    batch, _, queries, keys = shape
    mask = random.random((batch, 1, queries, keys)) < 0.6
    mask[..., 0] = True
    return mask


def some_visible(random, shape):
    """Returns a condition that is false for all keys of the first query."""
    mask = visible(random, shape)
    mask[..., 0, :] = False
    return mask


def hidden(random, shape):
    return ~visible(random, shape)


def triangle(size, dtype=bool):
    return numpy.tri(size, dtype=dtype)[None, None]


# ---- parts of models ----

def scores(result='s', q='q', k='k'):
    """Returns the nodes of scores that are divided by the root of the width."""
    return [node('MatMul', [q, k], 'raw'), node('Div', 'raw root', result)]


def softmax(source, **attributes):
    attributes.setdefault('axis', -1)
    return [node('Softmax', source, 'p', **attributes),
            node('MatMul', 'p v', 'y')]


def scaled_inputs():
    """Returns nodes as of PyTorch's scaled_dot_product_attention."""
    return [node('Transpose', 'k', 'kt', perm=[0, 1, 3, 2]),
            node('Mul', 'q fourth', 'qs'), node('Mul', 'kt fourth', 'ks'),
            node('MatMul', 'qs ks', 's')]


def nan_guard():
    return [node('Softmax', 'm', 'w', axis=-1), node('IsNaN', 'w', 'nan'),
            node('Where', 'nan zero w', 'p'), node('MatMul', 'p v', 'y')]


FOURTH = constant('fourth', WIDTH ** -0.25)
ZERO = constant('zero', [0])
INFINITE = constant('low', [-numpy.inf])
LOW = constant('low', LOWEST)
ADD = [node('Add', 's mask', 'm')]
CHOOSE = [node('Where', 'c s low', 'm')]


def exchanged_heads():
    """Returns an attention between transpositions as in BERT."""
    return [node('Transpose', 'q', 'qh', perm=[0, 2, 1, 3]),
            node('Transpose', 'k', 'kh', perm=[0, 2, 3, 1]),
            node('Transpose', 'v', 'vh', perm=[0, 2, 1, 3]),
            *scores('s', 'qh', 'kh'), *ADD,
            node('Softmax', 'm', 'p', axis=-1), node('MatMul', 'p vh', 'h'),
            node('Transpose', 'h', 'o', perm=[0, 2, 1, 3]),
            node('Reshape', 'o rows', 'y')]


def causal_slices():
    """Returns nodes that slice the triangle as in GPT-2."""
    return [
        node('Shape', 'q', 'q_shape'), node('Shape', 'k', 'k_shape'),
        node('Slice', 'q_shape two three', 'queries'),
        node('Slice', 'k_shape three four', 'keys'),
        node('Sub', 'keys queries', 'start'),
        node('Slice', 'triangle start keys two', 'rows'),
        node('Slice', 'rows nought keys three', 'c')]


def whole_numbers():
    return [constant(name, [number], numpy.int64) for number, name in
            enumerate(('nought', 'one', 'two', 'three', 'four'))]


def one_query(random, shape):
    """Returns a condition that repeats the only query of q."""
    return random.random((shape[0], 1, 4, shape[3])) < 2


CASES = {
    'no mask and no scale':
        Case([node('MatMul', 'q k', 's'), *softmax('s')]),
    'scale': Case(scores() + softmax('s')),
    'scale as a factor': Case(
        [node('MatMul', 'q k', 'raw'), node('Mul', 'eighth raw', 's'),
         *softmax('s')], constants=[constant('eighth', [0.125])]),
    'added mask': Case(scores() + ADD + softmax('m'), {'mask': padding}),
    'mask before scores': Case(
        scores() + [node('Add', 'mask s', 'm')] + softmax('m'),
        {'mask': padding}),
    'added mask, image without keys':
        Case(scores() + ADD + softmax('m'), {'mask': no_keys}),
    'added bias of each head': Case(scores() + ADD + softmax('m'),
                                    {'mask': bias}),
    'mask of unknown rank': Case(scores() + ADD + softmax('m'),
                                 {'mask': bias}, ranks={'mask': None}),
    'mask of rank 5': Case(
        scores() + ADD + softmax('m'),
        {'mask': lambda random, shape: bias(random, (3, *shape))},
        ranks={'mask': None}, count=3),
    'mask of rank 2': Case(
        scores() + ADD + softmax('m'),
        {'mask': lambda random, shape: bias(random, shape[2:])}),
    'heads exchanged': Case(
        exchanged_heads(), {'mask': padding}, absent=('copy',), keys='bkhw',
        shape_of={'q': 'bqhw', 'v': 'bkhw'},
        constants=[constant('rows', [0, 0, -1], numpy.int64)]),
    'keys in rows': Case(
        [node('Transpose', 'k', 'kt', perm=[0, 1, 3, 2]), *scores('s', 'q', 'kt'),
         *softmax('s')], keys='bhkw', absent=('copy',)),
    'scaled inputs': Case(
        scaled_inputs() + ADD + softmax('m'), {'mask': padding}, [FOURTH],
        keys='bhkw', absent=('mul',)),
    'scaled inputs with other readers': Case(
        scaled_inputs() + softmax('s') + [node('Neg', 'qs', 'z')], {}, [FOURTH],
        keys='bhkw', outputs=('y', 'z')),
    'condition added': Case(
        scaled_inputs() + [node('Where', 'c zero low', 'mask'), *ADD,
                           *nan_guard()],
        {'c': some_visible}, [FOURTH, ZERO, INFINITE], keys='bhkw',
        absent=('where', 'mul')),
    'condition added, lowest float, query without keys': Case(
        scores() + [node('Where', 'c zero low', 'mask'), *ADD] + softmax('m'),
        {'c': some_visible}, [ZERO, LOW]),
    'lowest float by a condition': Case(
        scores() + CHOOSE + softmax('m'), {'c': visible}, [LOW]),
    'lowest float by a condition, query without keys': Case(
        scores() + CHOOSE + softmax('m'), {'c': some_visible}, [LOW]),
    '-10000 by a condition, query without keys': Case(
        scores() + CHOOSE + softmax('m'), {'c': some_visible},
        [constant('low', -1e4)]),
    'minus infinity by a condition': Case(
        scores() + CHOOSE + softmax('m'), {'c': visible}, [INFINITE],
        absent=('where',)),
    'minus infinity by a condition, guarded': Case(
        scores() + CHOOSE + nan_guard(), {'c': some_visible}, [INFINITE, ZERO],
        absent=('where',)),
    'masked_fill': Case(
        scores() + [node('Where', 'c low s', 'm')] + softmax('m'),
        {'c': hidden}, [LOW]),
    'masked_fill with minus infinity': Case(
        scores() + [node('Where', 'c low s', 'm')] + softmax('m'),
        {'c': hidden}, [INFINITE]),
    'constant triangle': Case(
        causal_slices() + scores() + CHOOSE + softmax('m'), {},
        [LOW, constant('triangle', triangle(300), bool), *whole_numbers()],
        absent=('where',)),
    'constant triangle without diagonal': Case(
        causal_slices() + scores() + CHOOSE + softmax('m'), {},
        [LOW, constant('triangle', numpy.tri(300, k=-1)[None, None], bool),
         *whole_numbers()]),
    'condition, then mask': Case(
        scores() + [node('Where', 'c s low', 't'), node('Add', 't mask', 'm'),
                    *softmax('m')],
        {'c': visible, 'mask': bias}, [LOW]),
    'mask, then condition': Case(
        scores() + [node('Add', 's mask', 't'), node('Where', 'c t low', 'm'),
                    *softmax('m')],
        {'c': some_visible, 'mask': bias}, [LOW]),
    'mask, then masked_fill': Case(
        scores() + [node('Add', 's mask', 't'), node('Where', 'c low t', 'm'),
                    *softmax('m')],
        {'c': hidden, 'mask': bias}, [LOW]),
    'rank 3': Case(scores() + ADD + softmax('m'),
                   {'mask': lambda random, shape: bias(random, shape[1:])},
                   rank=3, shapes=SHAPES[:3]),
    'rank 2': Case(scores() + softmax('s'), rank=2, shapes=SHAPES[:3]),
    'one head of keys': Case(scores() + ADD + softmax('m'), {'mask': padding},
                             keys='b1wk', shape_of={'v': 'b1kw'}),
    'one image of queries': Case(scores() + ADD + softmax('m'),
                                 {'mask': padding}, shape_of={'q': '1hqw'}),
    'mask with more images': Case(scores() + ADD + softmax('m'),
                                  {'mask': padding}, keys='1hwk',
                                  shape_of={'q': '1hqw', 'v': '1hkw'}),
    'condition with more queries': Case(
        scores() + CHOOSE + softmax('m'), {'c': one_query}, [LOW],
        shape_of={'q': 'bh1w'}),
    'fused product': Case(
        [node('FusedMatMul', 'q k', 's', domain='com.microsoft', transB=1,
              alpha=0.25), *softmax('s')], keys='bhkw'),
    'softmax of opset 11': Case(scores() + softmax('s', axis=3), opset=11),
    'empty': Case(scores() + ADD + softmax('m'), {'mask': bias}, count=0,
                  shapes=[(2, 3, 0, 4), (0, 1, 2, 2)]),
    # ---- models that are not fused ----
    'scores are an output': Case(scores() + softmax('s'), count=0,
                                 outputs=('y', 's')),
    'weights are an output': Case(scores() + softmax('s'), count=0,
                                  outputs=('y', 'p')),
    'scores have another reader': Case(
        scores() + softmax('s') + [node('Neg', 'raw', 'z')], count=0,
        outputs=('y', 'z')),
    'weights have another reader': Case(
        scores() + softmax('s') + [node('Neg', 'p', 'z')], count=0,
        outputs=('y', 'z')),
    'softmax of columns': Case(scores() + softmax('s', axis=-2), count=0),
    # The weights of a query add up to much more than 1 here, and so do the rounding
    # errors if there are many keys.
    'softmax of heads': Case(scores() + softmax('s', axis=1), count=0,
                             shapes=SHAPES[:2]),
    'masked scores that count': Case(
        scores() + CHOOSE + softmax('m'), {'c': visible},
        [constant('low', -2)], count=0),
    'weights on the right': Case(
        scores() + [node('Softmax', 's', 'p', axis=-1),
                    node('MatMul', 'v p', 'y')],
        shape_of={'v': 'bhwq'}, count=0),
    'scores divide': Case(
        [node('MatMul', 'q k', 'raw'), node('Div', 'root raw', 's'),
         *softmax('s')], count=0, shapes=SHAPES[:1]),
}


# ---- runs ----

def executed(report):
    """Returns the names of the operators in a placement report."""
    with open(report, encoding='utf-8') as file:
        lines = [line.split() for line in file if line.startswith('  ')]
    return [words[0] for words in lines]


def count_problem(case, operators):
    """Returns a text if other operators ran than expected."""
    count = operators.count('attention')
    expected = case.count * len(set(case.shapes))
    if count != expected:
        return '%d attention operators, expected %d' % (count, expected)
    absent = case.absent + REPLACED if case.count else ()
    extra = sorted(set(absent) & set(operators))
    return 'there is also %s' % ', '.join(extra) if extra else None


def problem(optimized_case, device, report):
    """Runs a case.  Returns a text that says what is wrong, or None."""
    case, optimize = optimized_case
    tested = case.model()
    session = provider.session(tested, device, optimize=optimize, fallback=True,
                               explain=report)
    reference = provider.cpu_session(tested)
    for shape in case.shapes:
        feeds = case.feeds(shape)
        outputs = zip(session.run(None, feeds), reference.run(None, feeds))
        for actual, expected in outputs:
            text = output_problem(actual, expected, RTOL, ATOL)
            if text is not None:
                return 'shape %s: %s' % (shape, text)
    return count_problem(case, executed(report))


if __name__ == '__main__':
    # With and without ONNX Runtime's graph optimizations
    case_runner.main(__doc__, {
        '%s, %s' % (name, kind): (case, kind == 'optimized')
        for name, case in CASES.items() for kind in ('optimized', 'as it is')},
        problem)
