/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm: shapes with 0, 1 and primes, transposes, leading dimensions, batches,
 * alpha and beta, bias and activation, dtypes, less accurate results that the
 * caller allows, values of all magnitudes. Elements that must not be read are
 * NaN. gemm_reference.c computes the expected values.
 */
#include "element_value.h"
#include "gemm.h"

#include <math.h>
#include <stdio.h>

/*
 * Patterns of a and b that random elements do not cover: rounding errors of
 * products with the same sign add up instead of averaging out.
 */
enum gemm_pattern {
    PATTERN_RANDOM,
    PATTERN_CONSTANT,   /* a = 0.7, b = 1. */
    PATTERN_PERIODIC,   /* Positive, repeats along k. */
    PATTERN_ALTERNATING /* a = 0.7, the sign of b alternates along k. */
};

struct form {
    int64_t m, n, k;
    int64_t batch; /* 0 stands for 1. */
    uint32_t flags, bias, activation;
    double alpha; /* 0 stands for 1. */
    double beta, activation_parameter, activation_parameter2;
    int64_t pad[3]; /* Padding of the rows of a, b and c. */
    uint32_t lead;  /* Elements before each matrix. */
    /* Bit 0: all batches share a; bit 1: all batches share b. */
    uint32_t repeat;
    enum level level;
    bool special;  /* a and b contain NaN and infinite elements. */
    bool positive; /* Elements of a and b are in [1, 2) and use all bits. */
    double scale;  /* Scale of the elements of a and b; 0 stands for 1. */
    /* Multiplies the elements of a, divides those of b; 0 stands for 1. */
    double tilt;
    uint32_t dtype;   /* dtype of a and b; 0 stands for f32. */
    uint32_t c_dtype; /* dtype of c and bias; 0 stands for dtype. */
    enum gemm_pattern pattern;
    bool version_1_0;     /* Passed in the struct of version 1.0. */
    bool invalid_strides; /* Strides that do not matter are invalid. */
};

#define SIZES(M, N, K) .m = (M), .n = (N), .k = (K)
#define TA TANDEM_GEMM_TRANSPOSE_A
#define TB TANDEM_GEMM_TRANSPOSE_B
#define COLUMN TANDEM_BIAS_PER_COLUMN
#define ROW TANDEM_BIAS_PER_ROW
/* Stands for an alpha of 0. */
#define ALPHA_0 (-1e301)
/* An alpha or beta that becomes 0 in f32. */
#define TO_ZERO 1e-300
/* Stands for an alpha with which about half of the results fit in c's dtype. */
#define NEAR_LARGEST (-1e300)

