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
# ONNX Runtime 1.23 reads IR versions up to 11.
IR_VERSION = 8


class GraphBuilder:
    """Collects the nodes and initializers of a graph."""

    def __init__(self, opset):
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
        if self.opset >= 17:  # the first opset with this operator
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


class Exporter(GraphBuilder):
    """Writes the nodes of a model.

    `arrays` are weights by the names of the PyTorch state dict.  Those that are not
    given are random.
    """

    def __init__(self, width, heads, opset, epsilon, arrays=None, seed=0):
        super().__init__(opset)
        self.width, self.heads = width, heads
        self.epsilon = epsilon
        self.arrays = dict(arrays or {})
        self.random = np.random.default_rng(seed)

    def array(self, name, *shape, mean=0, deviation=1):
        if name not in self.arrays:
            values = self.random.standard_normal(shape, np.float32)
            self.arrays[name] = np.float32(mean) + np.float32(deviation) * values
        return self.arrays[name]

    def parameter(self, name, *shape, **distribution):
        return self.weight(name, self.array(name, *shape, **distribution))

    def linear_arrays(self, name, outputs, inputs):
        """Returns a weight whose products have the variance of its inputs, and the
        name of a bias."""
        weight = self.array(f"{name}.weight", outputs, inputs, deviation=inputs**-0.5)
        return weight, self.parameter(f"{name}.bias", outputs, deviation=0.1)

    def layer_norm(self, value, name):
        scale = self.parameter(f"{name}.weight", self.width, mean=1, deviation=0.1)
        bias = self.parameter(f"{name}.bias", self.width, deviation=0.1)
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


# ---- BERT ----


class BertExporter(Exporter):
    """Writes the nodes of a BertModel with attention written out ("eager")."""

    def linear(self, value, name, outputs=None, inputs=None):
        """A Linear layer: the exporter folds the transposition of the weight."""
        weight, bias = self.linear_arrays(name, outputs or self.width,
                                          inputs or self.width)
        weight = self.weight(f"onnx::MatMul_{name}", weight.T)
        return self.add("Add", bias, self.add("MatMul", value, weight))

    def mask(self, hidden):
        """Turns 1 and 0 into 0 and the lowest float, which is added to the scores."""
        mask = self.unsqueeze(self.unsqueeze("attention_mask", 1), 2)
        mask = self.add("Cast", mask, to=TensorProto.FLOAT)
        inverse = self.add("Sub", self.scalar(1), mask)
        return self.add("Mul", inverse, self.scalar(FLOAT_MIN))

    def position_ids(self):
        ids = np.arange(MAX_POSITIONS, dtype=np.int64)[None]
        buffer = self.weight("embeddings.position_ids", ids)
        end = self.dimension("input_ids", 1)
        return self.slice(buffer, self.constant(0), end, 1)

    def embeddings(self, vocabulary):
        self.scope = "/embeddings"
        parts = {}
        for name, rows, ids in (("position", MAX_POSITIONS, self.position_ids()),
                                ("word", vocabulary, "input_ids"),
                                ("token_type", 2, "token_type_ids")):
            table = self.parameter(f"embeddings.{name}_embeddings.weight", rows,
                                   self.width)
            parts[name] = self.add("Gather", table, ids)
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
        hidden = self.gelu(self.linear(attention, f"{name}.intermediate.dense",
                                       4 * self.width))
        hidden = self.linear(hidden, f"{name}.output.dense", inputs=4 * self.width)
        residual = self.add("Add", hidden, attention)
        return self.layer_norm(residual, f"{name}.output.LayerNorm")

    def model(self, layers, vocabulary):
        value = self.embeddings(vocabulary)
        self.scope = ""
        mask = self.mask(value)
        for index in range(layers):
            value = self.layer(value, mask, index)
        # The exporter gives the last node's output the name of the graph's output.
        self.nodes[-1].output[0] = "last_hidden_state"
        shape = ["batch", "sequence"]
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


def bert(layers, width=768, heads=12, opset=14, vocabulary=BERT_VOCABULARY,
         attention="eager", weights=None, seed=0):
    """Returns a BERT encoder, whose dimensions "batch" and "sequence" are open.

    `attention` is "eager" or "sdpa".  `weights` has the names of BertModel's state
    dict.
    """
    exporter = BertSdpaExporter if attention == "sdpa" else BertExporter
    return exporter(width, heads, opset, BERT_EPSILON, weights, seed).model(
        layers, vocabulary)


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


