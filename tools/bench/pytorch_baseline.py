#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the rows of a tandem-bench result with PyTorch.

Reads a result of tandem-bench, or the list of rows that its --list prints.
Runs each row that PyTorch supports in PyTorch, on the GPU and on the CPU, and
prints the results and the speed of Tandem relative to PyTorch: above 1, Tandem
is faster. Run it on the same machine, right after tandem-bench. TF32 is off
except in rows with "tf32". cuDNN searches for its fastest kernels.

On a GPU, a row with resident data runs twice: as PyTorch calls it ("PyTorch CUDA"),
and replayed from a CUDA graph, without the host's time of each call ("PyTorch CUDA
graph"). The faster of the two is the upper bound.

--update stores the times in the result as further implementations of its rows
(see tools/bench/result_document.h); --json prints the updated result.

Exit status: 0; 1 if a row failed or the result cannot be read; 2 if the command
line is invalid; 77 if PyTorch is not installed."""

import argparse
import json
import math
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
from report import document_read, result_text  # noqa: E402

SAMPLES = 9
ROUND_NS = 2e6  # minimum time of a round
MAX_REPEATS = 2000
SLOW_NS = 1e9  # rows that take longer on the CPU are skipped
PROBE_SIDE = 32
MASK = 0xFFFFFFFF
GRAPH_RUNS = 10  # runs of an operator in one CUDA graph
EAGER_ONLY = ("sgd", "adam")  # PyTorch refuses to capture Adam's step by default
LABELLED = ("gather", "softmax_cross_entropy", "softmax_cross_entropy_grad")


# ---- timing ----


def measure(run, wait, slow_ns=math.inf):
    """Returns the median time of a run in ns, and the distance of the quartiles
    divided by it. Returns None if a run takes longer than slow_ns."""

    def turn(count):
        start = time.perf_counter_ns()
        for _ in range(count):
            run()
        wait()
        return (time.perf_counter_ns() - start) / count

    turn(1)
    once = turn(1)
    if once > slow_ns:
        return None
    count = 1
    while count < MAX_REPEATS and once * count < ROUND_NS / 2:
        wanted = int(ROUND_NS / max(once, 1)) + 1
        count = min(8 * count, wanted, MAX_REPEATS)
        once = turn(count)
    samples = [turn(count) for _ in range(SAMPLES)]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return middle, (high - low) / middle


def captured(torch, run, count):
    """Returns a function that replays `count` runs from a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # libraries allocate, and cuDNN searches
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            output = run()

    def replay():
        graph.replay()
        return output  # keeps the graph's memory

    return replay


# ---- GEMM, with the operands of tools/bench/gemm_reference.c ----


def mix(x):
    """Returns a hash of 32 bits of an int or of an int64 tensor."""
    x = x & MASK
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & MASK
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & MASK
    return x ^ (x >> 16)


def operand_bits(operand, index):
    """Returns the signed integer of 24 bits from which a value is made."""
    return (mix(index + ord(operand) * 0x9E3779B9) >> 8) - (1 << 23)


def powers(torch, count, device):
    """Returns the scale of each row, column or depth: a power of 2."""
    index = torch.arange(count, dtype=torch.int64, device=device)
    return torch.exp2((mix(index + 3000) % 21 - 10).to(torch.float32))


def scale(torch, operand, words, shape, device):
    """Returns the factor of the operand's values, or None."""
    if operand == "a" and "rowscale" in words:
        return powers(torch, shape[-2], device).view(-1, 1)
    if operand == "b" and "columnscale" in words:
        return powers(torch, shape[-1], device)
    if operand == "a" and "depthscale" in words:
        return powers(torch, shape[-1], device)
    if operand == "b" and "depthscale" in words:
        return 1 / powers(torch, shape[-2], device).view(-1, 1)
    if operand in "ab" and "extreme" in words:
        return torch.tensor(1e25 if operand == "a" else 1e-25,
                            dtype=torch.float32, device=device)
    return None


def operand_values(torch, operand, words, shape, dtype, device):
    """Returns an operand with the values of gemm_case_value."""
    count = math.prod(shape)
    index = torch.arange(count, dtype=torch.int64, device=device)
    values = operand_bits(operand, index).to(torch.float32) * 2.0**-23
    del index
    if dtype != torch.float32:
        values = torch.floor(values * 128) / 128
    elif "positive" in words:
        values = (values + 1) / 2
    values = values.to(dtype).view(shape)
    factor = scale(torch, operand, words, shape, device)
    return values if factor is None else values * factor


