# SPDX-License-Identifier: Apache-2.0
"""Builds models in the graph shape that PyTorch's ONNX exporter writes.

The node sequences are those of torch.onnx.export (TorchScript exporter) for the
models of Hugging Face transformers: decomposed LayerNorm and GELU, Linear layers as
MatMul and Add, and chains of Shape, Gather, Unsqueeze and Concat that compute the
targets of Reshape.  The weights are random, or are passed by the names of the
PyTorch state dict.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

BERT_VOCABULARY = 30522
GPT2_VOCABULARY = 50257
MAX_POSITIONS = 512
BERT_EPSILON = 1e-12
GPT2_EPSILON = 1e-5
FLOAT_MIN = float(np.finfo(np.float32).min)
# The last opset whose ReduceMean has the axes as an attribute is 17.  From 17 on,
# the exporter writes LayerNormalization instead.
MIN_OPSET, MAX_OPSET = 13, 20
# ONNX Runtime 1.23 reads IR versions up to 11.
IR_VERSION = 8


class GraphBuilder:
    """Collects the nodes and initializers of a graph."""

    def __init__(self, opset):
        if not MIN_OPSET <= opset <= MAX_OPSET:
            raise ValueError(
                f"opset {opset} is not supported; expected {MIN_OPSET} to {MAX_OPSET}"
            )
        self.opset = opset
        self.nodes = []
        self.initializers = {}
        self.scope = ""
        self.counts = {}

    def add(self, op_type, *inputs, outputs=None, **attributes):
        """Appends a node and returns the name of its first output."""
        stem = f"{self.scope}/{op_type}"
        count = self.counts.get(stem, 0)
        self.counts[stem] = count + 1
        name = f"{stem}_{count}" if count else stem
        outputs = outputs or [f"{name}_output_0"]
        self.nodes.append(
            helper.make_node(op_type, list(inputs), outputs, name, **attributes)
        )
        return outputs[0]

    def constant(self, value, dtype=np.int64):
        """Appends a Constant node, as the exporter does for each small constant."""
        tensor = numpy_helper.from_array(np.array(value, dtype))
        return self.add("Constant", value=tensor)

    def scalar(self, value):
        return self.constant(value, np.float32)

    def weight(self, name, array):
        """Adds an initializer, unless one of this name exists."""
        if name not in self.initializers:
            array = np.ascontiguousarray(array)
            self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def dimension(self, value, axis):
        """Returns the size of an axis as an int64 scalar: Shape and Gather."""
        shape = self.add("Shape", value)
        return self.add("Gather", shape, self.constant(axis), axis=0)

    def unsqueeze(self, value, axis):
        return self.add("Unsqueeze", value, self.constant([axis]))

    def slice(self, value, start, end, axis):
        """Slices one axis.  `start` and `end` are int64 scalars."""
        return self.add(
            "Slice",
            value,
            self.unsqueeze(start, 0),
            self.unsqueeze(end, 0),
            self.constant([axis]),
            self.constant([1]),
        )

    def shape_chain(self, dimensions):
        """Joins int64 scalars (names) and integers to a shape."""
        parts = [
            self.unsqueeze(size, 0) if isinstance(size, str) else self.constant([size])
            for size in dimensions
        ]
        return self.add("Concat", *parts, axis=0)

    def reshape_chain(self, value, dimensions):
        return self.add("Reshape", value, self.shape_chain(dimensions))

    def normalize(self, value, scale, bias, epsilon):
        if self.opset >= 17:
            return self.add(
                "LayerNormalization", value, scale, bias, axis=-1, epsilon=epsilon
            )
        mean = self.add("ReduceMean", value, axes=[-1])
        centered = self.add("Sub", value, mean)
        square = self.add("Pow", centered, self.scalar(2))
        variance = self.add("ReduceMean", square, axes=[-1])
        shifted = self.add("Add", variance, self.scalar(epsilon))
        normal = self.add("Div", centered, self.add("Sqrt", shifted))
        return self.add("Add", self.add("Mul", normal, scale), bias)

    def finish(self, name, inputs, outputs):
        graph = helper.make_graph(
            self.nodes, name, inputs, outputs, list(self.initializers.values())
        )
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def tensor_info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


# ---- BERT ----


def linear_weights(weights, name, shape, random):
    """Adds a weight whose products have the variance of its inputs, and a bias."""
    values = random.standard_normal(shape, np.float32)
    weights[f"{name}.weight"] = values / np.float32(np.sqrt(shape[1]))
    weights[f"{name}.bias"] = 0.1 * random.standard_normal(shape[0], np.float32)


def norm_weights(weights, name, width, random):
    values = random.standard_normal((2, width), np.float32)
    weights[f"{name}.weight"] = 1 + 0.1 * values[0]
    weights[f"{name}.bias"] = 0.1 * values[1]


def bert_weights(layers, width=768, vocabulary=BERT_VOCABULARY, seed=0):
    """Returns random weights, by the names and shapes of BertModel's state dict."""
    random = np.random.default_rng(seed)
    weights = {}
    for name, rows in (
        ("word", vocabulary),
        ("position", MAX_POSITIONS),
        ("token_type", 2),
    ):
        table = random.standard_normal((rows, width), np.float32)
        weights[f"embeddings.{name}_embeddings.weight"] = table
    norm_weights(weights, "embeddings.LayerNorm", width, random)
    for layer in range(layers):
        prefix = f"encoder.layer.{layer}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            linear_weights(weights, f"{prefix}attention.{name}", (width, width), random)
        norm_weights(weights, f"{prefix}attention.output.LayerNorm", width, random)
        linear_weights(
            weights, f"{prefix}intermediate.dense", (4 * width, width), random
        )
        linear_weights(weights, f"{prefix}output.dense", (width, 4 * width), random)
        norm_weights(weights, f"{prefix}output.LayerNorm", width, random)
    return weights


