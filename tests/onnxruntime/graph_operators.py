# SPDX-License-Identifier: Apache-2.0
"""Draws the operators of random graphs; see graph_generator.py.

Each function draws one operator, or a few that belong together, and appends them
to a builder.  It returns False, or raises NoValue, if the builder has no suitable
value.
"""

import numpy

from onnx import numpy_helper

from graph_generator import (BYTES, MAX_RANK, MICROSOFT, Grid, NoValue, Value,
                             broadcast_shapes, element_type, fits,
                             grid_product, grid_sum, grid_union)

INT64_MAX = 2 ** 63 - 1
INTEGERS = ('i64', 'i32')


# ---- element-wise ----

def unary_exact(b):
    """Draws an operator that is exact for exact inputs."""
    x = b.pick()
    return moved(b, b.choice(['Abs', 'Neg', 'Relu']), [x], x.shape)


def unary_rounding(b):
    """Draws an operator that is not continuous."""
    x = b.pick(accepts=lambda value: value.exact)
    operator = b.choice(['Ceil', 'Floor', 'Round', 'Sign'])
    grid = None
    if operator == 'Sign':
        grid = Grid(0, 1)
    elif x.grid is not None:
        grid = fits(Grid(max(x.grid.quantum, 0), x.grid.magnitude + 1))
    return b.node(operator, [x], x.shape, exact=True, grid=grid)


# Continuous operators of one input, with their first operator-set version.
SMOOTH_OPERATORS = {
    'Cos': 7, 'Erf': 9, 'Mish': 18, 'Sigmoid': 6, 'Sin': 7, 'Softplus': 1,
    'Tanh': 6, 'HardSwish': 14, 'Elu': 6, 'LeakyRelu': 6, 'Gelu': 20,
    'Asinh': 9, 'Atan': 7, 'Celu': 12, 'HardSigmoid': 6, 'Selu': 6,
    'Softsign': 1}


def choose_operator(b, operators):
    """Returns an operator that the graph's operator set has.

    operators: maps the names to their first operator-set version.
    """
    return b.choice([name for name, opset in operators.items()
                     if opset <= b.opset])


def unary_smooth(b):
    """Draws a continuous operator."""
    operator = choose_operator(b, SMOOTH_OPERATORS)
    x = b.pick()
    attributes = {}
    if operator in ('Elu', 'LeakyRelu') and b.chance(0.7):
        attributes['alpha'] = b.choice([0.0, 0.25, 0.5, 1.5])
    if operator in ('Celu', 'HardSigmoid', 'Selu') and b.chance(0.7):
        attributes['alpha'] = b.choice([0.25, 0.5, 1.5])
    if operator == 'HardSigmoid' and b.chance(0.7):
        attributes['beta'] = b.choice([-0.25, 0.0, 0.75])
    if operator == 'Selu' and b.chance(0.7):
        attributes['gamma'] = b.choice([0.5, 1.25])
    if operator == 'Gelu' and b.chance(0.7):
        attributes['approximate'] = b.choice(['none', 'tanh'])
    return b.node(operator, [x], x.shape, **attributes)


def unary_guarded(b):
    """Draws an operator with a restricted domain, and makes its input fit."""
    operator = choose_operator(b, {
        'Exp': 7, 'Log': 7, 'Sqrt': 7, 'Reciprocal': 7, 'Sinh': 9, 'Cosh': 9,
        'Tan': 7, 'Asin': 7, 'Acos': 7, 'Atanh': 9, 'Acosh': 9})
    x = b.pick()
    bounds = {'Exp': (-4, 3), 'Sinh': (-3, 3), 'Cosh': (-3, 3), 'Tan': (-1, 1),
              'Asin': (-0.75, 0.75), 'Acos': (-0.75, 0.75),
              'Atanh': (-0.75, 0.75), 'Acosh': (1.25, 9)}.get(operator)
    if bounds:
        x = b.node('Clip', [x] + [b.constant(bound, 'f32') for bound in bounds],
                   x.shape, exact=x.exact)
    else:
        x = positive(b, x)
    return b.node(operator, [x], x.shape)


def positive(b, x):
    """Returns |x| + 1/2."""
    x = moved(b, 'Abs', [x], x.shape)
    return b.node('Add', [x, b.constant(0.5, 'f32')], x.shape,
                  grid=grid_sum([x.grid, Grid(-1, 0.5)]))


def microsoft_unary(b):
    """Draws an activation of com.microsoft."""
    operator = b.choice(['Gelu', 'FastGelu', 'BiasGelu'])
    if operator == 'Gelu':
        x = b.pick()
        return b.node(operator, [x], x.shape, domain=MICROSOFT)
    x = b.pick(accepts=lambda value: value.rank >= 1)
    bias = b.fresh('f32', x.shape[-1:])
    if operator == 'FastGelu' and b.chance(0.4):
        bias = None
    return b.node(operator, [x, bias], x.shape, domain=MICROSOFT)


def partner(b, x, dtype='f32', accepts=None, constant=None):
    """Returns a value whose shape can be broadcast with that of x."""
    for _ in range(4):
        y = b.pick(dtype, accepts, fresh=0)
        shape = broadcast_shapes(x.shape, y.shape)
        if shape and b.is_small(shape) and b.chance(0.6):
            return y
    one = b.constant_dimension(1)
    first = b.integer(0, x.rank) if b.chance(0.5) else 0
    shape = [one if b.chance(0.25) else entry for entry in x.shape[first:]]
    if x.rank < MAX_RANK and b.chance(0.1):
        shape = [b.choice([one, b.constant_dimension(2)])] + \
            [one] * (x.rank - len(shape)) + shape
    if not b.is_small(broadcast_shapes(x.shape, shape)):
        shape = x.shape
    return b.fresh(dtype, shape, constant,
                   on_grid=True if accepts else None)


def shuffled(b, *values):
    """Returns the values in a random order."""
    return [values[i] for i in b.rng.permutation(len(values))]


def binary_exact(b):
    """Draws an operator that is exact while the result fits."""
    x = b.pick()
    x, y = shuffled(b, x, partner(b, x))
    operator = b.choice(['Add', 'Mul', 'Sub'])
    grid = (grid_product if operator == 'Mul' else
            lambda *grids: grid_sum(grids))(x.grid, y.grid)
    return b.node(operator, [x, y], broadcast_shapes(x.shape, y.shape),
                  grid=grid)


def binary_guarded(b):
    """Draws Div or Pow."""
    x = b.pick()
    y = partner(b, x)
    if b.chance(0.5):
        y = positive(b, y)
        return b.node('Div', [x, y], broadcast_shapes(x.shape, y.shape))
    if b.chance(0.3):
        exponent = b.constant(b.choice([0.5, 2, 3, 1, -1, 0, 1.5, -2]), 'f32')
        x = positive(b, x)
        return b.node('Pow', [x, exponent], x.shape)
    if b.opset >= 12 and b.chance(0.3):
        exponent = b.constant(b.choice([2, [2], 3, [0], 1]),
                              b.choice(['i32', 'i64']))
        if x.rank == 0:
            x = b.fresh('f32', b.shape(2), constant=False)
        return b.node('Pow', [x, exponent], x.shape)
    x = b.node('Clip', [positive(b, x), None, b.constant(4, 'f32')], x.shape)
    y = b.node('Tanh', [y], y.shape)
    return b.node('Pow', [x, y], broadcast_shapes(x.shape, y.shape))


def pick_integers(b, dtype):
    """Returns integers that the provider computes; see pick_data."""
    return b.pick(dtype, lambda value: value.rank >= 2 and value.rank_is_known)