def draw_indices(extent, seed):
    """Returns the rows or columns that are compared with float64."""
    if extent <= PROBE_SIDE:
        return list(range(extent))
    return [mix(seed + i) % extent for i in range(PROBE_SIDE)]


class Gemm:
    """A GEMM row on a device."""

    def __init__(self, torch, row, device):
        words = row["detail"].split("+")
        shape = row["shape"]
        batch = shape[:-3]
        m, n, k = shape[-3:]
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}
        self.torch = torch
        self.words = words
        self.relu = "relu" in words
        self.dtype = next((dtype[w] for w in words if w in dtype),
                          torch.float32)
        self.shape = (m, n)
        turned_a, turned_b = "ta" in words, "tb" in words
        a = self.values("a", batch + ([k, m] if turned_a else [m, k]), device)
        b = self.values("b", batch + ([n, k] if turned_b else [k, n]), device)
        self.a = a.transpose(-1, -2) if turned_a else a
        self.b = b.transpose(-1, -2) if turned_b else b
        self.bias = self.values("+", [n], device) if "bias" in words else None
        self.c = torch.empty(batch + [m, n], dtype=self.dtype, device=device)

    def values(self, operand, shape, device):
        return operand_values(self.torch, operand, self.words, shape,
                              self.dtype, device)

    def run(self):
        """Computes c."""
        torch = self.torch
        if self.bias is None:
            torch.matmul(self.a, self.b, out=self.c)
        else:
            torch.addmm(self.bias, self.a, self.b, out=self.c)
        if self.relu:
            torch.relu_(self.c)

    def error(self):
        """Returns the errors of some entries of the first batch against
        float64."""
        m, n = self.shape
        a, b, c = (x if x.dim() == 2 else x[0] for x in
                   (self.a, self.b, self.c))
        rows, columns = draw_indices(m, 1000), draw_indices(n, 2000)
        a, b = a[rows].double(), b[:, columns].double()
        want, magnitude = a @ b, a.abs() @ b.abs()
        if self.bias is not None:
            bias = self.bias[columns].double()
            want, magnitude = want + bias, magnitude + bias.abs()
        if self.relu:
            want = want.clamp_min(0)
        off = (c[rows][:, columns].double() - want).abs()
        return {
            "componentwise": float((off / magnitude.clamp_min(1e-30)).max()),
            "max_relative": float(off.max() / max(float(want.abs().max()),
                                                1e-30)),
        }


# ---- operators ----


def axes_of(row):
    """Returns the axis that a row reduces, or None for all axes."""
    detail = row["detail"]
    return int(detail[5:]) if detail.startswith("axis=") else None


def reduction(torch, name, row):
    """Returns a function that reduces the row's axes."""
    function = getattr(torch, name)
    axis = axes_of(row)
    if axis is None:
        return lambda x: function(x)
    return lambda x: function(x, dim=axis)


def operator(torch, row):
    """Returns (function, shapes of its inputs) of a row, or None."""
    name, shape = row["op"], row["shape"]
    f = torch.nn.functional
    unary = {
        "relu": torch.relu, "leaky_relu": lambda x: f.leaky_relu(x, 1.0),
        "elu": f.elu, "clip": lambda x: torch.clamp(x, -1, 1),
        "sigmoid": torch.sigmoid, "tanh": torch.tanh, "swish": f.silu,
        "gelu": f.gelu, "exp": torch.exp, "copy": torch.clone,
        "softmax": lambda x: torch.softmax(x, dim=-1),
        "log_softmax": lambda x: torch.log_softmax(x, dim=-1),
        "transpose": lambda x: x.t().contiguous(),
    }
    reduced = {"reduce_sum": "sum", "reduce_mean": "mean",
               "reduce_max": "amax", "argmax": "argmax"}
    if name in unary:
        return unary[name], [shape]
    if name in reduced:
        return reduction(torch, reduced[name], row), [shape]
    last = shape[-1:]
    others = {
        "add": (torch.add, [shape, shape]),
        "dot": (torch.dot, [shape, shape]),
        "layer_norm": (lambda x, w, b: f.layer_norm(x, last, w, b),
                       [shape, last, last]),
        "rms_norm": (lambda x, w: f.rms_norm(x, last, w), [shape, last]),
        "conv2d": (f.conv2d, [shape, [16, 1, 5, 5]]),
        "max_pool": (lambda x: f.max_pool2d(x, 2), [shape]),
    }
    return others.get(name)


