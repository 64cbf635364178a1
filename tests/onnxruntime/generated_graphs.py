#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares random graphs on Tandem's provider with ONNX Runtime's CPU provider.

Each graph has 2 to 12 nodes (a few more if the last operator that is drawn needs
several), inputs with dynamic dimensions, and several outputs.  One session runs
it with two or three sets of shapes, and with the first one again.  The provider
must claim every node.  The reference is the same model on the CPU provider
without graph optimizations.

An output that every correct implementation computes exactly (data movement,
integers, sums of small multiples of 1/8...) must be equal to the reference.
Every other output may differ by TOLERANCE times the largest magnitude of the
reference.  TOLERANCE is about 170 units in the last place: the deepest graphs
chain about ten operators, each of which may be wrong by several units and may
amplify earlier errors.  A wrong element almost always differs by a good part of
the largest magnitude.  Magnitudes below LEAST_MAGNITUDE count as
LEAST_MAGNITUDE, which allows five units in the last place of 1, because
activations like Gelu(-4) are small multiples of a difference of numbers near 1.

Ill-conditioned graphs are dropped, and others drawn instead: the reference also
runs with random noise of NOISE times the largest magnitude (at least
LEAST_MAGNITUDE) added to each value that is not exact, and no output may change by more than a quarter of the
tolerance.  Graphs with results that are not finite are dropped, too.

Graph number I depends only on the seed and on I: "--first I --count 1" repeats
it.  Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see
provider.py.
"""

import argparse
import collections
import functools
import sys
import time

import numpy
import onnx

import graph_operators
import provider
from graph_generator import OPSETS, Builder, perturbed_model
from isolation import (FAILED, PASSED, WARNING, Result, error_text,
                       run_isolated)
from small_models import keep_device_open, output_problem

TOLERANCE = 2e-5
LEAST_MAGNITUDE = 2.0 ** -5
NOISE = 2.0 ** -21
# Older CPU providers (seen in 1.23.0) compute wrong shapes for empty tensors, crash
# in MatMul of empty vectors, lose half of the digits in LayerNormalization (an
# error of 0.25 for two close numbers) and SkipLayerNormalization, and do not count
# the padding after the end in AveragePool (1 to 8, kernel and stride 3, two zeros:
# 2, 5, 7.5).
REFERENCE_VERSION = (1, 32)
WRONG_BEFORE = {'AveragePool', 'LayerNormalization', 'SkipLayerNormalization'}
MAX_ATTEMPTS = 100
MAX_MAGNITUDE = 1e6


class Dropped(Exception):
    """The drawn graph does not suit a comparison."""


Graph = collections.namedtuple('Graph', 'builder outputs model references')


# ---- drawing ----

def draw_builder(rng):
    """Draws operators until the graph has enough nodes."""
    builder = Builder(rng, int(rng.integers(2, 4)), int(rng.choice(OPSETS)))
    target = builder.integer(2, 12)
    for _ in range(10 * target):
        if len(builder.nodes) >= target:
            break
        graph_operators.draw(builder)
    return builder


def run_reference(model, builder):
    """Runs the CPU provider.  Drops graphs that it does not support."""
    try:
        session = provider.cpu_session(model)
        return [session.run(None, feed) for feed in builder.feeds]
    except Exception as error:
        raise Dropped('reference: ' + error_text(error)) from error


def check_reference(values, references):
    """Checks shapes, and drops graphs with large results."""
    for run, arrays in enumerate(references):
        for value, array in zip(values, arrays):
            if array.shape != value.run_shape(run):
                raise AssertionError(
                    '%s has shape %s, expected %s' %
                    (value.name, array.shape, value.run_shape(run)))
            if array.dtype == numpy.float32 and array.size and \
                    not numpy.abs(array).max() < MAX_MAGNITUDE:
                raise Dropped('large results')


def magnitude(array):
    """Returns the largest magnitude of an array's elements."""
    return float(numpy.abs(array).max()) if array.size else 0.0


def check_conditioning(builder, values, references, outputs):
    """Drops the graph if small errors grow."""
    inexact = [value for value in values
               if value.dtype == 'f32' and not value.exact]
    if not inexact:
        return
    noise = {value.name: value.name + '_noise' for value in inexact}
    session = provider.cpu_session(perturbed_model(builder, outputs, noise))
    for run, feed in enumerate(builder.feeds):
        arrays = dict(zip((value.name for value in values), references[run]))
        feed = dict(feed)
        for value in inexact:
            array = arrays[value.name]
            feed[noise[value.name]] = numpy.asarray(
                builder.rng.uniform(-1, 1, array.shape) *
                (NOISE * max(magnitude(array), LEAST_MAGNITUDE)),
                numpy.float32)
        for value, array in zip(outputs, session.run(None, feed)):
            allowed = TOLERANCE / 4 * max(magnitude(arrays[value.name]),
                                          LEAST_MAGNITUDE)
            if value.dtype == 'f32' and array.size and \
                    not magnitude(array - arrays[value.name]) <= allowed:
                raise Dropped('ill-conditioned')


