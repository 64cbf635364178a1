/* SPDX-License-Identifier: Apache-2.0 */
/* tandem/backend.h - the interface between a host and a compute backend plugin.
 *
 * A plugin is a shared object that exports one function,
 * tandem_backend_query(), which returns a table of functions.  Both sides need
 * only this header.  It includes standard headers only and may be copied into
 * other projects.
 *
 * Rules for every declaration below
 *
 *   Growth     A struct that is passed by pointer begins with struct_size.  The
 *              side that allocates the struct sets it to its sizeof.  Within
 *              a major version, fields are appended and never moved or removed.
 *              A reader treats fields beyond struct_size as zero.  A callee
 *              that fills a struct writes no byte beyond struct_size.
 *              TANDEM_INVALID_ARGUMENT is returned if struct_size is below
 *              TANDEM_..._MIN_SIZE_1_0 (below), or below sizeof(size_t) for a
 *              struct that is filled.
 *              struct tandem_tensor_desc and struct tandem_matrix have no
 *              struct_size and do not change within a major version.
 *   Units      Sizes and offsets are in bytes unless the name says elements;
 *              strides and leading dimensions are in elements; times are in ns.
 *   Threads    Functions that take a device may be called from any thread at
 *              any time.  A stream may be used by one thread at a time.  Events
 *              and buffers may be used from any thread.
 *   Blocking   Only functions marked [blocks] wait for device work.  Their
 *              timeout_ns is 0 to poll, TANDEM_TIMEOUT_INFINITE to wait without
 *              a limit.  A wait that times out returns TANDEM_NOT_READY.
 *   Errors     A function that fails returns a status other than TANDEM_OK and
 *              sets the message of the calling thread (last_error).  It sets
 *              its output pointers to NULL or 0 and has started no device work.
 *              No function aborts, exits, prints or throws.
 *   Sticky     If work fails after its call returned TANDEM_OK, its stream
 *   errors     keeps the error, and the buffers that the work should have
 *              written are poisoned.  While a stream has an error, each enqueue
 *              returns that error and does nothing.  The next
 *              stream_synchronize, event_wait or blocking download of the
 *              stream returns the error.  stream_synchronize also clears it,
 *              except TANDEM_DEVICE_LOST, which is never cleared.  Reading a
 *              poisoned buffer or using it as an input returns the error.  An
 *              upload or fill of the whole buffer clears the poison.
 *   Flags      A flag that the callee does not know is TANDEM_INVALID_ARGUMENT.
 *   NULL       Destroy and free functions accept NULL.  Elsewhere NULL is
 *              TANDEM_INVALID_ARGUMENT unless a comment allows it.
 *
 * Version history: the file CHANGES in the directory of this header. */
#ifndef TANDEM_BACKEND_H
#define TANDEM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_ABI_MAJOR 1u
#define TANDEM_ABI_MINOR 0u

#define TANDEM_MAX_RANK 8u
/* Maximum number of inputs, and of outputs, of an operator. */
#define TANDEM_MAX_OPERANDS 8u
/* Maximum number of integer attributes, and of float attributes. */
#define TANDEM_MAX_ATTRIBUTES 32u
#define TANDEM_TIMEOUT_INFINITE UINT64_MAX

/* ---- status ------------------------------------------------------------ */

enum tandem_status {
    TANDEM_OK = 0,
    /* The call is invalid: a pointer, shape, dtype, range or handle is wrong
     * (freed, for example). The message names the argument and its value. */
    TANDEM_INVALID_ARGUMENT = 1,
    /* The request is valid, but this backend or device does not support it. */
    TANDEM_UNSUPPORTED = 2,
    /* The device does not exist, or its driver is missing or rejected it. */
    TANDEM_NO_DEVICE = 3,
    TANDEM_OUT_OF_MEMORY = 4,
    /* The wait timed out, or the queried work is not complete. */
    TANDEM_NOT_READY = 5,
    /* The device or its driver context is gone (crash, reset, fork) and stays
     * lost. Close the device and open it again. */
    TANDEM_DEVICE_LOST = 6,
    /* A driver, compiler or library failed in another way. */
    TANDEM_FAILED = 7
};

/* ---- element types ----------------------------------------------------- */

