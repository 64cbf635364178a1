/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the plugin interface and of libtandem: their classes (shapes and
 * dtypes), the metrics of their errors, cost classes, and the table of
 * operators.  backend.h includes this file. */
#ifndef TANDEM_OPERATORS_H
#define TANDEM_OPERATORS_H

/* Operator classes: the shapes and dtypes of an operator.  F is f32 in this
 * minor version (later also f16, bf16 and f64 on devices that have them).
 * A row is X(ID, number, name).  Numbers are part of the ABI and never reused.
 *  UNARY         F -> F; the output has the shape of the input
 *  BINARY        F, F -> F; broadcast like NumPy; scalars allowed.  mod and
 *                fmod of 0 are NaN
 *  COMPARE       F, F -> bool; broadcast, scalars like BINARY; a comparison
 *                with NaN is false, except that not_equal is true.  isnan and
 *                isinf have one input
 *  Integers      neg, abs, sign, BINARY except pow and prelu, comparisons and
 *                where also have i32 or i64 instead of F.  Results wrap around.
 *                div truncates; div, mod and fmod by 0 give 0
 *  LOGICAL       bool, bool -> bool, like BINARY; not has one input
 *  TERNARY       where: bool, F, F -> F; fma: F, F, F -> F; like BINARY
 *  GRADIENT      F, F -> F; equal shapes, no broadcast
 *  OPTIMIZER     F..., equal shapes; an output is the new value of the input
 *                with the same letter, and usually the same tensor
 *  CAST          between f32, i32, i64, u8 and bool, and with
 *                TANDEM_CAP_F16_BF16_STORAGE also f16 and bf16; equal shapes.
 *                Float to integer truncates and saturates, NaN gives 0.
 *                Integer to integer saturates.  A cast to float rounds once,
 *                ties to even; a value beyond the largest float gives infinity,
 *                NaN gives NaN.  A cast to bool gives x != 0
 *  COPY          one dtype of 1, 2, 4 or 8 bytes per element, bits unchanged;
 *                the input broadcasts to the output
 *  TRANSPOSE     like COPY; output axis i is input axis ints[i]
 *  CONCAT        tensors of equal shapes except along axis ints[0], at most
 *                TANDEM_MAX_OPERANDS; their elements follow one another along
 *                this axis.  Dtypes like COPY
 *  PAD           pad: ints[2 + i] elements are added before axis i, and
 *                ints[2 + rank + i] after it; negative numbers remove elements
 *                (mode 0: even more than there are) before others are added.
 *                tile: ints[i] copies of axis i.  Dtypes like COPY
 *  REDUCE        F -> F over the axes in the mask ints[0]: bit i is axis i;
 *                mask 0 is allowed for rank 0 only.  The reduced axes have size
 *                1 (ints[1] = 1, keepdims) or are removed (ints[1] = 0)
 *  ARG_REDUCE    F -> i64, like REDUCE over one axis or all axes; row-major
 *                index, in the reduced axes, of the first maximum or minimum
 *  DOT           F[n], F[n] -> F[]
 *  SOFTMAX       F -> F along axis ints[0]; rank 1 or more
 *  CUMSUM        F -> F along axis ints[0]
 *  CROSS_ENTROPY F[n][c] logits and i32 or i64 [n] labels; a label outside
 *                [0, c) gives NaN in its row
 *  NORM          F... -> F over axes ints[0] and later; scale and bias have the
 *                shape of these axes
 *  CHANNEL_NORM  F[n][c][spatial...] of rank 2 to 8, F[c]... -> F; groups
 *                divides c
 *  GATHER        data and i32 or i64 indices, as in ONNX.  Dtypes like COPY.
 *                gather: along axis ints[0], which the shape of indices
 *                replaces.  gather_elements: along axis ints[0]; the output has
 *                the shape of indices, which have the rank of data and are not
 *                longer than data along other axes.  gather_nd: ONNX GatherND.
 *                An index out of range gives NaN (float dtypes) or 0
 *  SCATTER       inputs data, i32 or i64 indices and updates: a copy of data in
 *                which updates replace the elements at the indices, as in ONNX.
 *                scatter_elements: along axis ints[0]; indices and updates have
 *                one shape, with the rank of data, and are not longer than data
 *                along other axes.  scatter_nd: ONNX ScatterND.  The last
 *                attribute, reduction, is 0 (none), 1 (add), 2 (mul), 3 (min)
 *                or 4 (max).  0: dtypes like COPY, and the last of several
 *                updates of an element wins.  1 to 4: F; updates of an element
 *                are combined with it one after the other, and each result is
 *                rounded.  The order of updates is row-major.  An index out of
 *                range is skipped
 *  ONE_HOT       i32 or i64 indices, and two values of any dtype: off, on.  The
 *                output has another axis ints[0] of length ints[1] > 0.  An
 *                index out of range sets no element on.  Values: as for COPY
 *  RANGE         no input; an output of rank 1, of dtype f32, i32 or i64
 *  TRILU         the triangle of each matrix; zeros elsewhere.  Dtypes as COPY
 *  RESIZE        F -> F of any shape with the input's rank (ONNX Resize).  If
 *                the output is unknown, axis i has floor(input length * scale
 *                i) elements.  Attributes:
 *                  mode         0 nearest, 1 linear, 2 cubic
 *                  coordinate_transformation_mode
 *                               0 half_pixel, 1 half_pixel_symmetric,
 *                               2 pytorch_half_pixel, 3 align_corners,
 *                               4 asymmetric, 5 tf_crop_and_resize
 *                  nearest_mode 0 round_prefer_floor, 1 round_prefer_ceil,
 *                               2 floor, 3 ceil
 *                  exclude_outside, antialias  switches of linear and cubic
 *                  cubic_coeff_a, extrapolation_value  finite
 *                The float attributes may be followed by a scale per axis in
 *                [2^-24, 2^24] (0: output length / input length), and by a
 *                start and then an end per axis (roi) in [-2^20, 2^20], else 0
 *                and 1.  Coordinates that differ by at most 2^-40 of the input
 *                length count as equal (lengths up to 2^20)
 *  TOPK          F -> F values and i64 indices along axis ints[0], which gets
 *                the length k, ints[1], in [0, length]; the length is below
 *                2^32.  The k largest (ints[2] = 1) or smallest (ints[2] = 0)
 *                elements, best first (ints[3] = 1, sorted) or in any order
 *                (ints[3] = 0).  NaN is larger than any number.  Equal
 *                elements: lowest index first
 *  POOL          F[n][c][spatial...] -> F[n][c][windows...]; one to three
 *                spatial axes (NHWC is passed as a view).  The lists kernel,
 *                strides, dilations, begins, ends, with a number per spatial
 *                axis, follow the table's attributes.  Window i has elements
 *                i * stride - begin + k * dilation, 0 <= k < kernel, of the
 *                input.  Its span is (kernel - 1) * dilation + 1.  An axis has
 *                (length + begin + end - span) / stride + 1 windows, rounded
 *                down, or none if that is negative.  ceil_mode 1 rounds up if
 *                the last window begins before the input's end.  Output 1: i64
 *  CONV          F; inputs x [n][c][spatial...], weight, optionally bias [m],
 *                and with residual 1 a residual like the output; group divides
 *                c and m.  The lists strides, dilations, begins, ends follow.
 *                conv: weight [m][c / group][kernel...], output [n][m] and
 *                windows as in POOL; padding is 0.  conv_transpose: weight
 *                [c][m / group][kernel...]; the list output_padding, below the
 *                stride or dilation, follows ends; an axis has (length - 1) *
 *                stride + span - begin - end + output_padding elements.
 *                Padding times infinity or NaN may give 0 or NaN
 *  ATTENTION     q F[n][h][queries][d], k F[n][g][keys][d], v F[n][g][keys][e]
 *                -> F[n][h][queries][e]; g divides h.  Optional mask, added (F)
 *                or false for keys to leave out (bool), which broadcasts to
 *                [n][h][queries][keys]
 *  ROTARY_EMBEDDING  F[n][h][tokens][d] and cos, sin F[n][tokens][w / 2], or
 *                F[length][w / 2] and i32 or i64 positions [n][tokens]
 *  GEMM          a [...][m][k], b [...][k][n] -> [...][m][n]; the dimensions
 *                before the last two broadcast like NumPy.  Optionally bias,
 *                [n] (a number per column) or [m][1] (per row), and with
 *                residual 1 a residual like the output, which the output may
 *                be.  If k or alpha is 0, a and b are not read and their
 *                product is 0.  a and b have one dtype, the others one: f32
 *                or, with TANDEM_CAP_F16_BF16_STORAGE, f16 or bf16.  Sums and
 *                the epilogue are f32; a 16-bit result is rounded once.  The
 *                stride is 1 along one of the last two dimensions of a and of
 *                b, and along the last one of bias and output; other strides
 *                are as in struct tandem_gemm, or the call is UNSUPPORTED
 * A negative axis or index counts from the end.  NaN propagates through every
 * operator that computes, also max, min, relu and clip, but need not reach a
 * result that is unspecified, which may be any number, infinity or NaN.  argmax
 * and argmin return the first NaN. */