class Gpt2Exporter(Exporter):
    """Writes the nodes of a GPT2LMHeadModel.

    `index` is the number of the block that is being written."""

    index = 0

    @property
    def layer(self):
        return f"h.{self.index}"

    def conv1d(self, value, name, outputs, inputs):
        """Conv1D: addmm on the rows, then a Reshape to [batch, tokens, outputs].

        The weight has the shape [inputs, outputs]."""
        batch, tokens = self.dimension(value, 0), self.dimension(value, 1)
        rows = self.reshape_chain(value, [-1, self.dimension(value, -1)])
        weight, bias = self.linear_arrays(name, outputs, inputs)
        weight = self.weight(f"{name}.weight", weight.T)
        product = self.add("Gemm", rows, weight, bias, alpha=1.0, beta=1.0)
        return self.reshape_chain(product, [batch, tokens, outputs])

    def embeddings(self, vocabulary):
        tokens = self.dimension("input_ids", 1)
        ids = self.reshape_chain("input_ids", [-1, tokens])
        start = self.dimension("past.0", 3)
        end = self.add("Add", tokens, start)
        positions = self.add("Range", start, end, self.constant(1))
        positions = self.unsqueeze(positions, 0)
        positions = self.reshape_chain(positions, [-1, tokens])
        table = self.parameter("wte.weight", vocabulary, self.width)
        words = self.add("Gather", table, ids)
        table = self.parameter("wpe.weight", MAX_POSITIONS, self.width)
        positions = self.add("Gather", table, positions)
        return self.add("Add", words, positions)

    def with_past(self, key, values):
        """Concatenates the key and the value of earlier tokens."""
        past = f"past.{self.index}"
        past_key = self.add("Gather", past, self.constant(0), axis=0)
        past_key = self.add("Transpose", past_key, perm=[0, 1, 3, 2])
        past_values = self.add("Gather", past, self.constant(1), axis=0)
        return (self.add("Concat", past_key, key, axis=-1),
                self.add("Concat", past_values, values, axis=-2))

    def causal_mask(self, query, key):
        """Slices the rows of the new tokens from the triangular constant."""
        triangle = np.tri(MAX_POSITIONS, dtype=np.bool_)[None, None]
        mask = self.weight(f"{self.layer}.attn.bias", triangle)
        new, total = self.dimension(query, -2), self.dimension(key, -1)
        mask = self.slice(mask, self.add("Sub", total, new), total, 2)
        return self.slice(mask, self.constant(0), total, 3)

    def present(self, key, values):
        key = self.add("Transpose", key, perm=[0, 1, 3, 2])
        parts = self.unsqueeze(key, 0), self.unsqueeze(values, 0)
        self.add("Concat", *parts, axis=0, outputs=[f"present.{self.index}"])

    def attention(self, value):
        qkv = self.conv1d(value, f"{self.layer}.attn.c_attn", 3 * self.width,
                          self.width)
        parts = [f"{self.scope}/Split_output_{i}" for i in range(3)]
        self.add("Split", qkv, self.constant([self.width] * 3), axis=2,
                  outputs=parts)
        query = self.head_split(parts[0], [0, 2, 1, 3])
        key = self.head_split(parts[1], [0, 2, 3, 1])
        values = self.head_split(parts[2], [0, 2, 1, 3])
        key, values = self.with_past(key, values)
        self.present(key, values)
        scores = self.scaled_scores(query, key)
        mask = self.causal_mask(query, key)
        scores = self.add("Where", mask, scores, self.scalar(FLOAT_MIN))
        context = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
        context = self.add("Transpose", context, perm=[0, 2, 1, 3])
        context = self.reshape(context, [self.width])
        return self.conv1d(context, f"{self.layer}.attn.c_proj", self.width,
                           self.width)

    def gelu(self, value):
        """The approximation of GELU by tanh."""
        half = self.add("Mul", value, self.scalar(0.5))
        cube = self.add("Pow", value, self.scalar(3))
        cube = self.add("Mul", cube, self.scalar(0.044715))
        inner = self.add("Add", value, cube)
        inner = self.add("Mul", inner, self.scalar(np.sqrt(2 / np.pi)))
        tanh = self.add("Add", self.add("Tanh", inner), self.scalar(1))
        return self.add("Mul", half, tanh)

    def block(self, value):
        self.scope = f"/{self.layer}"
        normal = self.layer_norm(value, f"{self.layer}.ln_1")
        value = self.add("Add", self.attention(normal), value)
        normal = self.layer_norm(value, f"{self.layer}.ln_2")
        inner = 4 * self.width
        hidden = self.conv1d(normal, f"{self.layer}.mlp.c_fc", inner, self.width)
        hidden = self.conv1d(self.gelu(hidden), f"{self.layer}.mlp.c_proj",
                             self.width, inner)
        return self.add("Add", value, hidden)

    def model(self, layers, vocabulary):
        """Writes all blocks, the last norm, and the logits."""
        value = self.embeddings(vocabulary)
        for self.index in range(layers):
            value = self.block(value)
        self.scope = ""
        value = self.layer_norm(value, "ln_f")
        words = self.arrays["wte.weight"] / np.float32(np.sqrt(self.width))
        weight = self.weight("lm_head.weight", words.T)
        self.add("MatMul", value, weight, outputs=["logits"])
        shape = ["batch", "sequence"]
        inputs = [tensor_info("input_ids", TensorProto.INT64, shape)]
        outputs = [tensor_info("logits", TensorProto.FLOAT, shape + [len(words)])]
        for index in range(layers):
            for name, length, infos in (("past", "past_sequence", inputs),
                                        ("present", "total_sequence", outputs)):
                infos.append(tensor_info(
                    f"{name}.{index}", TensorProto.FLOAT,
                    [2, "batch", self.heads, length, self.width // self.heads]))
        return self.finish("gpt2", inputs, outputs)


def gpt2(layers=12, width=768, heads=12, opset=17, vocabulary=GPT2_VOCABULARY, seed=0):
    """Returns GPT2LMHeadModel with past keys and values past.0 to past.N."""
    exporter = Gpt2Exporter(width, heads, opset, GPT2_EPSILON, seed=seed)
    return exporter.model(layers, vocabulary)
