#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's own node tests through Tandem's execution provider.

The package onnx generates the cases.  This script takes each case whose model
consists only of operators that the provider serves (and of Constant, which ONNX
Runtime turns into initializers when it loads a model).  The provider must claim
every node, and the results must agree with the expected outputs within the
tolerances of the case.

Cases with a dtype that the provider does not compute (SERVED_TYPES) do not apply.
node-tests-excluded.txt lists the others that do not.  Each line holds a regular
expression of whole names, a tab, and the reason.  The script runs these cases,
too: an entry fails if it matches no case, or if a matching case passes.

Some cases only use a dtype or an output that the provider does not serve.  The
script derives further cases from them: NAME:f32 has f32 instead of the dtype,
NAME:first_output has no other outputs than the first.  Cases that are not
excluded also run as NAME:constants, in which all inputs but the first are
constants of the model.

Cases with an operator-set version that ONNX Runtime does not know are stamped
with the newest version that it knows if that changes no operator.  A case that
an ONNX Runtime older than FULL_VERSION cannot load without the provider either
is skipped.

The cases run in a child process; see isolation.py.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import argparse
import collections
import copy
import dataclasses
import functools
import os
import re
import sys
import zlib
import warnings

import numpy
import onnx
import onnx.backend.test.loader
from onnx import TensorProto, helper

import provider
from isolation import (FAILED, PASSED, SKIPPED, WARNING, Result, error_text,
                       run_isolated)
from small_models import keep_device_open, output_problem

SEED = 1
# ONNX Runtime from this version on must load every case that is not excluded.
FULL_VERSION = (1, 32)
# Operators that ONNX Runtime removes when it loads a model.
HOST_OPERATORS = {'ai.onnx:Constant'}
# Operators whose attributes or semantics depend on the dtype.
TYPED_OPERATORS = {'ai.onnx:' + name for name in (
    'Cast', 'CastLike', 'Constant', 'ConstantOfShape', 'Range')}
# Operators that give the same result for integers and for f32.
SELECTING_OPERATORS = {'ai.onnx:' + name for name in (
    'Equal', 'Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual', 'Max', 'Min',
    'Or', 'Where')}
INTEGER_TYPES = {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32,
                 TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16,
                 TensorProto.UINT32, TensorProto.UINT64}
SERVED_TYPES = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64,
                TensorProto.UINT8, TensorProto.BOOL}
DIRECTORY = os.path.dirname(os.path.abspath(__file__))


# ---- cases ----

def served_operators(path):
    """Reads the names ("domain:Type") that docs/list-onnx-operators prints."""
    with open(path, encoding='ascii') as file:
        return set(file.read().split())


def model_operators(model):
    """Returns the names of the operators in a model without subgraphs."""
    return {'%s:%s' % (node.domain or 'ai.onnx', node.op_type)
            for node in model.graph.node}


def load_cases(served, patterns=()):
    """Generates the cases that consist of served operators, by name.

    served: names of the served operators.
    patterns: regular expressions of excluded cases.
    """
    allowed = served | HOST_OPERATORS
    numpy.random.seed(SEED)
    with warnings.catch_warnings(), numpy.errstate(all='ignore'):
        warnings.simplefilter('ignore')
        cases = onnx.backend.test.loader.load_node_model_tests()
    return with_derived_cases([
        case for case in cases
        if case.model is not None and model_operators(case.model) <= allowed and
        not model_operators(case.model) <= HOST_OPERATORS], patterns)


def matching(names, pattern):
    """Returns the names that match a regular expression."""
    return [name for name in names if re.fullmatch(pattern, name)]


def read_exclusions():
    """Returns (pattern, reason) pairs."""
    entries = []
    with open(os.path.join(DIRECTORY, 'node-tests-excluded.txt'),
              encoding='ascii') as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip('\n')
            if not line or line.startswith('#'):
                continue
            pattern, separator, reason = line.partition('\t')
            if not separator or not reason.strip():
                sys.exit('node-tests-excluded.txt:%d: expected an expression, '
                         'a tab and a reason' % number)
            entries.append((pattern, reason))
    return entries


# ---- derived cases ----

def _replace_types(model, types):
    """Makes all tensors of some element types f32.  Returns false if none is."""
    changed = False
    for value in (list(model.graph.input) + list(model.graph.output) +
                  list(model.graph.value_info)):
        tensor = value.type.tensor_type
        if tensor.elem_type in types:
            tensor.elem_type = TensorProto.FLOAT
            changed = True
    return changed


