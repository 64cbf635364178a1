/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spot checks of results before they are timed: the first and the last
 * elements of an output against the formula; see bench.h.
 */
#include <config.h>

#include "bench.h"

#include <math.h>
#include <stdlib.h>

#define SPOT 512             /* elements at either end */
#define SEED_PERIOD (1u << 18) /* floats after which lane_buffer repeats */
#define GEMM_SPOTS 64

float seed_value(uint64_t index)
{
    static float values[SEED_PERIOD];
    static bool made;

    if (!made) {
        uint32_t state = 12345;

        for (uint32_t i = 0; i < SEED_PERIOD; i++) {
            state = state * 1664525u + 1013904223u;
            values[i] = 0.5f + (float)(state >> 8) / 16777216.0f;
        }
        made = true;
    }
    return values[index % SEED_PERIOD];
}

static double sum_of(uint64_t start, uint64_t count, double shift, bool exps)
{
    double sum = 0;

    for (uint64_t i = start; i < start + count; i++)
        sum += exps ? exp((double)seed_value(i) - shift)
                    : (double)seed_value(i);
    return sum;
}

static double expected_gemm(const struct opcase *c, uint64_t index)
{
    uint64_t i = index / (uint64_t)c->n, j = index % (uint64_t)c->n;
    double sum = 0;

    for (int64_t p = 0; p < c->k; p++)
        sum += (double)seed_value(i * (uint64_t)c->k + (uint64_t)p) *
               (double)seed_value((uint64_t)p * (uint64_t)c->n + j);
    return sum;
}

/* The value of the output at index. */
static double expected(const struct opcase *c, uint64_t index)
{
    const struct tandem_tensor_desc *in = &c->in[0];
    uint64_t columns = in->rank > 0 ? (uint64_t)in->shape[in->rank - 1] : 1;
    uint64_t rows = in->rank > 1 ? (uint64_t)in->shape[0] : 1;
    double x = (double)seed_value(index);

    switch (c->op.id) {
    case TANDEM_OP_ADD:
        return x + x;
    case TANDEM_OP_RELU:
        return x;
    case TANDEM_OP_EXP:
        return exp(x);
    case TANDEM_OP_GELU:
        return x * (1 + erf(x / sqrt(2.0))) / 2;
    case TANDEM_OP_SUM:
        return sum_of(index * columns, columns, 0, false);
    case TANDEM_OP_SOFTMAX:
        return exp(x) / sum_of(index - index % columns, columns, 0, true);
    case TANDEM_OP_TRANSPOSE:
        return (double)seed_value(index % rows * columns + index / rows);
    case TANDEM_OP_GEMM:
        return expected_gemm(c, index);
    default:
        return NAN;
    }
}

static bool check_range(struct bench *bench, struct work *work, uint64_t first,
                        uint64_t count)
{
    struct lane *lane = work->lane;
    float got[SPOT];
    enum tandem_status status = lane->backend->download(
        lane->stream, work->c.out[0].buffer, first * sizeof(float), got,
        count * sizeof(float), 0, TANDEM_FOREVER);

    if (status != TANDEM_OK) {
        bench_fail(bench, "%s: %s", work->c.info->name,
                   lane->backend->last_error());
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        double want = expected(&work->c, first + i);

        if (!(fabs((double)got[i] - want) <= 1e-4 * fabs(want) + 1e-7)) {
            bench_fail(bench, "%s is wrong: element %llu is %g, not %g",
                       work->c.info->name, (unsigned long long)(first + i),
                       (double)got[i], want);
            return false;
        }
    }
    return true;
}

bool check_work(struct bench *bench, struct work *work)
{
    const struct opcase *c = &work->c;
    uint64_t elements = (uint64_t)desc_elements(&c->out[0]), count = SPOT;
    uint64_t ns;

    if (work_stream(work, 1, &ns) != TANDEM_OK) {
        bench_fail(bench, "%s: %s", c->info->name,
                   work->lane->backend->last_error());
        return false;
    }
    if (c->op.id == TANDEM_OP_GEMM || c->op.id == TANDEM_OP_SUM)
        count = c->op.id == TANDEM_OP_SUM && c->in[0].rank > 1 ? 4
                                                               : GEMM_SPOTS;
    count = count < elements ? count : elements;
    return check_range(bench, work, 0, count) &&
           check_range(bench, work, elements - count, count);
}
