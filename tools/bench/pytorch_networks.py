# SPDX-License-Identifier: Apache-2.0
"""The networks of the suite "networks" (tools/bench/network_models.h) in PyTorch.

They have the layers, the sizes and the kinds of inputs of the C files
network_classifiers.c, network_yolo.c and network_language.c.  Batch norms are folded
into convolutions, and one linear layer computes queries, keys and values.  The weights
are random, and differ from those of the C files."""

import torch
from torch import nn
from torch.nn import functional as f


def words(row):
    return row["detail"].split()


def past_tokens(row):
    """Returns the number of earlier tokens whose keys and values are given."""
    return next((int(w[4:]) for w in words(row) if w.startswith("past")), 0)


# ---- layers of image networks ----


def conv(inputs, outputs, window=1, stride=1, groups=1, activation=None):
    layer = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups)
    return nn.Sequential(layer, activation()) if activation else layer


def relu():
    return nn.ReLU(inplace=True)


def relu6():
    return nn.ReLU6(inplace=True)


def hardswish():
    return nn.Hardswish(inplace=True)


def silu():
    return nn.SiLU(inplace=True)


def classifier(channels):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]


# ---- ResNet-50 ----


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride, first):
        super().__init__()
        self.body = nn.Sequential(
            conv(inputs, width, activation=relu),
            conv(width, width, 3, stride, activation=relu),
            conv(width, 4 * width))
        self.shortcut = conv(inputs, 4 * width, 1, stride) if first else nn.Identity()

    def forward(self, x):
        out = self.body(x)
        out += self.shortcut(x)
        return f.relu_(out)


def resnet50(tiny):
    layers = [conv(3, 64, 7, 2, activation=relu), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate((1, 1, 1, 1) if tiny else (3, 4, 6, 3)):
        width = (8 if tiny else 64) << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Bottleneck(inputs, width, stride, block == 0))
            inputs = 4 * width
    return nn.Sequential(*layers, *classifier(inputs))


# ---- MobileNet ----

# Expansion, channels, blocks and stride of the first block.
MOBILENET_V2 = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
# Window, hidden channels, channels, squeeze and excitation, activation, stride.
MOBILENET_V3 = [
    (3, 16, 16, False, relu, 1), (3, 64, 24, False, relu, 2),
    (3, 72, 24, False, relu, 1), (5, 72, 40, True, relu, 2),
    (5, 120, 40, True, relu, 1), (5, 120, 40, True, relu, 1),
    (3, 240, 80, False, hardswish, 2), (3, 200, 80, False, hardswish, 1),
    (3, 184, 80, False, hardswish, 1), (3, 184, 80, False, hardswish, 1),
    (3, 480, 112, True, hardswish, 1), (3, 672, 112, True, hardswish, 1),
    (5, 672, 160, True, hardswish, 2), (5, 960, 160, True, hardswish, 1),
    (5, 960, 160, True, hardswish, 1),
]


class Residual(nn.Module):
    """Adds the input to the output of a module, if the shapes are equal."""

    def __init__(self, adds, *layers):
        super().__init__()
        self.adds, self.body = adds, nn.Sequential(*layers)

    def forward(self, x):
        out = self.body(x)
        return out.add_(x) if self.adds else out


class SqueezeAndExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        squeezed = max(8, int(channels / 4 + 4) // 8 * 8)
        squeezed += 8 if squeezed < 0.9 * channels / 4 else 0
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), conv(channels, squeezed, activation=relu),
            conv(squeezed, channels), nn.Hardsigmoid(inplace=True))

    def forward(self, x):
        return x * self.scale(x)