static const struct form forms[] = {
    {SIZES(64, 64, 64), .level = ALWAYS},
    {SIZES(1, 1, 1), .level = ALWAYS},
    {SIZES(9, 10, 11), .bias = COLUMN, .version_1_0 = true, .level = ALWAYS},
    {SIZES(31, 37, 41), .level = ALWAYS},
    {SIZES(31, 37, 41), .flags = TA, .level = ALWAYS},
    {SIZES(31, 37, 41), .flags = TB, .level = ALWAYS},
    {SIZES(31, 37, 41), .flags = TA | TB, .level = ALWAYS},
    {SIZES(0, 5, 7), .level = ALWAYS},
    {SIZES(5, 0, 7)},
    {SIZES(5, 6, 0), .level = ALWAYS},
    {SIZES(5, 6, 0), .beta = 0.5, .bias = COLUMN, .activation = TANDEM_OP_RELU},
    {SIZES(5, 6, 0), .batch = 3, .bias = ROW, .pad = {0, 0, 2}},
    {SIZES(1, 97, 53), .level = ALWAYS},
    {SIZES(97, 1, 53), .level = ALWAYS},
    {SIZES(97, 1, 53), .flags = TA},
    {SIZES(1, 97, 53), .flags = TB},
    {SIZES(1, 1, 1), .invalid_strides = true, .level = ALWAYS},
    {SIZES(1, 97, 53), .flags = TB, .bias = COLUMN, .invalid_strides = true,
     .level = ALWAYS},
    {SIZES(40, 37, 1), .flags = TA, .invalid_strides = true, .level = ALWAYS},
    {SIZES(5, 6, 0), .batch = 3, .invalid_strides = true},
    {SIZES(0, 5, 7), .batch = 3, .invalid_strides = true},
    {SIZES(1, 1, 1021)},
    {SIZES(53, 61, 1)},
    {SIZES(6, 1, 35), .level = ALWAYS},
    {SIZES(1, 40, 64), .flags = TB, .pad = {0, 1, 0}, .level = ALWAYS},
    {SIZES(1, 70, 33), .batch = 3, .flags = TB, .beta = 1, .level = ALWAYS},
    {SIZES(3, 700, 601), .flags = TA, .bias = COLUMN, .level = ALWAYS},
    {SIZES(900, 2, 700), .pad = {4, 3, 1}, .level = ALWAYS},
    {SIZES(3, 5, 7), .alpha = -0.5, .beta = 2, .pad = {3, 1, 4}, .lead = 3,
     .level = ALWAYS},
    {SIZES(33, 65, 17), .alpha = 0.75, .beta = 1, .pad = {5, 0, 7}, .lead = 1},
    {SIZES(33, 65, 17), .flags = TA | TB, .alpha = 0.75, .beta = -1,
     .pad = {5, 6, 7}, .lead = 7},
    {SIZES(16, 16, 16), .alpha = ALPHA_0, .beta = 0.25},
    {SIZES(16, 16, 16), .alpha = ALPHA_0},
    {SIZES(16, 16, 16), .alpha = ALPHA_0, .beta = 0.25, .special = true},
    {SIZES(17, 1, 18), .alpha = ALPHA_0, .bias = ROW, .special = true},
    {SIZES(16, 16, 16), .alpha = TO_ZERO, .bias = COLUMN, .special = true,
     .level = ALWAYS},
    {SIZES(1, 35, 36), .alpha = TO_ZERO, .beta = -1, .special = true},
    {SIZES(18, 19, 20), .beta = TO_ZERO, .bias = ROW, .level = ALWAYS},
    {SIZES(1, 21, 22), .batch = 3, .flags = TB, .beta = TO_ZERO},
    {SIZES(20, 24, 28), .bias = COLUMN, .level = ALWAYS},
    {SIZES(20, 24, 28), .beta = 1, .bias = ROW, .level = ALWAYS},
    {SIZES(23, 29, 31), .bias = COLUMN, .activation = TANDEM_OP_RELU,
     .level = ALWAYS},
    {SIZES(23, 29, 31), .bias = ROW, .activation = TANDEM_OP_LEAKY_RELU,
     .activation_parameter = 0.25},
    {SIZES(23, 29, 31), .alpha = 0.2, .bias = COLUMN,
     .activation = TANDEM_OP_SIGMOID},
    {SIZES(23, 29, 31), .alpha = 0.2, .activation = TANDEM_OP_TANH,
     .pad = {0, 0, 3}},
    {SIZES(23, 29, 31), .alpha = 0.3, .bias = ROW,
     .activation = TANDEM_OP_GELU},
    {SIZES(23, 29, 31), .alpha = 0.3, .beta = 0.5, .activation = TANDEM_OP_GELU,
     .activation_parameter = 1},
    {SIZES(23, 29, 31), .alpha = 0.3, .bias = COLUMN,
     .activation = TANDEM_OP_SWISH},
    {SIZES(7, 9, 11), .batch = 5, .level = ALWAYS},
    {SIZES(7, 9, 11), .batch = 5, .flags = TB, .beta = 0.5, .pad = {1, 2, 3},
     .lead = 5},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 1, .level = ALWAYS},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 2, .bias = COLUMN},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 3, .bias = ROW,
     .activation = TANDEM_OP_RELU},
    {SIZES(12, 12, 12), .batch = 3, .flags = TA, .alpha = 2, .bias = COLUMN,
     .activation = TANDEM_OP_SIGMOID},
    {SIZES(12, 13, 14), .special = true, .level = ALWAYS},
    {SIZES(12, 13, 14), .special = true, .bias = COLUMN,
     .activation = TANDEM_OP_RELU},
    {SIZES(128, 10, 256), .bias = COLUMN, .activation = TANDEM_OP_RELU,
     .level = ALWAYS},
    /* Several matrices with k large enough for a split along k. */
    {SIZES(5, 7, 4103), .batch = 3, .pad = {1, 0, 2}, .level = ALWAYS},
    {SIZES(7, 5, 5120), .batch = 2, .beta = -0.5, .repeat = 2, .level = ALWAYS},
    {SIZES(33, 17, 8195), .flags = TA, .bias = ROW, .beta = 1},
    {SIZES(64, 256, 128), .flags = TA},
    {SIZES(129, 127, 131), .beta = 1},
    {SIZES(300, 257, 301)},
    {SIZES(300, 257, 301), .flags = TA | TB, .level = FULL},
    {SIZES(511, 509, 513), .flags = TB, .bias = COLUMN, .level = FULL},
    {SIZES(17, 2049, 19), .level = FULL},
    {SIZES(2049, 17, 19), .level = FULL},
    {SIZES(9, 11, 20011), .level = FULL},
    {SIZES(4, 4, 4), .batch = 1001, .level = FULL},
};

