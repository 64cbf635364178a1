#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the shapes that tandem-bench measures, to be run on the same
machine in the same call.  Prints a table, or with --json the rows that
tandem-bench --json prints.  Without PyTorch it says so and exits with 77."""

import argparse
import json
import statistics
import sys
import time

SAMPLES = 11


def median_ns(run, wait, count):
    """Median and quartile spread of the time of one run in a stream."""
    for _ in range(3):
        run()
    wait()
    samples = []
    for _ in range(SAMPLES):
        start = time.perf_counter_ns()
        for _ in range(count):
            run()
        wait()
        samples.append((time.perf_counter_ns() - start) / count)
    low, middle, high = statistics.quantiles(samples, n=4)
    return middle, (high - low) / middle


def memory_rows(torch, device, elements):
    """Operators that are bound by memory: (name, run, bytes)."""
    x = torch.rand(elements, device=device) + 0.5
    y = torch.rand(elements, device=device) + 0.5
    z = torch.empty_like(x)
    rows = x.view(-1, 4096)
    wide = x.view(-1, 32768)
    side = 1 << ((elements.bit_length() - 1) // 2)
    square = x[: side * side].view(side, side)
    square_out = z[: side * side].view(side, side)
    moved = 4 * elements
    gelu = torch.nn.functional.gelu
    return [
        ("copy %d" % elements, lambda: z.copy_(x), 2 * moved),
        ("add %d" % elements, lambda: torch.add(x, y, out=z), 3 * moved),
        ("relu %d" % elements, lambda: torch.clamp_min(x, 0, out=z),
         2 * moved),
        ("gelu %d" % elements, lambda: gelu(x), 2 * moved),
        ("exp %d" % elements, lambda: torch.exp(x, out=z), 2 * moved),
        ("reduce_sum %d" % elements, lambda: torch.sum(x), moved),
        ("reduce_sum %dx32768" % wide.shape[0],
         lambda: torch.sum(wide, dim=1), moved),
        ("softmax %dx4096" % rows.shape[0],
         lambda: torch.softmax(rows, dim=1), 2 * moved),
        ("transpose %dx%d" % (side, side),
         lambda: square_out.copy_(square.t()), 8 * side * side),
    ]


def bandwidth(torch, device, wait, elements, report):
    """GB/s of each operator."""
    for name, run, moved in memory_rows(torch, device, elements):
        count = max(1, min(200, int(2e10 // moved)))
        ns, spread = median_ns(run, wait, count)
        report("bandwidth", name, "GB/s", moved / ns, spread)


def gemm(torch, device, wait, sizes, report):
    """GFLOP/s of square products, TF32 off."""
    for n in sizes:
        a = torch.rand(n, n, device=device)
        b = torch.rand(n, n, device=device)
        c = torch.empty_like(a)
        count = max(1, min(500, int(4e11 // (2 * n**3))))
        ns, spread = median_ns(lambda: torch.mm(a, b, out=c), wait, count)
        report("gemm", "gemm n = %d" % n, "GFLOP/s", 2 * n**3 / ns, spread)


def launch(torch, device, wait, report):
    """ns of a small addition in a stream, and with a wait."""
    x = torch.rand(1024, device=device)
    z = torch.empty_like(x)

    def run():
        torch.add(x, x, out=z)

    def run_and_wait():
        run()
        wait()

    ns, spread = median_ns(run, wait, 2000)
    report("launch", "add 1024, in a stream", "ns", ns, spread)
    ns, spread = median_ns(run_and_wait, wait, 500)
    report("launch", "add 1024, launch + wait", "ns", ns, spread)


def host_to_host(torch, device, wait, report):
    """ns of additions of host data that is read on the host."""
    for n in (1000, 10000, 100000, 1000000):
        x = torch.rand(n)
        y = torch.rand(n)

        def run():
            return (x.to(device) + y.to(device)).cpu()

        ns, spread = median_ns(run, wait, max(3, min(1000, int(1e7 // n))))
        report("host", "add %d, host to host" % n, "ns", ns, spread)


def main():
    """Runs all, prints rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--device", default=None, help="cuda, cpu")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("torch_compare: PyTorch is not installed", file=sys.stderr)
        return 77
    device = arguments.device
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    on_gpu = device.startswith("cuda")
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    rows = []

    def report(suite, name, unit, value, spread):
        rows.append({"suite": suite, "device": "torch " + device,
                     "name": name, "unit": unit, "ours": value,
                     "ours_spread": spread, "samples": SAMPLES})
        if not arguments.json:
            print("  %-28s %12.4g %-8s (+-%2.0f%%)"
                  % (name, value, unit, 50 * spread), flush=True)

    if not arguments.json:
        where = torch.cuda.get_device_name() if on_gpu else "CPU"
        print("PyTorch %s on %s" % (torch.__version__, where))
    with torch.no_grad():
        bandwidth(torch, device, wait, 1 << (28 if on_gpu else 22), report)
        gemm(torch, device, wait,
             (256, 512, 1024, 2048, 4096) if on_gpu else (256, 512, 1024),
             report)
        launch(torch, device, wait, report)
        if on_gpu:
            host_to_host(torch, device, wait, report)
    if arguments.json:
        json.dump(rows, sys.stdout, indent=2)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
