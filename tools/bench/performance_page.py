#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/performance.md and README.md from docs/baselines.

A table replaces the lines between "<!-- TABLE name -->" and "<!-- end -->". The list
TABLES below defines the tables. With --check, the page is not written: the exit status
is 1 if it differs from what would be written, and the difference is printed.

h200.json is a result of bench-all; result_document.h describes its members.
networks.json has results that one run of bench-all does not give, with these members:

    schema        "tandem-networks 1"
    measurements  [MEASUREMENT]

Members of a measurement:

    name      unique
    date      of the run
    machine   GPU, or processor
    driver    of the GPU, or null if it was not recorded or does not matter
    versions  {NAME: VERSION}; the version of Tandem is a commit
    timed     what was timed, and how
    columns   [{name, unit}]; the unit is "ms", or "speed": the time of this
              implementation divided by Tandem's
    rows      [[NAME, VALUE of each column]]; a value is a number, or [LEAST, MOST]

Exit status: 0; 1 if a file cannot be read or written, if a table names a row that the
results do not have, or if --check finds a difference; 2 if the command line is invalid."""

import argparse
import collections
import contextlib
import difflib
import io
import json
import math
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True  # The sources may be read-only.
import report  # noqa: E402

BASELINE, NETWORKS = "h200", "networks"  # names of the files
SCHEMA = "tandem-networks 1"

# key identifies a row as (file, device or measurement, suite, name); each "{}" of the
# name is replaced by the key of the line. value returns the text of a row's cell.
Column = collections.namedtuple("Column", "heading key value")
# caption is printed before the table; it says where the results were measured if that
# is not h200.json. lines returns the heading and the lines.
Table = collections.namedtuple("Table", "name caption lines")


def fail(text):
    """Ends the program."""
    sys.exit("performance_page.py: " + text)


# ---- values of cells ----
# Functions without a verb in their description return a value function of a Column.


def digits(value):
    """Returns the number with three significant digits: "0.0956", "4345"."""
    decimals = 2 - math.floor(math.log10(abs(value))) if value else 0
    text = "%.*f" % (max(decimals, 0), value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def time_text(ns):
    """Returns the time with three significant digits and its unit."""
    unit, size = next((unit, size) for unit, size in (
        ("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)) if ns >= size or size == 1)
    return "%s %s" % (digits(ns / size), unit)


def cell(function):
    """Returns a value function that gives "-" if the row has no such result."""
    def value(row):
        found = function(row)
        return "-" if found is None else found
    return value


def ns_of(row, name):
    """Returns the time of an implementation, or None."""
    implementation = report.row_implementation(row, name)
    return implementation and implementation["ns"]


def rate(name="Tandem", scale=1):
    """The implementation's result in the row's unit, divided by scale."""
    return cell(lambda row: ns_of(row, name) and
                digits(row["work_amount"] / ns_of(row, name) / scale))


def duration(name="Tandem"):
    """The implementation's time with its unit."""
    return cell(lambda row: ns_of(row, name) and time_text(ns_of(row, name)))


def speed(name):
    """The implementation's time divided by Tandem's."""
    return cell(lambda row: ns_of(row, name) and
                "%.2f" % (ns_of(row, name) / ns_of(row, "Tandem")))


def faster(names):
    """The time of the fastest of these implementations divided by Tandem's."""
    return cell(lambda row: ns_of(row, "Tandem") and "%.2f" % (
        min(filter(None, (ns_of(row, name) for name in names)))
        / ns_of(row, "Tandem")))


def both(first, second):
    """Two values, the second one in brackets."""
    return lambda row: "%s (%s)" % (first(row), second(row))


def errors(name):
    """The largest errors of Tandem and of the implementation."""
    return cell(lambda row: ns_of(row, name) and report.error_text(
        row, report.row_implementation(row, name)) or None)


def milliseconds(name):
    """A time of networks.json in ms."""
    return cell(lambda row: row.get(name) and digits(row[name]))


