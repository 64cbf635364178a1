/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: rows DIRECTORY COMPILER OPTION...
 *
 * Plans reductions, normalizations and softmax for an NVIDIA GPU, compiles
 * their kernels for the host CPU into DIRECTORY, with warp shuffles and votes
 * as functions, and compares the results with a float64 reference.
 * Intermediate values of some rows leave the range of f32, so that items of a
 * work-group take different paths. The emulation detects items that wait at
 * different barriers.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_emulator.h"
#include "opencl/memory/buffer.h"
#include "host_compiled_kernel.h"

#define GROUP_LOG2 8u
#define MAX_REDUCED 1e-5

static const struct shape {
    int64_t rows, count, pad; /* Shape and padding of a row, in elements. */
    bool along_columns;       /* The reduction runs along columns. */
} shapes[] = {
    {64, 7, 0, false},   {70, 13, 0, false},   {300, 3, 0, false},
    {33, 100, 0, false}, {20, 256, 0, false},  {9, 1000, 0, false},
    {3, 4099, 0, false}, {2, 20000, 0, false}, {2, 33333, 0, false},
    {40, 60, 5, false},  {5, 1030, 3, false},  {50, 300, 0, true},
    {5, 9000, 0, true},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const uint32_t operators[] = {
    TANDEM_OP_SUM,        TANDEM_OP_MEAN,     TANDEM_OP_PROD,
    TANDEM_OP_SUM_SQUARE, TANDEM_OP_L2,       TANDEM_OP_REDUCE_MAX,
    TANDEM_OP_LAYER_NORM, TANDEM_OP_RMS_NORM, TANDEM_OP_SOFTMAX,
};
#define OPERATORS (sizeof(operators) / sizeof(operators[0]))

static const struct platform_device hardware = {
    .correct_divide = true, .nvidia = true, .info = {.compute_units = 132}};

static bool reduces(uint32_t op)
{
    return op != TANDEM_OP_LAYER_NORM && op != TANDEM_OP_RMS_NORM &&
           op != TANDEM_OP_SOFTMAX;
}

/* Returns element `nth` of a row of `count` elements.  In two rows of three,
 * the elements of a sum are outside the range that f32 can square or add, and a
 * product has one large and one small factor. */
static float element(uint32_t op, int64_t row, int64_t nth, int64_t count)
{
    float x = random_next();
    if (op == TANDEM_OP_PROD)
        x = (x < 0 ? -1.0f : 1.0f) * (1.0f + 0.001f * x);
    if (op == TANDEM_OP_SOFTMAX || op == TANDEM_OP_REDUCE_MAX || row % 3 == 0)
        return x;
    if (op == TANDEM_OP_PROD)
        return nth == 0 ? x * 0x1p100f : nth == count - 1 ? x * 0x1p-100f : x;
    if (op == TANDEM_OP_SUM || op == TANDEM_OP_MEAN)
        return nth % 2 == 0 ? 3e38f : -3e38f + 1e36f * x;
    return x * (row % 3 == 1 ? 1e25f : 1e-25f);
}

struct row_case {
    uint32_t op;
    const struct shape *shape;
    float *x, *scale, *bias, *result;
    struct tandem_tensor_desc tensors[4];
};

static float *floats_new(int64_t count)
{
    size_t bytes = ((size_t)count * sizeof(float) + 255) / 256 * 256;
    float *made = aligned_alloc(256, bytes + 256);
    if (made != NULL)
        memset(made, 0xff, bytes + 256);
    return made;
}

static int64_t place(const struct row_case *of, int64_t row, int64_t nth)
{
    const struct shape *shape = of->shape;
    return shape->along_columns ? nth * (shape->rows + shape->pad) + row
                                : row * (shape->count + shape->pad) + nth;
}

static struct tandem_tensor_desc matrix(const struct row_case *of,
                                        uint32_t slot)
{
    const struct shape *shape = of->shape;
    return (struct tandem_tensor_desc){
        slot_buffer(slot, MAX_SLOT_ALIGNMENT),
        0,
        TANDEM_F32,
        2,
        {shape->rows, shape->count},
        {shape->along_columns ? 1 : shape->count + shape->pad,
         shape->along_columns ? shape->rows + shape->pad : 1}};
}

static struct tandem_tensor_desc line(uint32_t slot, int64_t count)
{
    return (struct tandem_tensor_desc){
        slot_buffer(slot, MAX_SLOT_ALIGNMENT), 0, TANDEM_F32, 1, {count}, {1}};
}

static bool case_make(struct row_case *out, uint32_t op,
                      const struct shape *shape)
{
    int64_t all = (shape->rows + (shape->along_columns ? shape->pad : 0)) *
                  (shape->count + (shape->along_columns ? 0 : shape->pad));
    memset(out, 0, sizeof(*out));
    out->op = op;
    out->shape = shape;
    out->x = floats_new(all);
    out->scale = floats_new(shape->count);
    out->bias = floats_new(shape->count);
    out->result = floats_new(all);
    if (out->x == NULL || out->scale == NULL || out->bias == NULL ||
        out->result == NULL)
        return false;
    for (int64_t row = 0; row < shape->rows; row++)
        for (int64_t nth = 0; nth < shape->count; nth++)
            out->x[place(out, row, nth)] = element(op, row, nth, shape->count);
    for (int64_t nth = 0; nth < shape->count; nth++) {
        out->scale[nth] = 1.5f + random_next();
        out->bias[nth] = random_next();
    }
    out->tensors[0] = matrix(out, SLOT_INPUT);
    out->tensors[1] = line(SLOT_INPUT + 1, shape->count);
    out->tensors[2] = line(SLOT_INPUT + 2, shape->count);
    out->tensors[3] =
        reduces(op) ? line(SLOT_OUTPUT, shape->rows) : matrix(out, SLOT_OUTPUT);
    return true;
}

static void case_free(struct row_case *of)
{
    free(of->x);
    free(of->scale);
    free(of->bias);
    free(of->result);
}

static bool case_plan(struct launch_plan *plan, const struct row_case *of)
{
    const int64_t ints[] = {reduces(of->op) ? 1 << 1 : 1, 0};
    const double floats[] = {0};
    const struct tandem_tensor_desc *inputs[] = {
        &of->tensors[0], &of->tensors[1], &of->tensors[2]};
    const struct tandem_tensor_desc *outputs[] = {&of->tensors[3]};
    const bool norms =
        of->op == TANDEM_OP_LAYER_NORM || of->op == TANDEM_OP_RMS_NORM;
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = of->op,
                                 .ints = ints,
                                 .int_count = reduces(of->op) ? 2 : 1,
                                 .floats = floats,
                                 .float_count = norms ? 1 : 0};
    const struct op_request request = {.hardware = &hardware,
                                       .group_log2 = GROUP_LOG2,
                                       .op = &op,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .input_count =
                                           of->op == TANDEM_OP_LAYER_NORM ? 3
                                           : of->op == TANDEM_OP_RMS_NORM ? 2
                                                                          : 1,
                                       .output_count = 1};
    return launch_plan_make(plan, &request) == TANDEM_OK;
}