def integers(b):
    """Draws an operator of integers."""
    dtype = b.choice(INTEGERS)
    operators = {'Abs': 7, 'Neg': 7, 'Sign': 9, 'Add': 7, 'Sub': 7, 'Mul': 7,
                 'Div': 7, 'Mod': 10, 'Max': 12, 'Min': 12, 'Where': 9,
                 **COMPARISONS}
    operator = choose_operator(b, operators)
    x = pick_integers(b, dtype)
    if operator in ('Abs', 'Neg', 'Sign'):
        grid = Grid(0, 1) if operator == 'Sign' else x.grid
        return b.node(operator, [x], x.shape, dtype, exact=x.exact, grid=grid)
    y = partner(b, x, dtype)
    shape = broadcast_shapes(x.shape, y.shape)
    if operator in COMPARISONS:
        x, y = shuffled(b, x, y)
        return b.node(operator, [x, y], shape, 'bool', exact=True)
    if operator in ('Div', 'Mod'):
        if y.rank < 2:
            return False
        # The divisor is at least 1.
        one = b.constant(1, dtype)
        y = b.node('Abs', [y], y.shape, dtype, exact=True, grid=y.grid)
        y = b.node('Add', [y, one], y.shape, dtype, exact=True,
                   grid=grid_sum([y.grid, Grid(0, 1)]))
        attributes = {'fmod': 1} if operator == 'Mod' and b.chance(0.5) else {}
        return b.node(operator, [x, y], shape, dtype, exact=True, grid=x.grid,
                      **attributes)
    if operator == 'Where':
        condition = partner(b, x, 'bool')
        shape = broadcast_shapes(shape, condition.shape)
        if shape is None or not b.is_small(shape):
            return False
        return b.node(operator, [condition] + shuffled(b, x, y), shape, dtype,
                      exact=True, grid=grid_union([x.grid, y.grid]))
    grids = [x.grid, y.grid]
    grid = (grid_union(grids) if operator in ('Max', 'Min') else
            grid_product(*grids) if operator == 'Mul' else grid_sum(grids))
    if grid is None:
        return False
    return b.node(operator, shuffled(b, x, y), shape, dtype, exact=True,
                  grid=grid)


def prelu(b):
    """Draws PRelu, whose slope broadcasts to the shape of the input."""
    x = b.pick()
    first = b.integer(0, x.rank)
    one = b.constant_dimension(1)
    slope = b.fresh('f32', [one if b.chance(0.25) else entry
                            for entry in x.shape[first:]])
    return b.node('PRelu', [x, slope], x.shape)


def remainder(b):
    """Draws Mod of exact values with the sign of the dividend."""
    x = b.pick(accepts=is_exact)
    y = partner(b, x, accepts=is_exact)
    y = moved(b, 'Abs', [y], y.shape)
    y = b.node('Add', [y, b.constant(0.5, 'f32')], y.shape, exact=y.exact,
               grid=grid_sum([y.grid, Grid(-1, 0.5)]))
    if not y.exact:
        return False
    return b.node('Mod', [x, y], broadcast_shapes(x.shape, y.shape), exact=True,
                  fmod=1)


def thresholded_relu(b):
    """Draws ThresholdedRelu, which is not continuous."""
    x = b.pick(accepts=is_exact)
    return b.node('ThresholdedRelu', [x], x.shape, exact=True, grid=x.grid,
                  alpha=b.choice([-0.5, 0.0, 1.0]))


def variadic(b):
    """Draws Max, Mean, Min or Sum of 1 to 4 inputs."""
    operator = b.choice(['Max', 'Mean', 'Min', 'Sum'])
    values = [b.pick()]
    shape = values[0].shape
    for _ in range(b.integer(0, 3)):
        y = partner(b, values[0])
        common = broadcast_shapes(shape, y.shape)
        if common is not None and b.is_small(common):
            values.append(y)
            shape = common
    grids = [value.grid for value in values]
    grid = None
    if operator in ('Max', 'Min'):
        grid = grid_union(grids)
    elif operator == 'Sum':
        grid = grid_sum(grids)
    exact = operator in ('Max', 'Min') and all(value.exact for value in values)
    return b.node(operator, shuffled(b, *values), shape, exact=exact, grid=grid)


def clip(b):
    """Draws Clip with constant, run-time or absent bounds."""
    x = b.pick()
    bounds = [b.parameter([b.choice(levels)] * b.runs, 'f32')
              if b.chance(0.75) else None
              for levels in ([-2, -0.5, 0], [0, 0.75, 6])]
    return b.node('Clip', [x] + bounds, x.shape, exact=x.exact,
                  grid=x.grid and grid_union([x.grid, Grid(-2, 6)]))


def is_exact(value):
    """Returns true if every implementation computes the same bits."""
    return value.exact


# ONNX Runtime does not always offer GreaterOrEqual and LessOrEqual, which are
# functions, to a provider.
COMPARISONS = {'Equal': 11, 'Greater': 9, 'Less': 9}


def compare(b):
    """Draws a comparison of exact values."""
    operator = choose_operator(b, COMPARISONS)
    x = b.pick(accepts=is_exact)
    x, y = shuffled(b, x, partner(b, x, accepts=is_exact))
    return b.node(operator, [x, y], broadcast_shapes(x.shape, y.shape), 'bool',
                  exact=True)


def is_nan(b):
    """Draws IsNaN or IsInf of an input that no other operator reads."""
    infinite = b.chance(0.5)
    x = b.fresh('f32', b.shape(), constant=False)
    b.values.remove(x)
    for feed in b.feeds:
        array = feed[x.name]
        special = b.choice(['inf', '-inf']) if infinite else 'nan'
        feed[x.name] = numpy.where(b.rng.random(array.shape) < 0.3,
                                   numpy.float32(special), array)
    if infinite:
        attributes = {name: b.integer(0, 1) for name in
                      ('detect_negative', 'detect_positive') if b.chance(0.5)}
        return b.node('IsInf', [x], x.shape, 'bool', exact=True, **attributes)
    return b.node('IsNaN', [x], x.shape, 'bool', exact=True)


def logical(b):
    """Draws an operator of bools."""
    x = b.pick('bool')
    operator = b.choice(['And', 'Or', 'Xor', 'Not'])
    if operator == 'Not':
        return b.node('Not', [x], x.shape, 'bool', exact=True)
    x, y = shuffled(b, x, partner(b, x, 'bool'))
    return b.node(operator, [x, y], broadcast_shapes(x.shape, y.shape), 'bool',
                  exact=True)


def where(b):
    """Draws Where with broadcasting."""
    x = b.pick()
    y = partner(b, x)
    shape = broadcast_shapes(x.shape, y.shape)
    condition = partner(b, x, 'bool')
    shape = broadcast_shapes(shape, condition.shape)
    if shape is None or not b.is_small(shape):
        return False
    x, y = shuffled(b, x, y)
    return b.node('Where', [condition, x, y], shape,
                  exact=x.exact and y.exact, grid=grid_union([x.grid, y.grid]))


def cast(b):
    """Draws Cast or CastLike between f32, i64, i32, u8 and bool."""
    source = b.choice(['f32', 'f32', 'bool', 'i64', 'i32', 'u8'])
    target = b.choice(['f32', 'i64', 'i32', 'u8', 'bool'])
    if (source, target) in (('i64', 'i32'), ('i64', 'u8'), ('i32', 'u8')):
        return False  # The provider does not serve casts to shorter integers.
    if source == 'f32' and target == 'f32':
        x = b.pick()
    else:
        x = b.pick(source, accepts=lambda value: value.exact and (
            value.grid is None or value.grid.magnitude < 2 ** 20))
    if target == 'u8' and source == 'f32':
        return cast_to_byte(b, x)
    grid = x.grid if target == 'f32' else None
    if source == 'bool' and target != 'bool':
        grid = Grid(0, 1)
    elif target not in ('f32', 'bool'):
        grid = x.grid and fits(Grid(max(x.grid.quantum, 0), x.grid.magnitude))
    return append_cast(b, x, target, grid)