/* The high byte of an element type is its type code in DLPack (DLDataTypeCode
 * in dlpack.h), the low byte its number of bits. DLPack's field lanes is 1. */
enum tandem_dtype {
    TANDEM_I8 = 0x0008,
    TANDEM_I16 = 0x0010,
    TANDEM_I32 = 0x0020,
    TANDEM_I64 = 0x0040,
    TANDEM_U8 = 0x0108,
    TANDEM_U16 = 0x0110,
    TANDEM_U32 = 0x0120,
    TANDEM_U64 = 0x0140,
    TANDEM_F16 = 0x0210,
    TANDEM_F32 = 0x0220,
    TANDEM_F64 = 0x0240,
    TANDEM_BF16 = 0x0410,
    TANDEM_BOOL = 0x0608 /* stored as one byte, 0 or 1 */
};
#define TANDEM_DTYPE_BYTES(dtype) (((dtype)&0xffu) / 8u)

/* ---- opaque handles, owned by the plugin -------------------------------- */

struct tandem_device; /* an opened device */
struct tandem_stream; /* an in-order queue of work on a device */
struct tandem_event;  /* a point in the work of a stream */
struct tandem_buffer; /* memory of one device */
struct tandem_graph;  /* a captured sequence of launches */

/* A tensor as a plugin sees it: a view of a buffer. byte_offset is the position
 * of element (0, ..., 0). Strides are in elements and may be 0 or negative.
 * Every element must be inside the buffer. A tensor of rank 0 has one element.
 * If the shape contains a 0, the tensor is empty and is neither read nor
 * written. Strides that do not affect the position of any element are
 * ignored. */
struct tandem_tensor_desc {
    struct tandem_buffer *buffer;
    uint64_t byte_offset;
    uint32_t dtype; /* enum tandem_dtype */
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t strides[TANDEM_MAX_RANK];
};

/* ---- operators ---------------------------------------------------------- */

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
 *  GEMM          struct tandem_gemm
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
X(LAYER_NORM, 102, "layer_norm", NORM, 3, 1, "axis", 1, "epsilon", 1, NORM, TERM_MAGNITUDE, 8, 1, "inputs x scale bias: h scale + bias, h = (x - m) / d, d = (v + epsilon)^(1/2), m and v the mean and variance of x; s = |scale| (1 + |h|) (|x| + mean |x|) / d + |bias|; a subnormal m may be taken as 0; unspecified if d is 0 and some x is not 0, or if scale is infinite and d is finite") \
X(RMS_NORM,   103, "rms_norm",   NORM, 2, 1, "axis", 1, "epsilon", 1, NORM, TERM_MAGNITUDE, 16, 1, "inputs x scale: x scale / (mean x^2 + epsilon)^(1/2); s = |result|") \
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
X(GEMM,       120, "gemm",      GEMM, 0, 0, "", 0, "", 0, GEMM, GEMM, 8, 1, "activation(alpha op(a) op(b) + beta c + bias); products may be flushed to zero; unspecified (sums may overflow) if the sum of the finite terms of s, divided by |alpha| if 0 < |alpha| < 1, exceeds 2^127") \
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

struct tandem_gemm;

/* An operator with its attributes. ints and floats hold the attributes in the
 * order of the operator table. TANDEM_INVALID_ARGUMENT is returned if there are
 * fewer than in the table, or if a switch (keepdims, exclusive, reverse,
 * largest, sorted, exclude_outside, antialias, approximate, nesterov,
 * decoupled_weight_decay, detect_negative, detect_positive) is neither 0 nor 1.
 * Attributes that a later minor version appends are optional; without them the
 * operator works as before.  floats are rounded to f32.  Except for the bounds
 * of clip, rounding makes no attribute 0 or infinite, and a positive epsilon
 * (eps of adam) becomes at least 2^-126.
 *
 * Scalars: an operator of class BINARY, COMPARE, LOGICAL or TERNARY accepts
 * NULL instead of an input. The k-th NULL input has the value floats[k],
 * converted to the dtype of the other operands as by CAST, and the shape of a
 * rank-0 tensor. At least one input must be a tensor.
 *
 * gemm is set only for TANDEM_OP_GEMM, which launch rejects. */
