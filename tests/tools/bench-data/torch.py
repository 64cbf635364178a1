# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyTorch on the CPU, with as much of it as the rows of
earlier.json and later.json need; relu of 2000 elements fails.

With STAND_IN_CUDA set, it also pretends to have a GPU and CUDA graphs. Then relu fails
if cuDNN does not search, and add prints how many additions a captured graph has."""

import contextlib
import os
import sys
import types

__version__ = "0.stand-in"
float32 = "float32"
nn = types.SimpleNamespace(functional=types.SimpleNamespace(
    elu=None, silu=None, gelu=None, conv2d=None))
sigmoid = tanh = exp = clone = None


class Graph:
    """A CUDA graph, which only counts."""

    additions = 0
    replay = lambda self: None


class Capture:
    """The context in which a graph is captured."""

    graph = None

    def __init__(self, graph):
        self.new = graph

    def __enter__(self):
        Capture.graph = self.new

    def __exit__(self, *error):
        print(f"stand-in: a graph of {self.new.additions} additions",
              file=sys.stderr)
        Capture.graph = None


Stream = lambda: types.SimpleNamespace(wait_stream=lambda other: None)
cuda = types.SimpleNamespace(
    is_available=lambda: "STAND_IN_CUDA" in os.environ,
    get_device_name=lambda: "GPU", synchronize=lambda: None,
    memory_reserved=lambda: 0, Stream=Stream, current_stream=Stream,
    stream=lambda stream: contextlib.nullcontext(), CUDAGraph=Graph, graph=Capture)
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()),
    cudnn=types.SimpleNamespace())
no_grad = contextlib.nullcontext


class Vector(list):
    """Of floats."""

    def __add__(self, other):
        return Vector(a + b for a, b in zip(self, other)) \
            if isinstance(other, list) else Vector(a + other for a in self)

    def to(self, device):
        return Vector(self)

    cpu = lambda self: self


def rand(count, device=None):
    return Vector([0.25] * count)


def add(x, y):
    if Capture.graph is not None:
        Capture.graph.additions += 1
    return x + y


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


def relu(x):
    if cuda.is_available() and not backends.cudnn.benchmark:
        raise RuntimeError("cuDNN does not search")
    if len(x) == 2000:
        raise RuntimeError("of 2000 elements there is none")
    return Vector(max(a, 0) for a in x)
