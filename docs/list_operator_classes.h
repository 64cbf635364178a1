/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of docs/operators.md about each operator class, for
 * list_operators.c: inputs, dtypes, output shapes and attribute lists.  They
 * condense the comment at enum tandem_op_class in tandem/operators.h, as
 * Markdown.  Each class needs a text; its name is text_ and the class's name.
 */
#ifndef DOCS_LIST_OPERATOR_CLASSES_H
#define DOCS_LIST_OPERATOR_CLASSES_H

static const char text_unary[] =
    "The input is f32. The output has its shape and dtype. `neg`, `abs` and "
    "`sign` also take i32 and i64; their results wrap around.\n";

static const char text_binary[] =
    "There are two inputs of dtype f32. Their shapes broadcast like those of "
    "NumPy, and "
    "the output has the common shape.\n"
    "\n"
    "An input may be `NULL`, which is a scalar: the first `NULL` input has the "
    "value `floats[0]`, the second one `floats[1]`. At least one input must be "
    "a tensor.\n"
    "\n"
    "All operators except `pow` and `prelu` also take i32 and i64. Their "
    "results wrap around, and `div` truncates. `div`, `mod` and `fmod` by 0 "
    "give 0 with integers; `mod` and `fmod` by 0 give NaN with f32.\n";

static const char text_compare[] =
    "The inputs are those of [BINARY](#class-binary), of dtype f32, i32 or "
    "i64. The output is bool. A comparison with NaN is false, but `not_equal` "
    "is true. "
    "`isnan` and `isinf` have one input, of dtype f32.\n";

static const char text_logical[] =
    "Inputs and output are bool. Shapes and scalars are as for "
    "[BINARY](#class-binary). `not` has one input.\n";

static const char text_ternary[] =
    "`where` has a bool input a, and inputs b and c of dtype f32, i32 or i64. "
    "The inputs of `fma` are f32. Shapes and scalars are as for "
    "[BINARY](#class-binary).\n";

static const char text_gradient[] =
    "There are two inputs of dtype f32 and of equal shapes; they do not "
    "broadcast. The "
    "output has their shape.\n";

static const char text_optimizer[] =
    "All inputs and outputs are f32 and have equal shapes. An output is the "
    "new "
    "value of the input with the same letter, and usually the same tensor.\n";

static const char text_cast[] =
    "The input and the output have the same shape. Each has one of the dtypes "
    "f32, i32, i64, u8 and bool, and on a device with "
    "`TANDEM_CAP_F16_BF16_STORAGE` also f16 and "
    "bf16.\n"
    "\n"
    "- A cast from a float to an integer truncates and saturates. NaN gives "
    "0.\n"
    "- A cast from an integer to another integer saturates.\n"
    "- A cast to a float rounds once, ties to even. A value beyond the largest "
    "float "
    "gives infinity.\n"
    "- A cast to bool gives x != 0.\n";

static const char text_copy[] =
    "The input has any dtype. It broadcasts to the shape of the "
    "output.\n";

static const char text_transpose[] =
    "The input has any dtype. `perm` is a list with a number for each axis: "
    "axis "
    "i of the output is axis `ints[i]` of the input.\n";

static const char text_concat[] =
    "There are one to eight inputs of any dtype, with equal shapes except "
    "along axis. "
    "Their elements follow one another along axis in the output.\n";

static const char text_pad[] =
    "The input has any dtype.\n"
    "\n"
    "- `pad`: two lists follow the attributes of the table in `ints`, with a "
    "number for each axis: how many elements are added before it, and how many "
    "after it. Negative numbers remove elements (with mode 0 even more than "
    "there are) before others are added.\n"
    "- `tile`: `repeats` is a list with the number of copies along each "
    "axis.\n";

static const char text_reduce[] =
    "The input and the output are f32. `axes` is a bit mask: bit i is "
    "axis i, so 5 stands for the axes 0 and 2. The mask 0 is allowed for rank "
    "0 "
    "only. The reduced axes have length 1 in the output if `keepdims` is 1, "
    "and "
    "are removed if it is 0.\n";