/*
 * Long sums whose rounding errors have the same sign, in the shapes of all
 * kernels: one result, few rows or columns, small and large matrices, with and
 * without a split along k.
 */
static const struct form long_sums[] = {
    {SIZES(1, 1, 1024), .level = ALWAYS},
    {SIZES(1, 1, 16384), .level = ALWAYS},
    {SIZES(1, 1, 262144)},
    {SIZES(1, 33, 16384)},
    {SIZES(1, 67, 2048), .level = ALWAYS},
    {SIZES(1, 64, 65536), .flags = TB},
    {SIZES(33, 1, 16384), .flags = TA},
    {SIZES(3, 5, 65536), .level = FULL},
    {SIZES(4, 300, 8192), .level = FULL},
    {SIZES(300, 16, 8192), .flags = TA, .level = FULL},
    {SIZES(16, 17, 1048575), .flags = TB, .level = FULL},
    {SIZES(33, 35, 1024), .level = ALWAYS},
    {SIZES(33, 35, 4097), .flags = TA | TB, .beta = 1},
    {SIZES(130, 257, 2048), .flags = TB},
    {SIZES(7, 5, 16384), .batch = 3, .level = FULL},
    {SIZES(65, 66, 16384), .level = FULL},
    {SIZES(130, 70, 4096), .dtype = TANDEM_F16, .c_dtype = TANDEM_F32,
     .level = FULL},
    {SIZES(1, 70, 16384), .dtype = TANDEM_BF16, .c_dtype = TANDEM_F32,
     .level = FULL},
};

/*
 * For 16-bit operands: c near its largest value (if alpha is 0, alpha itself
 * is large), c and all operands subnormal in f16, NaN.
 */
