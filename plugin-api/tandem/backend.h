/* SPDX-License-Identifier: Apache-2.0 */
/* tandem/backend.h - the contract between a host and a compute backend plugin.
 *
 * A plugin is one shared object that exports one function,
 * tandem_backend_query(), which returns a table of functions.  This header is
 * all that either side needs: it includes standard headers only and may be
 * copied into another project.
 *
 * Rules that hold for every declaration below
 *
 *   Growth     A struct that crosses by pointer begins with struct_size, set
 *              by whoever allocates it to sizeof of the struct as *they* know
 *              it.  Fields are appended, never moved or removed, within one
 *              major version; a reader treats a field beyond struct_size as
 *              zero, a callee that fills a struct writes no byte beyond it.
 *              A struct shorter than version 1.0 had it
 *              (TANDEM_..._MIN_SIZE_1_0 below; one to be filled: than a
 *              size_t; 0 was forgotten) is TANDEM_INVALID_ARGUMENT.
 *              struct tandem_tensor_desc and struct tandem_matrix are frozen
 *              for the major version and carry no size.
 *   Units      Sizes and offsets are bytes unless the name says elements;
 *              strides and leading dimensions are elements; times are ns.
 *   Threads    Any function that takes a device may be called from any
 *              thread at any time.  One stream is used by one thread at a
 *              time.  Events and buffers may be used from any thread.
 *   Blocking   Only functions marked [blocks] wait for device work.  Their
 *              timeouts are in ns; 0 polls, TANDEM_TIMEOUT_INFINITE never
 *              expires.  An expired wait returns TANDEM_NOT_READY.
 *   Errors     Every fallible function returns a status and, when that is
 *              not TANDEM_OK, leaves a message for the calling thread
 *              (last_error).  Output pointers are set to NULL or zero on
 *              failure.  Nothing aborts, exits, prints or throws.  A call
 *              that returns an error has started no device work.
 *   Sticky     Work that fails after its call returned TANDEM_OK leaves the
 *              error on its stream and poisons the buffers it should have
 *              written.  While a stream has an error every later enqueue on
 *              it returns that error and does nothing.  The next
 *              stream_synchronize, event_wait or blocking download on the
 *              stream reports the error; stream_synchronize also clears it,
 *              except TANDEM_DEVICE_LOST, which is never cleared.  Reading a
 *              poisoned buffer, or using it as an input, returns the error;
 *              an upload or fill that overwrites all of it clears the poison.
 *   Flags      A bit that the callee does not know is TANDEM_INVALID_ARGUMENT.
 *   NULL       Destroy and free functions accept NULL.  Any other NULL, where
 *              the comment does not allow it, is TANDEM_INVALID_ARGUMENT.
 *
 * Version history: the file CHANGES beside this header. */
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

/* The largest rank of a tensor. */
#define TANDEM_MAX_RANK 8u
/* The most inputs, and the most outputs, that an operator may have. */
#define TANDEM_MAX_OPERANDS 8u
/* A timeout that never runs out. */
#define TANDEM_TIMEOUT_INFINITE UINT64_MAX

/* ---- status ------------------------------------------------------------ */

enum tandem_status {
    TANDEM_OK = 0,
    /* The caller's mistake: a NULL, a shape, a dtype, a range, a foreign or
     * freed handle.  The message names the argument and its values. */
    TANDEM_INVALID_ARGUMENT = 1,
    /* A valid request that this backend, or this device, does not serve. */
    TANDEM_UNSUPPORTED = 2,
    /* There is no such device, or its driver is missing or refused it. */
    TANDEM_NO_DEVICE = 3,
    TANDEM_OUT_OF_MEMORY = 4,
    /* A timeout ran out, or what was asked about is still under way. */
    TANDEM_NOT_READY = 5,
    /* The device, or its driver's context, is gone (a crash, a reset, a
     * fork): close it and open another.  It stays lost. */
    TANDEM_DEVICE_LOST = 6,
    /* A driver, compiler or library failed in a way not named above. */
    TANDEM_FAILED = 7
};

/* ---- element types ----------------------------------------------------- */

/* DLPack's type code in the high byte, bits in the low one; lanes is 1.
 * Source of the codes: dmlc/dlpack, include/dlpack/dlpack.h, DLDataTypeCode. */
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
    TANDEM_BOOL = 0x0608 /* one byte, 0 or 1 */
};
/* Bytes of one element of a dtype. */
#define TANDEM_DTYPE_BYTES(dtype) (((dtype)&0xffu) / 8u)

/* ---- opaque handles, owned by the plugin -------------------------------- */

struct tandem_device; /* an opened device */
struct tandem_stream; /* an in-order queue of work on a device */
struct tandem_event;  /* a point in a stream */
struct tandem_buffer; /* memory of one device */
struct tandem_graph;  /* a captured sequence of launches */

/* A tensor as a plugin sees it: a view of a buffer.  Frozen for the major
 * version.  byte_offset is where element (0, ..., 0) lies; strides are in
 * elements and may be 0 or negative; every element must lie inside the
 * buffer.  An empty shape (rank 0) is one element; a 0 in the shape makes the
 * tensor empty, and then nothing is read or written.  Strides that no element's
 * place depends on are ignored. */
