# SPDX-License-Identifier: Apache-2.0
"""Runs an ONNX model with Tandem and compares results and times with ONNX Runtime's
CPU provider.

The inputs are random unless --inputs or --value gives them.  --shape sets the shape of
an input.  A dimension that remains open is 1 if it is the first axis of an input.  For
the others, typical sizes of images, sequences or sound are tried until the CPU provider
can run the model, and the shapes are printed.  Dimensions of the same name have the
same size.  The command explain lists where each operator ran.
"""

import argparse
import collections
import itertools
import json
import pathlib
import re
import statistics
import sys
import tempfile
import time

from . import get_ep_name, get_library_path
from .errors import fail

try:
    import numpy as np
    import onnxruntime as rt
except ImportError as missing:
    fail(f"{missing}; run: {sys.executable} -m pip install onnxruntime numpy")
if tuple(map(int, rt.__version__.split(".")[:2])) < (1, 23):
    fail(f"onnxruntime {rt.__version__} is too old; run: {sys.executable} -m pip "
         "install --upgrade 'onnxruntime>=1.23'")

SEED = 1
DTYPES = {
    "float": np.float32, "double": np.float64, "float16": np.float16,
    "int64": np.int64, "int32": np.int32, "int8": np.int8, "uint8": np.uint8,
    "bool": np.bool_,
}
# The sizes to try for open dimensions: a part of the provider's lists in assumptions.c,
# in the same order.
LENGTHS = {
    "sequence": (128, 1024, 256, 512, 64, 77, 3000, 16),
    "image": (224, 640, 256, 512, 320, 416, 384, 128, 32),
    "volume": (64, 128, 32),
    "wave": (16000, 1024, 512),
}


# ---- sessions ----


def session_options():
    """Returns options of a session that leaves the CPU to the other one after a run.

    By default, the threads of a session keep their CPUs busy for a while."""
    options = rt.SessionOptions()
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def open_cpu_session(model):
    if pathlib.Path(model).is_dir():
        fail(f"{model} is a directory; expected an ONNX file")
    try:
        return rt.InferenceSession(model, session_options(),
                                   providers=["CPUExecutionProvider"])
    except Exception as error:
        fail(f"cannot load the model {model}: {error}; expected an ONNX file")


def open_tandem_session(arguments, shapes, file):
    settings = {
        "device": arguments.device,
        "claim": arguments.claim,
        "precision": arguments.precision,
        "first_run": "wait",  # time the device, not the CPU that stands in for it
        "explain": str(file),
        # The decision is about the shapes that will run.
        "shapes": ";".join(f"{name}:{'x'.join(map(str, shape))}"
                           for name, shape in shapes.items() if shape),
    }
    options = session_options()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        rt.register_execution_provider_library("tandem", get_library_path())
        devices = [d for d in rt.get_ep_devices() if d.ep_name == get_ep_name()]
        options.add_provider_for_devices(devices, settings)
        # Before version 1.32, an error would lead to a session without Tandem.
        session = rt.InferenceSession(arguments.model, options, enable_fallback=False)
    except Exception as error:
        # The provider's messages follow a C++ signature.
        _, name, text = str(error).partition("TandemExecutionProvider: ")
        fail(f"cannot open a session with Tandem: {text if name else error}")
    # By default, onnxruntime repeats a run that fails with the CPU provider.
    session.disable_fallback()
    return session


# ---- inputs ----


def parse_shape(text):
    """Parses NAME:1x128, as in the option "shapes", and returns the name and the shape."""
    name, _, sizes = text.rpartition(":")
    sizes = sizes.split("x")
    if not name or not all(size.isdecimal() for size in sizes):
        raise argparse.ArgumentTypeError(f"{text}: expected NAME:1x128")
    return name, tuple(map(int, sizes))


def parse_value(text):
    """Parses NAME=VALUE and returns the name and the value, a number or a list."""
    name, _, value = text.partition("=")
    try:
        value = json.loads(value)
        np.array(value)  # fails if the rows of a list have different lengths
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text}: expected NAME=3, NAME=true or NAME=[[1,2],[3,4]] with rows of the "
            "same length") from None
    if not name or np.array(value).dtype.kind not in "bif":
        raise argparse.ArgumentTypeError(
            f"{text}: expected NAME=VALUE with a number, true, false or a list of them")
    return name, value


def parse_repeat(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}: expected a number of at least 1")
    return int(text)


