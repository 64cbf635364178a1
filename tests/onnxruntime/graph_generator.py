# SPDX-License-Identifier: Apache-2.0
"""Draws random ONNX graphs of the operators that Tandem's provider serves.

A graph is made for several runs with different shapes.  A dimension is a tuple
with its length in each run.  Operators are drawn so that they are valid in every
run.

Each value knows how it may differ between correct implementations:
- `exact`: every implementation computes the same bits.  Only such values reach
  operators that are not continuous (Floor, comparisons, ArgMax, casts...).
- `grid`: the value is exact, and each element is a multiple of 2^quantum with at
  most the given magnitude.  Sums and products of such values are exact while
  they fit into the 24 bits of an f32.
"""

import collections

import numpy
import onnx
from onnx import TensorProto, helper

MICROSOFT = 'com.microsoft'
OPSETS = range(11, 24)
# Bits of an f32 that exact results may use, and the largest rank.
EXACT_BITS = 22
MAX_RANK = 5
# Elements that a value may have.
MAX_ELEMENTS = 4096
# Operators whose result has an unknown rank if a parameter is not constant.
RANK_OPERATORS = {'ConstantOfShape', 'Expand', 'Reshape', 'Split', 'Squeeze',
                  'Unsqueeze'} | {
    'Reduce' + name for name in ('L1', 'L2', 'LogSum', 'LogSumExp', 'Max',
                                 'Mean', 'Min', 'Prod', 'Sum', 'SumSquare')}
BYTES = {'f32': numpy.float32, 'i64': numpy.int64, 'i32': numpy.int32,
         'u8': numpy.uint8, 'bool': numpy.bool_}

Grid = collections.namedtuple('Grid', 'quantum magnitude')


class NoValue(Exception):
    """The graph has no value that suits the operator."""


def element_type(dtype):
    """Returns the ONNX element type of a dtype's name."""
    return helper.np_dtype_to_tensor_dtype(numpy.dtype(BYTES[dtype]))


class Value:
    """A tensor of the graph.

    shape: a tuple of dimensions, each a tuple with the length in each run.
    content: the integers of a shape in each run, or None.
    runtime: the value is not constant.
    """

    def __init__(self, name, dtype, shape, exact=False, grid=None, content=None,
                 runtime=True):
        self.name = name
        self.dtype = dtype
        self.shape = tuple(shape)
        self.exact = exact or grid is not None
        self.grid = grid
        self.content = content
        self.runtime = runtime
        self.readers = 0
        self.produced = False  # by a node
        self.rank_is_known = True  # when ONNX Runtime loads the model

    @property
    def rank(self):
        """The number of axes."""
        return len(self.shape)

    def run_shape(self, run):
        """Returns the shape in a run."""
        return tuple(dimension[run] for dimension in self.shape)


def broadcast_dimension(first, second):
    """Returns the common dimension, or None."""
    result = []
    for a, b in zip(first, second):
        if a != b and a != 1 and b != 1:
            return None
        result.append(b if a == 1 else a)
    return tuple(result)


def broadcast_shapes(*shapes):
    """Returns the common shape, or None."""
    result = []
    rank = max(len(shape) for shape in shapes)
    runs = next((len(shape[0]) for shape in shapes if shape), 1)
    for axis in range(-rank, 0):
        dimension = (1,) * runs
        for shape in shapes:
            if -axis <= len(shape):
                dimension = broadcast_dimension(dimension, shape[axis])
            if dimension is None:
                return None
        result.append(dimension)
    return tuple(result)


def fits(grid):
    """Returns the grid if f32 holds all its values, else None."""
    limit = 2.0 ** (EXACT_BITS + grid.quantum)
    return grid if 0 < grid.magnitude <= limit and grid.quantum > -30 else None


def grid_sum(grids):
    """Returns the grid of a sum, or None."""
    if any(grid is None for grid in grids):
        return None
    return fits(Grid(min(grid.quantum for grid in grids),
                     sum(grid.magnitude for grid in grids)))


def grid_product(first, second, count=1):
    """Returns the grid of a sum of `count` products, or None."""
    if first is None or second is None:
        return None
    return fits(Grid(first.quantum + second.quantum,
                     first.magnitude * second.magnitude * max(count, 1)))


def grid_union(grids):
    """Returns a grid that contains the elements of all grids, or None."""
    if any(grid is None for grid in grids):
        return None
    return fits(Grid(min(grid.quantum for grid in grids),
                     max(grid.magnitude for grid in grids)))


