#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares operators of the CPU plugin with PyTorch on as many threads.

    pytorch_operators.py LIBTANDEM BACKEND_H [--threads=N] [--filter=TEXT]

calls libtandem.so, and takes the operators' numbers from operators.h. Each operator
runs on the same random inputs in both; a result that differs is an error. Prints both
times in ms and the speed of Tandem relative to PyTorch: above 1, Tandem is faster. The
times include the wait for the result, and exclude the allocation of Tandem's output.
The operators are those that tandem-bench has no rows for, and some of its rows.

Exit status: 0; 1 if a result differs or a call failed; 77 without PyTorch."""

import argparse
import ctypes
import math
import os
import re
import statistics
import sys
import time

DTYPES = {"float32": 0x220, "int32": 0x20, "int64": 0x40, "bool": 0x608}
FOREVER = ctypes.c_uint64(2**64 - 1)
ROUND_S, SAMPLES = 0.02, 7


class Op(ctypes.Structure):
    """struct tandem_op"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("id", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("int_count", ctypes.c_uint32),
                ("float_count", ctypes.c_uint32), ("ints", ctypes.c_void_p),
                ("floats", ctypes.c_void_p), ("gemm", ctypes.c_void_p)]


class RunOptions(ctypes.Structure):
    """struct tandem_run_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_uint32),
                ("flags", ctypes.c_uint32)]


class Tandem:
    """A context of libtandem with the CPU plugin."""

    def __init__(self, library, header):
        self.functions = ctypes.CDLL(os.path.abspath(library))
        self.functions.tandem_last_error.restype = ctypes.c_char_p
        with open(header, encoding="utf-8") as file:
            rows = re.findall(r'^X\(\w+,\s*(\d+),\s*"(\w+)"', file.read(), re.M)
        self.numbers = {name: int(number) for number, name in rows}
        self.context, self.device = ctypes.c_void_p(), ctypes.c_uint32()
        self.check(self.functions.tandem_context_create(None,
                                                        ctypes.byref(self.context)))
        self.check(self.functions.tandem_device_find(self.context, b"cpu",
                                                     ctypes.byref(self.device)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.functions.tandem_last_error().decode())

    def wrap(self, array):
        """Returns a tensor in the array's memory."""
        tensor = ctypes.c_void_p()
        shape = (ctypes.c_int64 * max(array.dim(), 1))(*array.shape)
        dtype = DTYPES[str(array.dtype).removeprefix("torch.")]
        self.check(self.functions.tandem_tensor_wrap(
            self.context, ctypes.c_void_p(array.data_ptr()), dtype, array.dim(), shape,
            None, 0, ctypes.byref(tensor)))
        return tensor

    def call(self, name, inputs, outputs, ints, floats):
        """Returns a function that runs the operator and waits for it."""
        int_array = (ctypes.c_int64 * max(1, len(ints)))(*ints)
        float_array = (ctypes.c_double * max(1, len(floats)))(*floats)
        op = Op(ctypes.sizeof(Op), self.numbers[name], 0, len(ints), len(floats),
                ctypes.addressof(int_array), ctypes.addressof(float_array), None)
        handles = [(ctypes.c_void_p * max(1, len(arrays)))(
            *[self.wrap(array).value for array in arrays])
            for arrays in (inputs, outputs)]

        options = RunOptions(ctypes.sizeof(RunOptions), self.device, 0)

        def run(_keep=(int_array, float_array)):
            self.check(self.functions.tandem_run(
                self.context, ctypes.byref(op), handles[0], len(inputs),
                handles[1], len(outputs), ctypes.byref(options)))
            self.check(self.functions.tandem_context_synchronize(self.context, FOREVER))

        return run


def measure(run):
    """Returns the median time of a run in ms."""

    def turn(count):
        start = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - start) / count

    turn(2)
    count = max(1, min(500, int(ROUND_S / turn(1))))
    return 1e3 * statistics.median(turn(count) for _ in range(SAMPLES))