#define TANDEM_CLASSES(X) \
X(UNARY,          1, unary) \
X(BINARY,         2, binary) \
X(COMPARE,        3, compare) \
X(LOGICAL,        4, logical) \
X(TERNARY,        5, ternary) \
X(GRADIENT,       6, gradient) \
X(OPTIMIZER,      7, optimizer) \
X(CAST,           8, cast) \
X(COPY,           9, copy) \
X(TRANSPOSE,     10, transpose) \
X(REDUCE,        11, reduce) \
X(ARG_REDUCE,    12, arg_reduce) \
X(DOT,           13, dot) \
X(SOFTMAX,       14, softmax) \
X(CROSS_ENTROPY, 15, cross_entropy) \
X(GATHER,        16, gather) \
X(GEMM,          17, gemm) \
X(NORM,          19, norm) \
X(CUMSUM,        20, cumsum) \
X(SCATTER,       21, scatter) \
X(RESIZE,        22, resize) \
X(TOPK,          23, topk) \
X(CONCAT,        24, concat) \
X(PAD,           25, pad) \
X(ONE_HOT,       26, one_hot) \
X(RANGE,         27, range) \
X(TRILU,         28, trilu) \
X(POOL,          30, pool) \
X(CONV,          31, conv) \
X(CHANNEL_NORM,  32, channel_norm) \
X(ATTENTION,     33, attention) \
X(ROTARY_EMBEDDING, 34, rotary_embedding)