def f32_case(case):
    """Returns the case with f32 instead of other arithmetic dtypes, or None."""
    operators = model_operators(case.model)
    types = set()
    if not operators & TYPED_OPERATORS:
        types |= {TensorProto.DOUBLE, TensorProto.FLOAT16}
    if operators <= SELECTING_OPERATORS:
        types |= INTEGER_TYPES
    model = copy.deepcopy(case.model)
    if not _replace_types(model, types):
        return None
    dtypes = {provider.numpy_dtype(entry) for entry in types}
    data_sets = [
        tuple([numpy.asarray(array, numpy.float32)
               if numpy.asarray(array).dtype in dtypes else array
               for array in arrays] for arrays in data_set)
        for data_set in case.data_sets]
    return dataclasses.replace(case, name=case.name + ':f32', model=model,
                               data_sets=data_sets)


def first_output_case(case):
    """Returns the case without its optional outputs, or None."""
    nodes = case.model.graph.node
    if (len(nodes) != 1 or len(nodes[0].output) < 2 or
            nodes[0].op_type not in ('Dropout', 'LayerNormalization')):
        return None
    model = copy.deepcopy(case.model)
    del model.graph.output[1:]
    del model.graph.node[0].output[1:]
    data_sets = [(inputs, outputs[:1]) for inputs, outputs in case.data_sets]
    return dataclasses.replace(case, name=case.name + ':first_output',
                               model=model, data_sets=data_sets)


def constants_case(case):
    """Returns the case with all inputs but the first as constants, or None."""
    values = case.model.graph.input
    if len(values) < 2 or len(case.data_sets) != 1:
        return None
    inputs, outputs = case.data_sets[0]
    model = copy.deepcopy(case.model)
    # An initializer that is not an input needs version 4.
    model.ir_version = max(model.ir_version, 4)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(numpy.asarray(array), value.name)
        for array, value in list(zip(inputs, values))[1:])
    del model.graph.input[1:]
    return dataclasses.replace(case, name=case.name + ':constants', model=model,
                               data_sets=[(inputs[:1], outputs)])


def derived_cases(cases, *functions):
    """Returns what the functions make of the cases."""
    derived = [function(case) for case in cases for function in functions]
    return [case for case in derived if case is not None]


def has_served_types(case):
    """Returns true if all inputs and outputs have served dtypes."""
    values = list(case.model.graph.input) + list(case.model.graph.output)
    return all(value.type.tensor_type.elem_type in SERVED_TYPES
               for value in values)


def with_derived_cases(cases, patterns):
    """Returns the cases and those that are derived from them, by name.

    patterns: regular expressions of excluded cases.
    """
    cases = cases + derived_cases(cases, f32_case, first_output_case)
    cases = [case for case in cases if has_served_types(case)]
    applicable = [case for case in cases
                  if not any(re.fullmatch(pattern, case.name)
                             for pattern in patterns)]
    return {case.name: case
            for case in cases + derived_cases(applicable, constants_case)}


# ---- versions ----

def loads(model):
    """Returns true if ONNX Runtime loads the model without the provider."""
    try:
        provider.cpu_session(model)
    except Exception:  # ONNX Runtime raises several types
        return False
    return True