static const struct form forms_16[] = {
    {SIZES(31, 37, 41), .level = ALWAYS},
    {SIZES(40, 72, 64), .level = ALWAYS},
    {SIZES(31, 37, 41), .flags = TA},
    {SIZES(36, 40, 44), .flags = TA},
    {SIZES(31, 37, 41), .flags = TB},
    {SIZES(36, 40, 44), .flags = TB},
    {SIZES(31, 37, 41), .flags = TA | TB},
    {SIZES(5, 6, 0), .batch = 2, .beta = 0.5, .bias = COLUMN,
     .activation = TANDEM_OP_RELU, .pad = {0, 0, 2}, .level = ALWAYS},
    {SIZES(33, 65, 17), .alpha = 0.75, .beta = -1, .bias = ROW,
     .pad = {5, 6, 7}, .lead = 7, .level = ALWAYS},
    {SIZES(7, 9, 11), .batch = 5, .beta = 0.5, .bias = COLUMN,
     .activation = TANDEM_OP_RELU, .pad = {1, 2, 3}, .lead = 5,
     .level = ALWAYS},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 2},
    {SIZES(16, 16, 16), .alpha = ALPHA_0, .beta = 0.25},
    {SIZES(23, 29, 31), .alpha = 0.3, .bias = COLUMN,
     .activation = TANDEM_OP_GELU},
    {SIZES(23, 29, 31), .alpha = 0.3, .beta = 1, .activation = TANDEM_OP_SWISH},
    {SIZES(1, 97, 533), .flags = TB},
    {SIZES(97, 1, 533)},
    {SIZES(12, 13, 14), .special = true, .level = ALWAYS},
    /* GELU of -inf may be 0 or NaN. */
    {SIZES(12, 13, 14), .special = true, .activation = TANDEM_OP_GELU,
     .level = ALWAYS},
    {SIZES(31, 37, 41), .alpha = NEAR_LARGEST, .level = ALWAYS},
    {SIZES(31, 37, 41), .alpha = 0.25, .scale = 0x1p-8, .level = ALWAYS},
    {SIZES(31, 37, 41), .alpha = 0x1p24, .scale = 0x1p-17, .level = ALWAYS},
    /* Sums that only grow, so that errors of truncating adders add up. */
    {SIZES(24, 64, 8192), .positive = true, .scale = 0x1p-4},
    {SIZES(24, 40, 65536), .positive = true, .scale = 0x1p-4, .level = FULL},
    {SIZES(64, 256, 1100), .level = FULL},
    {SIZES(20, 2100, 1100), .level = FULL},
    {SIZES(1100, 36, 130), .batch = 2, .flags = TB, .beta = 1, .repeat = 2,
     .level = FULL},
};

static const struct {
    uint32_t dtype, c_dtype;
    bool always;
} pairs_16[] = {
    {TANDEM_F16, TANDEM_F16, true},   {TANDEM_BF16, TANDEM_BF16, true},
    {TANDEM_F16, TANDEM_F32, false},  {TANDEM_BF16, TANDEM_F32, false},
    {TANDEM_F32, TANDEM_F16, false},  {TANDEM_F32, TANDEM_BF16, false},
    {TANDEM_F16, TANDEM_BF16, false}, {TANDEM_BF16, TANDEM_F16, false},
};

/*
 * For callers that allow TF32 or a normwise error: sizes at the boundaries of
 * tiles and k-slices, and elements that are not finite, tiny or huge.
 */
static const struct form relaxed_forms[] = {
    {SIZES(64, 64, 64), .level = ALWAYS},
    {SIZES(31, 37, 41), .level = ALWAYS},
    {SIZES(132, 260, 100), .level = ALWAYS},
    {SIZES(132, 260, 100), .flags = TA},
    {SIZES(132, 260, 100), .flags = TB},
    {SIZES(132, 260, 100), .flags = TA | TB},
    {SIZES(133, 131, 301), .flags = TB, .alpha = 0.75, .beta = -1,
     .bias = COLUMN, .activation = TANDEM_OP_RELU, .pad = {5, 6, 7}, .lead = 7,
     .level = ALWAYS},
    {SIZES(140, 72, 300), .batch = 3, .alpha = 0.5, .beta = 1, .bias = ROW,
     .activation = TANDEM_OP_GELU, .pad = {4, 0, 8}, .repeat = 2},
    {SIZES(7, 9, 11), .batch = 4, .flags = TB, .repeat = 1, .level = ALWAYS},
    {SIZES(140, 144, 64), .special = true, .level = ALWAYS},
    {SIZES(45, 33, 300), .special = true},
    {SIZES(40, 44, 300), .scale = 1e17},
    {SIZES(40, 44, 300), .scale = 1e-18},
    {SIZES(40, 44, 300), .scale = 1e-40},
    {SIZES(300, 520, 1000), .flags = TB, .level = FULL},
    {SIZES(1024, 1024, 1024), .level = FULL},
};