def dimension_names(argument):
    """Returns the sizes of the axes; an open axis has its name or a unique key."""
    return [(argument.name, axis) if size is None else size
            for axis, size in enumerate(argument.shape)]


def dimension_sizes(inputs, shapes):
    """Returns the sizes of open dimensions that need no choice."""
    sizes = {dimension_names(a)[0]: 1 for a in inputs if a.shape}
    for argument in inputs:
        names = dimension_names(argument)
        if len(names) >= 4 and not any(isinstance(name, int) for name in names[1:]):
            sizes.setdefault(names[1], 3)  # the channels of an image
    for argument in inputs:
        sizes.update(zip(dimension_names(argument), shapes.get(argument.name, ())))
    return sizes


def open_dimensions(inputs, sizes):
    """Returns the other open dimensions with their kinds, which are keys of LENGTHS.

    If inputs of several kinds share a dimension, the first key counts.
    """
    kinds = {}
    for argument in inputs:
        names = dimension_names(argument)
        open_names = [n for n in names if not isinstance(n, int) and n not in sizes]
        kind = "sequence"
        if len(names) >= 4 and len(open_names) >= 2:
            kind = "image" if len(names) == 4 else "volume"
        elif (argument.type == "tensor(float)" and len(names) in (2, 3) and
              all(channels in (1, 2) for channels in names[1:-1])):
            kind = "wave"
        for name in open_names:
            kinds[name] = min(kind, kinds.get(name, kind), key=list(LENGTHS).index)
    return kinds


def random_input(argument, shape, random):
    """Makes an input: masks are ones, token types zeros, other integers small."""
    dtype = input_dtype(argument)
    if "mask" in argument.name:
        return np.ones(shape, dtype)
    if "type" in argument.name:
        return np.zeros(shape, dtype)
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype == np.bool_ else 10, shape).astype(dtype)


def input_dtype(argument):
    dtype = DTYPES.get(argument.type[len("tensor("):-1])
    if dtype is None:
        fail(f"cannot make input {argument.name} of the type "
             f"{argument.type}; expected a tensor of {', '.join(DTYPES)}")
    return np.dtype(dtype)


def load_inputs(path):
    """Returns the arrays of an .npz file."""
    reason = "it has one array without a name"
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.ndarray):
            with file:
                return {name: file[name] for name in file.files}
    except OSError as error:
        reason = error
    except Exception:  # numpy raises many types for a broken file
        reason = "it is another kind of file, or broken"
    fail(f"--inputs {path}: cannot read the file: {reason}; expected a file that "
         "numpy.savez wrote, with an array for each name")


def convert_value(argument, value, shape):
    """Makes an array of a value.  A number fills the shape."""
    dtype = input_dtype(argument)
    wide = np.array(value)
    with np.errstate(all="ignore"):
        array = wide.astype(dtype)
    fits = wide.dtype.kind != "f" or dtype.kind == "f" or not wide.size
    if not fits or (dtype.kind != "f" and not np.array_equal(array, wide)):
        fail(f"--value {argument.name}: {json.dumps(value)} is not of the "
             f"type {dtype} of the input")
    return np.full(shape, array) if wide.ndim == 0 else array


def check_input(option, argument, array, shape):
    """Ends the program if the model or --shape does not allow the array."""
    expected = input_dtype(argument)
    if array.dtype != expected:
        fail(f"{option} {argument.name}: the array has the type "
             f"{array.dtype}; expected {expected}")
    wanted = shape or argument.shape
    if len(wanted) != array.ndim or any(
            isinstance(size, int) and size != given
            for size, given in zip(wanted, array.shape)):
        fail(f"{option} {argument.name}: the array has the shape "
             f"{list(array.shape)}; expected {list(wanted)}")


def given_inputs(session, arguments, shapes):
    """Returns the arrays of --inputs and --value, and adds their shapes to `shapes`.

    A --value that is a number gets its shape later; it is returned as a number.
    """
    inputs = {argument.name: argument for argument in session.get_inputs()}
    arrays = load_inputs(arguments.inputs) if arguments.inputs else {}
    sources = {name: ("--inputs", array) for name, array in arrays.items()}
    sources.update((name, ("--value", value)) for name, value in arguments.value)
    given = {}
    for name, (option, value) in sources.items():
        if name not in inputs:
            fail(f"{option} {name}: the model has no such input; its "
                 f"inputs are {', '.join(inputs)}")
        if option == "--value" and isinstance(value, list):
            value = convert_value(inputs[name], value, None)
        if isinstance(value, np.ndarray):
            check_input(option, inputs[name], value, shapes.get(name))
            shapes[name] = value.shape
        given[name] = value
    return given


