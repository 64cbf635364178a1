/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one GEMM under test; see gemm_case.h. */
#include "gemm_case.h"
#include "element_value.h"
#include "operand.h"
#include "reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One matrix operand and the content of its buffer. */
struct matrix {
    struct tandem_matrix desc;
    uint32_t dtype;
    int64_t rows, columns, batch;
    uint64_t bytes;
    unsigned char *image;
    unsigned char *result;
};

struct gemm_case {
    struct suite *suite;
    const struct gemm_form *form;
    struct tandem_gemm gemm;
    struct matrix a, b, c, bias;
};

static void matrix_init(struct matrix *matrix, uint32_t dtype, int64_t rows,
                        int64_t columns, int64_t batch, int64_t pad,
                        bool repeat, uint32_t lead)
{
    int64_t elements;
    uint32_t bytes = TANDEM_DTYPE_BYTES(dtype);

    matrix->dtype = dtype;
    matrix->rows = rows;
    matrix->columns = columns;
    matrix->batch = repeat ? 1 : batch;
    matrix->desc.ld = (columns < 1 ? 1 : columns) + pad;
    matrix->desc.batch_stride = repeat ? 0 : rows * matrix->desc.ld + pad;
    matrix->desc.byte_offset = lead * bytes;
    elements = lead + matrix->batch * (rows * matrix->desc.ld + pad) + 16;
    if (operands_have_exact_buffers() && matrix->batch * rows * columns > 0)
        elements = lead + (matrix->batch - 1) * matrix->desc.batch_stride +
                   (rows - 1) * matrix->desc.ld + columns;
    matrix->bytes = (uint64_t)elements * bytes;
    matrix->image = must_allocate(matrix->bytes);
    matrix->result = must_allocate(matrix->bytes);
    memset(matrix->image, OPERAND_GAP, matrix->bytes);
}

/* Sets strides that the plugin must ignore to invalid values. */
static void unused_strides_invalidate(struct matrix *matrix)
{
    const bool empty = matrix->batch * matrix->rows * matrix->columns == 0;
    const bool large = matrix->columns % 2 != 0;

    if (empty || matrix->rows == 1)
        matrix->desc.ld = large ? INT64_MAX : INT64_MIN;
    if (empty || matrix->batch == 1)
        matrix->desc.batch_stride = large ? INT64_MAX : -3;
}

static unsigned char *matrix_element(const struct matrix *matrix,
                                     unsigned char *image, int64_t batch,
                                     int64_t row, int64_t column)
{
    int64_t at =
        batch * matrix->desc.batch_stride + row * matrix->desc.ld + column;

    return image + matrix->desc.byte_offset +
           at * (int64_t)TANDEM_DTYPE_BYTES(matrix->dtype);
}

static double element_value(struct random *random, bool special, bool positive)
{
    if (special && random_once_in(random, 30))
        return random_once_in(random, 2) ? (double)INFINITY : (double)NAN;
    return positive ? random_uniform(random, 1.0, 2.0) : random_normal(random);
}

static void matrix_fill(struct matrix *matrix, struct random *random,
                        bool special, bool positive, double scale)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(matrix->dtype);
    int64_t shape[3] = {matrix->batch, matrix->rows, matrix->columns};
    int64_t at[3] = {0, 0, 0};

    for (int64_t i = 0; i < shape_count(3, shape); i++) {
        double value = scale * element_value(random, special, positive);

        bits_write(matrix_element(matrix, matrix->image, at[0], at[1], at[2]),
                   bytes, bits_from_real(matrix->dtype, value));
        index_next(3, shape, at);
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

/*
 * along_rows: k is the row index of the stored matrix, otherwise the column
 * index.
 */
static void matrix_fill_pattern(struct matrix *matrix,
                                enum gemm_pattern pattern, bool in_b,
                                bool along_rows)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(matrix->dtype);
    int64_t shape[3] = {matrix->batch, matrix->rows, matrix->columns};
    int64_t at[3] = {0, 0, 0};

    for (int64_t i = 0; i < shape_count(3, shape); i++) {
        double value = pattern_value(pattern, in_b, along_rows ? at[1] : at[2]);

        bits_write(matrix_element(matrix, matrix->image, at[0], at[1], at[2]),
                   bytes, bits_from_real(matrix->dtype, value));
        index_next(3, shape, at);
    }
}

static void matrix_finish(struct suite *suite, struct matrix *matrix)
{
    suite->api.free(matrix->desc.buffer);
    free(matrix->image);
    free(matrix->result);
}