/*
 * With the scales below, products of a and b are in the range of f32, but
 * products of alpha and a or b are not.
 */
static const struct form magnitude_forms[] = {
    {SIZES(1, 40, 12)},
    {SIZES(1, 16, 4), .flags = TB, .batch = 2},
    {SIZES(3, 1, 7), .flags = TA, .beta = -0.5},
    {SIZES(41, 1, 12), .bias = ROW},
    {SIZES(20, 24, 28), .flags = TB},
    {SIZES(1, 40, 12), .dtype = TANDEM_BF16},
};

static const struct {
    double alpha, tilt;
} magnitude_scales[] = {{1e10, 0x1p100}, {1e10, 0x1p-100}, {0x1p-80, 0x1p-80}};

/* ---- one case ---- */

void gemm_require(struct call *call, uint32_t dtype, uint32_t c_dtype)
{
    call->required_caps = dtype_has_16_bits(dtype) || dtype_has_16_bits(c_dtype)
                              ? TANDEM_CAP_F16_BF16_STORAGE
                              : TANDEM_CAP_CORE_OPERATORS;
}

static void matrix_make(struct call *call, uint32_t place, uint32_t dtype,
                        int64_t rows, int64_t columns, int64_t batch,
                        int64_t pad, bool repeat, uint32_t lead,
                        struct tandem_matrix *out)
{
    const int64_t ld = (columns < 1 ? 1 : columns) + pad;
    const int64_t shape[3] = {repeat ? 1 : batch, rows, columns};
    const int64_t strides[3] = {repeat ? 0 : rows * ld + pad, ld, 1};

    operand_init_strided(&call->operands[place], dtype, 3, shape, strides, lead,
                         operands_have_exact_buffers() ? 0 : 16);
    out->byte_offset = call->operands[place].desc.byte_offset;
    out->ld = ld;
    out->batch_stride = strides[0];
}

/* Sets strides that the plugin must ignore to invalid values. */
static void unused_strides_invalidate(const struct operand *operand,
                                      struct tandem_matrix *matrix)
{
    const int64_t *shape = operand->desc.shape;
    const bool large = shape[2] % 2 != 0;

    if (operand->elements == 0 || shape[1] == 1)
        matrix->ld = large ? INT64_MAX : INT64_MIN;
    if (operand->elements == 0 || shape[0] == 1)
        matrix->batch_stride = large ? INT64_MAX : -3;
}

static void matrix_fill(struct call *call, uint32_t place, bool special,
                        bool positive, double scale)
{
    struct operand *operand = &call->operands[place];
    struct random *random = call->random;

    for (int64_t i = 0; i < operand->elements; i++) {
        double value;

        if (special && random_once_in(random, 30))
            value = random_once_in(random, 2) ? (double)INFINITY : (double)NAN;
        else
            value = positive ? random_uniform(random, 1.0, 2.0)
                             : random_normal(random);
        element_set(operand, i, scale * value);
    }
}

/*
 * Returns the element of a pattern at k, of b if in_b is set, otherwise of a.
 */
static double pattern_value(enum gemm_pattern pattern, bool in_b, int64_t k)
{
    static const double period[] = {0.7, 1.3, 0.1, 1.9, 1.1, 0.3, 1.7};

    if (pattern == PATTERN_PERIODIC)
        return period[(in_b ? 3 * k + 1 : k) % 7];
    if (pattern == PATTERN_ALTERNATING && in_b)
        return k % 2 == 0 ? 1.0 : -1.0;
    return in_b ? 1.0 : 0.7;
}