struct tandem_op {
    size_t struct_size;
    uint32_t id;    /* enum tandem_op_id */
    uint32_t flags; /* enum tandem_op_flags */
    uint32_t int_count;
    uint32_t float_count;
    const int64_t *ints;
    const double *floats;
    const struct tandem_gemm *gemm;
};

enum tandem_op_flags {
    /* Two calls with equal arguments may give results that differ in bits. */
    TANDEM_OP_ALLOW_NONDETERMINISM = 1u << 0,
    /* conv may round like TANDEM_GEMM_ALLOW_TF32; others ignore the flag. */
    TANDEM_OP_ALLOW_TF32 = 1u << 1
};

/* A row-major matrix operand. Element (i, j) of batch b is at byte_offset +
 * (b * batch_stride + i * ld + j) * (bytes per element). ld and batch_stride
 * are ignored if they affect the position of no element. */
struct tandem_matrix {
    struct tandem_buffer *buffer;
    uint64_t byte_offset;
    int64_t ld;           /* elements from row to row, >= stored columns */
    int64_t batch_stride; /* elements between batches, >= 0 (0: all the same) */
};

enum tandem_gemm_flags {
    TANDEM_GEMM_TRANSPOSE_A = 1u << 0, /* a is stored k x m */
    TANDEM_GEMM_TRANSPOSE_B = 1u << 1, /* b is stored n x k */
    /* The inputs may be rounded to TF32 or to a similar precision. */
    TANDEM_GEMM_ALLOW_TF32 = 1u << 2,
    /* The error bound becomes normwise. Let R be the largest magnitude in row i
     * of op(a), and C that in column j of op(b). Element (i, j) of op(a) op(b)
     * has an error of at most 2^-21 times the sum of the magnitudes of its
     * products, plus 2^-38 k R C, plus the rounding of an f32 sum. */
    TANDEM_GEMM_ALLOW_NORMWISE_ERROR = 1u << 3
};

enum tandem_bias {
    TANDEM_BIAS_NONE = 0,
    TANDEM_BIAS_PER_COLUMN = 1, /* bias of n elements, added to every row */
    TANDEM_BIAS_PER_ROW = 2     /* bias of m elements, added to every column */
};

/* c = activation(alpha * op(a) op(b) + beta * c + bias), for each batch. op(a)
 * is m x k, op(b) k x n, c m x n; m, n, k >= 0, batch >= 1. If beta is 0, c is
 * not read (NaN in it does not propagate). Otherwise c is a residual, added
 * before the activation. If k or alpha is 0, a and b are not read and their
 * product is 0. alpha and beta are rounded to f32 first. c must not overlap a,
 * b or bias. c.batch_stride may be 0 only if batch is 1.
 *
 * a and b have one dtype, c and bias the same or another one: f32 or, with
 * TANDEM_CAP_F16_BF16_STORAGE, f16 or bf16. The sum over k and the epilogue
 * (alpha, beta, bias, activation) are f32. A 16-bit c is rounded once. */
struct tandem_gemm {
    size_t struct_size;
    uint32_t dtype; /* dtype of a and b */
    uint32_t flags; /* enum tandem_gemm_flags */
    int64_t m, n, k, batch;
    double alpha, beta;
    struct tandem_matrix a, b, c;
    struct tandem_buffer *bias; /* contiguous; NULL with TANDEM_BIAS_NONE */
    uint64_t bias_byte_offset;
    uint32_t bias_kind;  /* enum tandem_bias */
    /* TANDEM_OP_INVALID (none), or an operator of class UNARY */
    uint32_t activation;
    double activation_parameter;  /* first attribute of the activation */
    uint32_t c_dtype;             /* dtype of c and bias; 0: that of a and b */
    uint32_t reserved;            /* must be 0 */
    double activation_parameter2; /* second attribute of the activation */
};

/* ---- devices ------------------------------------------------------------ */

enum tandem_device_kind {
    TANDEM_DEVICE_CPU = 1,
    TANDEM_DEVICE_GPU = 2,
    TANDEM_DEVICE_ACCELERATOR = 3
};