static bool matrix_upload(struct suite *suite, struct matrix *matrix)
{
    enum tandem_status status = TANDEM_OK;

    if (matrix->desc.buffer == NULL)
        status = suite->api.alloc(suite->device, matrix->bytes,
                                  &matrix->desc.buffer);
    if (status == TANDEM_OK)
        status = suite->api.upload(suite->stream, matrix->desc.buffer, 0,
                                   matrix->image, matrix->bytes, 0);
    return expect(suite, status, TANDEM_OK, "alloc and upload of a matrix");
}

static bool matrix_download(struct suite *suite, struct matrix *matrix)
{
    return expect(suite,
                  suite->api.download(suite->stream, matrix->desc.buffer, 0,
                                      matrix->result, matrix->bytes, 0,
                                      SUITE_TIMEOUT_NS),
                  TANDEM_OK, "download of a matrix");
}

static void matrices_init(struct gemm_case *gemm_case)
{
    const struct gemm_form *f = gemm_case->form;
    bool ta = (f->flags & TA) != 0, tb = (f->flags & TB) != 0;
    struct random *random = &gemm_case->suite->random;
    uint32_t dtype = f->dtype != 0 ? f->dtype : TANDEM_F32;
    uint32_t c_dtype = f->c_dtype != 0 ? f->c_dtype : dtype;
    double scale = f->scale != 0.0 ? f->scale : 1.0;
    double tilt = f->tilt != 0.0 ? f->tilt : 1.0;

    matrix_init(&gemm_case->a, dtype, ta ? f->k : f->m, ta ? f->m : f->k,
                f->batch, f->pad[0], (f->repeat & 1u) != 0, f->lead);
    matrix_init(&gemm_case->b, dtype, tb ? f->n : f->k, tb ? f->k : f->n,
                f->batch, f->pad[1], (f->repeat & 2u) != 0, f->lead);
    matrix_init(&gemm_case->c, c_dtype, f->m, f->n, f->batch, f->pad[2], false,
                f->lead);
    matrix_init(&gemm_case->bias, c_dtype, 1, f->bias == ROW ? f->m : f->n, 1,
                0, true, f->lead);
    if (f->invalid_strides) {
        unused_strides_invalidate(&gemm_case->a);
        unused_strides_invalidate(&gemm_case->b);
        unused_strides_invalidate(&gemm_case->c);
    }
    if (f->pattern != PATTERN_RANDOM) {
        matrix_fill_pattern(&gemm_case->a, f->pattern, false, ta);
        matrix_fill_pattern(&gemm_case->b, f->pattern, true, !tb);
    } else {
        matrix_fill(&gemm_case->a, random, f->special, f->positive,
                    scale * tilt);
        matrix_fill(&gemm_case->b, random, f->special, f->positive,
                    scale / tilt);
    }
    matrix_fill(&gemm_case->bias, random, false, false, 1.0);
    /* Otherwise c keeps its NaN, because it must not be read. */
    if ((float)f->beta != 0.0f)
        matrix_fill(&gemm_case->c, random, false, false, 1.0);
}

/*
 * The standard deviation of a sum of k products is proportional to the root of
 * k.
 */
static double scaled_alpha(const struct gemm_form *form, uint32_t c_dtype)
{
    if (form->alpha != NEAR_LARGEST)
        return form->alpha;
    return (c_dtype == TANDEM_F16 ? 65504.0 : 0x1.fep127) /
           (0.7 * sqrt((double)form->k));
}

static void gemm_fill(struct gemm_case *gemm_case)
{
    const struct gemm_form *f = gemm_case->form;

    gemm_case->gemm =
        (struct tandem_gemm){.struct_size = sizeof(gemm_case->gemm),
                             .dtype = gemm_case->a.dtype,
                             .c_dtype = f->c_dtype,
                             .flags = f->flags,
                             .m = f->m,
                             .n = f->n,
                             .k = f->k,
                             .batch = f->batch,
                             .alpha = scaled_alpha(f, gemm_case->c.dtype),
                             .beta = f->beta,
                             .a = gemm_case->a.desc,
                             .b = gemm_case->b.desc,
                             .c = gemm_case->c.desc,
                             .bias_kind = f->bias,
                             .activation = f->activation,
                             .activation_parameter = f->activation_parameter};
    /* A caller of version 1.0 has other data in place of c_dtype. */
    if (f->version_1_0) {
        gemm_case->gemm.struct_size = TANDEM_GEMM_MIN_SIZE_1_0;
        gemm_case->gemm.c_dtype = TANDEM_BF16;
    }
    if (f->bias != TANDEM_BIAS_NONE) {
        gemm_case->gemm.bias = gemm_case->bias.desc.buffer;
        gemm_case->gemm.bias_byte_offset = gemm_case->bias.desc.byte_offset;
    }
}