class Exporter(GraphBuilder):
    """Writes the nodes of a model with the weights of a state dict."""

    def __init__(self, weights, width, heads, opset, epsilon):
        super().__init__(opset)
        self.weights = weights
        self.width, self.heads = width, heads
        self.epsilon = epsilon

    def parameter(self, name):
        return self.weight(name, self.weights[name])

    def layer_norm(self, value, name):
        scale, bias = self.parameter(f"{name}.weight"), self.parameter(f"{name}.bias")
        return self.normalize(value, scale, bias, self.epsilon)

    def reshape(self, value, tail):
        """Reshapes to the batch and the tokens of the value, and `tail`."""
        batch, tokens = self.dimension(value, 0), self.dimension(value, 1)
        return self.reshape_chain(value, [batch, tokens] + tail)

    def head_split(self, value, permutation):
        split = self.reshape(value, [self.heads, self.width // self.heads])
        return self.add("Transpose", split, perm=permutation)

    def scaled_scores(self, query, key):
        scores = self.add("MatMul", query, key)
        root = self.scalar(np.sqrt(self.width // self.heads))
        return self.add("Div", scores, root)


class BertExporter(Exporter):
    """Writes the nodes of a BertModel with attention written out ("eager")."""

    def __init__(self, weights, batch, tokens, width, heads, dynamic, opset):
        super().__init__(weights, width, heads, opset, BERT_EPSILON)
        self.batch, self.tokens = batch, tokens
        self.dynamic = dynamic

    def linear(self, value, name):
        """A Linear layer: the exporter folds the transposition of the weight."""
        weight = self.weights[f"{name}.weight"]
        weight = self.weight(f"onnx::MatMul_{name}", weight.T)
        product = self.add("MatMul", value, weight)
        return self.add("Add", self.parameter(f"{name}.bias"), product)

    def reshape(self, value, tail):
        if self.dynamic:
            return super().reshape(value, tail)
        target = self.constant([self.batch, self.tokens] + tail)
        return self.add("Reshape", value, target)

    def mask(self, hidden):
        """Turns 1 and 0 into 0 and the lowest float, which is added to the scores."""
        mask = self.unsqueeze(self.unsqueeze("attention_mask", 1), 2)
        mask = self.add("Cast", mask, to=TensorProto.FLOAT)
        inverse = self.add("Sub", self.scalar(1), mask)
        return self.add("Mul", inverse, self.scalar(FLOAT_MIN))

    def position_ids(self):
        limit = len(self.weights["embeddings.position_embeddings.weight"])
        ids = np.arange(limit, dtype=np.int64)[None]
        if not self.dynamic:
            return self.weight("embeddings.position_ids", ids[:, : self.tokens])
        buffer = self.weight("embeddings.position_ids", ids)
        end = self.dimension("input_ids", 1)
        return self.slice(buffer, self.constant(0), end, 1)

    def embeddings(self):
        self.scope = "/embeddings"
        parts = {
            name: self.add(
                "Gather", self.parameter(f"embeddings.{name}_embeddings.weight"), ids
            )
            for name, ids in (
                ("position", self.position_ids()),
                ("word", "input_ids"),
                ("token_type", "token_type_ids"),
            )
        }
        total = self.add("Add", parts["word"], parts["token_type"])
        total = self.add("Add", total, parts["position"])
        return self.layer_norm(total, "embeddings.LayerNorm")

    def context(self, query, key, values, mask):
        scores = self.add("Add", self.scaled_scores(query, key), mask)
        return self.add("MatMul", self.add("Softmax", scores, axis=-1), values)

    def attention(self, value, mask, name):
        query = self.linear(value, f"{name}.self.query")
        key = self.linear(value, f"{name}.self.key")
        # The exporter merges the two transpositions of the key.
        key = self.head_split(key, [0, 2, 3, 1])
        values = self.linear(value, f"{name}.self.value")
        values = self.head_split(values, [0, 2, 1, 3])
        query = self.head_split(query, [0, 2, 1, 3])
        context = self.context(query, key, values, mask)
        context = self.add("Transpose", context, perm=[0, 2, 1, 3])
        context = self.reshape(context, [self.width])
        dense = self.linear(context, f"{name}.output.dense")
        residual = self.add("Add", dense, value)
        return self.layer_norm(residual, f"{name}.output.LayerNorm")

    def gelu(self, value):
        erf = self.add("Erf", self.add("Div", value, self.scalar(np.sqrt(2))))
        product = self.add("Mul", value, self.add("Add", erf, self.scalar(1)))
        return self.add("Mul", product, self.scalar(0.5))

    def layer(self, value, mask, index):
        self.scope = f"/encoder/layer.{index}"
        name = f"encoder.layer.{index}"
        attention = self.attention(value, mask, f"{name}.attention")
        hidden = self.gelu(self.linear(attention, f"{name}.intermediate.dense"))
        residual = self.add("Add", self.linear(hidden, f"{name}.output.dense"),
                             attention)
        return self.layer_norm(residual, f"{name}.output.LayerNorm")

    def model(self, layers):
        value = self.embeddings()
        self.scope = ""
        mask = self.mask(value)
        for index in range(layers):
            value = self.layer(value, mask, index)
        # The exporter gives the last node's output the name of the graph's output.
        self.nodes[-1].output[0] = "last_hidden_state"
        shape = ["batch", "sequence"] if self.dynamic else [self.batch, self.tokens]
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [tensor_info(name, TensorProto.INT64, shape) for name in names]
        output = tensor_info("last_hidden_state", TensorProto.FLOAT,
                             shape + [self.width])
        return self.finish("bert", inputs, [output])


class BertSdpaExporter(BertExporter):
    """Writes a BertModel that uses scaled_dot_product_attention ("sdpa").

    The mask is that of transformers 5: booleans that are gathered by computed
    indices, expanded, and turned into 0 and minus infinity in each layer.
    """

    def positions(self, size, axes):
        """Returns 0 to size - 1 as int64, with further axes of size 1."""
        limit = self.add("Cast", size, to=TensorProto.INT64)
        value = self.add("Range", self.constant(0), limit, self.constant(1))
        for axis in axes:
            value = self.unsqueeze(value, axis)
        return value

    def filled(self, shape, value):
        tensor = numpy_helper.from_array(np.array([value]))
        return self.add("ConstantOfShape", shape, value=tensor)

    def gathered_mask(self, mask, batch_positions, key_positions):
        """Reads mask[batch, key] by indices into the flat mask."""
        pitch = self.add("Gather", self.add("Shape", mask), self.constant([1]))
        flat = self.add("Flatten", mask, axis=2)
        rows = self.add("Mul", batch_positions, pitch)
        index = self.add("Add", key_positions, rows)
        gathered = self.add("Gather", flat, index, axis=0)
        gathered = self.add("Reshape", gathered, self.constant([-1]))
        shape = self.add("Concat", self.add("Shape", index), axis=0)
        gathered = self.add("Reshape", gathered, shape)
        return self.add("Cast", gathered, to=TensorProto.BOOL)

    def expand(self, value, dimensions):
        """Expands to int64 scalars; -1 keeps the size of an axis."""
        shape = self.shape_chain(dimensions)
        shape = self.add("Reshape", shape, self.constant([-1]))
        ones = self.filled(self.add("Shape", shape), np.int64(1))
        keeps = self.add("Equal", shape, self.add("Mul", ones, self.constant(-1)))
        return self.add("Expand", value, self.add("Where", keeps, ones, shape))

    def mask(self, hidden):
        mask = self.add("Cast", "attention_mask", to=TensorProto.BOOL)
        queries, keys = self.dimension(hidden, 1), self.dimension(mask, 1)
        batch = self.dimension(hidden, 0)
        batch_positions = self.positions(batch, [1, 2, 3])
        query_positions = self.positions(queries, [0, 1, 3])
        key_positions = self.positions(keys, [0, 1, 2])
        valid = self.add("GreaterOrEqual", query_positions, self.constant(0))
        valid = self.add("Cast", valid, to=TensorProto.BOOL)
        ones = self.filled(self.constant(np.zeros(0)), np.bool_(True))
        valid = self.add("And", ones, valid)
        mask = self.gathered_mask(mask, batch_positions, key_positions)
        mask = self.add("And", valid, mask)
        return self.expand(mask, [batch, -1, queries, keys])

    def context(self, query, key, values, mask):
        scale = (self.width // self.heads) ** -0.25
        query = self.add("Mul", query, self.scalar(scale))
        key = self.add("Mul", key, self.scalar(scale))
        scores = self.add("MatMul", query, key)
        bias = self.add("Where", mask, self.scalar([0]), self.scalar([-np.inf]))
        scores = self.add("Softmax", self.add("Add", scores, bias), axis=-1)
        # A row without any token has the sum 0 and becomes NaN.
        is_nan = self.add("IsNaN", scores)
        scores = self.add("Where", is_nan, self.scalar([0]), scores)
        return self.add("MatMul", scores, values)


def bert(layers, batch, tokens, width=768, heads=12, dynamic=True, opset=14,
         vocabulary=BERT_VOCABULARY, attention="eager", weights=None, seed=0):
    """Returns a BERT encoder as torch.onnx exports it.

    A dynamic model has the dimensions "batch" and "sequence" and computes the
    targets of Reshape from the shapes.  Otherwise the shapes are fixed and the
    targets are constants.  `attention` is "eager", or "sdpa" for a dynamic model.
    `weights` has the names of BertModel's state dict; without it, the weights are
    random.
    """
    if attention == "sdpa" and not dynamic:
        raise ValueError('attention "sdpa" needs a dynamic model')
    if weights is None:
        weights = bert_weights(layers, width, vocabulary, seed)
    exporter = BertSdpaExporter if attention == "sdpa" else BertExporter
    writer = exporter(weights, batch, tokens, width, heads, dynamic, opset)
    return writer.model(layers)


def bert_inputs(batch, tokens, vocabulary=BERT_VOCABULARY, seed=0, empty_row=False):
    """Returns random inputs.  The rows of the batch have different lengths.

    With `empty_row`, the mask of the last row is zero.
    """
    random = np.random.default_rng(seed)
    lengths = np.maximum(1, tokens - (np.arange(batch) * tokens) // (2 * batch))
    if empty_row:
        lengths[-1] = 0
    positions = np.arange(tokens)[None]
    types = positions >= lengths[:, None] // 2
    return {
        "input_ids": random.integers(0, vocabulary, (batch, tokens), np.int64),
        "attention_mask": (positions < lengths[:, None]).astype(np.int64),
        "token_type_ids": types.astype(np.int64),
    }


# ---- GPT-2 ----


def gpt2_weights(width=768, vocabulary=GPT2_VOCABULARY, seed=0, layers=1):
    """Returns random weights, by the names and shapes of GPT2Model's state dict.

    The weights of Conv1D have the shape [inputs, outputs].
    """
    random = np.random.default_rng(seed)
    weights = {
        "wte.weight": random.standard_normal((vocabulary, width), np.float32),
        "wpe.weight": random.standard_normal((MAX_POSITIONS, width), np.float32),
    }
    for layer in (f"h.{index}" for index in range(layers)):
        for name, outputs, inputs in (
            (f"{layer}.attn.c_attn", 3 * width, width),
            (f"{layer}.attn.c_proj", width, width),
            (f"{layer}.mlp.c_fc", 4 * width, width),
            (f"{layer}.mlp.c_proj", width, 4 * width),
        ):
            linear_weights(weights, name, (outputs, inputs), random)
            weights[f"{name}.weight"] = weights[f"{name}.weight"].T
        for name in (f"{layer}.ln_1", f"{layer}.ln_2"):
            norm_weights(weights, name, width, random)
    norm_weights(weights, "ln_f", width, random)
    return weights


class Gpt2Exporter(Exporter):
    """Writes the nodes of a GPT2Model, or of its embedding and first block.

    `layer` is the prefix of the block that is being written: "h.0"."""

    def __init__(self, weights, width, heads, mask_dtype, opset):
        super().__init__(weights, width, heads, opset, GPT2_EPSILON)
        self.mask_dtype = mask_dtype
        self.layer = "h.0"
        self.cache_suffix = ""  # of the names "past" and "present"

    def conv1d(self, value, name):
        """Conv1D: addmm on the rows, then a Reshape to [batch, tokens, outputs]."""
        batch, tokens = self.dimension(value, 0), self.dimension(value, 1)
        rows = self.reshape_chain(value, [-1, self.dimension(value, -1)])
        weight = self.parameter(f"{name}.weight")
        bias = self.parameter(f"{name}.bias")
        product = self.add("Gemm", rows, weight, bias, alpha=1.0, beta=1.0)
        outputs = self.weights[f"{name}.bias"].shape[0]
        return self.reshape_chain(product, [batch, tokens, outputs])

    def embeddings(self, past):
        tokens = self.dimension("input_ids", 1)
        ids = self.reshape_chain("input_ids", [-1, tokens])
        cache = f"past{self.cache_suffix}"
        start = self.dimension(cache, 3) if past else self.constant(0)
        end = self.add("Add", tokens, start) if past else tokens
        positions = self.add("Range", start, end, self.constant(1))
        positions = self.unsqueeze(positions, 0)
        positions = self.reshape_chain(positions, [-1, tokens])
        words = self.add("Gather", self.parameter("wte.weight"), ids)
        positions = self.add("Gather", self.parameter("wpe.weight"), positions)
        return self.add("Add", words, positions)

    def with_past(self, key, values):
        """Concatenates the key and the value of earlier tokens."""
        past = f"past{self.cache_suffix}"
        past_key = self.add("Gather", past, self.constant(0), axis=0)
        past_key = self.add("Transpose", past_key, perm=[0, 1, 3, 2])
        past_values = self.add("Gather", past, self.constant(1), axis=0)
        return (self.add("Concat", past_key, key, axis=-1),
                self.add("Concat", past_values, values, axis=-2))

    def causal_mask(self, query, key):
        """Slices the rows of the new tokens from the triangular constant."""
        triangle = np.tri(MAX_POSITIONS, dtype=self.mask_dtype)[None, None]
        mask = self.weight(f"{self.layer}.attn.bias", triangle)
        new, total = self.dimension(query, -2), self.dimension(key, -1)
        mask = self.slice(mask, self.add("Sub", total, new), total, 2)
        mask = self.slice(mask, self.constant(0), total, 3)
        if self.mask_dtype is np.bool_:
            return mask
        return self.add("Cast", mask, to=TensorProto.BOOL)

    def present(self, key, values):
        key = self.add("Transpose", key, perm=[0, 1, 3, 2])
        parts = self.unsqueeze(key, 0), self.unsqueeze(values, 0)
        name = f"present{self.cache_suffix}"
        self.add("Concat", *parts, axis=0, outputs=[name])

    def attention(self, value, past):
        qkv = self.conv1d(value, f"{self.layer}.attn.c_attn")
        parts = [f"{self.scope}/Split_output_{i}" for i in range(3)]
        self.add("Split", qkv, self.constant([self.width] * 3), axis=2,
                  outputs=parts)
        query = self.head_split(parts[0], [0, 2, 1, 3])
        key = self.head_split(parts[1], [0, 2, 3, 1])
        values = self.head_split(parts[2], [0, 2, 1, 3])
        if past:
            key, values = self.with_past(key, values)
        self.present(key, values)
        scores = self.scaled_scores(query, key)
        mask = self.causal_mask(query, key)
        scores = self.add("Where", mask, scores, self.scalar(FLOAT_MIN))
        context = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
        context = self.add("Transpose", context, perm=[0, 2, 1, 3])
        context = self.reshape(context, [self.width])
        return self.conv1d(context, f"{self.layer}.attn.c_proj")

    def gelu(self, value):
        """The approximation of GELU by tanh."""
        half = self.add("Mul", value, self.scalar(0.5))
        cube = self.add("Pow", value, self.scalar(3))
        cube = self.add("Mul", cube, self.scalar(0.044715))
        inner = self.add("Add", value, cube)
        inner = self.add("Mul", inner, self.scalar(np.sqrt(2 / np.pi)))
        tanh = self.add("Add", self.add("Tanh", inner), self.scalar(1))
        return self.add("Mul", half, tanh)

    def block(self, value, past, outputs=None):
        self.scope = f"/{self.layer}"
        normal = self.layer_norm(value, f"{self.layer}.ln_1")
        value = self.add("Add", self.attention(normal, past), value)
        normal = self.layer_norm(value, f"{self.layer}.ln_2")
        hidden = self.conv1d(normal, f"{self.layer}.mlp.c_fc")
        hidden = self.conv1d(self.gelu(hidden), f"{self.layer}.mlp.c_proj")
        return self.add("Add", value, hidden, outputs=outputs)

    def finish_model(self, name, output, past, suffixes):
        """Returns the model.  `output` is the name and the length of a row."""
        shape = ["batch", "sequence"]
        inputs = [tensor_info("input_ids", TensorProto.INT64, shape)]
        head = self.width // self.heads
        cache = [2, "batch", self.heads, "past_sequence", head]
        if past:
            inputs += [tensor_info(f"past{suffix}", TensorProto.FLOAT, cache)
                       for suffix in suffixes]
        total = "past_sequence + sequence" if past else "sequence"
        cache = cache[:3] + [total, head]
        outputs = [
            tensor_info(output[0], TensorProto.FLOAT, shape + [output[1]])
        ] + [tensor_info(f"present{suffix}", TensorProto.FLOAT, cache)
             for suffix in suffixes]
        return self.finish(name, inputs, outputs)

    def first_block(self, past):
        self.block(self.embeddings(past), past, ["hidden_states"])
        output = ("hidden_states", self.width)
        return self.finish_model("gpt2_block", output, past, [""])

    def language_model(self, layers):
        """Writes all blocks with a past, the last norm, and the logits."""
        suffixes = [f".{index}" for index in range(layers)]
        self.cache_suffix = suffixes[0]
        value = self.embeddings(True)
        for index, suffix in enumerate(suffixes):
            self.layer, self.cache_suffix = f"h.{index}", suffix
            value = self.block(value, True)
        self.scope = ""
        value = self.layer_norm(value, "ln_f")
        words = self.weights["wte.weight"]
        words = words / np.float32(np.sqrt(self.width))
        weight = self.weight("lm_head.weight", words.T)
        self.add("MatMul", value, weight, outputs=["logits"])
        output = ("logits", words.shape[0])
        return self.finish_model("gpt2", output, True, suffixes)


def gpt2_block(width=768, heads=12, past=False, mask_dtype=np.bool_, opset=14,
               vocabulary=GPT2_VOCABULARY, seed=0):
    """Returns GPT-2's embedding and first block as torch.onnx exports them.

    The batch and the number of tokens are dynamic.  With `past`, the model reads the
    keys and values of earlier tokens.  The causal mask is a constant of `mask_dtype`:
    numpy.bool_ or numpy.uint8, which depends on the version of transformers.
    """
    weights = gpt2_weights(width, vocabulary, seed)
    return Gpt2Exporter(weights, width, heads, mask_dtype, opset).first_block(past)


def gpt2(layers=12, width=768, heads=12, opset=17, vocabulary=GPT2_VOCABULARY, seed=0):
    """Returns GPT2LMHeadModel with past keys and values past.0 to past.N."""
    weights = gpt2_weights(width, vocabulary, seed, layers)
    exporter = Gpt2Exporter(weights, width, heads, np.bool_, opset)
    return exporter.language_model(layers)


def gpt2_inputs(batch, tokens, past_tokens=None, width=768, heads=12,
                vocabulary=GPT2_VOCABULARY, seed=0):
    """Returns random inputs.  `past_tokens` None means a model without a past."""
    random = np.random.default_rng(seed)
    feeds = {"input_ids": random.integers(0, vocabulary, (batch, tokens), np.int64)}
    if past_tokens is not None:
        shape = (2, batch, heads, past_tokens, width // heads)
        feeds["past"] = random.standard_normal(shape, np.float32)
    return feeds