/* along_rows: k is the row index of the stored matrix, not the column. */
static void matrix_fill_pattern(struct operand *operand,
                                enum gemm_pattern pattern, bool in_b,
                                bool along_rows)
{
    const int64_t *shape = operand->desc.shape;

    for (int64_t i = 0; i < operand->elements; i++)
        element_set(
            operand, i,
            pattern_value(pattern, in_b,
                          along_rows ? i / shape[2] % shape[1] : i % shape[2]));
}

static void values_fill(struct call *call, const struct form *f)
{
    const double scale = f->scale != 0.0 ? f->scale : 1.0;
    const double tilt = f->tilt != 0.0 ? f->tilt : 1.0;

    if (f->pattern != PATTERN_RANDOM) {
        matrix_fill_pattern(&call->operands[0], f->pattern, false,
                            (f->flags & TA) != 0);
        matrix_fill_pattern(&call->operands[1], f->pattern, true,
                            (f->flags & TB) == 0);
    } else {
        matrix_fill(call, 0, f->special, f->positive, scale * tilt);
        matrix_fill(call, 1, f->special, f->positive, scale / tilt);
    }
    matrix_fill(call, 2, false, false, 1.0);
    /* Otherwise c is poisoned, because it must not be read. */
    call->output_is_read = (float)f->beta != 0.0f;
    if (call->output_is_read)
        matrix_fill(call, 3, false, false, 1.0);
}

/* The standard deviation of a sum of k products grows like the root of k. */
static double scaled_alpha(const struct form *form, uint32_t c_dtype)
{
    if (form->alpha != NEAR_LARGEST)
        return form->alpha;
    return (c_dtype == TANDEM_F16 ? 65504.0 : 0x1.fep127) /
           (0.7 * sqrt((double)form->k));
}

static void gemm_make(struct call *call, const struct form *f)
{
    const bool ta = (f->flags & TA) != 0, tb = (f->flags & TB) != 0;
    const uint32_t dtype = f->dtype != 0 ? f->dtype : TANDEM_F32;
    const uint32_t c_dtype = f->c_dtype != 0 ? f->c_dtype : dtype;
    struct tandem_gemm *gemm = &call->gemm;
    struct tandem_matrix bias;

    *gemm =
        (struct tandem_gemm){.struct_size = sizeof(*gemm),
                             .dtype = dtype,
                             .c_dtype = f->c_dtype,
                             .flags = f->flags,
                             .m = f->m,
                             .n = f->n,
                             .k = f->k,
                             .batch = f->batch,
                             .alpha = scaled_alpha(f, c_dtype),
                             .beta = f->beta,
                             .bias_kind = f->bias,
                             .activation = f->activation,
                             .activation_parameter = f->activation_parameter,
                             .activation_parameter2 = f->activation_parameter2};
    gemm_require(call, dtype, c_dtype);
    matrix_make(call, 0, dtype, ta ? f->k : f->m, ta ? f->m : f->k, f->batch,
                f->pad[0], (f->repeat & 1u) != 0, f->lead, &gemm->a);
    matrix_make(call, 1, dtype, tb ? f->n : f->k, tb ? f->k : f->n, f->batch,
                f->pad[1], (f->repeat & 2u) != 0, f->lead, &gemm->b);
    matrix_make(call, 3, c_dtype, f->m, f->n, f->batch, f->pad[2], false,
                f->lead, &gemm->c);
    matrix_make(call, 2, c_dtype, 1, f->bias == ROW ? f->m : f->n, 1, 0, true,
                f->lead, &bias);
    if (f->bias != TANDEM_BIAS_NONE)
        gemm->bias_byte_offset = bias.byte_offset;
    else
        call->without_buffer = 1u << 2;
    if (f->invalid_strides) {
        unused_strides_invalidate(&call->operands[0], &gemm->a);
        unused_strides_invalidate(&call->operands[1], &gemm->b);
        unused_strides_invalidate(&call->operands[3], &gemm->c);
    }
    /* A caller of version 1.0 has other data in place of c_dtype. */
    if (f->version_1_0) {
        gemm->struct_size = TANDEM_GEMM_MIN_SIZE_1_0;
        gemm->c_dtype = TANDEM_BF16;
    }
    values_fill(call, f);
}