def mobilenet_v2(tiny):
    layers, inputs = [conv(3, 32, 3, 2, activation=relu6)], 32
    for expansion, channels, count, first in MOBILENET_V2[:3 if tiny else None]:
        for block in range(2 if tiny else count):
            stride, hidden = first if block == 0 else 1, inputs * expansion
            body = [conv(inputs, hidden, activation=relu6)] if expansion > 1 else []
            body += [conv(hidden, hidden, 3, stride, hidden, relu6),
                     conv(hidden, channels)]
            layers.append(Residual(stride == 1 and inputs == channels, *body))
            inputs = channels
    layers.append(conv(inputs, 1280, activation=relu6))
    return nn.Sequential(*layers, *classifier(1280))


def mobilenet_v3(tiny):
    layers, inputs = [conv(3, 16, 3, 2, activation=hardswish)], 16
    for row in MOBILENET_V3[:7 if tiny else None]:
        window, hidden, channels, squeezes, activation, stride = row
        body = []
        if hidden != inputs:
            body.append(conv(inputs, hidden, activation=activation))
        body.append(conv(hidden, hidden, window, stride, hidden, activation))
        if squeezes:
            body.append(SqueezeAndExcite(hidden))
        body.append(conv(hidden, channels))
        layers.append(Residual(stride == 1 and inputs == channels, *body))
        inputs = channels
    layers += [conv(inputs, 960, activation=hardswish), nn.AdaptiveAvgPool2d(1),
               nn.Flatten(), nn.Linear(960, 1280), hardswish(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers)


# ---- YOLOv8n ----

CLASSES, BINS = 80, 16
LEVEL_STRIDES = (8, 16, 32)


def conv_silu(inputs, outputs, window=1, stride=1):
    return conv(inputs, outputs, window, stride, activation=silu)


class C2f(nn.Module):
    """A block whose intermediate results are all concatenated."""

    def __init__(self, inputs, outputs, count, shortcut):
        super().__init__()
        half = outputs // 2
        self.shortcut = shortcut
        self.first = conv_silu(inputs, outputs)
        self.blocks = nn.ModuleList(
            nn.Sequential(conv_silu(half, half, 3), conv_silu(half, half, 3))
            for _ in range(count))
        self.last = conv_silu((2 + count) * half, outputs)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            out = block(parts[-1])
            parts.append(out + parts[-1] if self.shortcut else out)
        return self.last(torch.cat(parts, 1))


class PyramidPooling(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = conv_silu(channels, channels // 2)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.last = conv_silu(2 * channels, channels)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detect(nn.Module):
    """The head."""

    def __init__(self, channels, side):
        super().__init__()
        self.boxes = nn.ModuleList(
            nn.Sequential(conv_silu(c, 64, 3), conv_silu(64, 64, 3),
                          conv(64, 4 * BINS)) for c in channels)
        self.kinds = nn.ModuleList(
            nn.Sequential(conv_silu(c, CLASSES, 3), conv_silu(CLASSES, CLASSES, 3),
                          conv(CLASSES, CLASSES)) for c in channels)
        sides = [side // stride for stride in LEVEL_STRIDES]
        grids = [torch.stack(torch.meshgrid(torch.arange(s), torch.arange(s),
                                            indexing="xy")).view(2, -1) for s in sides]
        strides = torch.cat([torch.full((s * s,), float(stride))
                             for s, stride in zip(sides, LEVEL_STRIDES)])
        self.register_buffer("centres", torch.cat(grids, 1)[None] + 0.5)
        self.register_buffer("strides", strides[None])
        self.register_buffer(
            "bins", torch.arange(BINS, dtype=torch.float32).view(1, BINS, 1, 1))

    def forward(self, maps):
        levels = [torch.cat((box(x), kind(x)), 1).flatten(2)
                  for x, box, kind in zip(maps, self.boxes, self.kinds)]
        box, kind = torch.cat(levels, 2).split((4 * BINS, CLASSES), 1)
        box = box.reshape(1, 4, BINS, -1).transpose(1, 2).softmax(1)
        low, high = f.conv2d(box, self.bins).view(1, 4, -1).chunk(2, 1)
        low, high = self.centres - low, self.centres + high
        box = torch.cat(((low + high) / 2, high - low), 1) * self.strides
        return torch.cat((box, kind.sigmoid()), 1)


class Yolov8n(nn.Module):
    def __init__(self, side, tiny):
        super().__init__()
        a, b, c, d, e = (n // (4 if tiny else 1) for n in (16, 32, 64, 128, 256))
        twice = 1 if tiny else 2
        self.stem = nn.Sequential(conv_silu(3, a, 3, 2), conv_silu(a, b, 3, 2),
                                  C2f(b, b, 1, True))
        self.fine = nn.Sequential(conv_silu(b, c, 3, 2), C2f(c, c, twice, True))
        self.middle = nn.Sequential(conv_silu(c, d, 3, 2), C2f(d, d, twice, True))
        self.coarse = nn.Sequential(conv_silu(d, e, 3, 2), C2f(e, e, 1, True),
                                    PyramidPooling(e))
        self.middle_up, self.fine_up = C2f(e + d, d, 1, False), C2f(d + c, c, 1, False)
        self.fine_down, self.middle_down = conv_silu(c, c, 3, 2), conv_silu(d, d, 3, 2)
        self.middle_last = C2f(c + d, d, 1, False)
        self.coarse_last = C2f(d + e, e, 1, False)
        self.detect = Detect((c, d, e), side)

    def forward(self, x):
        def upsample(x):
            return f.interpolate(x, scale_factor=2, mode="nearest")

        fine = self.fine(self.stem(x))
        middle = self.middle(fine)
        coarse = self.coarse(middle)
        middle = self.middle_up(torch.cat((upsample(coarse), middle), 1))
        fine = self.fine_up(torch.cat((upsample(middle), fine), 1))
        middle = self.middle_last(torch.cat((self.fine_down(fine), middle), 1))
        coarse = self.coarse_last(torch.cat((self.middle_down(middle), coarse), 1))
        return self.detect((fine, middle, coarse))


# ---- layers of language networks ----


class SelfAttention(nn.Module):
    """Attention to the input itself and, with `past`, to earlier tokens."""

    def __init__(self, width, heads, batch=1, past=0, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        shape = (2, batch, heads, past, width // heads)
        self.register_buffer("past", torch.randn(shape) if past else None)

    def forward(self, x, mask=None):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, 2))
        causal = self.causal
        if self.past is not None:
            k, v = torch.cat((self.past[0], k), 2), torch.cat((self.past[1], v), 2)
            causal = False  # there is only one new token
        out = f.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        # The keys and values of all tokens are outputs of the network.
        return self.out(out.transpose(1, 2).flatten(2)), (k, v)


class CrossAttention(nn.Module):
    """Attention to the states of an encoder."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, states):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for part in (self.q(x), *self.kv(states).chunk(2, 2)))
        out = f.scaled_dot_product_attention(q, k, v)
        return self.out(out.transpose(1, 2).flatten(2))


def feed_forward(width, approximate="none"):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate),
                         nn.Linear(4 * width, width))


class Block(nn.Module):
    """A layer whose norms come before attention and the linear layers."""

    def __init__(self, width, attention, approximate="none", cross=None):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width, 1e-5)
                                   for _ in range(3 if cross else 2))
        self.attention, self.cross = attention, cross
        self.feed_forward = feed_forward(width, approximate)

    def forward(self, x, states=None):
        out, present = self.attention(self.norms[0](x))
        x = x + out
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), states)
        return x + self.feed_forward(self.norms[-1](x)), present


# ---- BERT ----


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.feed_forward = feed_forward(width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, 1e-12) for _ in range(2))

    def forward(self, x, mask):
        x = self.norms[0](x + self.attention(x, mask)[0])
        return self.norms[1](x + self.feed_forward(x))


class Bert(nn.Module):
    def __init__(self, row, tiny):
        super().__init__()
        layers, width, vocabulary = (2, 192, 500) if tiny else (12, 768, 30522)
        self.words = nn.Embedding(vocabulary, width)
        self.types = nn.Embedding(2, width)
        self.positions = nn.Parameter(torch.randn(row["shape"][1], width))
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(BertLayer(width, 12) for _ in range(layers))

    def forward(self, ids, mask, types):
        mask = mask.bool()[:, None, None]
        x = self.norm(self.words(ids) + self.types(types) + self.positions)
        for layer in self.layers:
            x = layer(x, mask)
        return x


# ---- GPT-2 and Whisper ----


class Decoder(nn.Module):
    """GPT-2 or, with `cross`, the decoder of Whisper tiny."""

    def __init__(self, row, tiny, cross):
        super().__init__()
        layers, heads, width, vocabulary = \
            (4, 6, 384, 51865) if cross else (12, 12, 768, 50257)
        if tiny:
            layers, width, vocabulary = 2, 16 * heads, 500
        batch, tokens = row["shape"]
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(tokens, width))
        self.layers = nn.ModuleList(
            Block(width, SelfAttention(width, heads, batch, past_tokens(row), True),
                  "none" if cross else "tanh",
                  CrossAttention(width, heads) if cross else None)
            for _ in range(layers))
        self.norm = nn.LayerNorm(width, 1e-5)
        self.logits = nn.Linear(width, vocabulary, bias=False)
        states = torch.randn(batch, 12 if tiny else 1500, width) if cross else None
        self.register_buffer("states", states)

    def forward(self, ids):
        x, presents = self.words(ids) + self.positions, []
        for layer in self.layers:
            x, present = layer(x, self.states)
            presents.append(present)
        return self.logits(self.norm(x)), presents


class WhisperEncoder(nn.Module):
    def __init__(self, row, tiny):
        super().__init__()
        layers, heads, width = (2, 6, 96) if tiny else (4, 6, 384)
        _, features, frames = row["shape"]
        self.convs = nn.Sequential(
            nn.Conv1d(features, width, 3, 1, 1), nn.GELU(),
            nn.Conv1d(width, width, 3, 2, 1), nn.GELU())
        self.positions = nn.Parameter(torch.randn((frames + 1) // 2, width))
        self.layers = nn.ModuleList(Block(width, SelfAttention(width, heads))
                                    for _ in range(layers))
        self.norm = nn.LayerNorm(width, 1e-5)

    def forward(self, features):
        x = self.convs(features).transpose(1, 2) + self.positions
        for layer in self.layers:
            x, _ = layer(x)
        return self.norm(x)


# ---- runs ----


def build(row):
    """Returns the network of a row, and its inputs."""
    name, shape, tiny = row["op"], row["shape"], "tiny" in words(row)
    if name == "bert":
        network = Bert(row, tiny)
        mask = torch.randint(2, shape)
        mask[:, 0] = 1  # SDPA gives NaN if all keys are masked
        return network, (torch.randint(network.words.num_embeddings, shape), mask,
                         torch.randint(2, shape))
    if name in ("gpt2", "whisper_decoder"):
        network = Decoder(row, tiny, name == "whisper_decoder")
        return network, (torch.randint(network.words.num_embeddings, shape),)
    builders = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2,
                "mobilenet_v3": mobilenet_v3}
    if name in builders:
        network = builders[name](tiny)
    elif name == "yolov8n":
        network = Yolov8n(shape[2], tiny)
    else:
        network = WhisperEncoder(row, tiny)
    return network, (torch.randn(shape),)


def network_run(row, device):
    """Returns a function that runs the network of a row on data on the device."""
    with torch.inference_mode():
        network, inputs = build(row)
        network = network.eval().to(device)
        inputs = [x.to(device) for x in inputs]

    def run():
        with torch.inference_mode():
            return network(*inputs)

    return run