/* ---- float64 reference ---- */

struct moments {
    double sum, squares, squared_deviations, most, sizes, exponents, product;
};

static struct moments row_moments(const struct row_case *of, int64_t row)
{
    struct moments m = {.most = -INFINITY, .product = 1};
    for (int64_t i = 0; i < of->shape->count; i++) {
        double x = of->x[place(of, row, i)];
        m.sum += x;
        m.sizes += fabs(x);
        m.squares += x * x;
        m.most = fmax(m.most, x);
        m.product *= x;
    }
    double mean = m.sum / (double)of->shape->count;
    for (int64_t i = 0; i < of->shape->count; i++) {
        double x = of->x[place(of, row, i)];
        m.squared_deviations += (x - mean) * (x - mean);
        m.exponents += exp(x - m.most);
    }
    return m;
}

static double reduced(uint32_t op, const struct moments *m, double count)
{
    switch (op) {
    case TANDEM_OP_SUM:
        return m->sum;
    case TANDEM_OP_MEAN:
        return m->sum / count;
    case TANDEM_OP_PROD:
        return m->product;
    case TANDEM_OP_SUM_SQUARE:
        return m->squares;
    case TANDEM_OP_L2:
        return sqrt(m->squares);
    default:
        return m->most;
    }
}

static double written(const struct row_case *of, const struct moments *m,
                      int64_t row, int64_t nth)
{
    double count = (double)of->shape->count;
    double x = of->x[place(of, row, nth)];
    if (of->op == TANDEM_OP_SOFTMAX)
        return exp(x - m->most) / m->exponents;
    if (of->op == TANDEM_OP_RMS_NORM)
        return x / sqrt(m->squares / count) * of->scale[nth];
    return (x - m->sum / count) / sqrt(m->squared_deviations / count) *
               of->scale[nth] +
           of->bias[nth];
}