def append_cast(b, x, target, grid):
    """Appends Cast or CastLike."""
    exact = x.exact
    if b.opset >= 15 and b.chance(0.3):
        like = b.fresh(target, b.shape(1), constant=False)
        return b.node('CastLike', [x, like], x.shape, target, exact, grid)
    return b.node('Cast', [x], x.shape, target, exact, grid,
                  to=element_type(target))


def cast_to_byte(b, x):
    """Casts f32 values of 0 to 200 to u8."""
    x = b.node('Clip', [x, b.constant(0, 'f32'), b.constant(200, 'f32')],
               x.shape, exact=True)
    return append_cast(b, x, 'u8', Grid(0, 200))


# ---- reductions ----

REDUCTIONS = {'ReduceL1': 18, 'ReduceL2': 18, 'ReduceLogSum': 18,
              'ReduceLogSumExp': 18, 'ReduceMax': 18, 'ReduceMean': 18,
              'ReduceMin': 18, 'ReduceProd': 18, 'ReduceSum': 13,
              'ReduceSumSquare': 18}
# Reductions whose result for no elements is a finite number.
EMPTY_REDUCTIONS = {'ReduceL1', 'ReduceL2', 'ReduceProd', 'ReduceSum',
                    'ReduceSumSquare'}


def reduced_shape(b, shape, axes, keep):
    """Returns the shape after a reduction over the axes."""
    one = b.constant_dimension(1)
    return [one if axis in axes else dimension
            for axis, dimension in enumerate(shape)
            if axis not in axes or keep]


def reduction_grid(operator, grid, count):
    """Returns the grid of a reduction of `count` elements, or None."""
    if operator in ('ReduceMax', 'ReduceMin') or grid is None:
        return grid
    if operator in ('ReduceSum', 'ReduceL1'):
        return fits(Grid(grid.quantum, grid.magnitude * max(count, 1)))
    if operator == 'ReduceSumSquare':
        return grid_product(grid, grid, count)
    return None


def reduce_input(b, operator, x, count):
    """Returns x, or a value that suits the reduction's domain."""
    if operator == 'ReduceLogSum':
        return positive(b, x)
    if operator == 'ReduceProd' and count > 3:
        x = b.node('Clip', [x, b.constant(-1.5, 'f32'), b.constant(1.5, 'f32')],
                   x.shape)
    return x


def reduction(b):
    """Draws a reduction with random axes, as attribute or input."""
    operator = b.choice(REDUCTIONS)
    x = b.pick(accepts=lambda value: value.rank >= 1 or b.chance(0.1))
    axes = b.subset(range(x.rank), least=1 if b.chance(0.9) else 0)
    implicit = not axes or b.chance(0.15)
    reduced = range(x.rank) if implicit else axes
    count = max(b.elements([x.shape[axis] for axis in reduced]))
    if 0 in b.elements([x.shape[axis] for axis in reduced]) and \
            operator not in EMPTY_REDUCTIONS:
        return False
    if operator == 'ReduceProd' and count > 12:
        return False
    x = reduce_input(b, operator, x, count)
    keep = b.chance(0.5)
    grid = reduction_grid(operator, x.grid, count)
    exact = operator in ('ReduceMax', 'ReduceMin') and x.exact
    signed = [b.signed_axis(axis, x.rank) for axis in shuffled(b, *axes)]
    inputs, attributes = [x], {}
    if not implicit and b.opset >= REDUCTIONS[operator]:
        inputs.append(b.parameter([signed] * b.runs))
    elif not implicit:
        attributes['axes'] = signed
    if not keep or b.chance(0.5):
        attributes['keepdims'] = int(keep)
    return b.node(operator, inputs, reduced_shape(b, x.shape, reduced, keep),
                  exact=exact, grid=grid, **attributes)


def arg_reduction(b):
    """Draws ArgMax or ArgMin of exact values."""
    x = b.pick(accepts=lambda value: value.exact and value.rank >= 1)
    axis = b.integer(0, x.rank - 1)
    if 0 in x.shape[axis]:
        return False
    keep = b.chance(0.5)
    return b.node(b.choice(['ArgMax', 'ArgMin']), [x],
                  reduced_shape(b, x.shape, [axis], keep), 'i64', exact=True,
                  axis=b.signed_axis(axis, x.rank), keepdims=int(keep),
                  grid=Grid(0, max(x.shape[axis])))


def softmax(b):
    """Draws Softmax or LogSoftmax, with the meaning of the operator set."""
    x = b.pick(accepts=lambda value: value.rank >= 1)
    axis = b.signed_axis(b.integer(0, x.rank - 1), x.rank)
    return b.node(b.choice(['Softmax', 'LogSoftmax']), [x], x.shape,
                  axis=axis if b.chance(0.8) else None)


def cumsum(b):
    """Draws a cumulative sum."""
    x = b.pick(accepts=lambda value: value.rank >= 1)
    axis = b.signed_axis(b.integer(0, x.rank - 1), x.rank)
    return b.node('CumSum', [x, b.constant(axis, b.choice(INTEGERS))], x.shape,
                  exclusive=b.integer(0, 1), reverse=b.integer(0, 1))


def topk(b):
    """Draws TopK, whose indices only decide if no two elements are close."""
    x = b.pick(accepts=lambda value: value.exact and value.rank >= 1)
    axis = b.integer(0, x.rank - 1)
    k = b.integer(0, min(x.shape[axis]))
    shape = with_dimension(x.shape, axis, b.constant_dimension(k))
    values = Value(b.name('v'), 'f32', shape, x.exact, x.grid)
    indices = Value(b.name('v'), 'i64', shape, True)
    b.multi_node('TopK', [x, b.constant([k])], [values, indices],
                 axis=b.signed_axis(axis, x.rank), largest=b.integer(0, 1))
    return values


def resize(b):
    """Draws Resize by whole factors, whose coordinates are exact in f32.

    ONNX Runtime interpolates along the last two of 2 or 4 axes.
    """
    linear = b.chance(0.5)
    x = b.pick(accepts=lambda value: value.rank in (2, 4) and
               all(min(dimension) > 0 for dimension in value.shape))
    factors = [1] * (x.rank - 2) + [b.integer(1, 3), b.integer(1, 3)]
    if not linear:
        b.rng.shuffle(factors)
    shape = tuple(tuple(length * factor for length in dimension)
                  for dimension, factor in zip(x.shape, factors))
    if not b.is_small(shape):
        return False
    attributes = {} if linear else {'nearest_mode': b.choice(
        ['round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'])}
    return b.node(
        'Resize', [x, b.constant([], 'f32'), b.constant(factors, 'f32')], shape,
        exact=x.exact and not linear, grid=None if linear else x.grid,
        mode='linear' if linear else 'nearest',
        coordinate_transformation_mode=b.choice(
            ['half_pixel', 'pytorch_half_pixel', 'asymmetric'] +
            ['align_corners'] * linear), **attributes)


def normalization(b):
    """Draws a normalization of the last axes."""
    operator = choose_operator(b, {
        'LayerNormalization': 17, 'RMSNormalization': 23,
        'SimplifiedLayerNormalization': 1, 'SkipLayerNormalization': 1})
    x = b.pick(accepts=lambda value: value.rank >= 1 and
               0 not in value.shape[-1] and min(value.shape[-1]) > 1)
    if operator == 'SkipLayerNormalization':
        return skip_normalization(b)
    axis = x.rank - 1 if b.chance(0.7) else b.integer(0, x.rank - 1)
    if 0 in b.elements(x.shape[axis:]):
        return False
    inputs = [x, b.fresh('f32', x.shape[axis:])]
    if operator == 'LayerNormalization' and b.chance(0.7):
        inputs.append(b.fresh('f32', x.shape[axis:]))
    return b.node(operator, inputs, x.shape,
                  axis=b.signed_axis(axis, x.rank),
                  epsilon=b.choice([1e-5, 1e-3, 0.25]))