struct tandem_tensor_desc {
    struct tandem_buffer *buffer;
    uint64_t byte_offset;
    uint32_t dtype; /* enum tandem_dtype */
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t strides[TANDEM_MAX_RANK];
};

/* ---- operators ---------------------------------------------------------- */

/* Classes: what shapes and dtypes an operator takes.  F is f32 in this minor
 * version (f16, bf16 and f64 where the device has them later).
 *   UNARY          F -> F, output shape = input shape
 *   BINARY         F, F -> F, broadcast as NumPy does; scalars allowed
 *   COMPARE        F, F -> bool, likewise; a comparison with NaN is false,
 *                  not_equal's is true
 *   LOGICAL        bool, bool -> bool, likewise (logical_not has one input)
 *   TERNARY        where: bool, F, F -> F; fma: F, F, F -> F; likewise
 *   GRADIENT       F, F -> F, equal shapes, no broadcasting
 *   OPTIMIZER      F..., equal shapes; the outputs are the new values of
 *                  the inputs of the same letter, usually in place
 *   CAST           between f32, i32, i64, u8 and bool, shape kept; f16 and
 *                  bf16 too with TANDEM_CAP_F16_BF16_STORAGE.  Float to integer
 *                  truncates, saturates, NaN gives 0; integer to integer
 *                  saturates; to float rounds once, halves to even, past the
 *                  largest to infinity, NaN to NaN; to bool: x != 0
 *   COPY           one dtype of 1, 2, 4 or 8 bytes an element, any strides,
 *                  bits unchanged; the input broadcasts to the output
 *   TRANSPOSE      likewise; output axis i is input axis ints[i], rank ints
 *   REDUCE         F -> F over the axes in the mask ints[0] (bit i: axis i;
 *                  0 allowed only for rank 0); the output has those axes as 1
 *                  (ints[1] = 1, keepdims) or not at all (0)
 *   ARG_REDUCE     likewise, F -> i64: the row-major index within the reduced
 *                  axes of the first winner; one axis, or all of them
 *   DOT            F[n], F[n] -> F[]
 *   SOFTMAX        F -> F along axis ints[0] (negative counts from the end)
 *   CROSS_ENTROPY  F[n][c] logits and i32 or i64 [n] labels; a label outside
 *                  [0, c) gives NaN in its row
 *   NORM           x and, of the shape of its axes from ints[0] on (negative
 *                  counts from the end), scale and bias: F... -> F over those
 *                  axes
 *   GATHER         data, i32 or i64 indices, along axis ints[0]: the axis is
 *                  replaced by the shape of indices (ONNX Gather).  Data as
 *                  COPY.  A negative index counts from the end; one outside
 *                  gives NaN (float dtypes) or 0
 *   GEMM           struct tandem_gemm
 *   FUSED          reserved
 * NaN propagates through every operator that computes (max, min, relu, clip
 * included); argmax and argmin take the first NaN as the winner. */
enum tandem_op_class {
    TANDEM_CLASS_UNARY = 1,
    TANDEM_CLASS_BINARY = 2,
    TANDEM_CLASS_COMPARE = 3,
    TANDEM_CLASS_LOGICAL = 4,
    TANDEM_CLASS_TERNARY = 5,
    TANDEM_CLASS_GRADIENT = 6,
    TANDEM_CLASS_OPTIMIZER = 7,
    TANDEM_CLASS_CAST = 8,
    TANDEM_CLASS_COPY = 9,
    TANDEM_CLASS_TRANSPOSE = 10,
    TANDEM_CLASS_REDUCE = 11,
    TANDEM_CLASS_ARG_REDUCE = 12,
    TANDEM_CLASS_DOT = 13,
    TANDEM_CLASS_SOFTMAX = 14,
    TANDEM_CLASS_CROSS_ENTROPY = 15,
    TANDEM_CLASS_GATHER = 16,
    TANDEM_CLASS_GEMM = 17,
    TANDEM_CLASS_FUSED = 18,
    TANDEM_CLASS_NORM = 19
};