def _loads_versions(opset, ir_version):
    """Returns true if ONNX Runtime loads a model with these versions."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
             for name in 'xy']
    graph = helper.make_graph([helper.make_node('Abs', ['x'], ['y'])], 'probe',
                              value[:1], value[1:])
    return loads(helper.make_model(
        graph, opset_imports=[helper.make_opsetid('', opset)],
        ir_version=ir_version))


def host_limits():
    """Returns the newest operator-set and IR versions that the host loads."""
    ir_version = next(version for version in range(onnx.IR_VERSION, 2, -1)
                      if _loads_versions(13, version))
    opset = next(version for version
                 in range(onnx.defs.onnx_opset_version(), 6, -1)
                 if _loads_versions(version, ir_version))
    return opset, ir_version


def _since_versions(model, opset):
    try:
        return [onnx.defs.get_schema(node.op_type, opset,
                                     node.domain).since_version
                for node in model.graph.node]
    except onnx.defs.SchemaError:
        return None


def lower_versions(model, limits):
    """Returns the model with versions that the host loads, if possible.

    The operator-set version is lowered only if each operator has the same
    schema in both versions.
    """
    result = copy.deepcopy(model)
    result.ir_version = min(result.ir_version, limits[1])
    for entry in result.opset_import:
        if entry.domain in ('', 'ai.onnx') and entry.version > limits[0]:
            if (_since_versions(model, entry.version) ==
                    _since_versions(model, limits[0])):
                entry.version = limits[0]
    return result


# ---- running a case ----

def compare_output(actual, expected, case):
    """Returns a text that says how an output is wrong, or None."""
    if not isinstance(expected, (numpy.ndarray, numpy.generic)):
        return 'not a tensor'
    return output_problem(actual, numpy.asarray(expected), case.rtol, case.atol)


def run_data_set(session, case, data_set):
    """Returns a text that says what is wrong, or None."""
    inputs, outputs = data_set
    names = [value.name for value in case.model.graph.input]
    # An absent optional input has no value in the data set.
    feeds = dict(zip(names, map(numpy.asarray, inputs)))
    results = session.run(None, feeds)
    if len(results) != len(outputs):
        return '%d outputs; expected %d' % (len(results), len(outputs))
    for value, actual, expected in zip(session.get_outputs(), results, outputs):
        problem = compare_output(actual, expected, case)
        if problem is not None:
            return 'output %s: %s' % (value.name, problem)
    return None


def run_case(case, device, limits):
    """Runs one case and returns its result."""
    model = lower_versions(case.model, limits)
    try:
        session = provider.session(model, device, log_level=WARNING)
    except Exception as error:
        if provider.version() < FULL_VERSION and not loads(model):
            return Result(SKIPPED, 'ONNX Runtime cannot load it')
        return Result(FAILED, error_text(error))
    for data_set in case.data_sets:
        problem = run_data_set(session, case, data_set)
        if problem is not None:
            return Result(FAILED, problem)
    return Result(PASSED, '')


def prepare(cases, device):
    """Returns a function that runs the case with a name."""
    keep_device_open(device)
    limits = host_limits()
    return lambda name: run_case(cases[name], device, limits)


# ---- summary ----

class Summary:
    """Counts results and applies the exclusions."""

    def __init__(self, names, exclusions, verbose):
        self.counts = collections.Counter()
        self.verbose = verbose
        self.patterns = {}
        self.unused = []
        for pattern, _ in exclusions:
            matches = matching(names, pattern)
            self.patterns.update((name, pattern) for name in matches)
            if not matches:
                self.unused.append(pattern)

    def add(self, name, result):
        """Counts the result of a case and prints it if it is a failure."""
        status, text = result
        pattern = self.patterns.get(name)
        if pattern is not None and status == PASSED:
            self.fail('entry %s is not needed: %s passes' % (pattern, name))
        elif pattern is not None:
            self.counts['excluded'] += 1
            if self.verbose:
                print('excluded %s: %s' % (name, text))
        elif status == FAILED:
            self.fail('FAILED %s: %s' % (name, text))
        else:
            self.counts[status] += 1
            if status == SKIPPED and self.verbose:
                print('skipped %s: %s' % (name, text))

    def fail(self, text):
        """Counts and prints a failure."""
        self.counts[FAILED] += 1
        print(text, flush=True)

    def finish(self):
        """Prints the counts.  Returns the exit status."""
        for pattern in self.unused:
            self.fail('entry %s is not needed: it matches no case' % pattern)
        print('%d excluded' % self.counts['excluded'])
        print('%d passed, %d failed, %d skipped' % (
            self.counts[PASSED], self.counts[FAILED], self.counts[SKIPPED]))
        return 0 if self.counts[FAILED] == 0 and self.counts[PASSED] else 1


def is_chosen(arguments, name):
    text = '%d %s' % (arguments.seed, name)
    return zlib.crc32(text.encode()) % arguments.one_in == 0


def parse_arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        description="Run ONNX's node tests through Tandem's execution provider.",
        epilog='Excluded cases are in node-tests-excluded.txt.')
    provider.add_device_argument(parser)
    parser.add_argument('--served', metavar='FILE', required=True,
                        help='output of docs/list-onnx-operators names')
    parser.add_argument('--only', metavar='REGEX', default='',
                        help='run only the cases whose names match')
    parser.add_argument('--one-in', metavar='N', type=int, default=1,
                        help='run only a random choice of one in N cases')
    parser.add_argument('--seed', type=int, default=1,
                        help='the seed of this choice (1)')
    parser.add_argument('--verbose', action='store_true',
                        help='say why cases are excluded or skipped')
    return parser.parse_args()


def main():
    """Runs the script.  Returns its exit status."""
    arguments = parse_arguments()
    exclusions = read_exclusions()
    patterns = [pattern for pattern, _ in exclusions]
    cases = load_cases(served_operators(arguments.served), patterns)
    cases = {name: case for name, case in sorted(cases.items())
             if re.search(arguments.only, name) and is_chosen(arguments, name)}
    if arguments.only or arguments.one_in > 1:
        exclusions = [(pattern, reason) for pattern, reason in exclusions
                      if matching(cases, pattern)]
    print('%s, device %s, seed %d' % (provider.versions(), arguments.device,
                                      SEED), flush=True)
    summary = Summary(cases, exclusions, arguments.verbose)
    for name, result in run_isolated(
            cases, functools.partial(prepare, cases, arguments.device)):
        summary.add(name, result)
    return summary.finish()


if __name__ == '__main__':
    sys.exit(main())