static struct call *form_begin(struct suite *suite, const struct op_row *row,
                               const struct form *form)
{
    const struct op_row *activation = op_find(form->activation);
    static const char *const patterns[] = {"", " constant", " periodic",
                                           " alternating"};
    char c_text[16], tilt[24] = "";

    snprintf(c_text, sizeof(c_text), "%s ", dtype_text(form->c_dtype));
    if (form->tilt != 0.0)
        snprintf(tilt, sizeof(tilt), " tilt %g", form->tilt);
    return call_begin(
        suite, row,
        "%s%s%s%s%lldx%lldx%lld batch %lld%s%s alpha %g beta %g "
        "pad %d,%d,%d lead %u repeat %u bias %u %s%s%s%s%s%s",
        form->flags & TANDEM_GEMM_ALLOW_TF32             ? "tf32 "
        : form->flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR ? "scaled "
                                                         : "",
        form->dtype != 0 ? dtype_text(form->dtype) : "",
        form->c_dtype != 0 ? " to " : "", form->c_dtype != 0 ? c_text : "",
        (long long)form->m, (long long)form->n, (long long)form->k,
        (long long)form->batch, form->flags & TA ? " A^T" : "",
        form->flags & TB ? " B^T" : "", form->alpha, form->beta,
        (int)form->pad[0], (int)form->pad[1], (int)form->pad[2], form->lead,
        form->repeat, form->bias,
        activation != NULL ? activation->name : "linear",
        form->special    ? " specials"
        : form->positive ? " positive"
                         : "",
        patterns[form->pattern], form->version_1_0 ? " old" : "", tilt,
        form->invalid_strides ? " junk" : "");
}

static void form_run(struct suite *suite, const struct op_row *row,
                     const struct form *form)
{
    struct form complete = *form;
    struct call *call;

    if (complete.batch == 0)
        complete.batch = 1;
    if (complete.alpha == 0.0)
        complete.alpha = 1;
    else if (complete.alpha == ALPHA_0)
        complete.alpha = 0;
    call = form_begin(suite, row, &complete);
    if (call == NULL)
        return;
    gemm_make(call, &complete);
    call_end(suite, call);
}

/* ---- cases ---- */

static void forms_run(struct suite *suite, const struct op_row *row,
                      struct random *choice)
{
    bool full = suite->options->full, smoke = suite->options->smoke;

    for (uint32_t i = 0; i < COUNT_OF(forms); i++) {
        bool chosen = random_once_in(choice, smoke ? 8 : 2);
        bool often = random_once_in(choice, smoke ? 2 : 1);

        if (full || (forms[i].level != FULL &&
                     ((forms[i].level == ALWAYS && often) || chosen ||
                      (suite->options->filter != NULL && !smoke))))
            form_run(suite, row, &forms[i]);
    }
}

static void long_sums_run(struct suite *suite, const struct op_row *row)
{
    for (uint32_t i = 0; i < COUNT_OF(long_sums); i++) {
        enum level level = long_sums[i].level;

        if (!suite->options->full &&
            (level == FULL || (suite->options->smoke && level != ALWAYS)))
            continue;
        for (uint32_t j = PATTERN_CONSTANT; j <= PATTERN_ALTERNATING; j++) {
            struct form form = long_sums[i];

            form.pattern = (enum gemm_pattern)j;
            form_run(suite, row, &form);
        }
    }
}