/* How a result may differ from the reference r, computed in float64 from the
 * same inputs; eps = 2^-24, half the distance from 1 to the next f32; t is
 * the table's tolerance; u(r) the distance of neighbouring f32 values at r.
 * Subnormal inputs and results may be flushed to zero, a result also if only r
 * less its tolerance is subnormal; where r is subnormal every metric but EXACT
 * and ULP allows 8 * 2^-149 at least.  (Of f32 and bf16; f16's subnormals are
 * no small numbers in f32, and are kept.)
 * swish, gelu, mish and hardswish of -inf may be 0 or NaN; log_sum_exp of a
 * row that holds +inf and no NaN is +inf, of all -inf it is -inf.
 *   EXACT    same value, NaN for NaN, zeros of either sign alike
 *   ULP      t * u(r)
 *   ULP_PLUS_INPUT  t * u(r) + 2^-20 * |x|
 *   SUM      (t + log2 n) * 2 eps * s: n summands, s the sum of their
 *            magnitudes (divided or rooted as the result is).  This holds even
 *            if a partial sum leaves the range of f32
 *   LOG_SUM_EXP  (t + log2 n) * 2 eps * max(1, |r|, largest |x| of the row)
 *   SOFTMAX  (t + log2 n + |x - max x|) * 2 eps * |r|
 *   PROD     (t + n) * 2 eps * |r|: n factors.  Partial products are rounded to
 *            f32.  The result is unspecified (any number, infinity or NaN) if
 *            the product of all finite |x| > 1 is above 2^127, or that of all
 *            nonzero |x| < 1 is below 2^-125.  In any case it is NaN if an x is
 *            NaN, or if one x is 0 and another is infinite
 *   GEMM     (t + 2 sqrt k) * 2 eps * s, s = |alpha| sum |a||b| + |beta c| +
 *            |bias|; activations at most double it.  A c of 16 bits is the
 *            rounding of a number that is so near
 *   TERM_MAGNITUDE  t * 2 eps * s, s the sum of the magnitudes of the terms
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

/* Operators that share a cost curve: bound by memory, by a few transcendental
 * instructions, by many, and by their access pattern. */
enum tandem_cost_class {
    TANDEM_COST_ELEMENTWISE = 0,
    TANDEM_COST_TRANSCENDENTAL = 1,
    TANDEM_COST_MULTI_TRANSCENDENTAL = 2,
    TANDEM_COST_REDUCE = 3,
    TANDEM_COST_SOFTMAX = 4,
    TANDEM_COST_STRIDED = 5, /* copies and element-wise work with strides */
    TANDEM_COST_GATHER = 6,
    TANDEM_COST_OPTIMIZER = 7,
    TANDEM_COST_GEMM = 8,
    TANDEM_COST_NORM = 9,
    TANDEM_COST_CLASS_COUNT = 10
};