enum tandem_op_class {
#define TANDEM_CLASS_ENUM(ID, number, ...) TANDEM_CLASS_##ID = number,
    TANDEM_CLASSES(TANDEM_CLASS_ENUM)
#undef TANDEM_CLASS_ENUM
    TANDEM_CLASS_END = 64 /* greater than the number of every class */
};

/* Maximum difference between a result and the reference r, which is computed in
 * float64 from the same inputs.  eps is 2^-24, half the distance from 1 to the
 * next f32; t is the tolerance in the operator table; u(r) is the distance of
 * neighbouring f32 values at r.
 * Subnormal inputs and results may be flushed to zero; so may a result if r
 * minus its tolerance is subnormal.  If r is subnormal, every metric except
 * EXACT and ULP allows at least 8 * 2^-149.  (This holds for f32 and bf16.  f16
 * subnormals are normal numbers in f32 and are kept.)
 * swish, gelu, mish and hardswish of -inf may be 0 or NaN.  log_sum_exp of a
 * row with +inf and without NaN is +inf; of a row of -inf it is -inf.
 *   EXACT    same value; all NaN are equal, and so are +0 and -0
 *   ULP      t * u(r)
 *   ULP_PLUS_INPUT  t * u(r) + 2^-20 * |x|
 *   SUM      (t + log2 n) * 2 eps * s for n terms; s is the sum of their
 *            magnitudes, divided or rooted like the result.  Holds also if a
 *            partial sum exceeds the range of f32
 *   LOG_SUM_EXP  (t + log2 n) * 2 eps * max(1, |r|, largest |x| of the row)
 *   SOFTMAX  (t + log2 n + |x - max x|) * 2 eps * |r|
 *   PROD     (t + n) * 2 eps * |r| for n factors; partial products are rounded
 *            to f32.  The result is unspecified if the product of all finite
 *            |x| > 1 is above 2^127, or that of all nonzero |x| < 1 is below
 *            2^-125.  It is always NaN if an x is NaN, or if one x is 0 and
 *            another is infinite
 *   GEMM     (t + 2 sqrt k) * 2 eps * s + (k + 2) * max(1, |alpha|) * 2^-126;
 *            s = |alpha| sum |a||b| + |beta c| + |bias|.  An activation has its
 *            metric for an argument within this bound.  A 16-bit c rounds such
 *            a result.  The row of gemm says what is unspecified
 *   TERM_MAGNITUDE  t * 2 eps * s, with s from the operator's row.  Holds for
 *            all inputs, infinities and NaN included, and if intermediate
 *            results leave the range of f32, except for unspecified results
 * The order of additions and multiplications in REDUCE and DOT is unspecified,
 * but fixed for one device, shapes, strides and byte offsets. */
enum tandem_metric {
    TANDEM_METRIC_EXACT = 1,
    TANDEM_METRIC_ULP = 2,
    TANDEM_METRIC_ULP_PLUS_INPUT = 3,
    TANDEM_METRIC_SUM = 4,
    TANDEM_METRIC_LOG_SUM_EXP = 5,
    TANDEM_METRIC_SOFTMAX = 6,
    TANDEM_METRIC_PROD = 7,
    TANDEM_METRIC_GEMM = 8,
    TANDEM_METRIC_TERM_MAGNITUDE = 9
};