def scattered(torch, count, limit, device):
    """Returns the integers in [0, limit) of seed_index in result_check.c."""
    index = torch.arange(count, dtype=torch.int64, device=device)
    return index * 2654435761 % limit


def labelled_run(torch, row, device):
    """Returns the run of an operator with a label or an index for each row."""
    rows, columns = row["shape"]
    if row["op"] == "gather":
        where = "cpu" if row["mode"] == "host" else device
        x = torch.rand(rows, columns, device=where) + 0.5
        index = scattered(torch, rows, rows, where).to(torch.int32)
        if row["mode"] == "host":
            return lambda: torch.index_select(x.to(device), 0, index.to(device)).cpu()
        return lambda: torch.index_select(x, 0, index)
    if row["mode"] == "host":
        return None
    x = torch.rand(rows, columns, device=device) + 0.5
    labels = scattered(torch, rows, columns, device)
    loss = torch.nn.functional.cross_entropy
    if row["op"] == "softmax_cross_entropy":
        return lambda: loss(x, labels, reduction="none")
    x.requires_grad_()

    def gradient():
        with torch.enable_grad():
            torch.autograd.grad(loss(x, labels, reduction="sum"), x)

    return gradient


def optimizer_run(torch, row, device):
    """Returns an optimizer step with the attributes of the example call."""
    w = torch.rand(*row["shape"], device=device) + 0.5
    w.grad = torch.rand(*row["shape"], device=device) + 0.5
    if row["op"] == "adam":
        return torch.optim.Adam([w], lr=0.001, fused=True).step
    return torch.optim.SGD([w], lr=0.01, momentum=0.9, fused=True).step


def gemm_on_host(torch, row, device):
    """Returns the run of a GEMM from host memory to host memory."""
    m, n, k = row["shape"]
    a, b = torch.rand(m, k) + 0.5, torch.rand(k, n) + 0.5
    bias = torch.rand(n) + 0.5 if "bias" in row["detail"] else None

    def run():
        x, y = a.to(device), b.to(device)
        z = x @ y if bias is None else torch.addmm(bias.to(device), x, y)
        return (torch.relu_(z) if "relu" in row["detail"] else z).cpu()

    return run


def transfer(torch, row, device):
    """Returns the run of a row of the suite transfer, or None."""
    pinned = row["detail"] == "pinned"
    if row["detail"] == "mapped" or device == "cpu":
        return None
    elements = row["shape"][0] // 4
    host = torch.ones(elements, pin_memory=pinned)
    there = torch.ones(elements, device=device)
    up = row["mode"] == "upload"
    target, source = (there, host) if up else (host, there)

    def run():
        target.copy_(source)
        torch.cuda.synchronize()

    return run


def view_run(torch, row, device):
    """Returns the run of an addition of views, as in suite_bandwidth.c."""
    rows, columns = row["shape"]
    x, y, z = (torch.rand(rows * columns + 1, device=device) for _ in "xyz")
    take = {"unaligned": 1, "pitched": 32, "broadcast": 0}[row["detail"]]
    first = 1 if row["detail"] == "unaligned" else 0
    a, b = (t[first:first + rows * columns].view(rows, columns)
            [:, :columns - take] for t in (x, y))
    if row["detail"] == "broadcast":
        b = b[:1]
    out = z[:rows * columns].view(rows, columns)[:, :columns - take]
    return lambda: torch.add(a, b, out=out)


def word_number(row, word, otherwise):
    """Returns the number after a word of the detail."""
    for part in row["detail"].split():
        if part.startswith(word) and part[len(word):].isdigit():
            return int(part[len(word):])
    return otherwise


