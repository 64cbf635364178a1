# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyTorch on the CPU, with as much of it as the rows of
earlier.json and later.json need; relu of 2000 elements fails."""

import contextlib
import types

__version__ = "0.stand-in"
float32 = "float32"
nn = types.SimpleNamespace(functional=types.SimpleNamespace(
    elu=None, silu=None, gelu=None, conv2d=None))
sigmoid = tanh = exp = clone = None
cuda = types.SimpleNamespace(is_available=lambda: False)
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
    return x + y


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


def relu(x):
    if len(x) == 2000:
        raise RuntimeError("of 2000 elements there is none")
    return Vector(max(a, 0) for a in x)