/*
 * Compares sums relative to the magnitudes of their terms, other results
 * relative to their value.
 */
static bool matches_reference(const struct row_case *of,
                              const struct moments *m, double got, double want)
{
    double count = (double)of->shape->count;
    float narrow = (float)want;
    double allowed = MAX_REDUCED * fabs(want);
    if (of->op == TANDEM_OP_PROD)
        allowed = 0x1p-22 * sqrt(count) * fabs(want);
    if (of->op == TANDEM_OP_SUM)
        allowed = MAX_REDUCED * m->sizes;
    if (of->op == TANDEM_OP_MEAN)
        allowed = MAX_REDUCED * m->sizes / count;
    if (of->op == TANDEM_OP_LAYER_NORM || of->op == TANDEM_OP_RMS_NORM)
        allowed = 1e-4 * fmax(1, fabs(want));
    if (isinf(narrow))
        return got == (double)narrow;
    return fabs(got - want) <= allowed + 0x1p-149;
}

static bool case_matches(const struct row_case *of)
{
    const struct shape *shape = of->shape;
    for (int64_t row = 0; row < shape->rows; row++) {
        const struct moments m = row_moments(of, row);
        int64_t results = reduces(of->op) ? 1 : shape->count;
        for (int64_t i = 0; i < results; i++) {
            double want = reduces(of->op)
                              ? reduced(of->op, &m, (double)shape->count)
                              : written(of, &m, row, i);
            double got = of->result[reduces(of->op) ? row : place(of, row, i)];
            if (matches_reference(of, &m, got, want))
                continue;
            fprintf(stderr, "(%" PRId64 ", %" PRId64 ") is %g, not %g\n", row,
                    i, got, want);
            return false;
        }
    }
    return true;
}

static bool case_run(uint32_t number)
{
    const uint32_t op = operators[number / SHAPES];
    const struct shape *shape = &shapes[number % SHAPES];
    struct row_case of;
    struct launch_plan plan;
    void *memory[SLOT_COUNT];
    bool right = case_make(&of, op, shape) && case_plan(&plan, &of);
    memory[SLOT_INPUT] = of.x;
    memory[SLOT_INPUT + 1] = of.scale;
    memory[SLOT_INPUT + 2] = of.bias;
    memory[SLOT_OUTPUT] = of.result;
    right = right && plan_run(&plan, memory) && case_matches(&of);
    printf("operator %u of %" PRId64 " x %" PRId64 "%s%s: %s\n", op,
           shape->rows, shape->count, shape->pad != 0 ? ", apart" : "",
           shape->along_columns ? ", across" : "", right ? "right" : "WRONG");
    fflush(stdout);
    case_free(&of);
    return right;
}

int main(int argc, char **argv)
{
    return emulation_main(argc, argv, &hardware, OPERATORS * SHAPES, case_run);
}