def figure(name, form="%.2f"):
    """A speed of networks.json, which is a number or [LEAST, MOST]."""
    def text(row):
        found = row.get(name)
        return found and " to ".join(
            form % part for part in (found if isinstance(found, list) else [found]))
    return cell(text)


def quotient(name):
    """A time of networks.json divided by Tandem's."""
    return cell(lambda row: "%.2f" % (row[name] / row["Tandem"]))


# ---- lines of tables ----


def selection(label, keys, columns):
    """Returns a function for a table with one line for each key. A key is a string,
    or (first cell, key). A row that does not exist is an error."""
    def lines(results):
        yield [label] + [column.heading for column in columns]
        for key in keys:
            first, key = key if isinstance(key, tuple) else (key, key)
            line = [first]
            for column in columns:
                file, group, suite, name = column.key
                row = results.rows.get((file, group, suite, name.replace("{}", key)))
                if row is None:
                    fail("%s.json has no row %s of %s %s" % (
                        file, name.replace("{}", key), group, suite))
                line.append(column.value(row))
            yield line
    return lines


def summary(groups):
    """Returns a function for a table of how many rows are slower than a reference.
    A group is (first cell, device, suite, mode, reference, pattern). The pattern is
    searched in the names of the rows."""
    def lines(results):
        yield ["", "reference", "rows", "speed, geometric mean", "slower by over 3%",
               "slowest row"]
        for first, device, suite, mode, reference, pattern in groups:
            found = [(ns_of(row, reference) / ns_of(row, "Tandem"), row["name"])
                     for (file, *group, _), row in results.rows.items()
                     if (file, *group) == (BASELINE, device, suite)
                     and row["mode"] == mode and ns_of(row, reference)
                     and re.search(pattern, row["name"])]
            if not found:
                fail("%s.json has no results of %s for %s" % (BASELINE, reference, first))
            mean = math.exp(sum(math.log(ratio) for ratio, _ in found) / len(found))
            yield [first, reference, str(len(found)), "%.2f" % mean,
                   str(sum(ratio < 1 / 1.03 for ratio, _ in found)),
                   "%s: %.2f" % (min(found)[1], min(found)[0])]
    return lines


# ---- tables ----

GPU, CPU, CHOSEN = "opencl", "cpu", "any"
CUDA, GRAPH, TORCH_CPU = "PyTorch CUDA", "PyTorch CUDA graph", "PyTorch CPU"


def bench(device, suite, name="{}"):
    """Returns the key of rows of bench-all."""
    return BASELINE, device, suite, name


def measured(measurement, name="{}"):
    """Returns the key of rows of networks.json."""
    return NETWORKS, measurement, "", name


def gemm_precisions():
    """Returns the columns of square GEMM by precision."""
    for heading, detail in (("f32", ""), ("normwise", ", normwise"),
                            ("TF32", ", tf32"), ("f16", ", f16"), ("bf16", ", bf16")):
        key = bench(GPU, "gemm", "gemm {}x{}x{}" + detail)
        yield Column(heading + " (speed)", key, both(rate(scale=1000), speed(CUDA)))


