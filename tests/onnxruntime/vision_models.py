# SPDX-License-Identifier: Apache-2.0
"""Builds image networks in the graph shape that PyTorch's ONNX exporter writes.

The nodes are those of torch.onnx.export (TorchScript exporter, evaluation mode) for
torchvision's ResNet-50 and MobileNet v3 (large), and for the detection network
YOLOv8n: batch norms are folded into convolutions.  The weights are random, with a
variance that keeps the magnitude of activations.
"""

import numpy as np
from onnx import TensorProto

from exported_models import GraphBuilder, tensor_info

OPSET = 17


class ImageBuilder(GraphBuilder):
    """Adds layers to a graph.  `channels` maps values to their channels."""

    def __init__(self, seed):
        super().__init__(OPSET)
        self.random = np.random.default_rng(seed)
        self.channels = {}
        self.layers = 0

    def input(self, name, channels):
        self.channels[name] = channels
        return name

    def conv(self, x, outputs, window=1, stride=1, groups=1):
        """Adds a convolution whose padding keeps the size of an image."""
        inputs = self.channels[x] // groups
        terms = inputs * window * window
        shape = (outputs, inputs, window, window)
        weight = self.random.standard_normal(shape, np.float32)
        weight *= np.float32(np.sqrt(1.7 / terms))
        bias = 0.1 * self.random.standard_normal(outputs, np.float32)
        name = f"conv{self.layers}"
        self.layers += 1
        padding = window // 2
        out = self.add(
            "Conv", x, self.weight(f"{name}.weight", weight),
            self.weight(f"{name}.bias", bias), dilations=[1, 1], group=groups,
            kernel_shape=[window, window], pads=[padding] * 4,
            strides=[stride, stride],
        )
        self.channels[out] = outputs
        return out

    def op(self, op_type, x, *others, **attributes):
        """Adds a node that keeps the channels of its first input."""
        out = self.add(op_type, x, *others, **attributes)
        self.channels[out] = self.channels[x]
        return out

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def concat(self, *values):
        out = self.add("Concat", *values, axis=1)
        self.channels[out] = sum(self.channels[value] for value in values)
        return out

    def max_pool(self, x, window, stride, padding):
        return self.op(
            "MaxPool", x, ceil_mode=0, dilations=[1, 1],
            kernel_shape=[window, window], pads=[padding] * 4,
            strides=[stride, stride],
        )

    def linear(self, x, inputs, outputs):
        shape = (outputs, inputs)
        weight = self.random.standard_normal(shape, np.float32)
        weight /= np.float32(np.sqrt(inputs))
        bias = 0.1 * self.random.standard_normal(outputs, np.float32)
        name = f"linear{self.layers}"
        self.layers += 1
        return self.add(
            "Gemm", x, self.weight(f"{name}.weight", weight),
            self.weight(f"{name}.bias", bias), alpha=1.0, beta=1.0, transB=1,
        )

    def model(self, name, output, shape):
        """Names the output and returns the model."""
        self.add("Identity", output, outputs=["output"])
        return self.finish(
            name,
            [tensor_info("input", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
            [tensor_info("output", TensorProto.FLOAT, shape)],
        )


# ---- ResNet-50 ----


def bottleneck(b, x, width, stride, first):
    out = b.op("Relu", b.conv(x, width))
    out = b.op("Relu", b.conv(out, width, 3, stride))
    out = b.conv(out, 4 * width)
    shortcut = b.conv(x, 4 * width, 1, stride) if first else x
    return b.op("Relu", b.op("Add", out, shortcut))


def resnet50(seed=0, blocks=(3, 4, 6, 3)):
    """`blocks` are the numbers of blocks of the four stages."""
    b = ImageBuilder(seed)
    x = b.op("Relu", b.conv(b.input("input", 3), 64, 7, 2))
    x = b.max_pool(x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        for index in range(count):
            stride = 2 if stage > 0 and index == 0 else 1
            x = bottleneck(b, x, 64 << stage, stride, index == 0)
    flat = b.add("Flatten", b.op("GlobalAveragePool", x), axis=1)
    return b.model("resnet50", b.linear(flat, 2048, 1000), ["batch", 1000])


# ---- MobileNet ----

# Window, hidden channels, channels, squeeze and excitation, activation, stride.
MOBILENET_V3 = [
    (3, 16, 16, False, "Relu", 1), (3, 64, 24, False, "Relu", 2),
    (3, 72, 24, False, "Relu", 1), (5, 72, 40, True, "Relu", 2),
    (5, 120, 40, True, "Relu", 1), (5, 120, 40, True, "Relu", 1),
    (3, 240, 80, False, "HardSwish", 2), (3, 200, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1), (3, 184, 80, False, "HardSwish", 1),
    (3, 480, 112, True, "HardSwish", 1), (3, 672, 112, True, "HardSwish", 1),
    (5, 672, 160, True, "HardSwish", 2), (5, 960, 160, True, "HardSwish", 1),
    (5, 960, 160, True, "HardSwish", 1),
]


def divisible_by_8(number):
    """Rounds to a multiple of 8, but not below 0.9 of the number."""
    rounded = max(8, int(number + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * number else rounded


def squeeze_and_excite(b, x):
    channels = b.channels[x]
    scale = b.op("GlobalAveragePool", x)
    scale = b.op("Relu", b.conv(scale, divisible_by_8(channels / 4)))
    scale = b.op("HardSigmoid", b.conv(scale, channels), alpha=1 / 6)
    return b.op("Mul", scale, x)


def mobilenet_v3(seed=0):
    b = ImageBuilder(seed)
    x = b.op("HardSwish", b.conv(b.input("input", 3), 16, 3, 2))
    for window, hidden, channels, squeezes, activation, stride in MOBILENET_V3:
        inputs = b.channels[x]
        out = b.op(activation, b.conv(x, hidden)) if hidden != inputs else x
        out = b.conv(out, hidden, window, stride, groups=hidden)
        out = b.op(activation, out)
        out = squeeze_and_excite(b, out) if squeezes else out
        out = b.conv(out, channels)
        adds = stride == 1 and inputs == channels
        x = b.op("Add", out, x) if adds else out
    x = b.op("HardSwish", b.conv(x, 960))
    pooled = b.op("GlobalAveragePool", x)
    flat = b.add("Flatten", pooled, axis=1)
    hidden = b.add("HardSwish", b.linear(flat, 960, 1280))
    return b.model("mobilenet_v3", b.linear(hidden, 1280, 1000), ["batch", 1000])


# ---- YOLOv8n ----

CLASSES, BINS = 80, 16
STRIDES = (8, 16, 32)


def conv_silu(b, x, outputs, window=1, stride=1):
    return b.silu(b.conv(x, outputs, window, stride))


def split_channels(b, x, sizes):
    parts = [f"{x}_part{index}" for index in range(len(sizes))]
    b.add("Split", x, b.constant(sizes), outputs=parts, axis=1)
    b.channels.update(zip(parts, sizes))
    return parts


def c2f(b, x, outputs, count, shortcut):
    """Adds a block whose intermediate results are all concatenated."""
    half = outputs // 2
    parts = split_channels(b, conv_silu(b, x, outputs), [half, half])
    for _ in range(count):
        out = conv_silu(b, conv_silu(b, parts[-1], half, 3), half, 3)
        parts.append(b.op("Add", parts[-1], out) if shortcut else out)
    return conv_silu(b, b.concat(*parts), outputs)


def pyramid_pooling(b, x, outputs):
    parts = [conv_silu(b, x, b.channels[x] // 2)]
    for _ in range(3):
        parts.append(b.max_pool(parts[-1], 5, 1, 2))
    return conv_silu(b, b.concat(*parts), outputs)


def upsample(b, x):
    scales = b.constant([1, 1, 2, 2], np.float32)
    return b.op(
        "Resize", x, "", scales, coordinate_transformation_mode="asymmetric",
        cubic_coeff_a=-0.75, mode="nearest", nearest_mode="floor",
    )


def detect(b, maps, sides):
    """Adds the head.  The number of boxes is fixed, as in an export."""
    flat = []
    for x in maps:
        box = conv_silu(b, conv_silu(b, x, 64, 3), 64, 3)
        kind = conv_silu(b, conv_silu(b, x, CLASSES, 3), CLASSES, 3)
        both = b.concat(b.conv(box, 4 * BINS), b.conv(kind, CLASSES))
        shape = b.constant([1, 4 * BINS + CLASSES, -1])
        flat.append(b.add("Reshape", both, shape))
    boxes = sum(side * side for side in sides)
    every = b.add("Concat", *flat, axis=2)
    box, kind = split_channels(b, every, [4 * BINS, CLASSES])
    box = b.add("Reshape", box, b.constant([1, 4, BINS, boxes]))
    box = b.add("Softmax", b.add("Transpose", box, perm=[0, 2, 1, 3]), axis=1)
    bins = np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1)
    box = b.add("Conv", box, b.weight("bins", bins), dilations=[1, 1], group=1,
                kernel_shape=[1, 1], pads=[0] * 4, strides=[1, 1])
    box = b.add("Reshape", box, b.constant([1, 4, boxes]))
    low, high = split_channels(b, box, [2, 2])
    centres = np.concatenate([
        np.stack(np.meshgrid(np.arange(side), np.arange(side)), 0).reshape(2, -1)
        for side in sides], 1) + 0.5
    anchors = b.constant(centres[None], np.float32)
    strides = b.constant(
        np.repeat(STRIDES, [side * side for side in sides])[None], np.float32)
    low, high = b.add("Sub", anchors, low), b.add("Add", anchors, high)
    centre = b.add("Div", b.add("Add", low, high), b.scalar(2))
    size = b.add("Sub", high, low)
    box = b.add("Mul", b.add("Concat", centre, size, axis=1), strides)
    return b.add("Concat", box, b.add("Sigmoid", kind), axis=1), boxes


def yolov8n(seed=0, side=640):
    """The input is one image of side x side, a multiple of 32."""
    b = ImageBuilder(seed)
    x = conv_silu(b, b.input("input", 3), 16, 3, 2)
    x = c2f(b, conv_silu(b, x, 32, 3, 2), 32, 1, True)
    fine = c2f(b, conv_silu(b, x, 64, 3, 2), 64, 2, True)
    middle = c2f(b, conv_silu(b, fine, 128, 3, 2), 128, 2, True)
    coarse = c2f(b, conv_silu(b, middle, 256, 3, 2), 256, 1, True)
    coarse = pyramid_pooling(b, coarse, 256)
    middle = c2f(b, b.concat(upsample(b, coarse), middle), 128, 1, False)
    fine = c2f(b, b.concat(upsample(b, middle), fine), 64, 1, False)
    down = conv_silu(b, fine, 64, 3, 2)
    middle = c2f(b, b.concat(down, middle), 128, 1, False)
    down = conv_silu(b, middle, 128, 3, 2)
    coarse = c2f(b, b.concat(down, coarse), 256, 1, False)
    sides = [side // stride for stride in STRIDES]
    output, boxes = detect(b, (fine, middle, coarse), sides)
    return b.model("yolov8n", output, [1, 4 + CLASSES, boxes])
