#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Tandem's execution provider next to other ways to run the same model.

The rows of the table are:

  tandem      Tandem's provider
  cpu         ONNX Runtime's CPU provider with its default optimizations
  torch-eager the same network in PyTorch, eager mode, attention written out
  torch-sdpa  the same network in PyTorch with scaled_dot_product_attention

All runs start with inputs and end with outputs in host memory.  PyTorch runs on a
GPU in f32 without TF32, if the package torch is installed.  The models are BERT with
fixed shapes, and one Relu of 1024 floats, which shows the cost of a call.  "overhead"
is a model that is too small for a device, with claim=cost: its ratio is the run time
with the provider over the time without it.

The ways take turns: one pair is one sample of each way.  The spread is the distance
of the quartiles over the median.  The ratio is the median of the pairs' ratios with
its 95% confidence interval (bootstrap); it is a way's time over Tandem's time, except
for "overhead".  The exit status does not depend on the times.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import argparse
import functools
import time

import numpy as np

import exported_models
import provider
import small_models
from small_models import FLOAT, constant, node, value

SEED = 11
WIDTH, HEADS = 768, 12
BERT_SHAPES = {"bert-1x128": (1, 128), "bert-8x128": (8, 128), "bert-1x384": (1, 384)}
RELU_ELEMENTS = 1024
SMALL_WIDTH, SMALL_LAYERS = 32, 4
WARM_UP_RUNS = 3
# A sample repeats short runs until it takes this time, so that the resolution of the
# clock and the loop do not count.
MIN_SAMPLE_SECONDS = 1e-2
MAX_REPEATS = 5000
RESAMPLES = 4000
WARM_RUNS = 5


# ---- models ----


def activation_model(nodes, initializers, width):
    return small_models.model(nodes, [value("x", FLOAT, [1, width])],
                              [value("y", FLOAT, [1, width])], initializers)


def relu_model():
    return activation_model([node("Relu", "x", "y")], [], RELU_ELEMENTS)


def small_model():
    """A perceptron that any CPU computes in microseconds."""
    random = np.random.default_rng(SEED)
    nodes, weights = [], []
    for layer in range(SMALL_LAYERS):
        source = f"r{layer}" if layer else "x"
        result = f"r{layer + 1}" if layer < SMALL_LAYERS - 1 else "y"
        weight = random.standard_normal((SMALL_WIDTH, SMALL_WIDTH), np.float32)
        weights.append(constant(f"w{layer}", weight))
        nodes.append(node("MatMul", [source, f"w{layer}"], f"p{layer}"))
        nodes.append(node("Tanh", f"p{layer}", result))
    return activation_model(nodes, weights, SMALL_WIDTH)


def random_row(width):
    random = np.random.default_rng(SEED)
    return {"x": random.standard_normal((1, width), np.float32)}


# ---- ways to run a model: functions without arguments that return the output ----


def runtime_ways(model, feeds, arguments, claim):
    """Returns the ways of ONNX Runtime, and how many nodes the provider took."""
    session = provider.session(
        model,
        arguments.device,
        fallback=True,
        config=provider.RECORD_ASSIGNMENT,
        claim=claim,
        precision=arguments.precision,
    )
    cpu = provider.cpu_session(model, optimize=True)
    ways = {"tandem": lambda: session.run(None, feeds)[0],
            "cpu": lambda: cpu.run(None, feeds)[0]}
    return ways, provider.taken_nodes(session)


def import_torch(device):
    """Returns the module torch, or None if it cannot run on the device."""
    try:
        import torch
    except ImportError:
        return None
    if device == "cuda" and not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