/* Cost classes: the operators of a class have the same cost curve. Their time
 * is bound by memory, by transcendental functions, or by the access pattern.
 * STRIDED is the class of copies, and of element-wise work with strides.
 * A row is X(ID, number, name of the curve in a profile, operator that cl-probe
 *   measures). Numbers are consecutive. */
#define TANDEM_COST_CLASSES(X) \
X(ELEMENTWISE,          0, elementwise,          ADD) \
X(TRANSCENDENTAL,       1, transcendental,       EXP) \
X(MULTI_TRANSCENDENTAL, 2, multi_transcendental, GELU) \
X(REDUCE,               3, reduce,               SUM) \
X(SOFTMAX,              4, softmax,              SOFTMAX) \
X(STRIDED,              5, strided,              TRANSPOSE) \
X(GATHER,               6, gather,               GATHER) \
X(OPTIMIZER,            7, optimizer,            ADAM) \
X(GEMM,                 8, gemm,                 GEMM) \
X(NORM,                 9, norm,                 LAYER_NORM)

enum tandem_cost_class {
#define TANDEM_COST_ENUM(ID, number, ...) TANDEM_COST_##ID = number,
    TANDEM_COST_CLASSES(TANDEM_COST_ENUM)
#undef TANDEM_COST_ENUM
    TANDEM_COST_CLASS_COUNT
};

/* The operators. Plugins, the host, the conformance suite, cl-probe and the
 * documentation are made from this list. Numbers are part of the ABI and never
 * reused. Names are those of ONNX, else of PyTorch.
 * A row is X(ID, number, name, class, number of inputs (the minimum for CONCAT,
 *   CONV, ATTENTION and ROTARY_EMBEDDING), number of outputs,
 *   names of integer attributes, their count, names of float attributes,
 *   their count, cost class, metric, tolerance, required, formula)
 * required is 1 if devices with TANDEM_CAP_CORE_OPERATORS must support the
 * operator in f32 (LOGICAL: bool). */