def try_graph(rng):
    """Draws a graph and computes the reference of its outputs."""
    builder = draw_builder(rng)
    made = {name for node in builder.nodes for name in node.output}
    values = [value for value in builder.values if value.name in made]
    if len(builder.nodes) < 2:
        raise Dropped('too few nodes')
    if provider.version() < REFERENCE_VERSION and (
            any(0 in dimension for value in builder.values
                for dimension in value.shape) or
            any(node.op_type in WRONG_BEFORE for node in builder.nodes)):
        raise Dropped('wrong or inaccurate reference')
    if provider.version() < (1, 24) and not any(builder.feeds):
        raise Dropped('no inputs, as in a branch of If, of which no node is taken')
    outputs = builder.output_values()
    references = run_reference(builder.model(values), builder)
    check_reference(values, references)
    check_conditioning(builder, values, references, outputs)
    places = [values.index(value) for value in outputs]
    return Graph(builder, outputs, builder.model(outputs),
                 [[arrays[place] for place in places] for arrays in references])


def draw_graph(seed, number):
    """Returns graph `number` and how many others were dropped."""
    for attempt in range(MAX_ATTEMPTS):
        rng = numpy.random.default_rng([seed, number, attempt])
        try:
            return try_graph(rng), attempt
        except Dropped as error:
            reason = str(error)
    raise RuntimeError('no graph in %d attempts; the last one: %s' %
                       (MAX_ATTEMPTS, reason))


# ---- comparison ----

def compare_output(value, actual, expected):
    """Returns a text that says how an output is wrong, or None."""
    allowed = 0.0
    if expected.dtype == numpy.float32 and not value.exact:
        allowed = TOLERANCE * max(magnitude(expected), LEAST_MAGNITUDE)
    return output_problem(actual, expected, 0, allowed)


def run_graph(graph, session):
    """Returns a text that says what is wrong, or None."""
    runs = list(range(graph.builder.runs)) + [0]
    for run in runs:
        try:
            arrays = session.run(None, graph.builder.feeds[run])
        except Exception as error:
            return 'run %d: %s' % (run, error_text(error))
        for value, actual, expected in zip(graph.outputs, arrays,
                                           graph.references[run]):
            problem = compare_output(value, actual, expected)
            if problem is not None:
                return 'run %d, output %s: %s' % (run, value.name, problem)
    return None


def description(graph):
    """Returns a graph, and the shapes of its inputs in each run, as text."""
    lines = [onnx.printer.to_text(graph.model)]
    for value in graph.builder.inputs:
        arrays = [feed[value.name] for feed in graph.builder.feeds]
        # Inputs whose names begin with p are parameters, like axes.
        lines.append('%s: %s' % (value.name, ', '.join(
            str(array.tolist() if value.name.startswith('p') else array.shape)
            for array in arrays)))
    return '\n'.join(lines)


def run_number(number, arguments):
    """Draws a graph, runs it and returns the result."""
    graph, dropped = draw_graph(arguments.seed, number)
    optimize = graph.builder.chance(0.5)
    try:
        session = provider.session(graph.model, arguments.device,
                                   optimize=optimize, log_level=WARNING)
        problem = run_graph(graph, session)
    except Exception as error:
        problem = error_text(error)
    if problem is not None:
        return Result(FAILED, problem)
    return Result(PASSED, dropped)


def describe(number, arguments):
    """Returns the description of a graph as the text of a result."""
    graph, _ = draw_graph(arguments.seed, number)
    return Result(FAILED, description(graph))


# ---- command line ----

def parse_arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        description="Compare random graphs on Tandem's execution provider with "
                    "ONNX Runtime's CPU provider.")
    provider.add_device_argument(parser)
    parser.add_argument('--count', type=int, default=100, metavar='N',
                        help='number of graphs (default 100)')
    parser.add_argument('--seed', type=int, default=1, metavar='S',
                        help='seed of all random choices (default 1)')
    parser.add_argument('--first', type=int, default=0, metavar='I',
                        help='number of the first graph (default 0)')
    return parser.parse_args()


def print_failure(number, result, arguments):
    """Prints what is wrong, and the graph."""
    print('FAILED seed %d, graph %d: %s' % (arguments.seed, number,
                                            result.text))
    # The graph is drawn in a child, because drawing opens sessions.
    show = functools.partial(describe, arguments=arguments)
    for _, shown in run_isolated([number], lambda: show):
        print(shown.text, flush=True)


def prepare(arguments):
    """Returns a function that runs the graph with a number."""
    keep_device_open(arguments.device)
    return functools.partial(run_number, arguments=arguments)


def main():
    """Runs the script.  Returns its exit status."""
    arguments = parse_arguments()
    print('%s, device %s, seed %d' % (provider.versions(), arguments.device,
                                      arguments.seed), flush=True)
    numbers = range(arguments.first, arguments.first + arguments.count)
    counts, dropped = collections.Counter(), 0
    start = time.monotonic()
    for number, result in run_isolated(
            numbers, functools.partial(prepare, arguments)):
        counts[result.status] += 1
        if result.status == PASSED:
            dropped += result.text
        else:
            print_failure(number, result, arguments)
    print('%.1f s, %d graphs dropped' % (time.monotonic() - start, dropped))
    print('%d passed, %d failed, 0 skipped' % (counts[PASSED], counts[FAILED]))
    return 0 if counts[PASSED] and not counts[FAILED] else 1


if __name__ == '__main__':
    sys.exit(main())