enum tandem_device_caps {
    TANDEM_CAP_F64 = 1u << 0,
    /* Kernels compute in f16; some devices lack f16 vectors and functions. */
    TANDEM_CAP_F16_ARITHMETIC = 1u << 1,
    /* The device computes in host memory, so import_host makes no copy. */
    TANDEM_CAP_ZERO_COPY_IMPORT = 1u << 2,
    /* launch returns before the work is done. */
    TANDEM_CAP_ASYNC = 1u << 3,
    /* Operators are compiled at first use: call query_ready before launch. */
    TANDEM_CAP_JIT_COMPILATION = 1u << 4,
    /* Events of streams with TANDEM_STREAM_PROFILING have device times. */
    TANDEM_CAP_PROFILING = 1u << 5,
    /* capture_begin, capture_end and graph_launch work. */
    TANDEM_CAP_CAPTURE = 1u << 6,
    /* Every required operator works. Without this flag, call supports. */
    TANDEM_CAP_CORE_OPERATORS = 1u << 7,
    /* Test plugins only: open accepts the option "test.fault". */
    TANDEM_CAP_FAULT_INJECTION = 1u << 8,
    /* CAST and GEMM accept f16 and bf16. */
    TANDEM_CAP_F16_BF16_STORAGE = 1u << 9,
    /* The device shares the host's memory; import_host tests if this works. */
    TANDEM_CAP_UNIFIED_MEMORY = 1u << 10
};

/* Properties of a device. Strings are UTF-8 and truncated to fit. */
struct tandem_device_info {
    size_t struct_size;
    uint32_t kind; /* enum tandem_device_kind */
    uint32_t caps; /* enum tandem_device_caps */
    char name[128];
    char vendor[128];
    char platform[128];
    char driver_version[128]; /* version of the driver or library */
    uint8_t uuid[16];         /* zeros if unknown */
    char pci_address[24];     /* "0000:65:00.0", "" if unknown */
    char extensions[512];     /* extensions in use, separated by spaces */
    uint64_t memory_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_memory_bytes;
    uint32_t compute_units;
    uint32_t max_work_group_size;
    uint32_t clock_mhz;
    /* Index of an earlier device of this backend that is the same hardware with
     * another driver, or -1. */
    int32_t duplicate_of;
    char quirks[1024]; /* known driver quirks, separated by "; " */
};

enum tandem_log_level {
    TANDEM_LOG_ERROR = 1,
    TANDEM_LOG_WARNING = 2,
    TANDEM_LOG_INFO = 3,
    TANDEM_LOG_DEBUG = 4
};

/* Log callback. Called from any thread, also from the plugin's own, possibly
 * with signals blocked, in the "C" locale and the default floating-point
 * environment. Must not call the plugin. message has no newline and is valid
 * during the call. */
typedef void (*tandem_log_fn)(void *user, enum tandem_log_level level,
                              const char *message);

/* Keys of the options that are passed to open.  A plugin ignores unknown keys.
 *   cache_dir              directory for compiled programs (default: no cache)
 *   system_cache_dir       directory for the compiled programs of all users; it
 *                          is read if cache_dir lacks a program, and never
 *                          written; "" disables it (default: set at build time)
 *   cache_world_readable   "1": all users may read what is written to cache_dir
 *                          and to caches of drivers
 *   cache_limit_bytes      limit of cache_dir; the least recently used go first
 *   memory_limit_bytes     limit of the device memory that the plugin holds
 *   pack_cache_limit_bytes OpenCL: limit of the cache of packed GEMM operands;
 *                          0: no cache (default: 1/8 of the device memory)
 *   num_threads            limit of CPU threads; 0: as many as the process has
 *   max_isa                CPU: highest instruction set that is used:
 *                          generic|avx2|avx512, or generic|neon
 *   deterministic          "1": one kernel and GEMM path, whatever tuning says
 *   blocking_timeout_ms    OpenCL: close abandons builds and commands that take
 *                          longer; calls without a timeout that wait longer
 *                          return TANDEM_NOT_READY (default 300000; 0: never)
 *   compile_processes      OpenCL: limit of compile processes (default: 6)
 *   tuning                 the plugin's own section of the profile, JSON text
 *   self_test_only         "1": tune runs only the sm_90a self-test, and GEMM
 *                          uses no sm_90a program
 *   test.fault             needs TANDEM_CAP_FAULT_INJECTION: "launch:N:STATUS",
 *                          launch N (from 1) returns TANDEM_OK and fails later
 *                          with STATUS; "wait:N", wait N times out
 *   test.gemm_kernel       OpenCL: "clblast" or a GEMM kernel, and optionally
 *                          the number of splits of k, and of split tiles:
 *                          "simt-64x64", "simt-64x64:3:2" (docs/kernels.md)
 *   test.transfer_path     OpenCL: path of large transfers: "direct", "ring",
 *                          "mapped" or "staged" (docs/kernels.md)
 *   test.force_program_cache  "1": use cache_dir even if the driver caches
 */