class Builder:
    """A graph that grows.

    feeds: for each run, a dictionary of the graph inputs' arrays.
    """

    def __init__(self, rng, runs, opset):
        self.rng = rng
        self.runs = runs
        self.opset = opset
        self.nodes = []
        self.inputs = []
        self.initializers = []
        self.values = []
        self.feeds = [{} for _ in range(runs)]
        self.symbols = {}
        self.count = 0

    # ---- random choices ----

    def chance(self, probability):
        """Returns true with a probability."""
        return self.rng.random() < probability

    def integer(self, low, high):
        """Returns an integer from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def choice(self, items):
        """Returns one of the items."""
        items = list(items)
        return items[self.integer(0, len(items) - 1)]

    def subset(self, items, least=0):
        """Returns some of the items, in their order, at least `least`."""
        items = list(items)
        count = self.integer(min(least, len(items)), len(items))
        chosen = sorted(self.rng.permutation(len(items))[:count])
        return [items[i] for i in chosen]

    def signed_axis(self, axis, rank):
        """Returns the axis, sometimes counted from the end."""
        return axis - rank if self.chance(0.4) else axis

    # ---- dimensions ----

    def constant_dimension(self, length):
        """Returns a dimension that is the same in each run."""
        return (length,) * self.runs

    def dimension(self):
        """Returns a new or known dimension."""
        if self.symbols and self.chance(0.3):
            return self.choice(self.symbols)
        if self.chance(0.5):
            return self.constant_dimension(
                1 if self.chance(0.15) else
                0 if self.chance(0.03) else self.integer(2, 9))
        low = 0 if self.chance(0.08) else 1
        dimension = tuple(self.integer(low, 9) for _ in range(self.runs))
        self.symbols.setdefault(dimension, 'd%d' % len(self.symbols))
        return dimension

    def is_static(self, dimension):
        """Returns true if the length is the same in each run."""
        return len(set(dimension)) == 1

    def elements(self, shape):
        """Returns the dimension that is the product of a shape."""
        return tuple(int(numpy.prod([dimension[run] for dimension in shape],
                                    dtype=numpy.int64))
                     for run in range(self.runs))

    def is_small(self, shape):
        """Returns true if a value may have this shape."""
        return max(self.elements(shape)) <= MAX_ELEMENTS

    def shape(self, rank=None):
        """Returns a new shape."""
        if rank is None:
            rank = self.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5])
        shape = tuple(self.dimension() for _ in range(rank))
        while not self.is_small(shape):
            axis = self.integer(0, rank - 1)
            shape = shape[:axis] + (self.constant_dimension(2),) + \
                shape[axis + 1:]
        return shape

    # ---- values ----

    def name(self, prefix):
        """Returns a new name."""
        self.count += 1
        return '%s%d' % (prefix, self.count)

    def random_array(self, dtype, shape, on_grid):
        """Returns random elements: multiples of 1/8 if on_grid is true."""
        if dtype == 'bool':
            return numpy.asarray(self.rng.random(shape) < 0.5)
        if dtype != 'f32':
            low = 0 if dtype == 'u8' else -20
            return numpy.asarray(self.rng.integers(low, 20, shape),
                                 BYTES[dtype])
        if on_grid:
            return numpy.asarray(self.rng.integers(-32, 33, shape) / 8,
                                 numpy.float32)
        return numpy.asarray(self.rng.standard_normal(shape), numpy.float32)

    def add_input(self, value, arrays):
        """Adds a graph input with an array for each run."""
        shape = [dimension[0] if self.is_static(dimension)
                 and dimension not in self.symbols
                 else self.symbols.setdefault(dimension,
                                              'd%d' % len(self.symbols))
                 for dimension in value.shape]
        self.inputs.append(helper.make_tensor_value_info(
            value.name, element_type(value.dtype), shape))
        for feed, array in zip(self.feeds, arrays):
            feed[value.name] = array
        self.values.append(value)
        return value

    def add_constant(self, value, array):
        """Adds an initializer."""
        value.runtime = False
        self.initializers.append(onnx.numpy_helper.from_array(array,
                                                              value.name))
        self.values.append(value)
        return value

    def fresh(self, dtype, shape, constant=None, on_grid=None):
        """Returns a new input or constant with random elements."""
        if on_grid is None:
            on_grid = self.chance(0.6)
        if constant is None:
            constant = self.chance(0.3)
        grid = None
        if dtype == 'f32' and on_grid:
            grid = Grid(-3, 4)
        elif dtype != 'f32':
            grid = Grid(0, 20)
        value = Value(self.name('c' if constant else 'x'), dtype, shape,
                      exact=True, grid=grid)
        if constant and all(self.is_static(entry) for entry in shape):
            return self.add_constant(
                value, self.random_array(dtype, value.run_shape(0), on_grid))
        value.name = value.name.replace('c', 'x')
        return self.add_input(value, [
            self.random_array(dtype, value.run_shape(run), on_grid)
            for run in range(self.runs)])

    def parameter(self, arrays, dtype='i64', runtime=None):
        """Returns the name of an input or constant with known elements.

        arrays: the elements in each run, of one shape.
        """
        arrays = [numpy.asarray(array, BYTES[dtype]) for array in arrays]
        same = all((array == arrays[0]).all() for array in arrays)
        value = Value(self.name('p'), dtype,
                      [self.constant_dimension(length)
                       for length in arrays[0].shape], exact=True)
        if runtime is None:
            runtime = self.chance(0.2)
        if same and not runtime:
            self.add_constant(value, arrays[0])
        else:
            self.add_input(value, arrays)
        self.values.remove(value)
        return value.name

    def constant(self, elements, dtype='i64'):
        """Returns the name of a constant."""
        return self.parameter([elements] * self.runs, dtype, runtime=False)

    def pick(self, dtype='f32', accepts=None, fresh=0.15, rank=None):
        """Returns a value that `accepts`, or a new input, or raises NoValue.

        Prefers results that no node has read yet, so that graphs are connected.
        """
        candidates = [value for value in self.values
                      if value.dtype == dtype and value.content is None and
                      value.runtime and (rank is None or value.rank == rank) and
                      (accepts is None or accepts(value))]
        unread = [value for value in candidates
                  if value.produced and value.readers == 0]
        if unread and self.chance(0.75):
            return self.choice(unread)
        if candidates and not self.chance(fresh):
            return self.choice(candidates)
        for _ in range(20):
            shape = self.shape(rank)
            probe = Value('', dtype, shape, grid=Grid(-3, 4))
            if accepts is None or accepts(probe):
                return self.fresh(dtype, shape, constant=False,
                                  on_grid=True if accepts else None)
        raise NoValue

    def node(self, operator, inputs, shape, dtype='f32', exact=False, grid=None,
             content=None, domain='', **attributes):
        """Adds a node with one output and returns the output.

        inputs: values or names; None is an absent input.
        """
        value = Value(self.name('v'), dtype, shape, exact, grid, content)
        self.multi_node(operator, inputs, [value], domain, **attributes)
        return value

    def multi_node(self, operator, inputs, outputs, domain='', **attributes):
        """Adds a node with the outputs."""
        names = []
        rank_is_known = True
        for entry in inputs:
            if isinstance(entry, Value):
                entry.readers += 1
                rank_is_known &= (entry.rank_is_known and
                                  (entry.content is None or
                                   operator not in RANK_OPERATORS))
                entry = entry.name
            elif entry in self.feeds[0] and operator in RANK_OPERATORS:
                rank_is_known = False
            names.append(entry or '')
        while names and not names[-1]:
            names.pop()
        self.nodes.append(helper.make_node(
            operator, names, [value.name for value in outputs], domain=domain,
            name='n%d_%s' % (len(self.nodes), operator),
            **{key: entry for key, entry in attributes.items()
               if entry is not None}))
        for value in outputs:
            value.produced = True
            value.rank_is_known = rank_is_known
        self.values.extend(outputs)

    # ---- the model ----

    def output_values(self):
        """Returns values without readers, and some others."""
        made = {name for node in self.nodes for name in node.output}
        return [value for value in self.values if value.name in made and
                (value.readers == 0 or
                 (value.content is None and self.chance(0.12)))]

    def model(self, outputs):
        """Returns the model with the given outputs."""
        infos = [helper.make_tensor_value_info(value.name,
                                               element_type(value.dtype), None)
                 for value in outputs]
        graph = helper.make_graph(self.nodes, 'random', self.inputs, infos,
                                  self.initializers)
        imports = [helper.make_opsetid('', self.opset)]
        if any(node.domain == MICROSOFT for node in self.nodes):
            imports.append(helper.make_opsetid(MICROSOFT, 1))
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def perturbed_model(builder, outputs, noise):
    """Returns the model with noise added to every value that is not exact.

    noise: maps names of values to names of new inputs.
    """
    model = builder.model(outputs)
    del model.graph.node[:]
    for node in builder.nodes:
        copy = model.graph.node.add()
        copy.CopyFrom(node)
        for index, name in enumerate(node.output):
            if name not in noise:
                continue
            copy.output[index] = name + '_clean'
            model.graph.node.append(helper.make_node(
                'Add', [name + '_clean', noise[name]], [name]))
    model.graph.input.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in noise.values())
    return model