def make_inputs(inputs, given, shapes, sizes):
    random = np.random.default_rng(SEED)
    feeds = {}
    for argument in inputs:
        shape = shapes.get(argument.name) or [
            size if isinstance(size, int) else sizes[size]
            for size in dimension_names(argument)
        ]
        value = given.get(argument.name)
        if value is None:
            value = random_input(argument, shape, random)
        elif not isinstance(value, np.ndarray):
            value = convert_value(argument, value, shape)
        feeds[argument.name] = value
    return feeds


def choose_inputs(session, arguments):
    """Returns inputs that the CPU provider can run, the outputs of that run, and the
    shapes that the user has given."""
    shapes = dict(arguments.shape)
    inputs = session.get_inputs()
    ranks = {argument.name: len(argument.shape) for argument in inputs}
    for name, shape in shapes.items():
        if ranks.get(name) != len(shape):
            fail(f"--shape {name}: the model has no input {name} of rank "
                 f"{len(shape)}; its inputs and their ranks are {ranks}")
    given = given_inputs(session, arguments, shapes)
    sizes = dimension_sizes(inputs, shapes)
    dimensions = open_dimensions([a for a in inputs if a.name not in shapes], sizes)
    kinds = sorted(set(dimensions.values()))
    quiet = rt.RunOptions()
    quiet.log_severity_level = 4  # sizes that do not fit cause errors
    for lengths in itertools.product(*(LENGTHS[kind] for kind in kinds)):
        chosen = dict(zip(kinds, lengths))
        sizes.update((name, chosen[kind]) for name, kind in dimensions.items())
        feeds = make_inputs(inputs, given, shapes, sizes)
        try:
            outputs = session.run(None, feeds, quiet)
            break
        except Exception as error:
            failure = str(error).strip()
    else:
        tried = ", ".join(f"{name}:{'x'.join(map(str, array.shape))}"
                          for name, array in feeds.items())
        fail(f"the run with CPUExecutionProvider failed: {failure}; the last shapes that "
             f"were tried are {tried}; give other shapes with --shape, or values with "
             "--value or --inputs")
    for argument in inputs:
        shape = feeds[argument.name].shape
        if argument.name not in shapes and list(shape) != argument.shape:
            print(f"input {argument.name}: {'x'.join(map(str, shape))} (chosen; --shape "
                  "changes it)")
    if any(argument.name not in given for argument in inputs):
        print(f"inputs that are not given are random (seed {SEED}); --inputs and --value "
              "give them")
    return feeds, outputs, shapes


# ---- runs ----


def timed_run(session, feeds):
    start = time.perf_counter()
    try:
        outputs = session.run(None, feeds)
    except Exception as error:
        fail(f"the run with {session.get_providers()[0]} failed: {error}")
    return outputs, time.perf_counter() - start


def has_taken(report):
    """Returns true if Tandem took nodes, as the placement report says."""
    return re.search("^[0-9]+ nodes? from .*: taken", report, re.MULTILINE)


def first_run(session, feeds, arguments, file):
    report = file.read_text(encoding="utf-8")
    if has_taken(report) and not arguments.device.startswith("cpu"):
        print("The first run compiles kernels that are missing, which can take a minute "
              "on a GPU.", file=sys.stderr)
    return timed_run(session, feeds)


def describe_output(name, expected, actual):
    if not isinstance(expected, np.ndarray) or expected.dtype == object:
        return f"output {name}: not a numeric tensor, not compared"
    wide = expected.astype(np.float64)
    difference = np.abs(actual.astype(np.float64) - wide).max(initial=0)
    largest = np.abs(wide).max(initial=0)
    return (f"output {name} {list(actual.shape)}: largest difference {difference:.3g}, "
            f"relative to the largest magnitude {difference / (largest or 1):.3g}")


