#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares published, trained models on Tandem's execution provider with other runs.

Python packages hold the models; without a package, its models are skipped:

  magika                 the type of a file from its bytes
  rapidocr-onnxruntime   PP-OCRv4: finds text in images, reads it, and tells its
                         direction

The provider must take every node.  The reference is ONNX Runtime's CPU provider.
magika must also name the types of three files of Tandem's source.

Environment: TANDEM_ONNXRUNTIME_PROVIDER and TANDEM_PLUGIN_PATH; see provider.py.
"""

import argparse
import importlib.util
import json
import pathlib
import sys

import numpy as np
import onnx

import provider
import small_models
from models import Results

SEED = 2
# All results are probabilities.  Those of ONNX Runtime with and without graph
# optimizations differ by up to 4.3e-5 (PP-OCRv4's detection, onnxruntime 1.32).
BOUND = 1e-4  # of the absolute difference

# https://github.com/google/magika, licence Apache-2.0
MAGIKA = "magika", "models/standard_v3_3/model.onnx"
# https://github.com/RapidAI/RapidOCR, licence Apache-2.0; the models are those of
# PaddleOCR, licence Apache-2.0
OCR = "rapidocr_onnxruntime", "models/"
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

# Files below the top directory, and their types
FILES = {"tests/onnxruntime/networks.py": "python", "README.md": "markdown",
         "src/opencl/plugin.c": "c"}


def package_file(package, path):
    """Returns the path of a file in an installed package, or None."""
    found = importlib.util.find_spec(package)
    if found is None:
        return None
    return pathlib.Path(found.submodule_search_locations[0]) / path


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


def compare(results, name, path, feeds, device):
    """Returns the model's first output, or None if it did not run."""
    model = onnx.load(path)
    try:
        actual = provider.session(model, device).run(None, feeds)
    except Exception as error:  # onnxruntime's errors have no common base class
        results.record(False, name, str(error))
        return None
    expected = provider.cpu_session(model).run(None, feeds)
    worst = max(float(np.abs(x - y).max()) for x, y in zip(actual, expected))
    results.record(worst <= BOUND, name,
                   f"difference {worst:.2g}, bound {BOUND:.2g}, "
                   f"largest probability {actual[0].max():.3f}")
    return actual[0]


def compare_magika(results, device):
    path = package_file(*MAGIKA)
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
    output = compare(results, "magika", path, feeds, device)
    if output is None:
        return
    labels = config["target_labels_space"]
    for (file, expected), row in zip(FILES.items(), output):
        label = labels[row.argmax()]
        results.record(label == expected, f"magika, {file}",
                       f"{label}, probability {row.max():.3f}")


def read_word(model, output):
    """Returns the text of the most probable classes without repetitions.

    Class 0 separates equal letters."""
    entries = {entry.key: entry.value for entry in model.metadata_props}
    characters = [""] + entries["character"].splitlines() + [" "]
    classes = output[0].argmax(axis=1)
    letters = [characters[b] for a, b in zip([0, *classes], classes) if a != b]
    return "".join(letters).strip()


def compare_ocr(results, arguments):
    def run(name, shape):
        path = package_file(OCR[0], OCR[1] + name)
        output = compare(results, name, path, {"x": text_image(shape)},
                         arguments.device)
        return onnx.load(path), output

    run(DIRECTION, (2, 3, 48, 192))
    if arguments.small:
        return
    model, output = run(READING, (1, 3, 48, 320))
    if output is not None:
        word = read_word(model, output)
        results.record(word == WORD, f"{READING}, word", word)
    _, output = run(DETECTION, (1, 3, 96, 224))
    if output is not None:
        results.record(output.max() > 0.9, f"{DETECTION}, text is found",
                       f"probability {output.max():.3f}")


def parse_arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    provider.add_device_argument(parser)
    parser.add_argument("--small", action="store_true",
                        help="run only the smallest model of rapidocr-onnxruntime")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    results = Results()
    print(f"{provider.versions()}, device {arguments.device}, seed {SEED}")
    small_models.keep_device_open(arguments.device)
    tests = [(MAGIKA[0], lambda: compare_magika(results, arguments.device)),
             (OCR[0], lambda: compare_ocr(results, arguments))]
    for package, run in tests:
        if importlib.util.find_spec(package) is None:
            results.skipped += 1
            print(f"skipped {package}: the Python package is not installed")
        else:
            run()
    print(f"{results.passed} passed, {results.failed} failed, "
          f"{results.skipped} skipped")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
