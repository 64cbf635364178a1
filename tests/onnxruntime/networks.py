#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares networks on Tandem's execution provider with other runs of them.

The networks are those of vision_models.py, BERT, GPT-2 and Whisper tiny.  The last two
continue a text by 64 tokens with past keys and values.  The provider must take every
node.  Each network is compared with ONNX Runtime's CPU provider, and with ONNX's
reference evaluator (numpy) in float64.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import argparse
import math
import sys
import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import exported_models
import provider
import small_models
import vision_models
import whisper_models
from models import Results, relative_difference
from models import rounding_bound as language_bound

SEED = 11
# The largest accepted error, divided by the error of ONNX Runtime's CPU provider.  The
# ratio was 0.4 to 2.0 on the CPU plugin and on PoCL, and at most 3.5 with other seeds.
MAX_ERROR_RATIO = 8


# ---- the float64 reference ----


def windows(x, kernel_shape, pads, strides, value):
    """Returns the windows of images or sequences.  Their elements are the last axes."""
    rank = len(kernel_shape)
    padding = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])]
    padded = np.pad(x, padding, constant_values=value)
    found = sliding_window_view(padded, kernel_shape, tuple(range(2, 2 + rank)))
    steps = (slice(None, None, stride) for stride in strides)
    return found[(slice(None), slice(None), *steps)]