TABLES = [
    Table("machine", "{baseline}", lambda results: []),
    Table("onnxruntime", "{onnxruntime}", selection("ms", [
        "BERT-base, 1 x 128 tokens", "BERT-base, 8 x 128", "ResNet-50, batch 1",
        "ResNet-50, batch 32", "MobileNet v2, batch 1", "MobileNet v2, batch 32",
        "YOLOv8n", "Whisper tiny, encoder", "GPT-2, one token after 64",
    ], [
        *(Column(heading, measured("onnxruntime"), milliseconds(name))
          for heading, name in (
              ("Tandem", "Tandem"), ("CPU provider", "CPU provider"),
              ("WebGPU provider", "WebGPU provider"),
              ("CUDA graph", "PyTorch CUDA graph"))),
        *(Column("speed: " + heading, measured("onnxruntime"), quotient(name))
          for heading, name in (
              ("CPU", "CPU provider"), ("WebGPU", "WebGPU provider"),
              ("graph", "PyTorch CUDA graph"))),
    ])),
    Table("resident", "", selection("network", [
        ("ResNet-50, batch 1", "resnet50 1x3x224x224"),
        ("ResNet-50, batch 32", "resnet50 32x3x224x224"),
        ("MobileNet v2, batch 1", "mobilenet_v2 1x3x224x224"),
        ("MobileNet v2, batch 32", "mobilenet_v2 32x3x224x224"),
        ("MobileNet v3 (large), batch 1", "mobilenet_v3 1x3x224x224"),
        ("MobileNet v3 (large), batch 32", "mobilenet_v3 32x3x224x224"),
        ("YOLOv8n, 640 x 640", "yolov8n 1x3x640x640"),
        ("BERT-base, 1 x 128 tokens", "bert 1x128"),
        ("BERT-base, 8 x 128", "bert 8x128"),
        ("GPT-2, one token after 64", "gpt2 1x1, past64"),
        ("GPT-2, one token after 512", "gpt2 1x1, past512"),
        ("Whisper tiny, encoder, 3000 frames", "whisper_encoder 1x80x3000"),
        ("Whisper tiny, one token after 64", "whisper_decoder 1x1, past64"),
    ], [
        Column("Tandem", bench(GPU, "networks"), duration()),
        Column("speed: eager", bench(GPU, "networks"), speed(CUDA)),
        Column("speed: CUDA graph", bench(GPU, "networks"), speed(GRAPH)),
        Column("portable kernels", measured("portable"), quotient("portable")),
    ])),
    Table("gemm-precisions", "",
          selection("TFLOP/s, n", ["1024", "2048", "4096", "8192"],
                    list(gemm_precisions()))),
    Table("gemm-f32", "", selection("TFLOP/s, m x n x k", [
        "128x128x128", "4096x4096x4096", "1023x1025x1027", "64x197x197x64",
        "1x4096x4096", "16x4096x4096",
    ], [
        Column("Tandem", bench(GPU, "gemm", "gemm {}"), rate(scale=1000)),
        Column("CLBlast", bench(GPU, "gemm", "gemm {}"), rate("CLBlast", 1000)),
        Column("cuBLAS", bench(GPU, "gemm", "gemm {}"), rate(CUDA, 1000)),
        Column("speed: cuBLAS", bench(GPU, "gemm", "gemm {}"), speed(CUDA)),
        Column("error : cuBLAS's", bench(GPU, "gemm", "gemm {}"), errors(CUDA)),
    ])),
    Table("bandwidth", "", selection("GB/s", [
        "add 268435456", "reduce_sum 8192x32768, axis=0",
        "argmax 8192x32768, axis=1", "softmax 65536x4096", "softmax 64x4194304",
        "layer_norm 65536x4096", "gather 262144x1024",
        "softmax_cross_entropy 8192x32768", "transpose 16384x16384",
        "adam 134217728",
    ], [
        Column("Tandem", bench(GPU, "bandwidth"), rate()),
        Column("PyTorch", bench(GPU, "bandwidth"), rate(CUDA)),
        Column("speed: PyTorch", bench(GPU, "bandwidth"), speed(CUDA)),
        Column("speed: device copy", bench(GPU, "bandwidth"), speed("device copy")),
    ])),
    Table("launches", "", selection("an addition of 1,024 floats", [
        ("in a stream", "add 1024"), ("with a wait", "add 1024, wait"),
        ("with libtandem", "add 1024, library"),
    ], [
        Column("Tandem", bench(GPU, "launch"), duration()),
        Column("OpenCL's own calls", bench(GPU, "launch"), cell(
            lambda row: duration(row["upper_bound"])(row))),
        Column("PyTorch", bench(GPU, "launch"), duration(CUDA)),
        Column("speed: OpenCL", bench(GPU, "launch"), cell(
            lambda row: speed(row["upper_bound"])(row))),
        Column("speed: PyTorch", bench(GPU, "launch"), speed(CUDA)),
    ])),
    Table("transfers", "", selection("GB/s", [
        "4 KiB", "1 MiB", "256 MiB",
    ], [
        Column(heading, bench(GPU, "transfer", "transfer {}, pageable, " + direction),
               value)
        for direction in ("upload", "download")
        for heading, value in (
            (direction, rate()), ("PyTorch", rate(CUDA)),
            ("pinned", rate("OpenCL, pinned")))
    ])),
    Table("host-to-host", "", selection("operator", [
        "add 1000", "add 1000000", "gemm 256x256x256",
        "gemm 1024x1024x1024", "gemm 8192x4096x4096, bias+relu", "transpose 4096x4096",
    ], [
        Column("on the GPU", bench(GPU, "user-cases", "{}, host"), duration()),
        Column("PyTorch CUDA", bench(GPU, "user-cases", "{}, host"), duration(CUDA)),
        Column("PyTorch CPU", bench(CHOSEN, "user-cases", "{}, host"),
               duration(TORCH_CPU)),
        Column("chosen", bench(CHOSEN, "user-cases", "{}, host"), duration()),
        Column("speed", bench(CHOSEN, "user-cases", "{}, host"),
               faster((CUDA, TORCH_CPU))),
    ])),
    Table("cpu-gemm", "", selection("GFLOP/s, m x n x k", [
        "64x64x64", "333x333x333", "1024x1024x1024", "1x4096x4096",
        "16x4096x4096", "1024x64x64x64", "1024x1024x1024, bf16",
    ], [
        Column("Tandem", bench(CPU, "gemm", "gemm {}"), rate()),
        Column("CBLAS", bench(CPU, "gemm", "gemm {}"), rate("CBLAS")),
        Column("PyTorch (oneMKL)", bench(CPU, "gemm", "gemm {}"), rate(TORCH_CPU)),
        Column("speed: PyTorch", bench(CPU, "gemm", "gemm {}"), speed(TORCH_CPU)),
    ])),
    Table("cpu-operators", "{cpu-operators}", selection("operators", [
        "11 convolutions of ResNet-50, geometric mean",
        "108 other operators, geometric mean",
        "batch_norm", "attention, 512 queries and keys",
        "scatter_elements with addition", "mod of f32", "conv_transpose, stride 2",
    ], [
        Column("speed, " + name, measured("cpu-operators"), figure(name, "%g"))
        for name in ("1 thread", "16 threads")
    ])),
    Table("slower", "", summary([
        ("GEMM, GPU", GPU, "gemm", "stream", CUDA, ""),
        ("GEMM, GPU", GPU, "gemm", "stream", GRAPH, ""),
        ("GEMM of transformers, GPU", GPU, "layers", "stream", GRAPH, "^gemm"),
        ("convolutions, GPU", GPU, "layers", "stream", GRAPH, "^conv(?!.*(tf32| g))"),
        ("convolutions, TF32, GPU", GPU, "layers", "stream", GRAPH, "^conv.* tf32"),
        ("depthwise, batch 1, GPU", GPU, "layers", "stream", GRAPH, "^conv 1x.* g"),
        ("limited by memory, GPU", GPU, "bandwidth", "stream", CUDA, ""),
        ("limited by memory, GPU", GPU, "bandwidth", "stream", "device copy", ""),
        ("user cases, GPU", GPU, "user-cases", "stream", GRAPH, ""),
        ("user cases, GPU, host to host", GPU, "user-cases", "host", CUDA, ""),
        ("GEMM, CPU", CPU, "gemm", "stream", TORCH_CPU, ""),
        ("layers of networks, CPU", CPU, "layers", "stream", TORCH_CPU, ""),
        ("limited by memory, CPU", CPU, "bandwidth", "stream", TORCH_CPU, ""),
    ])),
    Table("cold-start", "", selection("", [
        "open a device", "then a first result",
        ("then a first GEMM", "then a first product"),
    ], [
        Column(heading, bench(GPU, "cold-start", "{}, %s caches" % caches),
               duration(name))
        for caches in ("cold", "warm")
        for heading, name in (("Tandem, %s caches" % caches, "Tandem"),
                              ("OpenCL and CLBlast", "OpenCL, CLBlast"))
    ])),
]