def skip_normalization(b):
    """Draws com.microsoft SkipLayerNormalization."""
    x = b.pick(rank=3, accepts=lambda value: min(value.shape[-1]) > 1)
    inputs = [x, b.fresh('f32', x.shape), b.fresh('f32', x.shape[-1:])]
    if b.chance(0.7):
        inputs.append(b.fresh('f32', x.shape[-1:]))
        if b.chance(0.6):
            inputs.append(b.fresh('f32', x.shape[-1:]))
    return b.node('SkipLayerNormalization', inputs, x.shape, domain=MICROSOFT,
                  epsilon=b.choice([1e-5, 1e-3]))


def channel_normalization(b):
    """Draws a normalization with a scale and a bias of each channel.

    Until opset 20, GroupNormalization has them of each group.
    """
    operator = choose_operator(b, {
        'BatchNormalization': 9, 'InstanceNormalization': 6,
        'GroupNormalization': 18})
    batch = operator == 'BatchNormalization'
    x = b.pick(accepts=lambda value: value.rank >= (2 if batch else 3) and
               b.is_static(value.shape[1]) and
               0 not in b.elements(value.shape))
    if not batch and 1 in b.elements(x.shape[2:]):
        return False
    channels, length = min(x.shape[1]), x.shape[1]
    attributes = {'epsilon': b.choice([1e-5, 1e-3, 0.25])}
    if operator == 'GroupNormalization':
        attributes['num_groups'] = b.choice(
            [n for n in range(1, channels + 1) if channels % n == 0])
        if b.opset < 21:
            length = b.constant_dimension(attributes['num_groups'])
    inputs = [x] + [b.fresh('f32', [length]) for _ in range(2)]
    if batch:
        inputs.append(b.fresh('f32', [length]))
        inputs.append(positive(b, b.fresh('f32', [length])))
    return b.node(operator, inputs, x.shape, **attributes)


# ---- matrix products ----

def transposed(b, x):
    """Returns x with its last two axes exchanged by a Transpose."""
    axes = list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2]
    return moved(b, 'Transpose', [x], [x.shape[axis] for axis in axes],
                 perm=axes)


def swapped(shape):
    """Returns the shape with its last two dimensions exchanged."""
    return tuple(shape[:-2]) + (shape[-1], shape[-2])


def batch_partner(b, batch):
    """Returns batch dimensions that can be broadcast with others."""
    first = b.integer(0, len(batch))
    one = b.constant_dimension(1)
    result = [one if b.chance(0.3) else entry for entry in batch[first:]]
    if b.chance(0.15) and len(result) + 2 < MAX_RANK:
        result = [b.constant_dimension(2)] + \
            [one] * (len(batch) - len(result)) + result
    return tuple(result[-(MAX_RANK - 2):])


def matmul_shape(first, second):
    """Returns the shape of a matrix product, or None."""
    batch = broadcast_shapes(first[:-2], second[:-2])
    if batch is None:
        return None
    rows = first[-2:-1] if len(first) > 1 else ()
    columns = second[-1:] if len(second) > 1 else ()
    return tuple(batch) + tuple(rows) + tuple(columns)


def matmul(b):
    """Draws MatMul of ranks 1 to 5, with transposed inputs."""
    x = b.pick(accepts=lambda value: value.rank >= 1)
    inner = x.shape[-1]
    if b.chance(0.15):
        y = b.fresh('f32', [inner])
    else:
        shape = batch_partner(b, x.shape[:-2]) + (inner, b.dimension())
        if b.chance(0.4):
            y = transposed(b, b.fresh('f32', swapped(shape)))
        else:
            y = b.fresh('f32', shape)
    if x.rank >= 2 and b.chance(0.25):
        x = transposed(b, b.fresh('f32', swapped(x.shape)))
    shape = matmul_shape(x.shape, y.shape)
    if shape is None or not b.is_small(shape):
        return False
    return b.node('MatMul', [x, y], shape,
                  grid=grid_product(x.grid, y.grid, max(inner)))


def fused_matmul(b):
    """Draws com.microsoft FusedMatMul."""
    x = b.pick(accepts=lambda value: value.rank >= 2)
    trans_a, trans_b = b.integer(0, 1), b.integer(0, 1)
    left = swapped(x.shape) if trans_a else x.shape
    right = batch_partner(b, left[:-2]) + (left[-1], b.dimension())
    shape = matmul_shape(left, right)
    if shape is None or not b.is_small(shape):
        return False
    y = b.fresh('f32', swapped(right) if trans_b else right)
    alpha = b.choice([1.0, 0.5, -2.0])
    return b.node('FusedMatMul', [x, y], shape, domain=MICROSOFT, alpha=alpha,
                  transA=trans_a, transB=trans_b)


def gemm(b):
    """Draws Gemm with all kinds of attributes and shapes of C."""
    x = b.pick(rank=2)
    trans_a, trans_b = b.integer(0, 1), b.integer(0, 1)
    rows, inner = swapped(x.shape) if trans_a else x.shape
    columns = b.dimension()
    y = b.fresh('f32', (columns, inner) if trans_b else (inner, columns))
    alpha, beta = b.choice([1.0, 1.0, 0.5, -1.5]), b.choice([1.0, 1.0, 0.25, 0.0])
    one = b.constant_dimension(1)
    shape = b.choice([None, (), (one,), (columns,), (one, columns), (rows, one),
                      (rows, columns), (one, one)])
    c = b.fresh('f32', shape) if shape is not None else None
    grid = grid_product(x.grid, y.grid, max(inner))
    if alpha != 1.0 or beta != 1.0:
        grid = None
    elif c is not None:
        grid = grid_sum([grid, c.grid])
    return b.node('Gemm', [x, y, c], (rows, columns), grid=grid,
                  alpha=alpha if b.chance(0.8) or alpha != 1.0 else None,
                  beta=beta if b.chance(0.8) or beta != 1.0 else None,
                  transA=trans_a or None, transB=trans_b or None)


# ---- data movement ----

def pick_data(b, accepts=None, out_rank=None):
    """Returns a value of any dtype to move.

    The provider moves integers only if the result has rank 2 or more.  ONNX
    Runtime must know this rank when it loads the model.
    out_rank: computes the rank of the result from the value.
    """
    dtype = b.choice(['f32', 'f32', 'f32', 'f32', 'bool', 'i64', 'i32', 'u8'])

    def suits(value):
        if accepts is not None and not accepts(value):
            return False
        rank = out_rank(value) if out_rank else value.rank
        return dtype not in INTEGERS or (rank >= 2 and value.rank_is_known)
    return b.pick(dtype, suits)


def rank_parameter(b, x, arrays):
    """Returns the name of a parameter that decides about the rank of a result.

    It is constant if x has integers; see pick_data.
    """
    return b.parameter(arrays, runtime=False if x.dtype in INTEGERS else None)


def with_dimension(shape, axis, dimension):
    """Returns the shape with another dimension at the axis."""
    return shape[:axis] + (dimension,) + shape[axis + 1:]


def moved(b, operator, inputs, shape, **attributes):
    """Appends a node whose output has elements of its first input, or others of
    the same grid."""
    x = inputs[0]
    return b.node(operator, inputs, shape, x.dtype, x.exact, x.grid,
                  **attributes)


def transpose(b):
    """Draws Transpose."""
    x = pick_data(b, lambda value: value.rank >= 1)
    axes = [int(axis) for axis in b.rng.permutation(x.rank)]
    if b.chance(0.15):
        return moved(b, 'Transpose', [x], x.shape[::-1])
    return moved(b, 'Transpose', [x], [x.shape[axis] for axis in axes],
                 perm=axes)