class TorchBert:
    """BERT in plain PyTorch, with the weights of exported_models.bert."""

    def __init__(self, torch, device, weights, layers, fused_attention):
        self.torch, self.device = torch, device
        self.weights = {
            name: torch.from_numpy(np.ascontiguousarray(array)).to(device)
            for name, array in weights.items()
        }
        self.layers = layers
        self.fused_attention = fused_attention

    def linear(self, value, name):
        weights = self.weights
        linear = self.torch.nn.functional.linear
        return linear(value, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def layer_norm(self, value, name):
        weights = self.weights
        return self.torch.nn.functional.layer_norm(
            value,
            (WIDTH,),
            weights[f"{name}.weight"],
            weights[f"{name}.bias"],
            exported_models.BERT_EPSILON,
        )

    def embeddings(self, ids, types):
        embedding = self.torch.nn.functional.embedding
        tables = [
            self.weights[f"embeddings.{name}_embeddings.weight"]
            for name in ("word", "token_type", "position")
        ]
        positions = tables[2][: ids.shape[1]]
        total = embedding(ids, tables[0]) + embedding(types, tables[1]) + positions
        return self.layer_norm(total, "embeddings.LayerNorm")

    def heads(self, value, name):
        batch, tokens = value.shape[:2]
        split = self.linear(value, name).view(batch, tokens, HEADS, WIDTH // HEADS)
        return split.transpose(1, 2)

    def attention(self, value, mask, name):
        query = self.heads(value, f"{name}.self.query")
        key = self.heads(value, f"{name}.self.key")
        values = self.heads(value, f"{name}.self.value")
        if self.fused_attention:
            context = self.torch.nn.functional.scaled_dot_product_attention(
                query, key, values, attn_mask=mask
            )
        else:
            scores = query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + mask
            context = scores.softmax(-1) @ values
        context = context.transpose(1, 2).reshape(value.shape)
        dense = self.linear(context, f"{name}.output.dense")
        return self.layer_norm(dense + value, f"{name}.output.LayerNorm")

    def layer(self, value, mask, name):
        attention = self.attention(value, mask, f"{name}.attention")
        hidden = self.linear(attention, f"{name}.intermediate.dense")
        hidden = self.torch.nn.functional.gelu(hidden)
        dense = self.linear(hidden, f"{name}.output.dense")
        return self.layer_norm(dense + attention, f"{name}.output.LayerNorm")

    def run(self, feeds):
        with self.torch.inference_mode():
            ids, mask, types = (
                self.torch.from_numpy(feeds[name]).to(self.device)
                for name in ("input_ids", "attention_mask", "token_type_ids")
            )
            mask = (1 - mask[:, None, None, :].float()) * exported_models.FLOAT_MIN
            value = self.embeddings(ids, types)
            for index in range(self.layers):
                value = self.layer(value, mask, f"encoder.layer.{index}")
            return value.cpu().numpy()


def torch_ways(weights, feeds, arguments):
    torch = import_torch(arguments.torch)
    if torch is None:
        return {}
    ways = {}
    for name, fused in (("torch-eager", False), ("torch-sdpa", True)):
        network = TorchBert(torch, arguments.torch, weights, arguments.layers, fused)
        ways[name] = functools.partial(network.run, feeds)
    return ways


# ---- measurements ----


def sample(run, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def sample_repeats(run):
    """Warms a way up and returns how often a sample repeats the run."""
    seconds = min(sample(run, 1) for _ in range(WARM_UP_RUNS))
    return int(np.clip(MIN_SAMPLE_SECONDS / max(seconds, 1e-9), 1, MAX_REPEATS))


def measure(ways, pairs):
    """Returns the samples of each way in seconds.  Every second pair is reversed.

    Runs precede each sample, because the way before it leaves a device in a lower
    clock, and threads of ONNX Runtime that still wait for work.
    """
    repeats = {name: sample_repeats(run) for name, run in ways.items()}
    samples = {name: [] for name in ways}
    for pair in range(pairs):
        names = list(ways)[:: -1 if pair % 2 else 1]
        for name in names:
            sample(ways[name], WARM_RUNS)
            samples[name].append(sample(ways[name], repeats[name]))
    return samples


def confidence_interval(ratios):
    """Returns the 95% bootstrap interval of the median."""
    random = np.random.default_rng(SEED)
    picks = random.integers(0, len(ratios), (RESAMPLES, len(ratios)))
    medians = np.median(ratios[picks], axis=1)
    return np.percentile(medians, [2.5, 97.5]).tolist()


def difference(actual, expected):
    """Returns the largest difference relative to the largest magnitude."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def print_row(model, way, samples, base, error, taken):
    quarter, median, three_quarters = np.quantile(samples, [0.25, 0.5, 0.75])
    ratios = np.array(samples) / np.array(base)
    low, high = confidence_interval(ratios)
    spread = (three_quarters - quarter) / median
    print(
        f"{model:<11} {way:<11} {median * 1e6:>12.1f} "
        f"{spread:>7.1%} {np.median(ratios):>7.3f} [{low:.3f}, {high:.3f}] "
        f"{error:>10.1e} {'' if taken is None else taken:>6}",
        flush=True,
    )


def benchmark(name, ways, base, taken, pairs):
    """Measures a model.  The ratios are the times over those of the way `base`."""
    expected = ways["cpu"]()
    errors = {way: difference(run(), expected) for way, run in ways.items()}
    samples = measure(ways, pairs)
    for way in ways:
        print_row(name, way, samples[way], samples[base], errors[way],
                  taken if way == "tandem" else None)


def benchmark_bert(name, arguments):
    batch, tokens = BERT_SHAPES[name]
    weights = exported_models.bert_weights(arguments.layers, WIDTH, seed=SEED)
    model = exported_models.bert(
        arguments.layers, batch, tokens, WIDTH, HEADS, dynamic=False, weights=weights
    ).SerializeToString()
    feeds = exported_models.bert_inputs(batch, tokens, seed=SEED)
    ways, taken = runtime_ways(model, feeds, arguments, arguments.claim)
    ways.update(torch_ways(weights, feeds, arguments))
    benchmark(name, ways, "tandem", taken, arguments.pairs)


def benchmark_relu(name, arguments):
    ways, taken = runtime_ways(relu_model(), random_row(RELU_ELEMENTS), arguments,
                               "all")
    benchmark(name, ways, "tandem", taken, arguments.pairs)


def benchmark_overhead(name, arguments):
    ways, taken = runtime_ways(small_model(), random_row(SMALL_WIDTH), arguments,
                               "cost")
    benchmark(name, ways, "cpu", taken, arguments.pairs)


MODELS = {name: benchmark_bert for name in BERT_SHAPES}
MODELS.update({"relu-1024": benchmark_relu, "overhead": benchmark_overhead})


# ---- the command line ----


def parse_arguments():
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    provider.add_device_argument(parser)
    parser.add_argument("--model", choices=list(MODELS), action="append",
                        help="a model to measure; repeat it for more; default all")
    parser.add_argument("--pairs", type=int, default=30, help="samples (30)")
    parser.add_argument("--layers", type=int, default=12, help="BERT's layers (12)")
    parser.add_argument("--claim", choices=("all", "cost"), default="all",
                        help="the provider's option claim for BERT (all)")
    parser.add_argument("--precision", choices=("f32", "tf32"), default="f32",
                        help="the provider's option precision (f32)")
    parser.add_argument("--torch", metavar="DEVICE", default="cuda",
                        help="PyTorch's device (cuda)")
    arguments = parser.parse_args()
    if arguments.pairs < 2:
        parser.error("--pairs must be at least 2")
    return arguments


def main():
    arguments = parse_arguments()
    print(f"{provider.versions()}, device {arguments.device}, seed {SEED}, "
          f"pairs {arguments.pairs}, BERT layers {arguments.layers}")
    print("model       way            median us  spread   ratio [95% interval] "
          "difference  taken")
    for name in arguments.model or MODELS:
        MODELS[name](name, arguments)


if __name__ == "__main__":
    main()