#define TANDEM_OPERATORS(X) \
X(NEG,         1, "neg",        UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "-x") \
X(ABS,         2, "abs",        UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "|x|") \
X(SIGN,        3, "sign",       UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "-1, 0 or 1 as x is below, at or above 0") \
X(FLOOR,       4, "floor",      UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "the largest integer <= x") \
X(CEIL,        5, "ceil",       UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "the smallest integer >= x") \
X(ROUND,       6, "round",      UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "the nearest integer, halves to even") \
X(SQRT,        7, "sqrt",       UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, ULP, 3, 1, "x^(1/2)") \
X(RSQRT,       8, "rsqrt",      UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, ULP, 4, 1, "x^(-1/2)") \
X(RECIPROCAL,  9, "reciprocal", UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, ULP, 3, 1, "1 / x") \
X(EXP,        10, "exp",        UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "e^x") \
X(EXPM1,      11, "expm1",      UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "e^x - 1") \
X(LOG,        12, "log",        UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "ln x") \
X(LOG1P,      13, "log1p",      UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "ln(1 + x)") \
X(SIN,        14, "sin",        UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "sin x") \
X(COS,        15, "cos",        UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "cos x") \
X(TANH,       16, "tanh",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 5, 1, "tanh x") \
X(ERF,        17, "erf",        UNARY, 1, 1, "", 0, "", 0, MULTI_TRANSCENDENTAL, ULP, 16, 1, "2/sqrt(pi) integral of e^(-t^2) from 0 to x") \
X(SIGMOID,    18, "sigmoid",    UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "1 / (1 + e^-x)") \
X(RELU,       19, "relu",       UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "max(x, 0)") \
X(LEAKY_RELU, 20, "leaky_relu", UNARY, 1, 1, "", 0, "alpha", 1, ELEMENTWISE, ULP, 1, 1, "x where x >= 0, else alpha x") \
X(ELU,        21, "elu",        UNARY, 1, 1, "", 0, "alpha", 1, TRANSCENDENTAL, ULP, 4, 1, "x where x >= 0, else alpha (e^x - 1)") \
X(CLIP,       22, "clip",       UNARY, 1, 1, "", 0, "min,max", 2, ELEMENTWISE, EXACT, 0, 1, "min(max(x, min), max)") \
X(SWISH,      23, "swish",      UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP_PLUS_INPUT, 4, 1, "x / (1 + e^-x)") \
X(GELU,       24, "gelu",       UNARY, 1, 1, "approximate", 1, "", 0, MULTI_TRANSCENDENTAL, ULP_PLUS_INPUT, 4, 1, "x (1 + erf(x / sqrt 2)) / 2; approximate 1: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2") \
X(SOFTPLUS,   25, "softplus",   UNARY, 1, 1, "", 0, "", 0, MULTI_TRANSCENDENTAL, ULP, 4, 1, "ln(1 + e^x)") \
X(MISH,       26, "mish",       UNARY, 1, 1, "", 0, "", 0, MULTI_TRANSCENDENTAL, ULP_PLUS_INPUT, 4, 1, "x tanh(ln(1 + e^x))") \
X(HARDSWISH,  27, "hardswish",  UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, TERM_MAGNITUDE, 4, 1, "x min(max(x / 6 + 1/2, 0), 1); s = |x|") \
X(HARDSIGMOID, 28, "hardsigmoid", UNARY, 1, 1, "", 0, "alpha,beta", 2, ELEMENTWISE, TERM_MAGNITUDE, 4, 1, "min(max(alpha x + beta, 0), 1); s = |alpha x| + |beta|") \
X(SOFTSIGN,   29, "softsign",   UNARY, 1, 1, "", 0, "", 0, ELEMENTWISE, ULP, 4, 1, "x / (1 + |x|)") \
X(SELU,       30, "selu",       UNARY, 1, 1, "", 0, "alpha,gamma", 2, TRANSCENDENTAL, ULP, 4, 1, "gamma x where x >= 0, else c (e^x - 1), c = alpha gamma") \
X(CELU,       31, "celu",       UNARY, 1, 1, "", 0, "alpha", 1, TRANSCENDENTAL, ULP, 8, 1, "x where x >= 0, else alpha (e^(x / alpha) - 1); alpha > 0") \
X(THRESHOLDED_RELU, 32, "thresholded_relu", UNARY, 1, 1, "", 0, "alpha", 1, ELEMENTWISE, EXACT, 0, 1, "0 where x <= alpha, else x") \
X(TAN,        33, "tan",        UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 6, 1, "tan x") \
X(ASIN,       34, "asin",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "arcsin x") \
X(ACOS,       35, "acos",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "arccos x") \
X(ATAN,       36, "atan",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 5, 1, "arctan x") \
X(SINH,       37, "sinh",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "sinh x") \
X(COSH,       38, "cosh",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "cosh x") \
X(ASINH,      39, "asinh",      UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "arsinh x") \
X(ADD,        40, "add",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a + b") \
X(SUB,        41, "sub",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a - b") \
X(MUL,        42, "mul",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a b") \
X(DIV,        43, "div",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, ULP, 3, 1, "a / b") \
X(POW,        44, "pow",        BINARY, 2, 1, "", 0, "", 0, MULTI_TRANSCENDENTAL, ULP, 16, 1, "a^b as C99 pow") \
X(MIN,        45, "min",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "the smaller of a, b; NaN if either is") \
X(MAX,        46, "max",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "the larger of a, b; NaN if either is") \
X(PRELU,      47, "prelu",      BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, ULP, 1, 1, "x where x >= 0, else slope x; inputs x, slope") \
X(MOD,        48, "mod",        BINARY, 2, 1, "", 0, "", 0, MULTI_TRANSCENDENTAL, ULP, 1, 1, "a - b floor(a / b): fmod(a, b), plus b if its sign is not that of b") \
X(FMOD,       49, "fmod",       BINARY, 2, 1, "", 0, "", 0, MULTI_TRANSCENDENTAL, EXACT, 0, 1, "a - b trunc(a / b) as C99 fmod") \
X(EQUAL,         50, "equal",            COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a = b") \
X(NOT_EQUAL,     51, "not_equal",        COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a != b") \
X(LESS,          52, "less",             COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a < b") \
X(LESS_EQUAL,    53, "less_or_equal",    COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a <= b") \
X(GREATER,       54, "greater",          COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a > b") \
X(GREATER_EQUAL, 55, "greater_or_equal", COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a >= b") \
X(IS_NAN,        56, "isnan",            COMPARE, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "x is NaN") \
X(IS_INF,        57, "isinf",            COMPARE, 1, 1, "detect_negative,detect_positive", 2, "", 0, ELEMENTWISE, EXACT, 0, 1, "x is -inf and detect_negative is 1, or inf and detect_positive is 1") \
X(AND,        60, "and",        LOGICAL, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a and b") \
X(OR,         61, "or",         LOGICAL, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a or b") \
X(XOR,        62, "xor",        LOGICAL, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a or b, not both") \
X(NOT,        63, "not",        LOGICAL, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "not a") \
X(WHERE,      66, "where",      TERNARY, 3, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "b where a, else c") \
X(FMA,        67, "fma",        TERNARY, 3, 1, "", 0, "", 0, ELEMENTWISE, ULP, 1, 1, "a b + c, rounded once") \
X(CONCAT,     68, "concat",     CONCAT, 1, 1, "axis", 1, "", 0, STRIDED, EXACT, 0, 1, "one or more inputs, one after the other along axis") \
X(PAD,        69, "pad",        PAD, 1, 1, "mode,value", 2, "value", 1, STRIDED, EXACT, 0, 1, "x between added elements; mode 0: the value, which is floats[0] for float dtypes, else ints[1]; 1: x mirrored at its first and last element; 2: the first and the last element; 3: x repeated") \
X(CAST,       70, "cast",       CAST, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "x in the output's dtype") \
X(COPY,       71, "copy",       COPY, 1, 1, "", 0, "", 0, STRIDED, EXACT, 0, 1, "x") \
X(TRANSPOSE,  72, "transpose",  TRANSPOSE, 1, 1, "perm", 0, "", 0, STRIDED, EXACT, 0, 1, "x with its axes permuted") \
X(GATHER,     73, "gather",     GATHER, 2, 1, "axis", 1, "", 0, GATHER, EXACT, 0, 1, "data[index] along axis") \
X(GATHER_ELEMENTS, 74, "gather_elements", GATHER, 2, 1, "axis", 1, "", 0, GATHER, EXACT, 0, 1, "data[p], where index[p] replaces the position p along axis") \
X(GATHER_ND,  75, "gather_nd",  GATHER, 2, 1, "batch_dims", 1, "", 0, GATHER, EXACT, 0, 1, "data[batch, index] for each vector in the last axis of indices") \
X(SCATTER_ELEMENTS, 76, "scatter_elements", SCATTER, 3, 1, "axis,reduction", 2, "", 0, GATHER, EXACT, 0, 1, "data; y[p] = reduction(y[p], updates[i]) in the order of i, p is i with index[i] as position along axis; partial results may be flushed to zero") \
X(SCATTER_ND, 77, "scatter_nd", SCATTER, 3, 1, "reduction", 1, "", 0, GATHER, EXACT, 0, 1, "data; y[index] = reduction(y[index], updates[i]) for each vector in the last axis of indices, in order; partial results may be flushed to zero") \
X(RESIZE,     78, "resize",     RESIZE, 1, 1, "mode,coordinate_transformation_mode,nearest_mode,exclude_outside,antialias", 5, "cubic_coeff_a,extrapolation_value", 2, STRIDED, TERM_MAGNITUDE, 16, 1, "sum of weight x over the taps of each axis, the elements that a result is interpolated from; nearest: exact; docs/operators.md (Resize) defines the weights, s and the unspecified results") \
X(TILE,       79, "tile",       PAD, 1, 1, "repeats", 0, "", 0, STRIDED, EXACT, 0, 1, "x repeated along each axis") \
X(SUM,        80, "reduce_sum",  REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, SUM, 8, 1, "sum x; 0 if empty") \
X(MEAN,       81, "reduce_mean", REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, SUM, 8, 1, "sum x / n; NaN if empty") \
X(PROD,       82, "reduce_prod", REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, PROD, 8, 1, "product of x; 1 if empty") \
X(REDUCE_MAX, 83, "reduce_max",  REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, EXACT, 0, 1, "max x; an empty reduction is an error") \
X(REDUCE_MIN, 84, "reduce_min",  REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, EXACT, 0, 1, "min x; an empty reduction is an error") \
X(SUM_SQUARE, 85, "reduce_sum_square",  REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, SUM, 8, 1, "sum x^2") \
X(L2,         86, "reduce_l2",          REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, SUM, 8, 1, "(sum x^2)^(1/2)") \
X(LOG_SUM_EXP, 87, "reduce_log_sum_exp", REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, LOG_SUM_EXP, 8, 1, "m + ln sum e^(x - m), m = max x; -inf if empty") \
X(ARGMAX,     88, "argmax",     ARG_REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, EXACT, 0, 1, "the index of the first maximum") \
X(ARGMIN,     89, "argmin",     ARG_REDUCE, 1, 1, "axes,keepdims", 2, "", 0, REDUCE, EXACT, 0, 1, "the index of the first minimum") \
X(DOT,        90, "dot",        DOT, 2, 1, "", 0, "", 0, REDUCE, SUM, 8, 1, "sum a b") \
X(CUMSUM,     91, "cumsum",     CUMSUM, 1, 1, "axis,exclusive,reverse", 3, "", 0, SOFTMAX, SUM, 8, 1, "sum of x along axis, from the first element to this one; exclusive 1: without this one; reverse 1: from the last element; n is the length of the axis; unspecified where the sum of the finite |x| exceeds 2^127") \
X(TOPK,       92, "topk",       TOPK, 1, 2, "axis,k,largest,sorted", 4, "", 0, REDUCE, EXACT, 0, 1, "the k largest or smallest x along axis, and their indices") \
X(ONE_HOT,    93, "one_hot",    ONE_HOT, 2, 1, "axis,depth", 2, "", 0, STRIDED, EXACT, 0, 1, "inputs index values: values[1] where the position along axis is the index, else values[0]") \
X(RANGE,      94, "range",      RANGE, 0, 1, "start,delta", 2, "start,delta", 2, ELEMENTWISE, TERM_MAGNITUDE, 2, 1, "start + i delta, from the floats for f32, else from the ints, which wrap around; s = |start| + |i delta|") \
X(SOFTMAX,    95, "softmax",     SOFTMAX, 1, 1, "axis", 1, "", 0, SOFTMAX, SOFTMAX, 8, 1, "e^(x - m) / sum e^(x - m), m = max x") \
X(LOG_SOFTMAX, 96, "log_softmax", SOFTMAX, 1, 1, "axis", 1, "", 0, SOFTMAX, LOG_SUM_EXP, 8, 1, "x - m - ln sum e^(x - m)") \
X(CROSS_ENTROPY, 97, "softmax_cross_entropy", CROSS_ENTROPY, 2, 1, "", 0, "", 0, SOFTMAX, LOG_SUM_EXP, 8, 1, "-log_softmax(x)[label], [n]") \
X(CROSS_ENTROPY_GRAD, 98, "softmax_cross_entropy_grad", CROSS_ENTROPY, 2, 1, "", 0, "scale", 1, SOFTMAX, TERM_MAGNITUDE, 32, 1, "scale (softmax(x) - onehot(label)), [n][c]; s = |scale| (p (1 + |x - m| / 16) + onehot)") \
X(TRILU,      99, "trilu",      TRILU, 1, 1, "upper,diagonal", 2, "", 0, STRIDED, EXACT, 0, 1, "x where column - row >= diagonal (upper 1) or <= diagonal (upper 0), else 0") \
X(LAYER_NORM, 102, "layer_norm", NORM, 3, 1, "axis", 1, "epsilon", 1, NORM, TERM_MAGNITUDE, 8, 1, "inputs x scale bias: h scale + bias, h = (x - m) / d, d = (v + epsilon)^(1/2), m and v the mean and variance of x; s = |scale| (1 + |h|) (|x| + mean |x|) / d + |bias|; a subnormal m, and an |h| below 2^-100, may be taken as 0; unspecified if d is 0 and some x is not 0, or if scale is infinite and d is finite") \
X(RMS_NORM,   103, "rms_norm",   NORM, 2, 1, "axis", 1, "epsilon", 1, NORM, TERM_MAGNITUDE, 16, 1, "inputs x scale: h scale, h = x / (mean x^2 + epsilon)^(1/2); s = |result|; an |h| below 2^-100 may be taken as 0") \
X(BATCH_NORM, 109, "batch_norm", CHANNEL_NORM, 5, 1, "", 0, "epsilon", 1, ELEMENTWISE, TERM_MAGNITUDE, 4, 1, "inputs x scale bias mean variance: scale (x - mean) / d + bias, d = (variance + epsilon)^(1/2); s = |scale| (|x| + |mean|) / d + |bias|; unspecified if variance is negative, or if it is subnormal and epsilon < 2^-110") \
X(INSTANCE_NORM, 112, "instance_norm", CHANNEL_NORM, 3, 1, "", 0, "epsilon", 1, NORM, TERM_MAGNITUDE, 8, 1, "group_norm with groups = c") \
X(GROUP_NORM, 113, "group_norm", CHANNEL_NORM, 3, 1, "groups", 1, "epsilon", 1, NORM, TERM_MAGNITUDE, 8, 1, "inputs x scale bias: h scale + bias with h, s and the exceptions of layer_norm; the mean and the variance are those of c / groups consecutive channels and all spatial axes") \
X(RELU_GRAD,  100, "relu_grad", GRADIENT, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "0 where x <= 0, else dy; inputs dy, x") \
X(AVERAGE_POOL, 104, "average_pool", POOL, 1, 1, "ceil_mode,count_include_pad", 2, "", 0, STRIDED, SUM, 8, 1, "sum of the window / number of its elements; with count_include_pad 1, elements in the padding count; NaN if none counts") \
X(MAX_POOL,   105, "max_pool",  POOL, 1, 1, "ceil_mode", 1, "", 0, STRIDED, EXACT, 0, 1, "max of the window; -inf if it is empty") \
X(MAX_POOL_INDICES, 106, "max_pool_indices", POOL, 1, 2, "ceil_mode", 1, "", 0, STRIDED, EXACT, 0, 1, "max_pool, and the row-major index of the first maximum in the input; -1 if the window is empty") \
X(CONV,       107, "conv",       CONV, 2, 1, "group,activation,residual", 3, "activation_parameter,activation_parameter2", 2, GEMM, GEMM, 8, 1, "activation(sum weight x + bias + residual), over the channels of the group and the window; s, k and unspecified results as in gemm, with alpha = 1") \
X(CONV_TRANSPOSE, 108, "conv_transpose", CONV, 2, 1, "group,activation,residual", 3, "activation_parameter,activation_parameter2", 2, GEMM, GEMM, 8, 1, "like conv, with the sum over the windows of conv that cover the element") \
X(ATTENTION,  114, "attention",  ATTENTION, 3, 1, "causal,past", 2, "scale,softcap", 2, GEMM, TERM_MAGNITUDE, 32, 1, "softmax(cap(scale q k^T) + mask) v, head i of q with head floor(i g / h) of k and v; cap(x) = softcap tanh(x / softcap) if softcap > 0; causal 1: query i has the keys 0 to i + past only; 0 without keys; s = (1 + a) sum p |v|, p the softmax, a the largest |scale| sum |q k| + |mask| of the keys that are not left out; weights of v below 2^-125 may be 0; all results of a query are unspecified if a > 2^16, if the query or any key of its head has an infinity or NaN, or if its row of the mask has +inf or NaN; a result is unspecified if its column of v has an infinity or NaN, or if the sum of |v| over the column exceeds 2^126; keys that are left out count in these checks of k, v and the mask") \
X(ROTARY_EMBEDDING, 115, "rotary_embedding", ROTARY_EMBEDDING, 3, 1, "interleaved,rotary_dim", 2, "", 0, ELEMENTWISE, TERM_MAGNITUDE, 2, 1, "the first w = rotary_dim (0: d) elements of a row are pairs (a, b), which become (a c - b s, a s + b c) with c and s from the pair's column of cos and sin; interleaved 1: neighbours; 0: b is w / 2 after a; the others are copied; NaN for a position out of range; the sum s of magnitudes is |a c| + |b s| or |a s| + |b c|; terms below 2^-125 may be 0; unspecified if a finite term exceeds 2^126") \
X(SGD,        110, "sgd",       OPTIMIZER, 3, 2, "nesterov", 1, "lr,momentum,dampening,weight_decay", 4, OPTIMIZER, TERM_MAGNITUDE, 8, 1, "inputs w g m, outputs w' m': d = g + weight_decay w; m' = momentum m + (1 - dampening) d; w' = w - lr (nesterov ? d + momentum m' : m'); docs/operators.md (Optimizers) defines s and the unspecified results") \
X(ADAM,       111, "adam",      OPTIMIZER, 4, 3, "step,decoupled_weight_decay", 2, "lr,beta1,beta2,eps,weight_decay", 5, OPTIMIZER, TERM_MAGNITUDE, 32, 1, "inputs w g m v, outputs w' m' v': h = g + (decoupled_weight_decay ? 0 : weight_decay w); m' = beta1 m + (1 - beta1) h; v' = beta2 v + (1 - beta2) h^2; q = (v' / (1 - beta2^step))^(1/2) + eps; w' = w - (decoupled_weight_decay ? lr weight_decay w : 0) - lr m' / (1 - beta1^step) / q; step from 1; q takes v' before it is rounded to f32; a finite v' above the largest f32 is stored as the largest f32; docs/operators.md (Optimizers) defines s and the unspecified results") \
X(GEMM,       120, "gemm",      GEMM, 2, 1, "activation,residual", 2, "alpha,beta,activation_parameter,activation_parameter2", 4, GEMM, GEMM, 8, 1, "inputs a b, bias if any, and the residual c: activation(alpha a b + beta c + bias); products may be flushed to zero; unspecified (sums may overflow) if the sum of the finite terms of s, divided by |alpha| if 0 < |alpha| < 1, exceeds 2^127") \
X(ACOSH,     121, "acosh",      UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "arcosh x") \
X(ATANH,     122, "atanh",      UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 5, 1, "artanh x") \
X(EXP2,      123, "exp2",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "2^x") \
X(LOG2,      124, "log2",       UNARY, 1, 1, "", 0, "", 0, TRANSCENDENTAL, ULP, 4, 1, "log2 x")

enum tandem_op_id {
    TANDEM_OP_INVALID = 0,
#define TANDEM_OP_ENUM(ID, number, ...) TANDEM_OP_##ID = number,
    TANDEM_OPERATORS(TANDEM_OP_ENUM)
#undef TANDEM_OP_ENUM
    TANDEM_OP_ID_END = 256 /* greater than the id of every operator */
};

#endif