struct tandem_open_options {
    size_t struct_size;
    uint32_t count; /* number of keys, and of values */
    uint32_t reserved;
    const char *const *keys; /* the strings are used only during open */
    const char *const *values;
    tandem_log_fn log; /* called until close returns; NULL: no messages */
    void *log_user;
};

/* ---- memory, streams ----------------------------------------------------- */

enum tandem_transfer_flags {
    /* The call returns at once. The caller must not change (upload) or use
     * (download) the host memory until the stream has finished the transfer. */
    TANDEM_TRANSFER_ASYNC = 1u << 0
};

enum tandem_map_flags {
    TANDEM_MAP_READ = 1u << 0,
    TANDEM_MAP_WRITE = 1u << 1
};

enum tandem_stream_flags {
    TANDEM_STREAM_PROFILING = 1u << 0 /* enables event_elapsed_ns; slower */
};

struct tandem_memory_stats {
    size_t struct_size;
    uint64_t allocated_bytes;     /* size of buffers that the caller holds */
    uint64_t cached_bytes;        /* size of freed memory kept for reuse */
    uint64_t peak_bytes;          /* maximum of allocated plus cached bytes */
    uint64_t limit_bytes;         /* 0 means no limit */
    uint64_t alloc_count;         /* successful calls of alloc */
    uint64_t driver_alloc_count;  /* calls of alloc that used the driver */
    uint64_t buffer_count;        /* number of buffers that the caller holds */
    uint64_t cached_kernel_count; /* compiled operators in memory */
};

/* Callback of tune, in its thread: a key and value for the profile section. */
typedef void (*tandem_tuning_result_fn)(void *user, const char *key,
                                        const char *value);

/* Minimum struct_size of the structs that the caller fills. It covers the
 * fields of version 1.0 and is constant within the major version. */
#define TANDEM_SIZE_THROUGH(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))
#define TANDEM_OP_MIN_SIZE_1_0 TANDEM_SIZE_THROUGH(struct tandem_op, gemm)
#define TANDEM_GEMM_MIN_SIZE_1_0 \
    TANDEM_SIZE_THROUGH(struct tandem_gemm, activation_parameter)
#define TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0 \
    TANDEM_SIZE_THROUGH(struct tandem_open_options, log_user)

/* ---- the table ------------------------------------------------------------
 * A plugin may leave functions marked Optional NULL.  libtandem replaces these
 * by the fallback, and does not load a plugin without a Required function. */
struct tandem_backend {
    size_t struct_size;
    uint32_t abi_major, abi_minor;
    const char *name;    /* "cpu", "opencl": [a-z0-9_-] only */
    const char *version; /* version of the plugin */

    /* Required. Returns the message of the calling thread's last failed call,
     * or "". Valid until the next call of the thread into the plugin. */
    const char *(*last_error)(void);