static const char text_arg_reduce[] = "`axes` and `keepdims` are those of "
                                      "[REDUCE](#class-reduce), but select one "
                                      "axis or all axes. The output is i64: a "
                                      "row-major index in the reduced axes.\n";

static const char text_dot[] = "The two inputs are f32 and have rank 1 and "
                               "equal lengths. The output has rank 0.\n";

static const char text_softmax[] =
    "The input is f32 and has rank 1 or more. The output has its shape.\n";

static const char text_cumsum[] =
    "The input is f32. The output has its shape.\n";

static const char text_cross_entropy[] =
    "The inputs are logits, f32 `[n][c]`, and labels, i32 or i64 `[n]`. The "
    "output is f32, of "
    "the shape in the formula. A label outside of 0 to c - 1 gives NaN in its "
    "row.\n";

static const char text_gather[] =
    "The inputs are data, of any dtype, and indices, i32 or i64, as in ONNX. "
    "An index "
    "out of range gives NaN (float dtypes) or 0.\n"
    "\n"
    "- `gather`: the shape of indices replaces axis in the shape of data.\n"
    "- `gather_elements`: the output has the shape of indices. They have the "
    "rank of data, and are not longer than data along other axes.\n"
    "- `gather_nd`: as `GatherND` of ONNX.\n";

static const char text_scatter[] =
    "The inputs are data, indices (i32 or i64) and updates. The output is a "
    "copy of "
    "data in which updates replace the elements at the indices, as in ONNX.\n"
    "\n"
    "- `scatter_elements`: indices and updates have one shape, with the rank "
    "of "
    "data, and are not longer than data along other axes.\n"
    "- `scatter_nd`: as `ScatterND` of ONNX.\n"
    "- reduction is 0 (none), 1 (add), 2 (mul), 3 (min) or 4 (max). With 0, "
    "data has any dtype, and the last of several updates of an element wins. "
    "With 1 to 4, data is f32; the updates of an element are combined with it "
    "one after the other, and each result is rounded.\n"
    "- The order of updates is row-major. An index out of range is skipped.\n";

static const char text_one_hot[] =
    "The inputs are indices, i32 or i64, and two values of any dtype: off and "
    "on. "
    "The output has the shape of indices with another axis, `ints[0]`, of "
    "length depth, which is above 0. An index out of range sets no element "
    "on.\n";

static const char text_range[] =
    "There is no input. The output has rank 1, and dtype f32, i32 or i64.\n";

static const char text_trilu[] =
    "The input has any dtype. The output has its shape: the triangle of each "
    "matrix, and zeros elsewhere.\n";

static const char text_resize[] =
    "The input is f32. The output has the same rank and any shape, as "
    "`Resize` of ONNX. The attributes are:\n"
    "\n"
    "- mode: 0 nearest, 1 linear, 2 cubic.\n"
    "- coordinate\\_transformation\\_mode: 0 half\\_pixel, 1 "
    "half\\_pixel\\_symmetric, 2 pytorch\\_half\\_pixel, 3 align\\_corners, 4 "
    "asymmetric, 5 tf\\_crop\\_and\\_resize.\n"
    "- nearest\\_mode: 0 round\\_prefer\\_floor, 1 round\\_prefer\\_ceil, 2 "
    "floor, "
    "3 ceil.\n"
    "- exclude\\_outside, antialias: switches of linear and cubic.\n"
    "- cubic\\_coeff\\_a, extrapolation\\_value: finite numbers.\n"
    "\n"
    "Lists with a number for each axis may follow in `floats`: the scales, in "
    "2^-24 to 2^24, or 0 for output length / input length; after them the "
    "starts "
    "and then the ends (roi), in -2^20 to 2^20, else 0 and 1. Coordinates that "
    "differ by at most 2^-40 of the input length count as equal, for lengths "
    "up "
    "to 2^20.\n";