def image_run(torch, row, device):
    """Returns the run of a pooling, norm, resize or concat of images, or None."""
    f, shape = torch.nn.functional, row["shape"]
    channels = shape[1]
    x, y = (torch.rand(*shape, device=device) for _ in "xy")
    scale, bias, mean, variance = torch.rand(4, channels, device=device) + 0.5
    if row["detail"] == "nearest":
        mode = {"mode": "nearest"}
    else:
        mode = {"mode": "bilinear", "align_corners": False}
    runs = {
        "max_pool": lambda: f.max_pool2d(x, 3, 2, 1),
        "average_pool": lambda: f.avg_pool2d(x, 3, 2, 1,
                                             count_include_pad=False),
        "batch_norm": lambda: f.batch_norm(x, mean, variance, scale, bias),
        "instance_norm": lambda: f.instance_norm(x, None, None, scale, bias),
        "group_norm": lambda: f.group_norm(x, channels // 4, scale, bias),
        "resize": lambda: f.interpolate(x, scale_factor=2, **mode),
        "concat": lambda: torch.cat((x, y), word_number(row, "axis", 0)),
    }
    return runs.get(row["op"])


def layer_run(torch, row, device):
    """Returns the run of a row of the suite layers (layer_case.h)."""
    f, shape = torch.nn.functional, row["shape"]
    if row["op"] not in ("attention", "conv"):
        return image_run(torch, row, device)
    if row["op"] == "attention":
        keys = shape[:2] + [word_number(row, "keys", shape[2])] + shape[3:]
        q, k, v = (torch.rand(*s, device=device) for s in (shape, keys, keys))
        causal = row["detail"] == "causal"
        return lambda: f.scaled_dot_product_attention(
            q, k, v, is_causal=causal, scale=0.125)
    window, groups = word_number(row, "k", 1), word_number(row, "g", 1)
    outputs = word_number(row, "m", 1)
    x = torch.rand(*shape, device=device)
    w = torch.rand(outputs, shape[1] // groups, window, window, device=device)
    bias = torch.rand(outputs, device=device)
    stride, padding = word_number(row, "s", 1), word_number(row, "p", 0)
    return lambda: f.conv2d(x, w, bias, stride, padding, 1, groups)


def plain_run(torch, row, device):
    """Returns the run of an operator row, or None if PyTorch lacks it."""
    if row["suite"] == "layers":
        return layer_run(torch, row, device)
    if row["suite"] == "operators":  # pytorch_operators.py has these
        return None
    if row["op"] == "add" and row["detail"]:
        return view_run(torch, row, device)
    if row["op"] in LABELLED:
        return labelled_run(torch, row, device)
    if row["op"] in ("sgd", "adam"):
        return optimizer_run(torch, row, device)
    found = operator(torch, row)
    if found is None:
        return None
    function, shapes = found
    where = "cpu" if row["mode"] == "host" else device
    inputs = [torch.rand(*s, device=where) + 0.5 for s in shapes]
    if row["mode"] == "host":
        return lambda: function(*[x.to(device) for x in inputs]).cpu()
    return lambda: function(*inputs)


def network_run(row, device):
    """Returns the run of a row of the suite networks."""
    import pytorch_networks  # defines classes of PyTorch
    return pytorch_networks.network_run(row, device)


def row_run(torch, row, device):
    """Returns the run of a row, or None, and its Gemm, or None."""
    if row["mode"] not in ("stream", "wait", "host", "upload", "download"):
        return None, None
    if row["op"] == "transfer":
        return transfer(torch, row, device), None
    if row["suite"] == "networks":
        return network_run(row, device), None
    if row["op"] == "gemm" and row["mode"] == "host":
        return gemm_on_host(torch, row, device), None
    if row["op"] == "gemm":
        product = Gemm(torch, row, device)
        return product.run, product
    return plain_run(torch, row, device), None


def allow_tf32(torch, is_allowed):
    torch.backends.cuda.matmul.allow_tf32 = is_allowed
    torch.backends.cudnn.allow_tf32 = is_allowed


def run_row(torch, row, target):
    """Measures a row. Returns (implementation, errors), or None."""
    device, _, kind = target.partition(" ")
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    allow_tf32(torch, "tf32" in row["detail"])
    run, product = row_run(torch, row, device)
    if run is None:
        return None
    count = 1
    if kind == "graph":
        # Several runs, so that the launch of the graph does not count. A network is
        # long enough, and a row that waits has one run.
        if row["suite"] != "networks" and row["mode"] == "stream":
            count = GRAPH_RUNS
        run = captured(torch, run, count)
    if row["mode"] == "wait":
        work = run

        def run():
            work()
            wait()

    times = measure(run, wait, SLOW_NS if device == "cpu" else math.inf)
    if times is None:
        return None
    side = {"name": SIDE_NAMES[target], "ns": times[0] / count,
            "iqr_ratio": times[1], "samples": SAMPLES}
    return side, product.error() if product is not None else None


SIDE_NAMES = {"cpu": "PyTorch CPU", "cuda": "PyTorch CUDA",
              "cuda graph": "PyTorch CUDA graph"}


# ---- results ----


def targets_of(torch, document, row):
    """Returns the devices on which PyTorch runs a row: "cpu", "cuda", "cuda graph"."""
    cuda = ["cuda"] if torch.cuda.is_available() else []
    if cuda and row["mode"] in ("stream", "wait") and row["op"] not in EAGER_ONLY:
        cuda.append("cuda graph")
    name = row.get("device")
    if name is None:
        return cuda or ["cpu"]
    if name == "any":
        return cuda + ["cpu"]
    model = next((d["name"] for d in document["devices"]
                  if d["device"] == name), "")
    if cuda and torch.cuda.get_device_name() in model:
        return cuda + (["cpu"] if row["suite"] == "user-cases" else [])
    return ["cpu"]


def add_side(row, side, error):
    """Adds the implementation to the row. PyTorch becomes the upper bound in
    suites whose operators users would run in PyTorch: the faster of its
    implementations on the GPU, or the CPU's if there is no other bound."""
    ours = row["implementations"][0]
    row["implementations"] = [s for s in row["implementations"] if s["name"] != side["name"]]
    row["implementations"].append(side)
    if error is not None:
        row.setdefault("error", {})[side["name"]] = error
    if row["suite"] in ("gemm", "layers", "networks", "user-cases"):
        cuda = [s for s in row["implementations"]
                if s["name"].startswith("PyTorch CUDA")]
        if cuda:
            row["upper_bound"] = min(cuda, key=lambda s: s["ns"])["name"]
        elif "upper_bound" not in row:
            row["upper_bound"] = side["name"]
    return side["ns"] / ours["ns"]


def report(row, side, ratio, out):
    text = "  %-10s %-44s %14s" % (row.get("device", ""), row["name"],
                                   result_text(row, row["implementations"][0])
                                   if "implementations" in row else "")
    speed = "speed %.3f" % ratio if ratio is not None else ""
    print("%s  %-18s %14s (+-%2.0f%%)  %s"
          % (text, side["name"], result_text(row, side),
             50 * side["iqr_ratio"], speed), file=out, flush=True)


def tidy(torch, target):
    """Frees cached memory, so that all rows fit."""
    if target != "cpu" and torch.cuda.memory_reserved() > 1 << 33:
        torch.cuda.empty_cache()


def run_document(torch, document, out):
    """Measures every measured row, once per device. Returns the number of
    failed rows."""
    known, failed = {}, 0
    listed = not document["devices"]
    rows = [r for r in document["rows"]
            if listed or r["status"] == "measured"]
    for row in rows:
        for target in targets_of(torch, document, row):
            key = (target, row["op"], row["mode"], row["detail"],
                   tuple(row["shape"]))
            if key not in known:
                try:
                    known[key] = run_row(torch, row, target)
                except Exception as error:  # one row's: the others go on
                    print("pytorch_baseline: %s, %s: %s"
                          % (row["name"], target, error), file=sys.stderr)
                    known[key] = None
                    failed += 1
                tidy(torch, target)
            if known[key] is None:
                continue
            side, error = known[key]
            ratio = None if listed else add_side(row, dict(side), error)
            report(row, side, ratio, out)
    return failed


def write_document(document, out):
    """Writes one row per line, as tandem-bench does."""
    def text(value):
        if isinstance(value, list):
            return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        return json.dumps(value)

    out.write("{" + ",".join('\n "%s": %s' % (key, text(value))
                             for key, value in document.items()) + "\n}\n")


def update(document, path):
    """Replaces the file atomically."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        write_document(document, file)
    os.replace(path + ".part", path)


def main():
    """Reads the command line and the result, measures and prints."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", help="output of tandem-bench")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    document = document_read(arguments.result)
    try:
        import torch
    except ImportError:
        print("pytorch_baseline: PyTorch is not installed: nothing to compare "
              "with", file=sys.stderr)
        return 77
    if torch.cuda.is_available():
        where = torch.cuda.get_device_name()
    else:
        where = "CPU alone: PyTorch sees no CUDA device"
    out = sys.stderr if arguments.json else sys.stdout
    print("PyTorch %s on %s; TF32 off unless a row says tf32; with cuDNN's search"
          % (torch.__version__, where), file=out)
    torch.backends.cudnn.benchmark = True
    with torch.no_grad():
        failed = run_document(torch, document, out)
    document["pytorch"] = {"version": torch.__version__, "device": where,
                           "tf32": False, "cudnn_search": True}
    if arguments.update:
        update(document, arguments.result)
    if arguments.json:
        write_document(document, sys.stdout)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
