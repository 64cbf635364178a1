/* SPDX-License-Identifier: Apache-2.0 */
/* Draws and measures points; see placement_points.h. */
#include <config.h>

#include "placement_points.h"

#include "library_run.h"

#include <math.h>
#include <string.h>

#define SAMPLES 9
/* Time between two waits if the data is on the device, and the maximum number
 * of launches in it. */
#define LOOP_NS 1e6
#define LOOP_MAX 1000

/* ---- drawing ---- */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Returns a size between 2^low and 2^high, uniform in its logarithm. */
static int64_t draw_size(uint64_t *state, double low, double high)
{
    double part = (double)(draw(state) >> 11) / 9007199254740992.0;

    return (int64_t)exp2(low + part * (high - low));
}

static const char *const flat_ops[] = {"add",     "mul",  "relu", "sqrt", "exp",
                                       "sigmoid", "tanh", "gelu", "adam"};
static const char *const row_ops[] = {"reduce_sum",  "reduce_max", "softmax",
                                      "log_softmax", "transpose",  "gather"};

static void draw_product(struct point *point, uint64_t *state, enum scale scale)
{
    static const double flops[SCALES] = {1e6, 2e8, 2e10};

    point->op = "gemm";
    point->rank = 3;
    do {
        for (int i = 0; i < 3; i++)
            point->shape[i] = draw_size(state, 3, 11);
    } while (2.0 * (double)point->shape[0] * (double)point->shape[1] *
                 (double)point->shape[2] >
             flops[scale]);
}

void point_draw(struct point *point, uint64_t *state, const uint32_t *devices,
                uint32_t device_count, enum scale scale)
{
    static const double sizes[SCALES] = {12, 21, 24};
    uint64_t kind = draw(state) % 16, place;
    int64_t elements = draw_size(state, 8, sizes[scale]);

    memset(point, 0, sizeof *point);
    if (kind < COUNT(flat_ops)) {
        point->op = flat_ops[kind];
        point->rank = 1;
        point->shape[0] = elements;
    } else if (kind < 15) {
        point->op = row_ops[kind - 9];
        point->rank = 2;
        point->shape[1] = draw_size(state, 4, 12);
        point->shape[0] = elements / point->shape[1] + 1;
    } else {
        draw_product(point, state, scale);
    }
    place = draw(state) % (device_count + 1);
    point->resident = place < device_count ? devices[place] : TANDEM_ANY_DEVICE;
}

/* ---- measuring ---- */

/* Returns true if the device can use the data without a transfer. */
static bool in_place(const struct bench *bench, const struct point *point,
                     uint32_t device)
{
    struct tandem_device_info info = {.struct_size = sizeof info};

    if (point->resident == device)
        return true;
    return point->resident == TANDEM_ANY_DEVICE &&
           tandem_device_describe(bench->context, device, &info) == TANDEM_OK &&
           (info.caps & TANDEM_CAP_ZERO_COPY_IMPORT) != 0;
}

/* Measures many launches with one wait if the data is on the device, else
 * single launches, each with a wait.  Returns false on failure. */
static bool measure_device(struct library_run *t, struct point *point,
                           uint32_t device, double wait_ns)
{
    double samples[SAMPLES], once;
    bool resident = in_place(t->bench, point, device);
    uint64_t count = 1;

    t->device = device;
    /* The first run compiles and allocates. */
    once = library_run_resident(t, 1);
    if (resident && once >= 0)
        once = library_run_resident(t, 1);
    if (resident)
        count = (uint64_t)fmin(fmax(LOOP_NS / fmax(once, 1), 1), LOOP_MAX);
    for (uint32_t i = 0; i < SAMPLES && once >= 0; i++) {
        if (!resident && library_run_place(t, point->resident) != TANDEM_OK)
            return false;
        once = samples[i] = library_run_resident(t, count);
    }
    point->waited_ns[device] = wait_ns / (double)count;
    point->measured_ns[device] = quantile(samples, SAMPLES, 0.5);
    return once >= 0 && library_run_place(t, point->resident) == TANDEM_OK;
}

static bool predict(struct library_run *t, struct point *point)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_context *context = t->bench->context;
    double *predicted = point->predicted_ns;
    enum tandem_status status;

    if (t->c.op.id == TANDEM_OP_GEMM)
        status = tandem_explain_matmul(context, NULL, t->in[0], t->in[1],
                                       t->out[0], &e);
    else
        status = tandem_explain_op(context, &t->c.op, t->in, t->c.inputs,
                                   t->out, t->c.outputs, &e);
    for (uint32_t i = 0; i < e.candidate_count; i++)
        if (e.candidates[i].status == TANDEM_OK)
            predicted[e.candidates[i].device] = e.candidates[i].predicted_ns;
    point->chosen = 0;
    for (uint32_t d = 1; d < POINT_DEVICES; d++)
        if (predicted[d] > 0 && (predicted[point->chosen] <= 0 ||
                                 predicted[d] < predicted[point->chosen]))
            point->chosen = d;
    return status == TANDEM_OK;
}

bool point_measure(struct bench *bench, struct point *point,
                   uint32_t device_count, const double *wait_ns)
{
    struct row row = {
        .suite = "placement", .op = point->op, .mode = "", .rank = point->rank};
    struct library_run t;
    bool ok;

    memcpy(row.shape, point->shape, sizeof point->shape);
    ok = library_run_open(&t, bench, &row, TANDEM_ANY_DEVICE) &&
         library_run_place(&t, point->resident) == TANDEM_OK &&
         predict(&t, point);
    for (uint32_t d = 0; d < device_count && ok; d++)
        if (point->predicted_ns[d] > 0)
            ok = measure_device(&t, point, d, wait_ns[d]);
    if (!ok)
        bench_fail(bench, "%s: %s", point->op, tandem_last_error());
    library_run_close(&t);
    return ok;
}