# ---- results ----


class Results:
    """The rows of all results by key, and where each was measured."""

    def __init__(self, folder):
        self.rows, self.places = {}, {}
        baseline = report.document_read(os.path.join(folder, BASELINE + ".json"))
        for row in baseline["rows"]:
            self.rows[(BASELINE, row["device"], row["suite"], row["name"])] = row
        self.baseline_place(baseline)
        path = os.path.join(folder, NETWORKS + ".json")
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            if document["schema"] != SCHEMA:
                raise ValueError("the schema is not %r" % SCHEMA)
            for measurement in document["measurements"]:
                self.measurement_add(measurement)
        except OSError as error:
            fail("%s: %s" % (path, error.strerror))
        except (ValueError, KeyError, TypeError) as error:
            fail("%s: %s" % (path, error))

    def baseline_place(self, baseline):
        """Describes where the baseline was measured."""
        gpu = next(d for d in baseline["devices"] if d["device"] == GPU)
        if "pytorch" not in baseline:
            fail("%s.json has no results of PyTorch" % BASELINE)
        machine, pytorch = baseline["machine"], baseline["pytorch"]
        cpu = re.sub(r"\(R\)| Processor", "", machine["processor"])
        self.places["baseline"] = (
            "%s (%s.json), %s, driver %s, %d cores of an %s, PyTorch %s" % (
                baseline["date"][:10], BASELINE, gpu["name"], gpu["driver"],
                machine["cpus"], cpu, pytorch["version"].split("+")[0]))

    def measurement_add(self, measurement):
        """Adds the rows of a measurement of networks.json."""
        name = measurement["name"]
        columns = [column["name"] for column in measurement["columns"]]
        for first, *values in measurement["rows"]:
            if len(values) != len(columns):
                raise ValueError("%s: %s has %d values" % (name, first, len(values)))
            self.rows[(NETWORKS, name, "", first)] = dict(zip(columns, values))
        driver = measurement["driver"]
        self.places[name] = ", ".join(
            [measurement["date"], measurement["machine"]]
            + (["driver " + driver] if driver else [])
            + ["%s %s" % item for item in measurement["versions"].items()
               if item[0] != "Tandem"])