/* The operators: the single list that the plugins, the host, the conformance
 * suite, cl-probe and the documentation are made from.  Numbers are part of
 * the ABI and never reused.
 * X(ID, number, name, class, inputs, outputs, integer attributes, how many,
 *   float attributes, how many, cost class, metric, tolerance, required,
 *   formula)
 * required: 1 where a device with TANDEM_CAP_CORE_OPERATORS must serve it in
 * f32 (bool for LOGICAL).  Names are ONNX's, else PyTorch's. */
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
X(ADD,        40, "add",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a + b") \
X(SUB,        41, "sub",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a - b") \
X(MUL,        42, "mul",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a b") \
X(DIV,        43, "div",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, ULP, 3, 1, "a / b") \
X(POW,        44, "pow",        BINARY, 2, 1, "", 0, "", 0, MULTI_TRANSCENDENTAL, ULP, 16, 1, "a^b as C99 pow") \
X(MIN,        45, "min",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "the smaller of a, b; NaN if either is") \
X(MAX,        46, "max",        BINARY, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "the larger of a, b; NaN if either is") \
X(EQUAL,         50, "equal",            COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a = b") \
X(NOT_EQUAL,     51, "not_equal",        COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a != b") \
X(LESS,          52, "less",             COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a < b") \
X(LESS_EQUAL,    53, "less_or_equal",    COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a <= b") \
X(GREATER,       54, "greater",          COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a > b") \
X(GREATER_EQUAL, 55, "greater_or_equal", COMPARE, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a >= b") \
X(AND,        60, "and",        LOGICAL, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a and b") \
X(OR,         61, "or",         LOGICAL, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a or b") \
X(XOR,        62, "xor",        LOGICAL, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "a or b, not both") \
X(NOT,        63, "not",        LOGICAL, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "not a") \
X(WHERE,      66, "where",      TERNARY, 3, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "b where a, else c") \
X(FMA,        67, "fma",        TERNARY, 3, 1, "", 0, "", 0, ELEMENTWISE, ULP, 1, 1, "a b + c, rounded once") \
X(CAST,       70, "cast",       CAST, 1, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "x in the output's dtype") \
X(COPY,       71, "copy",       COPY, 1, 1, "", 0, "", 0, STRIDED, EXACT, 0, 1, "x") \
X(TRANSPOSE,  72, "transpose",  TRANSPOSE, 1, 1, "perm", 0, "", 0, STRIDED, EXACT, 0, 1, "x with its axes permuted") \
X(GATHER,     73, "gather",     GATHER, 2, 1, "axis", 1, "", 0, GATHER, EXACT, 0, 1, "data[index] along axis") \
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
X(SOFTMAX,    95, "softmax",     SOFTMAX, 1, 1, "axis", 1, "", 0, SOFTMAX, SOFTMAX, 8, 1, "e^(x - m) / sum e^(x - m), m = max x") \
X(LOG_SOFTMAX, 96, "log_softmax", SOFTMAX, 1, 1, "axis", 1, "", 0, SOFTMAX, LOG_SUM_EXP, 8, 1, "x - m - ln sum e^(x - m)") \
X(CROSS_ENTROPY, 97, "softmax_cross_entropy", CROSS_ENTROPY, 2, 1, "", 0, "", 0, SOFTMAX, LOG_SUM_EXP, 8, 1, "-log_softmax(x)[label], [n]") \
X(CROSS_ENTROPY_GRAD, 98, "softmax_cross_entropy_grad", CROSS_ENTROPY, 2, 1, "", 0, "scale", 1, SOFTMAX, TERM_MAGNITUDE, 32, 1, "scale (softmax(x) - onehot(label)), [n][c]; s = |scale| (p (1 + |x - m| / 16) + onehot)") \
X(LAYER_NORM, 102, "layer_norm", NORM, 3, 1, "axis", 1, "epsilon", 1, NORM, TERM_MAGNITUDE, 8, 1, "inputs x scale bias: h scale + bias, h = (x - m) / d, d = (v + epsilon)^(1/2), m and v the mean and variance of x; s = |scale| (1 + |h|) (|x| + mean |x|) / d + |bias|") \
X(RMS_NORM,   103, "rms_norm",   NORM, 2, 1, "axis", 1, "epsilon", 1, NORM, TERM_MAGNITUDE, 16, 1, "inputs x scale: x scale / (mean x^2 + epsilon)^(1/2); s = |result|") \
X(RELU_GRAD,  100, "relu_grad", GRADIENT, 2, 1, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 1, "0 where x <= 0, else dy; inputs dy, x") \
X(SGD,        110, "sgd",       OPTIMIZER, 3, 2, "nesterov", 1, "lr,momentum,dampening,weight_decay", 4, OPTIMIZER, TERM_MAGNITUDE, 8, 1, "inputs w g m, outputs w m: d = g + weight_decay w; m = momentum m + (1 - dampening) d; w -= lr (nesterov ? d + momentum m : m)") \
X(ADAM,       111, "adam",      OPTIMIZER, 4, 3, "step,decoupled_weight_decay", 2, "lr,beta1,beta2,eps,weight_decay", 5, OPTIMIZER, TERM_MAGNITUDE, 32, 1, "inputs w g m v, outputs w m v: decoupled_weight_decay ? w -= lr weight_decay w : g += weight_decay w; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr (m / (1 - beta1^step)) / ((v / (1 - beta2^step))^(1/2) + eps); step from 1; w takes v before it is rounded to f32, where a v of finite numbers is at most the largest f32") \
X(GEMM,       120, "gemm",      GEMM, 0, 0, "", 0, "", 0, GEMM, GEMM, 8, 1, "activation(alpha op(a) op(b) + beta c + bias)") \
X(FUSED,      200, "fused",     FUSED, 0, 0, "", 0, "", 0, ELEMENTWISE, EXACT, 0, 0, "an element-wise expression given as data; reserved")

enum tandem_op_id {
    TANDEM_OP_INVALID = 0,
#define TANDEM_OP_ENUM(ID, number, ...) TANDEM_OP_##ID = number,
    TANDEM_OPERATORS(TANDEM_OP_ENUM)
#undef TANDEM_OP_ENUM
    TANDEM_OP_ID_END = 256 /* ids are below this */
};

struct tandem_gemm;

/* An operator with its attributes.
 * ints and floats hold the attributes in the order of the operator table.
 * Fewer than it lists is TANDEM_INVALID_ARGUMENT, and so is a choice (keepdims,
 * approximate, nesterov, decoupled_weight_decay) that is neither 0 nor 1.  What
 * a later minor version appends means "as before" when absent.  floats are
 * rounded to f32.  Except for the bounds of clip, that makes none 0 or
 * infinite, and a positive epsilon (eps of adam) is at least 2^-126.
 *
 * Scalars: an element-wise binary or ternary operator (classes BINARY,
 * COMPARE, LOGICAL, TERNARY) takes a NULL in place of an input; the k-th NULL
 * input has the value floats[k], converted to the operator's input dtype, and
 * the shape of a rank-0 tensor.  At least one input must be a tensor.
 *
 * program is room for fused expressions (operator TANDEM_OP_FUSED), passed as
 * data of program_bytes bytes; it is NULL for every operator of this minor
 * version.  gemm is set only for TANDEM_OP_GEMM, which launch does not take. */
struct tandem_op {
    size_t struct_size;
    uint32_t id;    /* enum tandem_op_id */
    uint32_t flags; /* enum tandem_op_flags */
    uint32_t int_count;
    uint32_t float_count;
    const int64_t *ints;
    const double *floats;
    const void *program;
    uint64_t program_bytes;
    const struct tandem_gemm *gemm;
};

enum tandem_op_flags {
    /* The same inputs need not give the same bits every time. */
    TANDEM_OP_ALLOW_NONDETERMINISM = 1u << 0
};

/* One matrix operand, row-major: element (i, j) of batch b lies at
 * byte_offset + (b * batch_stride + i * ld + j) * bytes of an element.  ld and
 * batch_stride are ignored if no element's place depends on them.
 * Frozen for the major version. */
struct tandem_matrix {
    struct tandem_buffer *buffer;
    uint64_t byte_offset;
    int64_t ld;           /* elements from row to row, >= columns as stored */
    int64_t batch_stride; /* elements from batch to batch, >= 0; 0 repeats */
};

enum tandem_gemm_flags {
    TANDEM_GEMM_TRANSPOSE_A = 1u << 0, /* a is stored k x m */
    TANDEM_GEMM_TRANSPOSE_B = 1u << 1, /* b is stored n x k */
    /* The product may be computed with TF32 or a like reduced precision. */
    TANDEM_GEMM_ALLOW_TF32 = 1u << 2,
    /* The error of an element of the result may be relative to the largest
     * elements of its row of op(a) and its column of op(b), not to the products
     * that are its summands: at most 2^-21 of the sum of these, and 2^-38 k of
     * the product of those, beside the rounding of an f32 sum. */
    TANDEM_GEMM_ALLOW_NORMWISE_ERROR = 1u << 3
};

enum tandem_bias {
    TANDEM_BIAS_NONE = 0,
    TANDEM_BIAS_PER_COLUMN = 1, /* n elements, added to every row */
    TANDEM_BIAS_PER_ROW = 2     /* m elements, added to every column */
};

/* c = activation(alpha * op(a) op(b) + beta * c + bias), for each batch.
 * op(a) is m x k, op(b) k x n, c m x n.  Where beta is 0, c is not read (NaN
 * in it does not spread), else it is a residual, of c's dtype, added before the
 * activation; where k or alpha is 0 the product is 0, a and b are not read.
 * alpha and beta are rounded to f32 first.  c must not overlap a, b or bias.
 * batch >= 1; c's batch_stride may be 0 where batch is 1 alone.  m, n, k >= 0.
 *
 * a and b have one dtype, c and bias another or the same: f32 or, with
 * TANDEM_CAP_F16_BF16_STORAGE, f16 or bf16.  The sum over k, alpha, beta, bias
 * and activation are f32.  A c of 16 bits is rounded once, at the end. */
struct tandem_gemm {
    size_t struct_size;
    uint32_t dtype; /* of a and b */
    uint32_t flags; /* enum tandem_gemm_flags */
    int64_t m, n, k, batch;
    double alpha, beta;
    struct tandem_matrix a, b, c;
    struct tandem_buffer *bias; /* contiguous; NULL with TANDEM_BIAS_NONE */
    uint64_t bias_byte_offset;
    uint32_t bias_kind;  /* enum tandem_bias */
    uint32_t activation; /* TANDEM_OP_INVALID (none) or RELU, LEAKY_RELU,
                            SIGMOID, TANH, GELU, SWISH */
    double activation_parameter; /* LEAKY_RELU's slope; GELU: 1 tanh, 0 erf */
    uint32_t c_dtype;            /* of c and bias; 0: dtype */
    uint32_t reserved;           /* 0 */
};

/* ---- devices ------------------------------------------------------------ */

enum tandem_device_kind {
    TANDEM_DEVICE_CPU = 1,
    TANDEM_DEVICE_GPU = 2,
    TANDEM_DEVICE_ACCELERATOR = 3
};

enum tandem_device_caps {
    TANDEM_CAP_F64 = 1u << 0,
    /* Computes in f16; some devices only with scalars, without functions. */
    TANDEM_CAP_F16_ARITHMETIC = 1u << 1,
    /* Computes on host memory where it lies: import_host costs no copy. */
    TANDEM_CAP_ZERO_COPY_IMPORT = 1u << 2,
    /* launch returns before the work is done. */
    TANDEM_CAP_ASYNC = 1u << 3,
    /* Operators are compiled at first use: call query_ready before launch. */
    TANDEM_CAP_JIT_COMPILATION = 1u << 4,
    /* Streams made with TANDEM_STREAM_PROFILING time events on the device. */
    TANDEM_CAP_PROFILING = 1u << 5,
    /* capture_begin, capture_end and graph_launch work. */
    TANDEM_CAP_CAPTURE = 1u << 6,
    /* Serves every operator that the table marks required.  A device without
     * it is asked by supports() for each. */
    TANDEM_CAP_CORE_OPERATORS = 1u << 7,
    /* open understands the key "test.fault": test plugins only. */
    TANDEM_CAP_FAULT_INJECTION = 1u << 8,
    /* CAST and GEMM take f16 and bf16. */
    TANDEM_CAP_F16_BF16_STORAGE = 1u << 9,
    /* Its memory is the host's, if import_host finds nothing else. */
    TANDEM_CAP_UNIFIED_MEMORY = 1u << 10
};

/* Filled by device_describe.  Strings are UTF-8, cut to fit, always ended. */
struct tandem_device_info {
    size_t struct_size;
    uint32_t kind; /* enum tandem_device_kind */
    uint32_t caps; /* enum tandem_device_caps */
    char name[128];
    char vendor[128];
    char platform[128];
    char driver_version[128]; /* of the driver or library */
    uint8_t uuid[16];         /* zeros where unknown */
    char pci_address[24];     /* "0000:65:00.0", empty where unknown */
    char extensions[512];     /* those that matter to the backend, by spaces */
    uint64_t memory_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_memory_bytes;
    uint32_t compute_units;
    uint32_t max_work_group_size;
    uint32_t clock_mhz;
    /* The index of the device of this backend that is the same hardware seen
     * through another driver and is listed before, or -1. */
    int32_t duplicate_of;
    char quirks[1024]; /* known ones of the driver, separated by "; " */
};

enum tandem_log_level {
    TANDEM_LOG_ERROR = 1,
    TANDEM_LOG_WARNING = 2,
    TANDEM_LOG_INFO = 3,
    TANDEM_LOG_DEBUG = 4
};

/* Called from any thread, also from the plugin's own, with signals blocked,
 * the "C" locale and the default floating-point environment maybe; must not
 * call back into the plugin.  message, valid for the call, has no newline. */
typedef void (*tandem_log_fn)(void *user, enum tandem_log_level level,
                              const char *message);

/* Keys for open.  A plugin ignores keys that it does not know.
 *   cache_dir              directory for compiled programs (default: no cache)
 *   system_cache_dir       directory for the compiled programs of all users; it
 *                          is read if cache_dir lacks a program, and never
 *                          written; "" disables it (default: set at build time)
 *   cache_world_readable   "1": all users may read what is written to cache_dir
 *                          and to caches of drivers
 *   cache_limit_bytes      limit of cache_dir; the oldest programs are deleted
 *   memory_limit_bytes     limit of the device memory that the plugin holds
 *   pack_cache_limit_bytes OpenCL: limit of memory for packed GEMM operands; 0:
 *                          none (default: an eighth of the device memory)
 *   num_threads            limit of CPU threads; 0: as many as the process has
 *   isa                    CPU: highest instruction set, generic|avx2|avx512 or
 *                          generic|neon
 *   deterministic          "1": one kernel and GEMM path, whatever tuning says
 *   blocking_timeout_ms    OpenCL: close abandons builds and commands that take
 *                          longer; calls without a timeout that wait longer
 *                          return TANDEM_NOT_READY (300000; 0: no limit)
 *   profile                the plugin's own section of the profile, JSON text
 *   try                    "1": tune runs only the sm_90a self-test, and GEMM
 *                          uses no sm_90a program
 *   test.fault             needs TANDEM_CAP_FAULT_INJECTION: "launch:N:STATUS",
 *                          launch N (from 1) returns TANDEM_OK and fails later
 *                          with STATUS; "wait:N", wait N ends by its timeout
 *   test.gemm              OpenCL: "clblast" or the name of a GEMM kernel
 *                          ("large", ...; docs/tuning.md), with the number of
 *                          splits of k and of split tiles: "small:4",
 *                          "large:3:2"
 *   test.transfers         OpenCL: path of large transfers: "direct", "ring",
 *                          "mapped" or "staged" (docs/transfers.md)
 *   test.cache             "1": use cache_dir even if the driver has a cache
 */
struct tandem_open_options {
    size_t struct_size;
    uint32_t count; /* of keys and of values */
    uint32_t reserved;
    const char *const *keys;
    const char *const *values;
    tandem_log_fn log; /* NULL: no messages */
    void *log_user;
};

/* ---- memory, streams ----------------------------------------------------- */

enum tandem_transfer_flags {
    /* Return at once; the caller keeps the host memory unchanged (upload) or
     * unread (download) until the stream has passed this point. */
    TANDEM_TRANSFER_ASYNC = 1u << 0
};

enum tandem_map_flags {
    TANDEM_MAP_READ = 1u << 0,
    TANDEM_MAP_WRITE = 1u << 1
};

enum tandem_stream_flags {
    TANDEM_STREAM_PROFILING = 1u << 0 /* event_elapsed_ns works; slower */
};

struct tandem_memory_stats {
    size_t struct_size;
    uint64_t allocated_bytes;     /* in buffers that the caller holds */
    uint64_t cached_bytes;        /* kept for reuse */
    uint64_t peak_bytes;          /* most allocated + cached ever */
    uint64_t limit_bytes;         /* 0: none */
    uint64_t alloc_count;         /* calls of alloc that succeeded */
    uint64_t driver_alloc_count;  /* those that had to ask the driver */
    uint64_t buffer_count;        /* buffers that the caller holds */
    uint64_t cached_kernel_count; /* compiled operators kept */
};

/* Receives what tune found, one pair at a time, for the profile's section. */
typedef void (*tandem_tuning_result_fn)(void *user, const char *key,
                                        const char *value);

/* The least struct_size of what a caller fills: through the last field of
 * version 1.0.  These never change within the major version. */
#define TANDEM_SIZE_THROUGH(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))
#define TANDEM_OP_MIN_SIZE_1_0 TANDEM_SIZE_THROUGH(struct tandem_op, gemm)
#define TANDEM_GEMM_MIN_SIZE_1_0 \
    TANDEM_SIZE_THROUGH(struct tandem_gemm, activation_parameter)
#define TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0 \
    TANDEM_SIZE_THROUGH(struct tandem_open_options, log_user)

/* ---- the table ------------------------------------------------------------
 * R: required.  O: optional; a plugin may leave it NULL, and the loader of
 * libtandem puts a fallback there, so that its call sites never test. */
struct tandem_backend {
    size_t struct_size;
    uint32_t abi_major, abi_minor;
    const char *name;    /* "cpu", "opencl": lower case, [a-z0-9_-] */
    const char *version; /* of the plugin */

    /* R  The message of the calling thread's last failed call, "" if none;
     * valid until that thread's next call into the plugin. */
    const char *(*last_error)(void);

    /* -- devices -- */
    /* R [blocks: driver start]  The number of devices, found anew only at the
     * first call.  Where there is none: TANDEM_NO_DEVICE, and the message says
     * what is missing and what would bring it. */
    enum tandem_status (*device_count)(uint32_t *out_count);
    /* R  Fills out_info (struct_size set by the caller). */
    enum tandem_status (*device_describe)(uint32_t index,
                                          struct tandem_device_info *out_info);
    /* R [blocks: driver start]  Opens device index; options may be NULL.  Each
     * open gives an independent device.  Ends with close. */
    enum tandem_status (*open)(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device);
    /* R [blocks]  Waits for the device's work, frees all its objects.  Call it
     * before exit: a driver that still compiles or computes may crash there. */
    void (*close)(struct tandem_device *device);
    /* O [blocks]  Searches for better parameters for at most budget_ns and
     * passes each finding to sink.  Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*tune)(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn sink, void *user);

    /* -- memory -- */
    /* R  A buffer of at least bytes bytes (0 is allowed), its start aligned to
     * 64 or more, its content undefined.  Taken from the pool if it can be;
     * out of memory trims the pool and tries once more.  TANDEM_NOT_READY: the
     * device did not get round to it within a limit of the plugin's. */
    enum tandem_status (*alloc)(struct tandem_device *device, uint64_t bytes,
                                struct tandem_buffer **out_buffer);
    /* R  Returns at once, work under way included: the block belongs to the
     * last stream that used it, and its reuse on another stream waits for
     * that work on the device. */
    void (*free)(struct tandem_buffer *buffer);
    /* R  Host to device.  Returns when source may be reused, unless
     * TANDEM_TRANSFER_ASYNC.  bytes 0 does nothing.  TANDEM_NOT_READY: earlier
     * work of the stream was in its way longer than a limit of the plugin's;
     * buffer is unchanged, or poisoned where it was partly written. */
    enum tandem_status (*upload)(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags);
    /* R [blocks unless TANDEM_TRANSFER_ASYNC]  Device to host, after all
     * earlier work of the stream.  TANDEM_NOT_READY leaves the stream as it
     * was and target unchanged or partly written: it must stay valid until
     * the stream is idle. */
    enum tandem_status (*download)(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, void *target,
                                   uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns);
    /* R  Between buffers of one device; the ranges must not overlap. */
    enum tandem_status (*copy)(struct tandem_stream *stream,
                               struct tandem_buffer *target,
                               uint64_t target_offset,
                               struct tandem_buffer *source,
                               uint64_t source_offset, uint64_t bytes);
    /* R  Repeats pattern (1, 2, 4 or 8 bytes) over bytes bytes, a multiple of
     * pattern_bytes, as is offset. */
    enum tandem_status (*fill)(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t pattern_bytes);
    /* O  Host memory for fast transfers, 4096-aligned.  Fallback: ordinary. */
    enum tandem_status (*host_alloc)(struct tandem_device *device,
                                     uint64_t bytes, void **out_memory);
    /* O  Frees what host_alloc gave.  NULL exactly when host_alloc is. */
    void (*host_free)(struct tandem_device *device, void *memory);
    /* O  A buffer over the caller's memory, without a copy; the memory must
     * outlive it, and the caller leaves it alone while work that uses it is
     * under way.  Aligned to the element it will hold; of 0 bytes, any or NULL.
     * Fallback, and what cannot be done without a copy: TANDEM_UNSUPPORTED. */
    enum tandem_status (*import_host)(struct tandem_device *device,
                                      void *memory, uint64_t bytes,
                                      struct tandem_buffer **out_buffer);
    /* O [blocks]  A pointer to the buffer's bytes for the host, valid until
     * unmap; device work on the buffer in between is an error.  Fallback:
     * TANDEM_UNSUPPORTED. */
    enum tandem_status (*map)(struct tandem_stream *stream,
                              struct tandem_buffer *buffer, uint64_t offset,
                              uint64_t bytes, uint32_t flags,
                              uint64_t timeout_ns, void **out_memory);
    /* O  Ends a map.  NULL exactly when map is. */
    enum tandem_status (*unmap)(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, void *memory);
    /* R  Fills out_stats (struct_size set by the caller). */
    enum tandem_status (*memory_stats)(struct tandem_device *device,
                                       struct tandem_memory_stats *out_stats);
    /* O  Gives cached memory back to the driver until at most keep_bytes are
     * cached.  Fallback: does nothing, TANDEM_OK. */
    enum tandem_status (*trim)(struct tandem_device *device,
                               uint64_t keep_bytes);

    /* -- operators --
     * In supports, prepare and query_ready the buffers of the descriptors may
     * be NULL (nothing is read); dtypes, shapes and strides count.  GEMM passes
     * op->gemm and no inputs or outputs. */

    /* R  TANDEM_OK: launch would accept it.  TANDEM_UNSUPPORTED: valid, not
     * served here.  TANDEM_INVALID_ARGUMENT: not valid anywhere. */
    enum tandem_status (*supports)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* O  Asks that the operator be made ready, in the background; returns at
     * once.  Fallback: TANDEM_OK. */
    enum tandem_status (*prepare)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* O  TANDEM_OK: launch will not compile.  TANDEM_NOT_READY: it would, or a
     * compile is under way.  Another status: the compile failed.  Never
     * blocks.  Fallback: TANDEM_OK. */
    enum tandem_status (*query_ready)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* R [blocks only to compile what is not ready]  Enqueues the operator.
     * The descriptors and op may be changed as soon as it returns.  An output
     * of an element-wise operator (classes UNARY to TERNARY, GRADIENT,
     * OPTIMIZER) may be exactly one of its inputs: same buffer, offset, shape
     * and strides.  Any other output that shares a byte with an input, another
     * output or itself is TANDEM_INVALID_ARGUMENT.  Disjoint slices, transposed
     * too, of one tensor are served; other strides may be refused in doubt. */
    enum tandem_status (*launch)(
        struct tandem_stream *stream, const struct tandem_op *op,
        const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
        const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
    /* R [blocks only to compile]  Enqueues a matrix product. */
    enum tandem_status (*gemm)(struct tandem_stream *stream,
                               const struct tandem_gemm *gemm);

    /* -- streams and events -- */
    /* R */
    enum tandem_status (*stream_create)(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream);
    /* R [blocks: the stream's work]. */
    void (*stream_destroy)(struct tandem_stream *stream);
    /* R  TANDEM_OK: idle.  TANDEM_NOT_READY: busy.  Else the sticky error. */
    enum tandem_status (*stream_query)(struct tandem_stream *stream);
    /* R [blocks]  Waits, reports the sticky error and clears it. */
    enum tandem_status (*stream_synchronize)(struct tandem_stream *stream,
                                             uint64_t timeout_ns);
    /* R  Later work of stream starts after event, which may be of another
     * stream of the same device. */
    enum tandem_status (*stream_wait_event)(struct tandem_stream *stream,
                                            struct tandem_event *event);
    /* R  Marks the stream's present end. */
    enum tandem_status (*event_record)(struct tandem_stream *stream,
                                       struct tandem_event **out_event);
    /* R */
    void (*event_destroy)(struct tandem_event *event);
    /* R  TANDEM_OK: passed.  TANDEM_NOT_READY: not yet. */
    enum tandem_status (*event_query)(struct tandem_event *event);
    /* R [blocks] */
    enum tandem_status (*event_wait)(struct tandem_event *event,
                                     uint64_t timeout_ns);
    /* O  Device time between two passed events of one profiling stream.
     * Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*event_elapsed_ns)(struct tandem_event *start,
                                        struct tandem_event *end,
                                        uint64_t *out_ns);
    /* R [blocks]  stream_synchronize on all streams; the first error found. */
    enum tandem_status (*synchronize)(struct tandem_device *device,
                                      uint64_t timeout_ns);

    /* -- capture and replay, optional as a group --
     * Between begin and end, launch, gemm, copy and fill on the stream are
     * recorded and not run.  Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*capture_begin)(struct tandem_stream *stream);
    enum tandem_status (*capture_end)(struct tandem_stream *stream,
                                      struct tandem_graph **out_graph);
    enum tandem_status (*graph_launch)(struct tandem_stream *stream,
                                       struct tandem_graph *graph);
    void (*graph_destroy)(struct tandem_graph *graph);
};

/* Linkage of the one exported function. */
#if defined(_WIN32)
#define TANDEM_EXPORT __declspec(dllexport)
#else
#define TANDEM_EXPORT __attribute__((visibility("default")))
#endif

/* The plugin's one export.  host_abi_major is the major version that the host
 * was built for; returns NULL where the plugin cannot serve it.  The table is
 * valid as long as the plugin is loaded and never changes.  Does no device
 * work, takes no lock, may be called from any thread, any number of times. */
TANDEM_EXPORT const struct tandem_backend *
tandem_backend_query(uint32_t host_abi_major);

typedef const struct tandem_backend *(*tandem_backend_query_fn)(uint32_t);
#define TANDEM_BACKEND_QUERY_SYMBOL "tandem_backend_query"

#ifdef __cplusplus
}
#endif
#endif