static void forms_16_run(struct suite *suite, const struct op_row *row)
{
    bool full = suite->options->full, smoke = suite->options->smoke;
    struct random choice;

    random_seed(&choice, suite->options->seed, "gemm of 16 bits");
    for (uint32_t i = 0; i < COUNT_OF(pairs_16); i++) {
        const uint32_t dtype = pairs_16[i].dtype;
        const uint32_t c_dtype = pairs_16[i].c_dtype;
        const bool always = pairs_16[i].always;

        for (uint32_t j = 0; j < COUNT_OF(forms_16); j++) {
            struct form form = forms_16[j];
            bool chosen = random_once_in(&choice, always ? 8 : 24);
            bool often = random_once_in(&choice, smoke ? 3 : 1);
            bool sums =
                form.positive && dtype != TANDEM_F32 && c_dtype == TANDEM_F32;

            form.dtype = dtype;
            form.c_dtype = c_dtype;
            if (full ||
                (form.level != FULL &&
                 (chosen || sums || (always && form.level == ALWAYS && often))))
                form_run(suite, row, &form);
        }
    }
}

static void relaxed_forms_run(struct suite *suite, const struct op_row *row)
{
    static const uint32_t flags[] = {TANDEM_GEMM_ALLOW_TF32,
                                     TANDEM_GEMM_ALLOW_NORMWISE_ERROR};
    bool all = suite->options->filter != NULL && !suite->options->smoke;

    for (uint32_t i = 0; i < COUNT_OF(relaxed_forms) * 2; i++) {
        struct form form = relaxed_forms[i / 2];

        form.flags |= flags[i % 2];
        if (suite->options->full || form.level == ALWAYS ||
            (form.level != FULL && all))
            form_run(suite, row, &form);
    }
}

/*
 * Every operator that can be an activation. About half of the arguments are in
 * the domain of operators that are defined in [-1, 1] or above 1.
 */
static void activations_run(struct suite *suite, const struct op_row *row)
{
    struct form form = {SIZES(23, 29, 31), .alpha = 0.3, .bias = COLUMN,
                        .activation_parameter = 0.25,
                        .activation_parameter2 = 0.75};
    const struct op_row *activations[TANDEM_OP_ID_END];
    const uint32_t count = activations_choose(suite, row, activations);

    for (uint32_t i = 0; i < count; i++) {
        form.activation = activations[i]->id;
        form.activation_parameter =
            form.activation == TANDEM_OP_GELU ? 1.0 : 0.25;
        form_run(suite, row, &form);
    }
}

static void magnitudes_run(struct suite *suite, const struct op_row *row)
{
    for (uint32_t i = 0; i < COUNT_OF(magnitude_forms); i++)
        for (uint32_t k = 0; k < COUNT_OF(magnitude_scales); k++) {
            struct form form = magnitude_forms[i];

            form.alpha = magnitude_scales[k].alpha;
            form.tilt = magnitude_scales[k].tilt;
            form_run(suite, row, &form);
        }
}

static void cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, "gemm");
    forms_run(suite, row, &choice);
    long_sums_run(suite, row);
    forms_16_run(suite, row);
    relaxed_forms_run(suite, row);
    magnitudes_run(suite, row);
    activations_run(suite, row);
}

/* Describes (3 x 4)(4 x 5). */
static void make_valid(struct mistaken_call *p)
{
    p->ints[0] = TANDEM_OP_INVALID;
    MISTAKEN_SHAPE(&p->ins[1], 4, 5);
    MISTAKEN_SHAPE(&p->outs[0], 3, 5);
}

const struct suite_class suite_gemm = {
    .cases = cases,
    .make_valid = make_valid,
    .reference = gemm_reference,
    .draw = gemm_draw,
    .fill = gemm_fill,
    .weight = 12,
};