def identity(b):
    """Draws Identity or Dropout."""
    x = b.pick() if b.chance(0.6) else pick_data(b)
    if x.dtype != 'f32' or b.chance(0.5):
        return moved(b, 'Identity', [x], x.shape)
    ratio = b.choice([0.1, 0.5])
    if b.opset < 12:
        return moved(b, 'Dropout', [x], x.shape, ratio=ratio)
    inputs = [x, b.constant(ratio, 'f32')]
    if b.chance(0.3):
        inputs.append(b.constant(False, 'bool'))
    return moved(b, 'Dropout', inputs, x.shape)


def flatten(b):
    """Draws Flatten."""
    x = pick_data(b, out_rank=lambda value: 2)
    axis = b.integer(0, x.rank)
    shape = (b.elements(x.shape[:axis]), b.elements(x.shape[axis:]))
    if axis < x.rank:
        axis = b.signed_axis(axis, x.rank)
    return moved(b, 'Flatten', [x], shape, axis=axis)


def squeeze(b):
    """Draws Squeeze with or without axes."""
    ones = lambda value: [axis for axis, dimension in enumerate(value.shape)
                          if set(dimension) == {1}]
    x = pick_data(b, ones, lambda value: 1)
    # Without axes, the rank would depend on the run.
    only_ones = all(1 not in dimension or set(dimension) == {1}
                    for dimension in x.shape)
    axes = b.subset(ones(x), least=1)
    if only_ones and b.chance(0.25):
        shape = [entry for entry in x.shape if set(entry) != {1}]
        if x.dtype in INTEGERS:
            return False
        output = moved(b, 'Squeeze', [x], shape)
        output.rank_is_known = all(map(b.is_static, x.shape))
        return output
    shape = [entry for axis, entry in enumerate(x.shape) if axis not in axes]
    return axes_node(b, 'Squeeze', x, axes, x.rank, shape)


def unsqueeze(b):
    """Draws Unsqueeze."""
    x = pick_data(b, lambda value: value.rank < MAX_RANK,
                  lambda value: value.rank + 1)
    rank = x.rank + b.integer(1, min(2, MAX_RANK - x.rank))
    axes = sorted(int(axis) for axis in
                  b.rng.permutation(rank)[:rank - x.rank])
    shape = list(x.shape)
    for axis in axes:
        shape.insert(axis, b.constant_dimension(1))
    return axes_node(b, 'Unsqueeze', x, axes, rank, shape)


def axes_node(b, operator, x, axes, rank, shape):
    """Appends Squeeze or Unsqueeze with axes as attribute or input."""
    axes = [b.signed_axis(axis, rank) for axis in axes]
    if b.opset < 13:
        return moved(b, operator, [x], shape, axes=axes)
    return moved(b, operator, [x, rank_parameter(b, x, [axes] * b.runs)], shape)


def reshape_groups(b, x):
    """Returns (first axis, end axis) of groups of axes that are merged."""
    groups, first = [], 0
    while first < x.rank:
        end = b.integer(first + 1, x.rank)
        groups.append((first, end))
        first = end
    return groups