def elementwise_rows(torch):
    """Yields label, operator, inputs, integer and float attributes, and PyTorch's."""
    f, shape = torch.nn.functional, (2048, 2048)
    x, y = torch.randn(shape), torch.randn(shape)
    inner, above = torch.rand(shape) * 1.8 - 0.9, x.abs() + 1.01
    for name, floats, function in (
            ("hardsigmoid", [1 / 6, 0.5], f.hardsigmoid), ("softsign", [], f.softsign),
            ("selu", [1.6732632423543772, 1.0507009873554805], f.selu),
            ("celu", [1.0], f.celu),
            ("thresholded_relu", [0.5], lambda x: f.threshold(x, 0.5, 0))):
        yield name, name, [x], [], floats, function
    for name, values in (
            ("sin", x), ("cos", x), ("tan", inner), ("asin", inner), ("acos", inner),
            ("atan", x), ("sinh", x), ("cosh", x), ("asinh", x), ("acosh", above),
            ("atanh", inner), ("exp2", x), ("log2", above), ("isnan", x)):
        yield name, name, [values], [], [], getattr(torch, name)
    yield "isinf", "isinf", [x], [1, 1], [], torch.isinf
    yield "prelu", "prelu", [x, y], [], [], lambda a, b: torch.where(a >= 0, a, a * b)
    yield "mod", "mod", [x, above], [], [], torch.remainder
    yield "fmod", "fmod", [x, above], [], [], torch.fmod
    for dtype in (torch.int32, torch.int64):
        a = torch.randint(-1000, 1000, shape, dtype=dtype)
        b = torch.randint(1, 1000, shape, dtype=dtype)
        text = str(dtype).removeprefix("torch.")
        for name, function in (
                ("add", torch.add), ("mul", torch.mul), ("max", torch.maximum),
                ("min", torch.minimum), ("mod", torch.remainder), ("less", torch.lt),
                ("div", lambda a, b: torch.div(a, b, rounding_mode="trunc"))):
            yield f"{name} {text}", name, [a, b], [], [], function
        yield f"where {text}", "where", [a > 0, a, b], [], [], torch.where


def movement_rows(torch):
    """Like elementwise_rows, for operators that move or select elements."""
    f, x, y = torch.nn.functional, torch.randn(2048, 2048), torch.randn(2048, 2048)
    image = torch.randn(8, 64, 56, 56)
    for mode, name in enumerate(("constant", "reflect", "replicate")):
        yield (f"pad {name}", "pad", [image], [mode, 0, 0, 0, 2, 2, 0, 0, 2, 2], [0.0],
               lambda x, name=name: f.pad(x, (2, 2, 2, 2), mode=name))
    yield ("tile", "tile", [torch.randn(256, 1024)], [4, 4], [],
           lambda x: x.repeat(4, 4))
    yield ("concat", "concat", [image, image.clone()], [1], [],
           lambda a, b: torch.cat((a, b), 1))
    index = torch.randint(0, 2048, (2048, 2048))
    for axis in (0, 1):
        yield (f"gather_elements, axis {axis}", "gather_elements", [x, index], [axis],
               [], lambda a, i, axis=axis: torch.gather(a, axis, i))
    order = torch.argsort(torch.rand(2048, 2048), 1)
    yield ("scatter_elements", "scatter_elements", [x, order, y], [1, 0], [],
           lambda a, i, u: torch.scatter(a, 1, i, u))
    yield ("scatter_elements, add", "scatter_elements", [x, index, y], [1, 1], [],
           lambda a, i, u: torch.scatter_add(a, 1, i, u))
    rows = torch.randperm(2048).reshape(2048, 1)
    yield ("gather_nd", "gather_nd", [x, rows], [0], [], lambda a, i: a[i[:, 0]])
    yield ("scatter_nd", "scatter_nd", [x, rows, y], [0], [],
           lambda a, i, u: a.index_put((i[:, 0],), u))
    for axis in (1, 0):
        yield (f"cumsum, axis {axis}", "cumsum", [x], [axis, 0, 0], [],
               lambda a, axis=axis: torch.cumsum(a, axis))
    for k in (1, 10, 100):
        yield (f"topk, {k} of 2048", "topk", [x], [1, k, 1, 1], [],
               lambda a, k=k: torch.topk(a, k))
    yield ("one_hot", "one_hot", [torch.randint(0, 1000, (4096,)), torch.tensor([0., 1])],
           [-1, 1000], [], lambda i, v: f.one_hot(i, 1000).float())
    yield ("range", "range", [], [0, 0], [0.0, 1.0],
           lambda: torch.arange(1 << 22, dtype=torch.float32))
    yield "trilu", "trilu", [x], [0, 0], [], torch.tril
    for mode, name in enumerate(("nearest", "bilinear", "bicubic")):
        corners = {} if mode == 0 else {"align_corners": False}
        yield (f"resize, {name}", "resize", [image], [mode, 0, 0, 0, 0],
               [-0.75, 0.0, 1, 1, 2, 2],
               lambda x, name=name, corners=corners: f.interpolate(
                   x, scale_factor=2, mode=name, **corners))