    /* -- devices -- */
    /* Required [blocks: driver start]. Counts the devices; only the first call
     * searches for them. If there is no device, returns TANDEM_NO_DEVICE, and
     * the message says what is missing and how to provide it. */
    enum tandem_status (*device_count)(uint32_t *out_count);
    /* Required. Describes a device. The caller sets out_info->struct_size. */
    enum tandem_status (*device_describe)(uint32_t index,
                                          struct tandem_device_info *out_info);
    /* Required [blocks: driver start]. Opens a device; options may be NULL.
     * Each call returns an independent device, which the caller closes. */
    enum tandem_status (*open)(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device);
    /* Required [blocks]. Waits for the device's work and frees all its objects.
     * Call it before exit: a driver that is still busy at exit may crash. */
    void (*close)(struct tandem_device *device);
    /* Optional [blocks]. Tunes kernels for budget_ns, plus up to 30 s to build
     * them, and passes results to sink. Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*tune)(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn sink, void *user);

    /* -- memory -- */
    /* Required. Allocates at least bytes bytes (0 is allowed), aligned to at
     * least 64, with undefined content. The caller frees the buffer. If memory
     * runs out, trims the pool of freed memory and retries once. Returns
     * TANDEM_NOT_READY if the device stays busy beyond a time limit. */
    enum tandem_status (*alloc)(struct tandem_device *device, uint64_t bytes,
                                struct tandem_buffer **out_buffer);
    /* Required. Frees a buffer and returns at once, even if work that uses the
     * buffer is incomplete. The memory belongs to the last stream that used it.
     * If another stream reuses it, the device first waits for this work. */
    void (*free)(struct tandem_buffer *buffer);
    /* Required. Copies from host to device. source may be reused on return,
     * except with TANDEM_TRANSFER_ASYNC. 0 bytes do nothing. Returns
     * TANDEM_NOT_READY if the stream stays busy until a time limit of the
     * plugin; the buffer is then unchanged, or poisoned if partly written. */
    enum tandem_status (*upload)(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags);
    /* Required [blocks, except with TANDEM_TRANSFER_ASYNC]. Copies from device
     * to host, after all earlier work of the stream. After TANDEM_NOT_READY the
     * stream is unchanged, and target may be partly written and must stay valid
     * until the stream is idle. */
    enum tandem_status (*download)(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, void *target,
                                   uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns);
    /* Required. Copies within a device. The two ranges must not overlap. */
    enum tandem_status (*copy)(struct tandem_stream *stream,
                               struct tandem_buffer *target,
                               uint64_t target_offset,
                               struct tandem_buffer *source,
                               uint64_t source_offset, uint64_t bytes);
    /* Required. Fills a range with repetitions of pattern, which has 1, 2, 4 or
     * 8 bytes. offset and bytes are multiples of pattern_bytes. */
    enum tandem_status (*fill)(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t pattern_bytes);
    /* Optional. Allocates 4096-aligned host memory, for fast transfers.
     * Fallback: pageable memory. */
    enum tandem_status (*host_alloc)(struct tandem_device *device,
                                     uint64_t bytes, void **out_memory);
    /* Optional. Frees memory of host_alloc. NULL exactly if host_alloc is. */
    void (*host_free)(struct tandem_device *device, void *memory);
    /* Optional. Makes a buffer in the caller's memory, which must outlive the
     * buffer and be aligned to its elements (any pointer or NULL for 0 bytes).
     * The caller does not touch the memory while work uses it. Fallback, and
     * result if a copy would be needed: TANDEM_UNSUPPORTED. */
    enum tandem_status (*import_host)(struct tandem_device *device,
                                      void *memory, uint64_t bytes,
                                      struct tandem_buffer **out_buffer);
    /* Optional [blocks]. Maps a range of the buffer to host memory until unmap.
     * Device work on the buffer is an error until then. Fallback:
     * TANDEM_UNSUPPORTED. */
    enum tandem_status (*map)(struct tandem_stream *stream,
                              struct tandem_buffer *buffer, uint64_t offset,
                              uint64_t bytes, uint32_t flags,
                              uint64_t timeout_ns, void **out_memory);
    /* Optional. Ends a mapping of map. NULL exactly if map is NULL. */
    enum tandem_status (*unmap)(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, void *memory);
    /* Required. Fills out_stats; the caller sets out_stats->struct_size. */
    enum tandem_status (*memory_stats)(struct tandem_device *device,
                                       struct tandem_memory_stats *out_stats);
    /* Optional. Returns cached memory to the driver until the cache has at most
     * keep_bytes. Fallback: does nothing and returns TANDEM_OK. */
    enum tandem_status (*trim)(struct tandem_device *device,
                               uint64_t keep_bytes);

    /* -- operators --
     * supports, prepare and query_ready use only the dtypes, shapes and strides
     * of the descriptors; their buffers may be NULL.  GEMM passes op->gemm and
     * no inputs or outputs. */