static void elements_check(struct gemm_case *gemm_case, unsigned char *again)
{
    struct suite *suite = gemm_case->suite;
    struct matrix *c = &gemm_case->c;
    struct expected expected;
    int64_t shape[3] = {gemm_case->form->batch, gemm_case->form->m,
                        gemm_case->form->n};
    int64_t at[3] = {0, 0, 0}, wrong = 0, unequal = 0;
    uint32_t bytes = TANDEM_DTYPE_BYTES(c->dtype);

    reference_gemm(&gemm_case->gemm, gemm_case->a.image, gemm_case->b.image,
                   c->image, gemm_case->bias.image, &expected);
    for (int64_t i = 0; i < expected.elements; i++) {
        unsigned char *here = matrix_element(c, c->result, at[0], at[1], at[2]);
        unsigned char *there = matrix_element(c, again, at[0], at[1], at[2]);
        uint64_t bits = bits_read(here, bytes);
        double error;

        unequal += memcmp(here, there, bytes) != 0;
        if (!expected_accepts(&expected, i, c->dtype, bits, &error) &&
            wrong++ < 3)
            case_fail(suite,
                      "c[%" PRId64 "][%" PRId64 ",%" PRId64 "]: got %.9g, "
                      "expected %.12g, off by %.3g tolerances",
                      at[0], at[1], at[2], bits_real(c->dtype, bits),
                      expected.real[i], error);
        /* Restores the elements, so that only the gaps are compared below. */
        memcpy(here, matrix_element(c, c->image, at[0], at[1], at[2]), bytes);
        index_next(3, shape, at);
    }
    if (wrong > 0)
        case_fail(suite, "%" PRId64 " of %" PRId64 " elements are wrong", wrong,
                  expected.elements);
    if (unequal > 0)
        case_fail(suite, "%" PRId64 " elements differ when run again", unequal);
    if (memcmp(c->result, c->image, c->bytes) != 0)
        case_fail(suite, "bytes of c's buffer that belong to no element were "
                         "overwritten");
    expected_finish(&expected);
}

static void input_check(struct suite *suite, struct matrix *matrix,
                        const char *name)
{
    if (matrix_download(suite, matrix) &&
        memcmp(matrix->result, matrix->image, matrix->bytes) != 0)
        case_fail(suite, "%s was changed", name);
}

static void gemm_run_twice(struct gemm_case *gemm_case)
{
    struct suite *suite = gemm_case->suite;
    unsigned char *again = must_allocate(gemm_case->c.bytes);

    for (int run = 0; run < 2; run++) {
        if ((run > 0 && !matrix_upload(suite, &gemm_case->c)) ||
            !EXPECT_OK(suite,
                       suite->api.gemm(suite->stream, &gemm_case->gemm)) ||
            !matrix_download(suite, &gemm_case->c))
            break;
        if (run == 0)
            memcpy(again, gemm_case->c.result, gemm_case->c.bytes);
        else
            elements_check(gemm_case, again);
    }
    input_check(suite, &gemm_case->a, "a");
    input_check(suite, &gemm_case->b, "b");
    input_check(suite, &gemm_case->bias, "bias");
    free(again);
}

static bool gemm_is_16_bit(const struct gemm_case *gemm_case)
{
    return dtype_has_16_bits(gemm_case->a.dtype) ||
           dtype_has_16_bits(gemm_case->c.dtype);
}

static void gemm_case_run(struct gemm_case *gemm_case)
{
    struct suite *suite = gemm_case->suite;
    struct tandem_op op = {.struct_size = sizeof(op),
                           .id = TANDEM_OP_GEMM,
                           .gemm = &gemm_case->gemm};
    enum tandem_status status;

    matrices_init(gemm_case);
    if (!matrix_upload(suite, &gemm_case->a) ||
        !matrix_upload(suite, &gemm_case->b) ||
        !matrix_upload(suite, &gemm_case->c) ||
        !matrix_upload(suite, &gemm_case->bias))
        return;
    gemm_fill(gemm_case);
    status = suite->api.supports(suite->device, &op, NULL, 0, NULL, 0);
    if (status == TANDEM_OK) {
        gemm_run_twice(gemm_case);
        return;
    }
    if (!expect(suite, status, TANDEM_UNSUPPORTED, "supports(gemm)"))
        return;
    if (suite_has_capability(suite, gemm_is_16_bit(gemm_case)
                                        ? TANDEM_CAP_F16_BF16_STORAGE
                                        : TANDEM_CAP_CORE_OPERATORS))
        case_fail(suite, "a required operator was declined: %s",
                  plugin_message(suite));
    expect(suite, suite->api.gemm(suite->stream, &gemm_case->gemm),
           TANDEM_UNSUPPORTED, "gemm of what supports() declined");
    case_skip(suite, "declined");
}

