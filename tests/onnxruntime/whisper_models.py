# SPDX-License-Identifier: Apache-2.0
"""Builds Whisper's encoder and decoder in the graph shape of PyTorch's exporter.

The nodes are those of torch.onnx.export (TorchScript exporter) for the Hugging Face
class WhisperForConditionalGeneration.  The decoder reads the keys and values of
earlier tokens, and the states of the encoder.  The weights are random.
"""

import numpy as np
from onnx import TensorProto

from exported_models import (FLOAT_MIN, Exporter, linear_weights, norm_weights,
                             tensor_info)

OPSET = 17
EPSILON = 1e-5
# The sizes of "tiny" (Radford et al., 2022).
MELS, FRAMES, VOCABULARY, MAX_TOKENS = 80, 3000, 51865, 448
WIDTH, HEADS, LAYERS = 384, 6, 4


def whisper_weights(width, layers, vocabulary, frames, seed):
    """Returns random weights by the names of the state dict."""
    random = np.random.default_rng(seed)
    weights = {
        "decoder.tokens": random.standard_normal((vocabulary, width), np.float32),
        "decoder.positions": random.standard_normal((MAX_TOKENS, width), np.float32),
        "encoder.positions": random.standard_normal((frames // 2, width), np.float32),
    }
    for name, inputs in (("encoder.conv1", MELS), ("encoder.conv2", width)):
        linear_weights(weights, name, (width, 3 * inputs), random)
        shape = (width, inputs, 3)
        weights[f"{name}.weight"] = weights[f"{name}.weight"].reshape(shape)
    for part in ("encoder", "decoder"):
        for layer in (f"{part}.layers.{index}" for index in range(layers)):
            kinds = ["self_attn"] + ["encoder_attn"] * (part == "decoder")
            for kind in kinds:
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear_weights(weights, f"{layer}.{kind}.{name}", (width, width),
                                   random)
                norm_weights(weights, f"{layer}.{kind}_layer_norm", width, random)
            linear_weights(weights, f"{layer}.fc1", (4 * width, width), random)
            linear_weights(weights, f"{layer}.fc2", (width, 4 * width), random)
            norm_weights(weights, f"{layer}.final_layer_norm", width, random)
        norm_weights(weights, f"{part}.layer_norm", width, random)
    return weights


class WhisperExporter(Exporter):
    """Writes the nodes of an encoder or a decoder."""

    def linear(self, value, name, bias=True):
        weight = self.weights[f"{name}.weight"]
        weight = self.weight(f"onnx::MatMul_{name}", weight.T)
        product = self.add("MatMul", value, weight)
        if not bias:
            return product
        return self.add("Add", self.parameter(f"{name}.bias"), product)

    def gelu(self, value):
        erf = self.add("Erf", self.add("Div", value, self.scalar(np.sqrt(2))))
        product = self.add("Mul", value, self.add("Add", erf, self.scalar(1)))
        return self.add("Mul", product, self.scalar(0.5))

    def conv(self, value, name, stride):
        out = self.add(
            "Conv", value, self.parameter(f"{name}.weight"),
            self.parameter(f"{name}.bias"), dilations=[1], group=1, kernel_shape=[3],
            pads=[1, 1], strides=[stride],
        )
        return self.gelu(out)

    def heads_of(self, value):
        return self.head_split(value, [0, 2, 1, 3])

    def attention(self, value, name, source=None, past=None, mask=None):
        """Attention to `source`, or to `value` and the past of the names "key" and
        "value" with this suffix."""
        source = source or value
        scale = self.scalar((self.width // self.heads) ** -0.5)
        query = self.add("Mul", self.linear(value, f"{name}.q_proj"), scale)
        query = self.heads_of(query)
        key = self.heads_of(self.linear(source, f"{name}.k_proj", bias=False))
        values = self.heads_of(self.linear(source, f"{name}.v_proj"))
        if past is not None:
            key = self.add("Concat", f"past_key.{past}", key, axis=2,
                           outputs=[f"present_key.{past}"])
            values = self.add("Concat", f"past_value.{past}", values, axis=2,
                              outputs=[f"present_value.{past}"])
        key = self.add("Transpose", key, perm=[0, 1, 3, 2])
        scores = self.add("MatMul", query, key)
        if mask is not None:
            scores = self.add("Add", scores, mask)
        context = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
        context = self.add("Transpose", context, perm=[0, 2, 1, 3])
        context = self.reshape(context, [self.width])
        return self.linear(context, f"{name}.out_proj")

    def residual(self, value, name, function):
        """Adds a part of a layer, which begins with a norm."""
        normal = self.layer_norm(value, f"{name}_layer_norm")
        return self.add("Add", value, function(normal))

    def feed_forward(self, value, layer):
        hidden = self.gelu(self.linear(value, f"{layer}.fc1"))
        return self.linear(hidden, f"{layer}.fc2")

    def encoder(self, layers, frames):
        value = self.conv("input_features", "encoder.conv1", 1)
        value = self.conv(value, "encoder.conv2", 2)
        value = self.add("Transpose", value, perm=[0, 2, 1])
        value = self.add("Add", value, self.parameter("encoder.positions"))
        for index in range(layers):
            layer = f"encoder.layers.{index}"
            self.scope = f"/{layer}"
            name = f"{layer}.self_attn"
            value = self.residual(
                value, name, lambda x, name=name: self.attention(x, name))
            value = self.residual(
                value, f"{layer}.final",
                lambda x, layer=layer: self.feed_forward(x, layer))
        self.scope = ""
        value = self.layer_norm(value, "encoder.layer_norm")
        self.nodes[-1].output[0] = "last_hidden_state"
        return self.finish(
            "whisper_encoder",
            [tensor_info("input_features", TensorProto.FLOAT,
                         ["batch", MELS, frames])],
            [tensor_info("last_hidden_state", TensorProto.FLOAT,
                         ["batch", frames // 2, self.width])],
        )

    def causal_mask(self, start, tokens):
        """Returns [tokens, start + tokens]: 0, or the lowest float."""
        end = self.add("Add", start, tokens)
        keys = self.add("Range", self.constant(0), end, self.constant(1))
        queries = self.add("Range", start, end, self.constant(1))
        hidden = self.add("Greater", self.unsqueeze(keys, 0),
                          self.unsqueeze(queries, 1))
        return self.add("Where", hidden, self.scalar(FLOAT_MIN), self.scalar(0))

    def decoder(self, layers):
        tokens = self.dimension("input_ids", 1)
        start = self.dimension("past_key.0", 2)
        end = self.add("Add", start, tokens)
        words = self.add("Gather", self.parameter("decoder.tokens"), "input_ids")
        positions = self.slice(self.parameter("decoder.positions"), start, end, 0)
        value = self.add("Add", words, positions)
        mask = self.causal_mask(start, tokens)
        for index in range(layers):
            layer = f"decoder.layers.{index}"
            self.scope = f"/{layer}"
            name = f"{layer}.self_attn"
            value = self.residual(value, name, lambda x, name=name, index=index:
                                  self.attention(x, name, past=index, mask=mask))
            name = f"{layer}.encoder_attn"
            value = self.residual(value, name, lambda x, name=name: self.attention(
                x, name, "encoder_hidden_states"))
            value = self.residual(
                value, f"{layer}.final",
                lambda x, layer=layer: self.feed_forward(x, layer))
        self.scope = ""
        value = self.layer_norm(value, "decoder.layer_norm")
        words = self.weights["decoder.tokens"] / np.float32(np.sqrt(self.width))
        self.add("MatMul", value, self.weight("proj_out", words.T),
                 outputs=["logits"])
        return self.finish("whisper_decoder", *self.decoder_interface(layers))

    def decoder_interface(self, layers):
        """Returns the inputs and the outputs of the decoder."""
        cache = ["batch", self.heads, "past", self.width // self.heads]
        total = cache[:2] + ["past + tokens"] + cache[3:]
        vocabulary = len(self.weights["decoder.tokens"])
        inputs = [
            tensor_info("input_ids", TensorProto.INT64, ["batch", "tokens"]),
            tensor_info("encoder_hidden_states", TensorProto.FLOAT,
                        ["batch", "frames", self.width]),
        ]
        outputs = [tensor_info("logits", TensorProto.FLOAT,
                               ["batch", "tokens", vocabulary])]
        for index in range(layers):
            for kind in ("key", "value"):
                inputs.append(tensor_info(f"past_{kind}.{index}", TensorProto.FLOAT,
                                          cache))
                outputs.append(tensor_info(f"present_{kind}.{index}",
                                           TensorProto.FLOAT, total))
        return inputs, outputs


def whisper(layers=LAYERS, width=WIDTH, heads=HEADS, vocabulary=VOCABULARY,
            frames=FRAMES, seed=0):
    """Returns an encoder and a decoder."""
    weights = whisper_weights(width, layers, vocabulary, frames, seed)
    encoder, decoder = (WhisperExporter(weights, width, heads, OPSET, EPSILON)
                        for _ in range(2))
    return encoder.encoder(layers, frames), decoder.decoder(layers)