def split_dimension(b, dimension):
    """Returns one or two dimensions with the product of a dimension."""
    divisors = [factor for factor in range(2, 5)
                if all(length and length % factor == 0 for length in dimension)]
    if not divisors or b.chance(0.4):
        return [dimension]
    factor = b.choice(divisors)
    return [b.constant_dimension(factor),
            tuple(length // factor for length in dimension)]


def reshape_targets(b, x, shape):
    """Returns what Reshape gets for each dimension of the shape, per run."""
    targets = [list(entry) for entry in shape]
    for axis, dimension in enumerate(shape):
        if axis < x.rank and x.shape[axis] == dimension and b.chance(0.4):
            targets[axis] = [0] * b.runs
    candidates = list(range(len(shape)))
    wild = [axis for axis in candidates
            if not b.is_static(shape[axis]) and 0 not in targets[axis]]
    if candidates and (wild or b.chance(0.4)):
        axis = b.choice(wild or candidates)
        others = [entry for other, entry in enumerate(shape) if other != axis]
        if 0 not in b.elements(others):
            targets[axis] = [-1] * b.runs
    # A dimension of 0 would be read as "copy the input's dimension".
    for axis, dimension in enumerate(shape):
        if 0 in dimension and targets[axis] == list(dimension) and \
                not (axis < x.rank and x.shape[axis] == dimension):
            return None
    return targets


def reshape(b):
    """Draws Reshape with 0 and -1."""
    x = pick_data(b, out_rank=lambda value: 2)
    shape = []
    for first, end in reshape_groups(b, x):
        shape += split_dimension(b, b.elements(x.shape[first:end]))
    while x.dtype in INTEGERS and len(shape) < 2:
        shape = [b.constant_dimension(1), *shape]
    targets = reshape_targets(b, x, shape)
    if targets is None or len(shape) > MAX_RANK:
        return False
    arrays = [[target[run] for target in targets] for run in range(b.runs)]
    if x.dtype in INTEGERS and any(array != arrays[0] for array in arrays):
        return False
    return moved(b, 'Reshape', [x, rank_parameter(b, x, arrays)], shape)


def expand(b):
    """Draws Expand."""
    x = b.pick(accepts=lambda value: any(set(entry) == {1}
                                         for entry in value.shape)
               or b.chance(0.3))
    target = []
    for dimension in x.shape:
        ones = set(dimension) == {1}
        target.append(b.dimension() if ones and b.chance(0.7) else dimension)
    if x.rank < MAX_RANK and b.chance(0.3):
        target.insert(0, b.constant_dimension(b.integer(1, 3)))
    shape = broadcast_shapes(x.shape, target)
    if not b.is_small(shape):
        return False
    # The target may also have 1 where the input has more.
    target = [b.constant_dimension(1) if len(target) - axis <= x.rank and
              x.shape[axis - len(target)] == entry and b.chance(0.3) else entry
              for axis, entry in enumerate(target)]
    arrays = [[entry[run] for entry in target] for run in range(b.runs)]
    return moved(b, 'Expand', [x, b.parameter(arrays)], shape)


def pad(b):
    """Draws Pad, also with negative pads.  Other modes than "constant" get pads
    for which all versions of ONNX Runtime do the same."""
    x = pick_data(b, lambda value: value.rank >= 1)
    mode = b.choice(['constant', 'constant', 'reflect', 'edge'])
    if x.dtype != 'f32':
        mode = 'constant'
    begins, ends, shape = [], [], []
    for dimension in x.shape:
        shortest = min(dimension)
        begin, end = b.integer(0, 3), b.integer(0, 3)
        if mode == 'constant' and shortest > 2 and b.chance(0.3):
            begin, end = b.choice([(-1, end), (begin, -2), (-1, -1)])
        if mode != 'constant' and shortest < 4 or b.chance(0.3):
            begin = end = 0
        begins.append(begin)
        ends.append(end)
        shape.append(tuple(length + begin + end for length in dimension))
    if not b.is_small(shape):
        return False
    inputs = [x, rank_parameter(b, x, [begins + ends] * b.runs)]
    if x.dtype == 'f32' and mode == 'constant' and b.chance(0.5):
        inputs.append(b.constant(1, 'f32'))
    return moved(b, 'Pad', inputs, shape, mode=mode)


def tile(b):
    """Draws Tile."""
    x = pick_data(b, lambda value: value.rank >= 1)
    repeats = [b.integer(1, 3) for _ in x.shape]
    shape = [tuple(length * repeat for length in dimension)
             for dimension, repeat in zip(x.shape, repeats)]
    if not b.is_small(shape):
        return False
    return moved(b, 'Tile', [x, rank_parameter(b, x, [repeats] * b.runs)],
                 shape)


def slice_length(length, start, end, step):
    """Returns the number of elements of ONNX's Slice along an axis.

    Unlike in Python, a start before the first element means the first element
    when the step is negative.
    """
    if length == 0:
        return 0
    last = length if step > 0 else length - 1
    first_end = 0 if step > 0 else -1
    start = min(max(start + length if start < 0 else start, 0), last)
    end = min(max(end + length if end < 0 else end, first_end), last)
    return len(range(start, end, step))


def slice_range(b, dimension):
    """Returns start, end, step and the new dimension, or None."""
    longest = max(dimension)
    step = b.choice([1, 1, 2, 3, -1, -1, -2, -3])
    far = [-INT64_MAX, INT64_MAX]
    start = b.integer(-longest - 2, longest + 1)
    end = b.integer(-longest - 2, longest + 1)
    if b.chance(0.3):
        end = far[step > 0]
    if b.chance(0.2):
        start = far[step < 0]
    result = tuple(slice_length(length, start, end, step)
                   for length in dimension)
    return (start, end, step, result)


def slice_(b):
    """Draws Slice with negative steps and ends out of range."""
    x = pick_data(b, lambda value: value.rank >= 1)
    axes = b.subset(range(x.rank), least=1)
    ranges = []
    for axis in axes:
        entry = slice_range(b, x.shape[axis])
        for _ in range(6):
            if 0 not in entry[3] or b.chance(0.1):
                break
            entry = slice_range(b, x.shape[axis])
        ranges.append(entry)
    shape = list(x.shape)
    for axis, entry in zip(axes, ranges):
        shape[axis] = entry[3]
    starts, ends, steps, _ = (list(column) for column in zip(*ranges))
    axes = [b.signed_axis(axis, x.rank) for axis in axes]
    plain = axes == list(range(len(axes))) and b.chance(0.3)
    inputs = [x] + [b.parameter([entry] * b.runs) for entry in (starts, ends)]
    if not plain or any(step != 1 for step in steps):
        inputs.append(b.parameter([axes] * b.runs))
        if any(step != 1 for step in steps) or b.chance(0.3):
            inputs.append(b.parameter([steps] * b.runs))
    return moved(b, 'Slice', inputs, shape)


def split_lengths(b, dimension, parts):
    """Returns lengths of parts in each run, or None if they are even."""
    if set(dimension) != {dimension[0]} or dimension[0] < parts:
        return None
    cuts = sorted(b.integer(0 if b.chance(0.1) else 1, dimension[0] - 1)
                  for _ in range(parts - 1))
    return [end - start for start, end in
            zip([0] + cuts, cuts + [dimension[0]])]


def split(b):
    """Draws Split with even or given parts."""
    x = pick_data(b, lambda value: value.rank >= 1)
    axis = b.integer(0, x.rank - 1)
    parts = b.integer(1, 3)
    lengths = split_lengths(b, x.shape[axis], parts)
    inputs, attributes = [x], {'axis': b.signed_axis(axis, x.rank)}
    if lengths is not None and b.chance(0.6):
        pieces = [b.constant_dimension(length) for length in lengths]
        if b.opset < 13:
            attributes['split'] = lengths
        else:
            inputs.append(rank_parameter(b, x, [lengths] * b.runs))
    else:
        uneven = any(length % parts for length in x.shape[axis])
        if uneven and b.opset < 18:
            return False
        sizes = [-(-length // parts) for length in x.shape[axis]]
        if any(length - size * (parts - 1) < (1 if length else 0)
               for length, size in zip(x.shape[axis], sizes)):
            return False
        pieces = [tuple(sizes)] * (parts - 1) + [tuple(
            length - size * (parts - 1)
            for length, size in zip(x.shape[axis], sizes))]
        if b.opset >= 18:
            attributes['num_outputs'] = parts
    append_split(b, x, axis, pieces, inputs, attributes)


def append_split(b, x, axis, pieces, inputs, attributes):
    """Appends Split."""
    outputs = [Value(b.name('v'), x.dtype, with_dimension(x.shape, axis, piece),
                     x.exact, x.grid) for piece in pieces]
    b.multi_node('Split', inputs, outputs, **attributes)


def concat(b):
    """Draws Concat of 1 to 4 inputs."""
    x = pick_data(b, lambda value: value.rank >= 1)
    axis = b.integer(0, x.rank - 1)
    values = [x]
    for _ in range(b.integer(0, 3)):
        fitting = [value for value in b.values
                   if value.dtype == x.dtype and value.rank == x.rank and
                   value.content is None and
                   all(value.shape[k] == x.shape[k]
                       for k in range(x.rank) if k != axis)]
        if fitting and b.chance(0.7):
            values.append(b.choice(fitting))
            continue
        values.append(b.fresh(x.dtype,
                              with_dimension(x.shape, axis, b.dimension())))
    values = shuffled(b, *values)
    shape = with_dimension(x.shape, axis, tuple(
        map(sum, zip(*(value.shape[axis] for value in values)))))
    if not b.is_small(shape):
        return False
    return b.node('Concat', values, shape, x.dtype,
                  all(value.exact for value in values),
                  grid_union([value.grid for value in values]),
                  axis=b.signed_axis(axis, x.rank))


def gather(b):
    """Draws Gather with indices of rank 0 to 2, some negative."""
    rank = b.choice([0, 1, 1, 2])
    x = pick_data(b, lambda value: value.rank >= 1 and
                  value.rank - 1 + rank <= MAX_RANK,
                  lambda value: value.rank - 1 + rank)
    axis = b.integer(0, x.rank - 1)
    length = min(x.shape[axis])
    if length == 0:
        return False
    shape = [b.integer(1, 4) for _ in range(rank)]
    arrays = [b.rng.integers(-length, length, shape)] * b.runs
    if b.chance(0.3):
        arrays = [b.rng.integers(-length, length, shape)
                  for _ in range(b.runs)]
    indices = b.parameter(arrays, b.choice(['i64', 'i32']))
    result = list(x.shape)
    result[axis:axis + 1] = [b.constant_dimension(entry) for entry in shape]
    if not b.is_small(result):
        return False
    return moved(b, 'Gather', [x, indices], result,
                 axis=b.signed_axis(axis, x.rank) if axis or b.chance(0.5)
                 else None)


def pooling(b):
    """Draws MaxPool, AveragePool or a global one."""
    x = b.fresh('f32', b.shape(b.integer(3, 5)))
    spatial = x.shape[2:]
    if 0 in b.elements(x.shape):
        return False
    if b.chance(0.2):
        shape = x.shape[:2] + (b.constant_dimension(1),) * len(spatial)
        if b.chance(0.5):
            return moved(b, 'GlobalMaxPool', [x], shape)
        return b.node('GlobalAveragePool', [x], shape)
    kernel = [b.integer(1, min(3, min(entry))) for entry in spatial]
    strides = [b.integer(1, 3) for _ in spatial]
    pads = [b.integer(0, size - 1) for size in kernel * 2]
    count = len(spatial)
    shape = x.shape[:2] + tuple(
        tuple((length + pads[i] + pads[count + i] - kernel[i]) // strides[i] + 1
              for length in entry)
        for i, entry in enumerate(spatial))
    attributes = {'kernel_shape': kernel, 'strides': strides, 'pads': pads}
    if b.chance(0.5):
        return moved(b, 'MaxPool', [x], shape, **attributes)
    return b.node('AveragePool', [x], shape,
                  count_include_pad=b.integer(0, 1), **attributes)


def convolution_length(length, kernel, stride, dilation, pads, more):
    """Returns the length of an axis of Conv, or of ConvTranspose.

    more: output_padding, or None for Conv.
    """
    span = (kernel - 1) * dilation + 1 - sum(pads)
    if more is None:
        return (length - span) // stride + 1
    return (length - 1) * stride + span + more


def convolution(b):
    """Draws Conv or ConvTranspose, sometimes with a sum and an activation."""
    group = b.choice([1, 1, 2, 3])
    channels, outputs = group * b.integer(1, 4), group * b.integer(1, 4)
    shape = list(b.shape(b.integer(3, 5)))
    shape[1] = b.constant_dimension(channels)
    spatial = shape[2:]
    if 0 in b.elements(shape) or not b.is_small(shape):
        return False
    transpose = b.chance(0.3)
    kernel = [b.integer(1, min(3, min(entry))) for entry in spatial]
    strides = [b.integer(1, 3) for _ in spatial]
    pads = [b.integer(0, size - 1) for size in kernel * 2]
    count = len(spatial)
    more = [b.integer(0, stride - 1) if transpose else None
            for stride in strides]
    dimensions = [
        tuple(convolution_length(length, kernel[i], strides[i], 1,
                                 (pads[i], pads[count + i]), more[i])
              for length in entry) for i, entry in enumerate(spatial)]
    result = (shape[0], b.constant_dimension(outputs), *dimensions)
    if min(min(entry) for entry in dimensions) < 1 or not b.is_small(result):
        return False
    weight_shape = ((channels, outputs // group) if transpose else
                    (outputs, channels // group)) + tuple(kernel)
    inputs = [b.fresh('f32', shape),
              b.fresh('f32', [b.constant_dimension(n) for n in weight_shape],
                      constant=True)]
    if b.chance(0.5):
        inputs.append(b.fresh('f32', [b.constant_dimension(outputs)]))
    attributes = {'strides': strides, 'pads': pads, 'group': group}
    if transpose:
        attributes['output_padding'] = more
    y = b.node('ConvTranspose' if transpose else 'Conv', inputs, result,
               **attributes)
    if b.chance(0.4):
        other = b.fresh('f32', result) if b.chance(0.7) else b.fresh(
            'f32', [b.constant_dimension(outputs)] +
            [b.constant_dimension(1)] * count)
        y = b.node('Add', [y, other], result)
    if b.chance(0.5):
        y = b.node(b.choice(['Tanh', 'Softplus', 'HardSwish']), [y], result)
    return y


def one_hot(b):
    """Draws OneHot with indices of which some are negative or out of range."""
    rank = b.integer(0, 3)
    depth = b.integer(1, 7)
    shape = [b.integer(1, 4) for _ in range(rank)]
    axis = b.integer(0, rank)
    indices = b.parameter(
        [b.rng.integers(-depth - 1, depth + 1, shape)] * b.runs, 'i64')
    result = [b.constant_dimension(entry) for entry in shape]
    result.insert(axis, b.constant_dimension(depth))
    return b.node('OneHot', [indices, b.constant(depth),
                             b.constant([0, 1], 'f32')],
                  result, exact=True, grid=Grid(0, 1),
                  axis=b.signed_axis(axis, rank + 1))


def trilu(b):
    """Draws Trilu."""
    if b.opset < 14:
        return False
    x = b.pick(accepts=lambda value: value.rank >= 2)
    inputs = [x]
    if b.chance(0.7):
        inputs.append(b.constant(b.integer(-3, 3)))
    return moved(b, 'Trilu', inputs, x.shape, upper=b.integer(0, 1))


def gather_elements(b):
    """Draws GatherElements with indices that may be shorter than the data."""
    x = pick_data(b, lambda value: value.rank >= 1)
    axis = b.integer(0, x.rank - 1)
    length = min(x.shape[axis])
    shape = [b.integer(1, max(min(entry), 1)) for entry in x.shape]
    shape[axis] = b.integer(1, 6)
    result = [b.constant_dimension(entry) for entry in shape]
    if 0 in b.elements(x.shape) or not b.is_small(result):
        return False
    indices = b.parameter([b.rng.integers(-length, length, shape)] * b.runs,
                          b.choice(['i64', 'i32']))
    return moved(b, 'GatherElements', [x, indices], result,
                 axis=b.signed_axis(axis, x.rank) if axis or b.chance(0.5)
                 else None)


def gather_nd(b):
    """Draws GatherND with index vectors of one or more elements."""
    x = pick_data(b, lambda value: value.rank >= 1, lambda value: 2)
    components = b.integer(1, x.rank)
    lengths = [min(entry) for entry in x.shape[:components]]
    shape = [b.integer(1, 4) for _ in range(b.choice([0, 1, 1, 2]))]
    result = ([b.constant_dimension(entry) for entry in shape] +
              list(x.shape[components:]))
    if (0 in b.elements(x.shape) or len(result) > MAX_RANK or
            not b.is_small(result) or
            (x.dtype in INTEGERS and len(result) < 2)):
        return False
    indices = b.parameter(
        [b.rng.integers(numpy.negative(lengths), lengths,
                        shape + [components])] * b.runs, 'i64')
    return moved(b, 'GatherND', [x, indices], result)


def scatter(b):
    """Draws ScatterElements or ScatterND, without a reduction."""
    x = pick_data(b, lambda value: value.rank >= 1)
    if 0 in b.elements(x.shape) or len(set(b.elements(x.shape))) > 1:
        return False
    lengths = [min(entry) for entry in x.shape]
    if b.chance(0.5):
        components = b.integer(1, x.rank)
        shape = [b.integer(1, 4) for _ in range(b.choice([0, 1, 1, 2]))]
        if len(shape) + x.rank - components > MAX_RANK:
            return False
        array = b.rng.integers(numpy.negative(lengths[:components]),
                               lengths[:components], shape + [components])
        shape = shape + lengths[components:]
        operator, attributes = 'ScatterND', {}
    else:
        axis = b.integer(0, x.rank - 1)
        shape = [b.integer(1, length) for length in lengths]
        array = b.rng.integers(-lengths[axis], lengths[axis], shape)
        operator = 'ScatterElements'
        attributes = {'axis': b.signed_axis(axis, x.rank)}
    updates = b.parameter(
        [b.rng.integers(0, 2, shape).astype(BYTES[x.dtype])] * b.runs, x.dtype)
    grid = x.grid and grid_union([x.grid, Grid(0, 1)])
    return b.node(operator, [x, b.parameter([array] * b.runs), updates],
                  x.shape, x.dtype, x.exact, grid, **attributes)


# ---- shapes ----

def shape_node(b, operator, inputs, contents, dtype='i64', **attributes):
    """Appends a node that computes integers, which are known in each run."""
    contents = [numpy.asarray(content) for content in contents]
    return b.node(operator, inputs,
                  [b.constant_dimension(length)
                   for length in contents[0].shape],
                  dtype, exact=True, content=contents, **attributes)


def shape_of(b, x, start=None, end=None):
    """Appends Shape."""
    return shape_node(b, 'Shape', [x],
                      [numpy.array(x.run_shape(run)[start:end], numpy.int64)
                       for run in range(b.runs)], start=start, end=end)


def shape_gather(b, shape, index):
    """Appends Gather; the index is an integer or a list."""
    return shape_node(b, 'Gather', [shape, b.constant(index)],
                      [content[numpy.array(index)]
                       for content in shape.content], axis=0)


def shape_vector(b, x, axis):
    """Returns the length of an axis as a vector of one element."""
    shape = shape_of(b, x)
    way = b.choice(['gather', 'slice', 'scalar'])
    if way == 'gather':
        return shape_gather(b, shape, [b.signed_axis(axis, x.rank)])
    if way == 'slice':
        inputs = [shape, b.constant([axis]), b.constant([axis + 1])]
        if b.chance(0.5):
            inputs.append(b.constant([0]))
        return shape_node(b, 'Slice', inputs, [content[axis:axis + 1]
                                               for content in shape.content])
    scalar = shape_gather(b, shape, b.signed_axis(axis, x.rank))
    contents = [content.reshape(1) for content in scalar.content]
    if b.opset < 13:
        return shape_node(b, 'Unsqueeze', [scalar], contents, axes=[0])
    return shape_node(b, 'Unsqueeze', [scalar, b.constant([0])], contents)


def shape_arithmetic(b, operator, first, second):
    """Appends an operator of integers; `second` is a value or an integer."""
    functions = {'Add': numpy.add, 'Sub': numpy.subtract,
                 'Mul': numpy.multiply, 'Div': numpy.floor_divide}
    if isinstance(second, int):
        contents = [functions[operator](content, second)
                    for content in first.content]
        second = b.constant([second] if first.rank else second)
    else:
        contents = [functions[operator](one, two) for one, two
                    in zip(first.content, second.content)]
    return shape_node(b, operator, [first, second], contents)


def shape_concat(b, parts):
    """Appends Concat of vectors; integers become constants."""
    contents = [numpy.concatenate([
        [part] if isinstance(part, int) else part.content[run]
        for part in parts]).astype(numpy.int64) for run in range(b.runs)]
    inputs = [b.constant([part]) if isinstance(part, int) else part
              for part in parts]
    return shape_node(b, 'Concat', inputs, contents, axis=0)


def chain_reshape(b):
    """Draws a Reshape whose shape is computed from Shape."""
    x = b.pick(accepts=lambda value: value.rank >= 2 and
               0 not in b.elements(value.shape))
    axis = b.integer(0, x.rank - 2)
    merged = b.elements(x.shape[axis:axis + 2])
    shape = x.shape[:axis] + (merged,) + x.shape[axis + 2:]
    parts = []
    for position, dimension in enumerate(shape):
        if position == axis:
            parts.append(merged_part(b, x, axis))
        elif b.is_static(dimension) and b.chance(0.4):
            parts.append(dimension[0])
        else:
            parts.append(shape_vector(b, x, position + (position > axis)))
    if len(parts) == 1 and isinstance(parts[0], int):
        return False
    target = shape_concat(b, parts)
    return moved(b, 'Reshape', [x, target], shape)


def merged_part(b, x, axis):
    """Returns -1 or the product of two lengths."""
    if b.chance(0.4):
        return -1
    return shape_arithmetic(b, 'Mul', shape_vector(b, x, axis),
                            shape_vector(b, x, axis + 1))


def chain_expand(b):
    """Draws Expand to the shape of another value, in some cases with Where."""
    x = b.pick(accepts=lambda value: value.rank >= 1)
    one = b.constant_dimension(1)
    y = b.fresh('f32', [one if b.chance(0.5) else entry for entry in x.shape])
    target = shape_of(b, x)
    if b.chance(0.4):
        ones = b.constant([1] * x.rank)
        same = shape_node(b, 'Equal', [target, b.constant([-1] * x.rank)],
                          [content == -1 for content in target.content], 'bool')
        target = shape_node(b, 'Where', [same, ones, target], target.content)
    return moved(b, 'Expand', [y, target], x.shape)


def chain_constant(b):
    """Draws ConstantOfShape of a computed shape."""
    x = b.pick(accepts=lambda value: value.rank >= 1)
    if b.opset >= 15 and b.chance(0.3):
        start = b.integer(-x.rank, x.rank - 1)
        end = b.choice([None, b.integer(0, x.rank + 1), -1])
        vector = shape_of(b, x, start, end)
    else:
        vector = shape_of(b, x)
    if vector.content[0].size == 0 or b.chance(0.3):
        vector = shape_vector(b, x, 0)
    shape = [tuple(int(content[k]) for content in vector.content)
             for k in range(len(vector.content[0]))]
    dtype, level = b.choice([('f32', 1.5), ('f32', 0), ('i64', 2), ('i32', -3),
                             ('bool', True)])
    if len(shape) < 2 and dtype in ('i64', 'i32'):
        dtype, level = 'f32', -0.5
    attributes = {}
    if dtype != 'f32' or level:
        attributes['value'] = numpy_helper.from_array(
            numpy.array([level], BYTES[dtype]))
    return b.node('ConstantOfShape', [vector], shape, dtype, exact=True,
                  grid=Grid(-1, 3) if dtype == 'f32' else Grid(0, 3),
                  **attributes)


def chain_slice(b):
    """Draws Slice with a computed end."""
    x = b.pick(accepts=lambda value: value.rank >= 1)
    axis = b.integer(0, x.rank - 1)
    length = shape_vector(b, x, axis)
    if b.chance(0.5):
        end = shape_arithmetic(b, 'Div', length, 2)
    else:
        end = shape_arithmetic(b, b.choice(['Sub', 'Add']), length, 1)
    shape = with_dimension(x.shape, axis, tuple(
        slice_length(total, 0, int(content[0]), 1)
        for total, content in zip(x.shape[axis], end.content)))
    if 0 in shape[axis] and not b.chance(0.2):
        return False
    return moved(b, 'Slice', [x, b.constant([0]), end, b.constant([axis])],
                 shape)


def chain_range(b):
    """Draws Range to a computed limit, and adds it to a value."""
    x = b.pick(accepts=lambda value: value.rank >= 1)
    shape = shape_of(b, x)
    limit = shape_gather(b, shape, x.rank - 1)
    contents = [numpy.arange(int(content)) for content in limit.content]
    numbers = b.node('Range', [b.constant(0), limit, b.constant(1)],
                     [x.shape[-1]], 'i64', exact=True, content=contents)
    reals = b.node('Cast', [numbers], [x.shape[-1]],
                   grid=Grid(0, max(max(x.shape[-1]), 1)),
                   to=element_type('f32'))
    return b.node('Add', [x, reals], x.shape,
                  grid=grid_sum([x.grid, reals.grid]))


def chain_size(b):
    """Draws a division by the number of elements."""
    x = b.pick(accepts=lambda value: 0 not in b.elements(value.shape))
    size = shape_node(b, 'Size', [x], b.elements(x.shape))
    real = b.node('Cast', [size], (), exact=True, to=element_type('f32'))
    return b.node('Div', [x, real], x.shape)


DRAWS = [
    (3, unary_exact), (2, unary_rounding), (5, unary_smooth),
    (3, unary_guarded), (2, microsoft_unary), (5, binary_exact),
    (4, binary_guarded), (3, variadic), (2, clip), (3, compare), (2, logical),
    (3, integers),
    (2, is_nan), (2, prelu), (1, remainder), (1, thresholded_relu), (2, where),
    (3, cast), (5, reduction), (2, arg_reduction),
    (2, softmax), (1, cumsum), (1, topk), (1, resize),
    (3, normalization), (3, channel_normalization), (5, matmul),
    (2, fused_matmul), (4, gemm),
    (3, transpose), (1, identity), (1, flatten), (2, squeeze), (2, unsqueeze),
    (3, reshape), (2, expand), (4, slice_), (2, split), (3, concat),
    (2, pad), (1, tile), (3, gather), (1, gather_elements), (1, gather_nd),
    (1, scatter), (1, one_hot), (1, trilu), (2, pooling), (3, convolution),
    (2, chain_reshape), (1, chain_expand), (1, chain_constant),
    (1, chain_slice), (1, chain_range), (1, chain_size)]


def draw(b):
    """Draws one operator, which is not appended if no value suits it."""
    weights = numpy.array([weight for weight, _ in DRAWS], float)
    index = b.rng.choice(len(DRAWS), p=weights / weights.sum())
    try:
        DRAWS[index][1](b)
    except NoValue:
        pass