    /* Required. Returns TANDEM_OK if launch would accept the call,
     * TANDEM_UNSUPPORTED if the call is valid but not supported, or
     * TANDEM_INVALID_ARGUMENT if it is invalid on every device. */
    enum tandem_status (*supports)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* Optional. Starts to compile in the background. Fallback: TANDEM_OK. */
    enum tandem_status (*prepare)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* Optional. Never blocks. Returns TANDEM_OK if launch will not compile,
     * TANDEM_NOT_READY if launch would compile or a compilation is running, or
     * another status if compilation failed. Fallback: TANDEM_OK. */
    enum tandem_status (*query_ready)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* Required [blocks only to compile]. Enqueues the operator. op and the
     * descriptors may be changed on return. An output of class UNARY to
     * TERNARY, GRADIENT or OPTIMIZER may be exactly one of its inputs: same
     * buffer, offset, shape and strides. An output of class SCATTER may be
     * exactly input 0. Any other output that shares a byte with an input, an
     * output or itself is TANDEM_INVALID_ARGUMENT. Disjoint slices of one
     * tensor, also transposed, are accepted. With other strides, a plugin that
     * is not sure may report an overlap. */
    enum tandem_status (*launch)(
        struct tandem_stream *stream, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* Required [blocks only to compile]. Enqueues a GEMM on the stream. */
    enum tandem_status (*gemm)(struct tandem_stream *stream,
                               const struct tandem_gemm *gemm);

    /* -- streams and events -- */
    /* Required. Creates a stream, which the caller destroys. */
    enum tandem_status (*stream_create)(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream);
    /* Required [blocks]. Waits for the work of the stream and frees it. */
    void (*stream_destroy)(struct tandem_stream *stream);
    /* Required. Returns TANDEM_OK if the stream is idle, TANDEM_NOT_READY if it
     * is busy, or the stream's sticky error. */
    enum tandem_status (*stream_query)(struct tandem_stream *stream);
    /* Required [blocks]. Waits for the stream; returns and clears its error. */
    enum tandem_status (*stream_synchronize)(struct tandem_stream *stream,
                                             uint64_t timeout_ns);
    /* Required. Later work of the stream starts after the event, which may
     * belong to another stream of the same device. */
    enum tandem_status (*stream_wait_event)(struct tandem_stream *stream,
                                            struct tandem_event *event);
    /* Required. Puts an event at the stream's end. The caller destroys it. */
    enum tandem_status (*event_record)(struct tandem_stream *stream,
                                       struct tandem_event **out_event);
    /* Required. Frees the event, which need not have passed. */
    void (*event_destroy)(struct tandem_event *event);
    /* Required. TANDEM_OK: the event has passed. TANDEM_NOT_READY: not yet. */
    enum tandem_status (*event_query)(struct tandem_event *event);
    /* Required [blocks]. Waits until the event has passed. */
    enum tandem_status (*event_wait)(struct tandem_event *event,
                                     uint64_t timeout_ns);
    /* Optional. Returns the device time between two events that one profiling
     * stream has passed. Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*event_elapsed_ns)(struct tandem_event *start,
                                           struct tandem_event *end,
                                           uint64_t *out_ns);
    /* Required [blocks]. Synchronizes all streams; returns the first error. */
    enum tandem_status (*synchronize)(struct tandem_device *device,
                                      uint64_t timeout_ns);

    /* -- capture and launch of graphs: all functions or none --
     * Between capture_begin and capture_end, launch, gemm, copy and fill on the
     * stream are recorded and not run.  Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*capture_begin)(struct tandem_stream *stream);
    enum tandem_status (*capture_end)(struct tandem_stream *stream,
                                      struct tandem_graph **out_graph);
    enum tandem_status (*graph_launch)(struct tandem_stream *stream,
                                       struct tandem_graph *graph);
    void (*graph_destroy)(struct tandem_graph *graph);
};

#if defined(_WIN32)
#define TANDEM_EXPORT __declspec(dllexport)
#else
#define TANDEM_EXPORT __attribute__((visibility("default")))
#endif

/* The only exported function. Returns NULL if the plugin does not support the
 * host's major version. The table never changes and is valid while the plugin
 * is loaded. Does no device work and takes no lock. May be called from any
 * thread at any time. */
TANDEM_EXPORT const struct tandem_backend *
tandem_backend_query(uint32_t host_abi_major);

typedef const struct tandem_backend *(*tandem_backend_query_fn)(uint32_t);
#define TANDEM_BACKEND_QUERY_SYMBOL "tandem_backend_query"

#ifdef __cplusplus
}
#endif
#endif