static const char text_topk[] =
    "The input is f32. The outputs are values, f32, and indices, i64. "
    "They have the shape of the input, except for the length k along axis. "
    "largest 1 selects the largest elements, 0 the smallest ones. sorted 1 "
    "puts "
    "the best first; with 0 the order is any. NaN is larger than any number. "
    "The "
    "lowest index of equal elements comes first. The length along axis is "
    "below 2^32.\n";

static const char text_pool[] =
    "The input is f32 `[n][c][spatial...]`, with one to three spatial axes. "
    "The "
    "output is f32 `[n][c][windows...]`; the second output of "
    "`max_pool_indices` is i64. Pass a tensor in the order NHWC as a view.\n"
    "\n"
    "Lists with a number for each spatial axis follow the attributes of the "
    "table in `ints`: kernel, strides, dilations, begins, ends. Window i has "
    "the elements i * stride - begin + k * dilation of the input, for k from 0 "
    "to kernel - 1. Its span is (kernel - 1) * dilation + 1. An axis has "
    "(length + begin + end - span) / stride + 1 windows, rounded down, or none "
    "if that is negative. ceil\\_mode 1 rounds up if the last window begins "
    "before the end of the input.\n";

static const char text_conv[] =
    "The inputs are x `[n][c][spatial...]`, with one to three spatial axes, "
    "and "
    "weight; after them optionally bias `[m]` and, if residual is 1, a "
    "residual with "
    "the shape of the output. All are f32. `group` divides c and m. "
    "activation is 0 (none) or the constant of an operator of class UNARY.\n"
    "\n"
    "Lists with a number for each spatial axis follow the attributes of the "
    "table in `ints`: strides, dilations, begins, ends.\n"
    "\n"
    "- `conv`: weight is `[m][c / group][kernel...]`. The output is `[n][m]` "
    "and the windows of [POOL](#class-pool). The padding is 0.\n"
    "- `conv_transpose`: weight is `[c][m / group][kernel...]`. Another list, "
    "output\\_padding, which is below the stride or the dilation, follows "
    "ends. "
    "An axis of the output has (length - 1) * stride + span - begin - end + "
    "output\\_padding elements. Padding times infinity or NaN may give 0 or "
    "NaN.\n";

static const char text_norm[] =
    "The inputs are x, scale and, for `layer_norm`, bias. All are f32. The "
    "output has the shape of x. The operator normalizes over axis and all "
    "later "
    "axes; scale and bias have the shape of these axes.\n";

static const char text_channel_norm[] =
    "The input x is f32 `[n][c][spatial...]`, of rank 2 to 8; the other inputs "
    "are f32 "
    "`[c]`. The output has the shape of x. `groups` divides c.\n";

static const char text_attention[] =
    "The inputs are q `[n][h][queries][d]`, k `[n][g][keys][d]`, v "
    "`[n][g][keys][e]`, "
    "f32, and optionally a mask. The output is f32 `[n][h][queries][e]`. g "
    "divides h. The mask broadcasts to `[n][h][queries][keys]`. It is f32 and "
    "added, or bool and false for the keys to leave out.\n";

static const char text_rotary_embedding[] =
    "The inputs are x, f32 `[n][h][tokens][d]`, cos and sin. Without "
    "positions, cos and "
    "sin are f32 `[n][tokens][w / 2]`. With the optional input positions, i32 "
    "or i64 `[n][tokens]`, they are f32 `[length][w / 2]`. The output has the "
    "shape of x.\n";

static const char text_gemm[] =
    "`tandem_matmul` also copies inputs whose strides this operator does not "
    "take. "
    "The inputs are a `[m][k]` and b `[k][n]`, and the output is c `[m][n]`, "
    "each with an optional batch axis before the others. a and b have one "
    "dtype, "
    "c and bias the same or another one: f32, f16 or bf16. `struct "
    "tandem_matmul_options` has alpha, beta, bias and activation, and `struct "
    "tandem_gemm` is what a plugin gets.\n";

#endif