static void form_run(struct suite *suite, const struct gemm_form *form)
{
    struct gemm_case gemm_case = {.suite = suite, .form = form};
    const struct op_row *activation = op_find(form->activation);
    static const char *const patterns[] = {"", " constant", " periodic",
                                           " alternating"};
    char c_text[16], tilt[24] = "";

    snprintf(c_text, sizeof(c_text), "%s ", dtype_text(form->c_dtype));
    if (form->tilt != 0.0)
        snprintf(tilt, sizeof(tilt), " tilt %g", form->tilt);
    if (!case_begin(suite, "gemm",
                    "%s%s%s%s%lldx%lldx%lld batch %lld%s%s alpha %g beta %g "
                    "pad %d,%d,%d lead %u repeat %u bias %u %s%s%s%s%s%s",
                    form->flags & TANDEM_GEMM_ALLOW_TF32             ? "tf32 "
                    : form->flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR ? "scaled "
                                                                     : "",
                    form->dtype != 0 ? dtype_text(form->dtype) : "",
                    form->c_dtype != 0 ? " to " : "",
                    form->c_dtype != 0 ? c_text : "", (long long)form->m,
                    (long long)form->n, (long long)form->k,
                    (long long)form->batch, form->flags & TA ? " A^T" : "",
                    form->flags & TB ? " B^T" : "", form->alpha, form->beta,
                    (int)form->pad[0], (int)form->pad[1], (int)form->pad[2],
                    form->lead, form->repeat, form->bias,
                    activation != NULL ? activation->name : "linear",
                    form->special    ? " specials"
                    : form->positive ? " positive"
                                     : "",
                    patterns[form->pattern], form->version_1_0 ? " old" : "",
                    tilt, form->invalid_strides ? " junk" : ""))
        return;
    gemm_case_run(&gemm_case);
    matrix_finish(suite, &gemm_case.a);
    matrix_finish(suite, &gemm_case.b);
    matrix_finish(suite, &gemm_case.c);
    matrix_finish(suite, &gemm_case.bias);
    case_end(suite);
}

void gemm_form_run(struct suite *suite, const struct gemm_form *form)
{
    struct gemm_form complete = *form;

    if (complete.batch == 0)
        complete.batch = 1;
    if (complete.alpha == 0.0)
        complete.alpha = 1;
    else if (complete.alpha == ZERO)
        complete.alpha = 0;
    form_run(suite, &complete);
}

void gemm_random_run(struct suite *suite, struct random *random, uint32_t dtype,
                     uint32_t c_dtype)
{
    static const uint32_t activations[] = {
        TANDEM_OP_INVALID,    TANDEM_OP_INVALID, TANDEM_OP_RELU,
        TANDEM_OP_LEAKY_RELU, TANDEM_OP_SIGMOID, TANDEM_OP_TANH,
        TANDEM_OP_GELU,       TANDEM_OP_SWISH};
    static const double betas[] = {0.0, 0.0, 1.0, -0.5};
    struct gemm_form form = {0};

    form.m = random_between(random, 1, 50);
    form.n = random_between(random, 1, 50);
    form.k = random_between(random, 1, 70);
    form.batch = random_once_in(random, 3) ? random_between(random, 2, 4) : 1;
    form.flags = (uint32_t)random_u64(random) & (TA | TB);
    form.bias = (uint32_t)random_below(random, 3);
    form.activation = activations[random_below(random, 8)];
    form.activation_parameter = (double)random_below(random, 2);
    form.alpha = random_once_in(random, 2) ? 1.0 : 0.5;
    form.beta = betas[random_below(random, 4)];
    for (uint32_t i = 0; i < 3; i++)
        form.pad[i] =
            random_once_in(random, 2) ? 0 : random_between(random, 1, 9);
    form.lead = (uint32_t)random_below(random, 6);
    form.repeat = (uint32_t)random_below(random, 4);
    form.dtype = dtype;
    form.c_dtype = c_dtype;
    gemm_form_run(suite, &form);
}