def short_rows(torch):
    """Like elementwise_rows, for axes of length 1, short rows and short slices."""
    for shape, axis in (((1, 100000), 0), ((100000, 1), 1), ((1, 100000), 1)):
        x = torch.randn(shape)
        for name, function in (
                ("reduce_sum", torch.sum), ("reduce_mean", torch.mean),
                ("reduce_max", torch.amax), ("reduce_log_sum_exp", torch.logsumexp),
                ("argmax", torch.argmax)):
            yield (f"{name} {shape[0]}x{shape[1]}, axis {axis}", name, [x],
                   [1 << axis, 0], [], lambda x, f=function, axis=axis: f(x, axis))
    for rows, columns in ((1000000, 8), (500000, 8), (300000, 10), (100000, 32),
                          (50000, 64), (100000, 1)):
        x = torch.randn(rows, columns)
        for name in ("softmax", "log_softmax"):
            yield (f"{name} {rows}x{columns}", name, [x], [1], [],
                   lambda x, f=getattr(torch, name): f(x, 1))
    for width in (1, 4, 8, 16, 32, 64, 1024):
        x = torch.randn(max(2000, 100000 // width), width)
        index = torch.randint(0, len(x), (max(2000, 1000000 // width),))
        yield (f"gather of {width} elements", "gather", [x, index], [0], [],
               lambda x, i: torch.index_select(x, 0, i))
    yield ("gather, axis 1", "gather",
           [torch.randn(1000, 1000), torch.randint(0, 1000, (1000,))], [1], [],
           lambda x, i: torch.index_select(x, 1, i))


def layer_rows(torch):
    """Like elementwise_rows, for layers of networks."""
    f, image, large = torch.nn.functional, torch.randn(8, 64, 56, 56), torch.randn(
        8, 64, 112, 112)
    scale, bias = torch.rand(64) + 0.5, torch.randn(64)
    yield ("batch_norm", "batch_norm", [image, scale, bias, bias.clone(), scale.clone()],
           [], [1e-5], lambda x, s, b, m, v: f.batch_norm(x, m, v, s, b))
    yield ("instance_norm", "instance_norm", [image, scale, bias], [], [1e-5],
           lambda x, s, b: f.instance_norm(x, None, None, s, b))
    yield ("group_norm", "group_norm", [image, scale, bias], [16], [1e-5],
           lambda x, s, b: f.group_norm(x, 16, s, b))
    window = [3, 3, 2, 2, 1, 1, 1, 1, 1, 1]
    yield ("max_pool", "max_pool", [large], [0, *window], [],
           lambda x: f.max_pool2d(x, 3, 2, 1))
    yield ("average_pool", "average_pool", [large], [0, 0, *window], [],
           lambda x: f.avg_pool2d(x, 3, 2, 1, count_include_pad=False))
    for queries, keys, causal in ((512, 512, 0), (512, 512, 1), (1, 128, 0),
                                  (1, 1024, 0), (1, 4096, 0)):
        q, k, v = (torch.randn(2, 12, n, 64) for n in (queries, keys, keys))
        yield (f"attention, {queries} x {keys}{', causal' * causal}", "attention",
               [q, k, v], [causal, 0], [0.125, 0],
               lambda q, k, v, causal=causal: f.scaled_dot_product_attention(
                   q, k, v, is_causal=bool(causal), scale=0.125))

    def rotate(x, cos, sin):
        a, b, cos, sin = x[..., :32], x[..., 32:], cos[:, None], sin[:, None]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    yield ("rotary_embedding", "rotary_embedding", [torch.randn(2, 12, 512, 64)] + [
        torch.randn(2, 512, 32) for _ in range(2)], [0, 0], [], rotate)
    for n, c, side, m, k, stride, pad, groups in (
            (1, 64, 56, 64, 1, 1, 0, 1), (1, 64, 56, 64, 3, 1, 1, 1),
            (1, 256, 56, 128, 1, 1, 0, 1), (1, 128, 28, 128, 3, 1, 1, 1),
            (1, 512, 28, 256, 1, 1, 0, 1), (1, 256, 14, 256, 3, 1, 1, 1),
            (1, 1024, 14, 512, 1, 1, 0, 1), (1, 512, 7, 512, 3, 1, 1, 1),
            (1, 3, 224, 64, 7, 2, 3, 1), (8, 64, 56, 64, 3, 1, 1, 1),
            (8, 256, 14, 256, 3, 1, 1, 1), (1, 32, 112, 32, 3, 1, 1, 32),
            (1, 144, 56, 144, 3, 2, 1, 144), (1, 384, 14, 384, 3, 1, 1, 384)):
        label = "conv" if groups == 1 else "depthwise"
        weight = torch.randn(m, c // groups, k, k) / math.sqrt(c // groups * k * k)
        yield (f"{label} {n}x{c}x{side}x{side}, m{m} k{k} s{stride}", "conv",
               [torch.randn(n, c, side, side), weight, torch.randn(m)],
               [groups, 0, 0, stride, stride, 1, 1, pad, pad, pad, pad], [0, 0],
               lambda x, w, b, stride=stride, pad=pad, groups=groups: f.conv2d(
                   x, w, b, stride, pad, 1, groups))
    yield ("conv_transpose", "conv_transpose",
           [torch.randn(1, 64, 28, 28), torch.randn(64, 32, 4, 4) / 32, torch.randn(32)],
           [1, 0, 0, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0], [0, 0],
           lambda x, w, b: f.conv_transpose2d(x, w, b, 2, 1))


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.split("\n", 1)[0])
    parser.add_argument("library", metavar="LIBTANDEM", help="the path of libtandem.so")
    parser.add_argument("header", metavar="OPERATORS_H", help="the path of operators.h")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--filter", default="", metavar="TEXT",
                        help="only rows whose label contains TEXT")
    arguments = parser.parse_args()
    os.environ["TANDEM_NUM_THREADS"] = str(arguments.threads)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed", file=sys.stderr)
        return 77
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    tandem = Tandem(arguments.library, arguments.header)
    speeds, status = {}, 0
    for rows in (elementwise_rows, movement_rows, short_rows, layer_rows):
        for label, name, inputs, ints, floats, function in rows(torch):
            if arguments.filter not in label:
                continue
            expected = function(*inputs)
            expected = expected if isinstance(expected, tuple) else (expected,)
            outputs = [torch.zeros_like(value).contiguous() for value in expected]
            run = tandem.call(name, inputs, outputs, ints, floats)
            mine = measure(run)
            theirs = measure(lambda: function(*inputs))
            speeds[label] = theirs / mine
            print(f"{label:36} {mine:9.3f} {theirs:9.3f} {speeds[label]:7.2f}")
            if not torch.allclose(outputs[0], expected[0], 1e-3, 1e-3):
                print(f"{label}: the result differs from PyTorch's", file=sys.stderr)
                status = 1
    for title, prefix in (("conv", "conv "), ("depthwise", "depthwise "), ("others", "")):
        found = [speed for label, speed in speeds.items()
                 if label.startswith(prefix) and
                 (prefix or not label.startswith(("conv ", "depthwise ")))]
        if found:
            print(f"geometric mean of {len(found)} {title}: "
                  f"{statistics.geometric_mean(found):.2f}")
    return status


if __name__ == "__main__":
    sys.exit(main())