def table_text(table, results):
    """Returns the lines between the markers."""
    caption = textwrap.fill(table.caption.format(**results.places), 100)
    lines = list(table.lines(results))
    out = io.StringIO()
    if lines:
        with contextlib.redirect_stdout(out):
            report.table_print(lines, True)
    return "\n\n".join(filter(None, (caption, out.getvalue()))).rstrip("\n") + "\n"


def page_text(page, results, complete):
    """Returns the page with the tables of these results. A complete page has all of
    them."""
    tables = {table.name: table for table in TABLES}
    markers = re.compile(r"^(<!-- TABLE (\S+) -->\n).*?^(<!-- end -->\n)",
                         re.DOTALL | re.MULTILINE)

    def replace(match):
        if match[2] not in tables:
            fail("no table %s is defined, or the page has it twice" % match[2])
        return match[1] + table_text(tables.pop(match[2]), results) + match[3]
    text = markers.sub(replace, page)
    if tables and complete:
        fail("the page has no table %s" % ", ".join(tables))
    return text


def main():
    """Reads the command line, and writes or checks the page."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true",
                        help="print what would change, and write nothing")
    parser.add_argument("--docs", metavar="DIRECTORY", default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs"),
                        help="directory of performance.md and baselines (docs)")
    arguments = parser.parse_args()
    changed = False
    try:
        results = Results(os.path.join(arguments.docs, "baselines"))
        for name, complete in ("performance.md", True), ("../README.md", False):
            path = os.path.join(arguments.docs, name)
            with open(path, encoding="utf-8") as file:
                before = file.read()
            after = page_text(before, results, complete)
            changed |= before != after
            if arguments.check:
                sys.stdout.writelines(difflib.unified_diff(
                    before.splitlines(True), after.splitlines(True), name,
                    "from docs/baselines"))
            elif before != after:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(after)
    except OSError as error:
        fail("%s: %s" % (error.filename, error.strerror))
    return arguments.check and changed


if __name__ == "__main__":
    sys.exit(main())