def run_model(arguments, file):
    """Returns the session, and lines that compare the results and the times."""
    reference = open_cpu_session(arguments.model)
    feeds, expected, shapes = choose_inputs(reference, arguments)
    session = open_tandem_session(arguments, shapes, file)
    actual, first = first_run(session, feeds, arguments, file)
    lines = [describe_output(output.name, *values)
             for output, *values in zip(session.get_outputs(), expected, actual)]
    pairs = [(timed_run(reference, feeds)[1], timed_run(session, feeds)[1])
             for _ in range(arguments.repeat)]
    cpu, tandem = map(statistics.median, zip(*pairs))
    line = (f"median of {len(pairs)} run{plural(len(pairs))}: CPU provider "
            f"{cpu * 1e3:.3f} ms, Tandem {tandem * 1e3:.3f} ms, ")
    if has_taken(file.read_text(encoding="utf-8")):
        line += (f"ratio {cpu / tandem:.2f} (above 1, Tandem is faster); Tandem's first "
                 f"run {first * 1e3:.1f} ms")
    else:
        line += "which both were runs of the CPU provider"
    lines.append(line)
    return session, lines


def explain_model(arguments, file):
    """Returns the session, and no lines."""
    feeds, _, shapes = choose_inputs(open_cpu_session(arguments.model), arguments)
    session = open_tandem_session(arguments, shapes, file)
    first_run(session, feeds, arguments, file)
    return session, []


# ---- devices ----


def plural(count):
    return "" if count == 1 else "s"


def describe_devices(session, report):
    """Returns a line that says on which devices the model's operators ran."""
    operators = collections.Counter(
        re.findall(r"^  \S+ +([a-z]+:[0-9]+) ", report, re.MULTILINE))
    planned = re.findall(r"^group .*: ([0-9]+) operators?$", report, re.MULTILINE)
    nodes = ""
    # ONNX Runtime tells the number of nodes from version 1.24 on.
    if hasattr(session, "get_provider_graph_assignment_info"):
        counts = collections.Counter()
        for part in session.get_provider_graph_assignment_info():
            counts[part.ep_name] += len(part.get_nodes())
        if not counts:
            return ("no node is left to run: ONNX Runtime computed the outputs, which "
                    "depend on no input, when it loaded the model")
        nodes = f" ({counts[get_ep_name()]} of {sum(counts.values())} nodes)"
    if planned and set(planned) == {"0"}:
        return (f"Tandem{nodes} had nothing to compute: all tensors are empty, or only "
                "their shapes change")
    if not operators and has_taken(report):
        return (f"Tandem{nodes} ran on none of its devices: the messages of ONNX "
                "Runtime say what failed")
    if not operators:
        return f"the model ran on ONNX Runtime's CPU provider; Tandem took no node{nodes}"
    devices = ", ".join(f"{name} ({count} operator{plural(count)})"
                        for name, count in operators.most_common())
    return f"Tandem{nodes} ran on {devices}"


def add_model_arguments(parser):
    """Adds the arguments of both commands, run and explain."""
    parser.epilog = ("The first run waits until the kernels are compiled (the provider's "
                     "option first_run=wait). In a program, the default is that the CPU "
                     "computes meanwhile.")
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--device", default="auto",
                        help="auto (default), cpu or opencl:N")
    parser.add_argument("--claim", choices=("cost", "all"), default="cost",
                        help="take the nodes that are predicted to gain (default), "
                             "or all served nodes")
    parser.add_argument("--precision", choices=("f32", "tf32"), default="f32",
                        help="the precision of matrix products (default f32)")
    parser.add_argument("--shape", type=parse_shape, action="append", default=[],
                        metavar="NAME:1x128", help="the shape of an input")
    parser.add_argument("--inputs", metavar="FILE.npz",
                        help="a file of numpy.savez with arrays for some inputs")
    parser.add_argument("--value", type=parse_value, action="append", default=[],
                        metavar="NAME=VALUE",
                        help="an input: a number that fills its shape, or a list such "
                             "as [[1,2],[3,4]]; replaces an array of --inputs")


def add_run_arguments(parser):
    add_model_arguments(parser)
    parser.add_argument("--repeat", type=parse_repeat, default=10,
                        help="the number of timed runs (default 10)")


def with_report(function, arguments, operators):
    """Calls a function that returns a session and lines.  Prints the placement report,
    with its operators if `operators` is true, the lines, and where the session ran."""
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory, "placement.txt")
        file.touch()
        session, lines = function(arguments, file)
        # The first line tells the session from others in the same file.
        report = file.read_text(encoding="utf-8").partition("\n")[2]
        for line in report.splitlines():
            if operators or not line.startswith("  "):
                print(line)
        print(*lines, sep="\n", end="\n" if lines else "")
        print(describe_devices(session, report))


def run(arguments):
    """Runs the command run."""
    with_report(run_model, arguments, operators=False)


def explain(arguments):
    """Runs the command explain."""
    with_report(explain_model, arguments, operators=True)
