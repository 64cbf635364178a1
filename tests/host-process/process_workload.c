/* SPDX-License-Identifier: Apache-2.0 */
/* Work for the tests of host process isolation; see process_workload.h. */
#include <config.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "unit/host/support.h"
#include "process_workload.h"

#define ROWS 1024
#define COLUMNS (WORK_ELEMENTS / ROWS)

static float first[WORK_ELEMENTS], second[WORK_ELEMENTS];
static float plain[WORK_SIDE * WORK_SIDE];

/* Bit patterns of all kinds; special ones are more frequent. */
void work_prepare(void)
{
    static bool done;
    static const float special[] = {0.0f,       -0.0f,    INFINITY, -INFINITY,
                                    FLT_MAX,    -FLT_MAX, FLT_MIN,  1e-45f,
                                    -1e-40f,    1.0f,     -1.0f,    1e30f,
                                    88.722839f, -104.0f,  0.5f,     3.0f};
    uint32_t state = 1;

    if (done)
        return;
    done = true;
    for (int64_t i = 0; i < WORK_ELEMENTS; i++) {
        float pair[2];

        for (int j = 0; j < 2; j++) {
            state = state * 1664525u + 1013904223u;
            if (state >> 29 == 0)
                pair[j] = special[state >> 20 & 15];
            else
                pair[j] = (float)(int32_t)state * 0x1p-28f;
            if (state >> 29 == 1)
                pair[j] *= 1e-38f;
        }
        first[i] = pair[0];
        second[i] = pair[1];
    }
    first[17] = NAN;
    second[19] = NAN;
    for (int i = 0; i < WORK_SIDE * WORK_SIDE; i++)
        plain[i] = (float)(i % 31 - 15) / 7.0f;
}

static void operator_run(struct tandem_context *context, uint32_t device,
                         uint32_t id, struct tandem_tensor *a,
                         struct tandem_tensor *b, struct tandem_tensor *y)
{
    struct tandem_tensor *const inputs[2] = {a, b};
    const int64_t axis = -1;
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = id,
                                 .ints = &axis,
                                 .int_count = id == TANDEM_OP_SOFTMAX};

    OK(tandem_run_on(context, device, &op, inputs, b ? 2 : 1, &y, 1));
}

/* out: 11 results of WORK_ELEMENTS each. */
static void elementwise_run(struct tandem_context *context, uint32_t device,
                            float *out)
{
    static const struct {
        uint32_t id, inputs;
    } ops[] = {
        {TANDEM_OP_ADD, 2},   {TANDEM_OP_MUL, 2},        {TANDEM_OP_DIV, 2},
        {TANDEM_OP_SQRT, 1},  {TANDEM_OP_EXP, 1},        {TANDEM_OP_LOG, 1},
        {TANDEM_OP_TANH, 1},  {TANDEM_OP_RECIPROCAL, 1}, {TANDEM_OP_SIGMOID, 1},
        {TANDEM_OP_ROUND, 1}, {TANDEM_OP_SOFTMAX, 1}};
    struct tandem_tensor *a = matrix_wrap(context, first, ROWS, COLUMNS);
    struct tandem_tensor *b = matrix_wrap(context, second, ROWS, COLUMNS);

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct tandem_tensor *y = matrix_wrap(
            context, out + (int64_t)i * WORK_ELEMENTS, ROWS, COLUMNS);

        operator_run(context, device, ops[i].id, a,
                     ops[i].inputs == 2 ? b : NULL, y);
        OK(tandem_tensor_sync(y, TANDEM_TIMEOUT_INFINITE));
        tandem_tensor_destroy(y);
    }
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
}

/* out: two GEMMs, one with special values and one without. */
static void gemms_run(struct tandem_context *context, uint32_t device,
                      float *out)
{
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1.0, .device = device};

    for (int i = 0; i < 2; i++) {
        struct tandem_tensor *a =
            matrix_wrap(context, i == 0 ? first : plain, WORK_SIDE, WORK_SIDE);
        struct tandem_tensor *b =
            matrix_wrap(context, plain, WORK_SIDE, WORK_SIDE);
        struct tandem_tensor *c = matrix_wrap(
            context, out + i * WORK_SIDE * WORK_SIDE, WORK_SIDE, WORK_SIDE);

        OK(tandem_matmul(context, &options, a, b, c));
        OK(tandem_tensor_sync(c, TANDEM_TIMEOUT_INFINITE));
        tandem_tensor_destroy(a);
        tandem_tensor_destroy(b);
        tandem_tensor_destroy(c);
    }
}

void work_run(struct tandem_context *context, uint32_t device, float *out)
{
    work_prepare();
    elementwise_run(context, device, out);
    gemms_run(context, device, out + 11 * WORK_ELEMENTS);
}

void work_compare(const float *expected, const float *results, const char *what)
{
    for (int64_t i = 0; i < WORK_RESULTS; i++) {
        const bool nan = expected[i] != expected[i];

        if (nan ? results[i] == results[i]
                : memcmp(&expected[i], &results[i], sizeof *results) != 0)
            ck_abort_msg("%s: result %lld (operator %lld) is %a, not %a", what,
                         (long long)i, (long long)(i / WORK_ELEMENTS),
                         (double)results[i], (double)expected[i]);
    }
}