class Conv(OpRun):
    """Replaces ONNX's reference, which is slow."""

    def _run(self, x, w, bias=None, auto_pad=None, dilations=None, group=None,
             kernel_shape=None, pads=None, strides=None):
        del auto_pad, dilations
        found = windows(x, kernel_shape, pads, strides, 0)
        batch, channels, *space = found.shape[:-len(kernel_shape)]
        taps = math.prod(kernel_shape)
        found = found.reshape(batch, group, channels // group, -1, taps)
        weight = w.reshape(group, -1, channels // group, taps)
        out = np.einsum("bgcst,goct->bgos", found, weight, optimize=True)
        if bias is not None:
            out += bias.reshape(group, -1, 1)
        return (out.reshape(batch, -1, *space),)


class MaxPool(OpRun):
    """Replaces ONNX's reference, which is slow."""

    def _run(self, x, auto_pad=None, ceil_mode=None, dilations=None,
             kernel_shape=None, pads=None, storage_order=None, strides=None):
        del auto_pad, ceil_mode, dilations, storage_order
        found = windows(x, kernel_shape, pads, strides, -np.inf)
        return (found.max(axis=(4, 5)),)


class Erf(OpRun):
    """Replaces ONNX's reference, which rounds the result to f32."""

    def _run(self, x):
        return (np.vectorize(math.erf, otypes=[np.float64])(x),)


Conv.op_domain = MaxPool.op_domain = Erf.op_domain = ""


def widen(array):
    """Returns an f32 array as f64, and other arrays unchanged."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def widen_node(node):
    """Replaces f32 by f64 in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            values = widen(numpy_helper.to_array(attribute.t))
            attribute.t.CopyFrom(numpy_helper.from_array(values))
        elif node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE


def run_float64(model, feeds):
    """Runs a copy of the model whose f32 tensors are f64.  Returns the outputs."""
    copy = type(model)()
    copy.CopyFrom(model)
    # The initializers become inputs: the evaluator then needs no copy of them.
    wide = {tensor.name: widen(numpy_helper.to_array(tensor))
            for tensor in copy.graph.initializer}
    wide.update((name, widen(value)) for name, value in feeds.items())
    del copy.graph.initializer[:]
    scales = {node.input[2] for node in copy.graph.node if node.op_type == "Resize"}
    for node in copy.graph.node:
        if node.output[0] not in scales:  # the scales of Resize stay f32
            widen_node(node)
    for value in list(copy.graph.input) + list(copy.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    evaluator = ReferenceEvaluator(copy, new_ops=[Conv, MaxPool, Erf])
    return evaluator.run(None, wide)


# ---- comparison ----


def rounding_bound(terms, products):
    """Returns the largest accepted difference relative to the largest magnitude.

    models.py explains the formula.  `terms` is the length of the longest sum, and
    `products` the number of convolutions that follow each other."""
    return 2.0**-24 * np.sqrt(terms / 6) * np.sqrt(2 * products)


def cases(small):
    """Returns names, builders, shapes of the input, and bounds."""
    side, batch = (64, 2) if small else (224, 1)
    image = (batch, 3, side, side)
    blocks = (1, 1, 1, 1) if small else (3, 4, 6, 3)
    yolo = 64 if small else 640
    return [
        ("resnet50", lambda: vision_models.resnet50(SEED, blocks), image,
         rounding_bound(4608, 4 + 3 * sum(blocks))),
        ("mobilenet_v2", lambda: vision_models.mobilenet_v2(SEED), image,
         rounding_bound(1280, 53)),
        ("mobilenet_v3", lambda: vision_models.mobilenet_v3(SEED), image,
         rounding_bound(1280, 64)),
        ("yolov8n", lambda: vision_models.yolov8n(SEED, yolo),
         (1, 3, yolo, yolo), rounding_bound(2304, 50)),
    ]


def served_operators(model):
    """Returns the number of nodes that are no constants."""
    return sum(node.op_type not in ("Constant", "Identity")
               for node in model.graph.node)


def record_differences(results, name, actual, expected, exact, bound, text=""):
    """Compares an output with those of the CPU provider and of the float64 run.

    `bound` is for two runs that both have rounding errors (models.py).  The errors of
    the float64 run are negligible, so the bound of the second comparison is smaller
    by the factor sqrt(2).  The second bound is also at most MAX_ERROR_RATIO times the
    CPU provider's error, which shows how large the rounding errors of a network are."""
    worst = relative_difference(actual, expected)
    results.record(worst <= bound, f"{name}, against ONNX Runtime",
                   f"relative difference {worst:.2g}, bound {bound:.2g}{text}")
    worst, cpu_worst = (relative_difference(values.astype(np.float64), exact)
                        for values in (actual, expected))
    bound = min(bound / np.sqrt(2), MAX_ERROR_RATIO * cpu_worst)
    results.record(worst <= bound, f"{name}, against float64",
                   f"relative difference {worst:.2g}, bound {bound:.2g}, "
                   f"ONNX Runtime's own {cpu_worst:.2g}")


def compare(results, name, build, shape, bound, arguments):
    model = build()
    random = np.random.default_rng(SEED)
    feeds = {"input": random.standard_normal(shape, np.float32)}
    try:
        session = provider.session(model, arguments.device,
                                   config=provider.RECORD_ASSIGNMENT)
        start = time.perf_counter()
        (actual,) = session.run(None, feeds)
        first = time.perf_counter() - start
        start = time.perf_counter()
        session.run(None, feeds)
        again = time.perf_counter() - start
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return
    size = "x".join(map(str, shape))
    text = f"{served_operators(model)} operators, {first:.2f} s, then {again:.3f} s"
    results.record(True, f"{name}, {size}", text)
    (expected,) = provider.cpu_session(model).run(None, feeds)
    (exact,) = run_float64(model, feeds)
    # The class probabilities of YOLOv8 are compared separately: the boxes have values
    # of up to the number of pixels, which would hide errors of the probabilities.
    parts = {"": slice(None)} if name != "yolov8n" else {
        ", boxes": slice(0, 4), ", classes": slice(4, None)}
    for part, channels in parts.items():
        record_differences(
            results, f"{name}, {size}{part}", actual[:, channels],
            expected[:, channels], exact[:, channels], bound)


# ---- BERT and GPT-2 ----


def compare_bert(results, arguments):
    layers, width, vocabulary = (2, 96, 1000) if arguments.small else (
        12, 768, exported_models.BERT_VOCABULARY)
    model = exported_models.bert(layers, 1, 128, width, 12, opset=17,
                                 vocabulary=vocabulary, seed=SEED)
    feeds = exported_models.bert_inputs(1, 128, vocabulary, SEED)
    name = f"bert, {layers} layers, width {width}, 1x128"
    try:
        session = provider.session(model, arguments.device)
        (actual,) = session.run(None, feeds)
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return
    (expected,) = provider.cpu_session(model).run(None, feeds)
    (exact,) = run_float64(model, feeds)
    record_differences(results, name, actual, expected, exact,
                       language_bound(layers, width))


PROMPT, NEW_TOKENS = 5, 64


def decode(session, tokens, past, forced=None, **others):
    """Continues the tokens.  Returns the logits of each step.

    The inputs of the past have the order of the outputs after the first.  `forced`
    are the tokens that follow, or None to take the most probable ones, which are
    returned, too.  `others` are further inputs."""
    logits, taken = [], []
    names = [value.name.replace("present", "past")
             for value in session.get_outputs()[1:]]
    for step in range(NEW_TOKENS):
        feeds = dict(zip(names, past), input_ids=np.array([tokens], np.int64), **others)
        first, *past = session.run(None, feeds)
        logits.append(first[:, -1])
        token = int(first[0, -1].argmax()) if forced is None else forced[step]
        taken.append(token)
        tokens = [token]
    return np.concatenate(logits), taken


def decode_float64(model, tokens, past, **others):
    """Returns the logits of each step of decode() in float64.

    `tokens` are the prompt and the tokens that follow, without the last one.  One run
    computes the logits of all steps, because a token does not attend to later tokens.
    This run reads no past keys and values (`past` is empty), so the comparison also
    checks those that decode() passes from step to step."""
    names = [value.name.replace("present", "past") for value in model.graph.output[1:]]
    feeds = dict(zip(names, past), input_ids=np.array([tokens], np.int64), **others)
    return run_float64(model, feeds)[0][0, PROMPT - 1:]


def compare_gpt2(results, arguments):
    layers, width, vocabulary = (2, 96, 1000) if arguments.small else (
        12, 768, exported_models.GPT2_VOCABULARY)
    heads = 12
    model = exported_models.gpt2(layers, width, heads, vocabulary=vocabulary, seed=SEED)
    random = np.random.default_rng(SEED)
    prompt = random.integers(0, vocabulary, PROMPT).tolist()
    empty = [np.zeros((2, 1, heads, 0, width // heads), np.float32)] * layers
    reference = provider.cpu_session(model, optimize=True)
    expected, tokens = decode(reference, prompt, empty)
    name = f"gpt2, {layers} layers, width {width}, {NEW_TOKENS} tokens"
    try:
        session = provider.session(model, arguments.device)
        start = time.perf_counter()
        actual, _ = decode(session, prompt, empty, tokens)
        seconds = time.perf_counter() - start
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return
    exact = decode_float64(model, prompt + tokens[:-1], empty)
    record_differences(results, name, actual, expected, exact,
                       language_bound(layers, width),
                       f", {NEW_TOKENS / seconds:.1f} tokens/s")


# ---- Whisper ----


def compare_whisper(results, arguments):
    small = arguments.small
    layers, width, frames = (2, 96, 100) if small else (
        whisper_models.LAYERS, whisper_models.WIDTH, whisper_models.FRAMES)
    vocabulary = 1000 if small else whisper_models.VOCABULARY
    heads = whisper_models.HEADS
    encoder, decoder = whisper_models.whisper(layers, width, heads, vocabulary, frames,
                                              SEED)
    random = np.random.default_rng(SEED)
    shape = (1, whisper_models.MELS, frames)
    feeds = {"input_features": random.standard_normal(shape, np.float32)}
    prompt = random.integers(0, vocabulary, PROMPT).tolist()
    empty = [np.zeros((1, heads, 0, width // heads), np.float32)] * (2 * layers)
    (states,) = provider.cpu_session(encoder).run(None, feeds)
    expected, tokens = decode(provider.cpu_session(decoder, optimize=True), prompt,
                              empty, encoder_hidden_states=states)
    name = f"whisper, {layers} layers, width {width}"
    try:
        (actual_states,) = provider.session(encoder, arguments.device).run(None, feeds)
        session = provider.session(decoder, arguments.device)
        start = time.perf_counter()
        actual, _ = decode(session, prompt, empty, tokens, encoder_hidden_states=states)
        seconds = time.perf_counter() - start
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return
    bound = language_bound(layers, width)
    (exact,) = run_float64(encoder, feeds)
    record_differences(results, f"{name}, encoder, {frames} frames", actual_states,
                       states, exact, bound)
    exact = decode_float64(decoder, prompt + tokens[:-1], empty,
                           encoder_hidden_states=states)
    record_differences(results, f"{name}, decoder, {NEW_TOKENS} tokens", actual,
                       expected, exact, bound,
                       f", {NEW_TOKENS / seconds:.1f} tokens/s")


def parse_arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    provider.add_device_argument(parser)
    parser.add_argument("--small", action="store_true",
                        help="small images, and one block per stage of ResNet-50")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="run only the networks whose name contains TEXT")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    results = Results()
    print(f"{provider.versions()}, device {arguments.device}, seed {SEED}")
    small_models.keep_device_open(arguments.device)
    for name, build, shape, bound in cases(arguments.small):
        if arguments.only in name:
            compare(results, name, build, shape, bound, arguments)
    if arguments.only in "bert":
        compare_bert(results, arguments)
    if arguments.only in "gpt2":
        compare_gpt2(results, arguments)
    if arguments.only in "whisper":
        compare_whisper(results, arguments)
    print(f"{results.passed} passed, {results.failed} failed, "
          f"{results.skipped} skipped")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
