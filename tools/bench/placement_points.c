/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws and measures points; see placement_points.h.
 */
#include <config.h>

#include "placement_points.h"

#include <math.h>
#include <stdlib.h>
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

struct point_run {
    struct bench *bench;
    struct point *point;
    uint32_t device; /* that computes */
    struct op_case c;
    void *memory[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *host[TANDEM_MAX_OPERANDS]; /* these wrap `memory` */
    struct tandem_tensor *in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *out[TANDEM_MAX_OPERANDS];
};

static bool point_launch(void *argument)
{
    struct point_run *t = argument;
    struct tandem_context *context = t->bench->context;
    struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = t->device};

    if (t->c.op.id == TANDEM_OP_GEMM)
        return tandem_matmul(context, &options, t->in[0], t->in[1],
                             t->out[0]) == TANDEM_OK;
    return tandem_run_on(context, t->device, &t->c.op, t->in, t->c.inputs,
                         t->out, t->c.outputs) == TANDEM_OK;
}

static bool point_wait(void *argument)
{
    struct point_run *t = argument;

    return tandem_context_synchronize(t->bench->context,
                                      TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
}
static BENCH_FN(point_runs, point_launch, point_wait)

    /* Moves the inputs to the place that the point names. */
    static enum tandem_status inputs_place(struct point_run *t)
{
    const struct tandem_op copy = {.struct_size = sizeof copy,
                                   .id = TANDEM_OP_COPY};
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < t->c.inputs && status == TANDEM_OK; i++) {
        if (t->point->resident == TANDEM_ANY_DEVICE)
            status = tandem_tensor_host_written(t->host[i]);
        else
            status = tandem_run_on(t->bench->context, t->point->resident, &copy,
                                   &t->host[i], 1, &t->in[i], 1);
    }
    if (status == TANDEM_OK)
        status = tandem_context_synchronize(t->bench->context,
                                            TANDEM_TIMEOUT_INFINITE);
    return status;
}

static void fill_memory(void *memory, const struct tandem_tensor_desc *desc,
                        int64_t limit)
{
    uint64_t elements = (uint64_t)desc_elements(desc);

    for (uint64_t i = 0; i < elements; i++) {
        if (desc->dtype == TANDEM_F32)
            ((float *)memory)[i] = seed_value(i);
        else
            ((int32_t *)memory)[i] =
                (int32_t)(i * 7919u % (uint64_t)(limit > 0 ? limit : 1));
    }
}

static enum tandem_status make_input(struct point_run *t, uint32_t i)
{
    const struct tandem_tensor_desc *desc = &t->c.in[i];
    struct tandem_context *context = t->bench->context;
    enum tandem_status status;

    t->memory[i] = malloc((size_t)desc_bytes(desc) + 64);
    if (t->memory[i] == NULL)
        return TANDEM_OUT_OF_MEMORY;
    fill_memory(t->memory[i], desc, t->c.index_limit);
    status = tandem_tensor_wrap(context, t->memory[i], desc->dtype, desc->rank,
                                desc->shape, NULL, 0, &t->host[i]);
    t->in[i] = t->host[i];
    if (status == TANDEM_OK && t->point->resident != TANDEM_ANY_DEVICE)
        status = tandem_tensor_create(context, desc->dtype, desc->rank,
                                      desc->shape, &t->in[i]);
    return status;
}

static enum tandem_status point_open(struct point_run *t)
{
    char error[OPCASE_ERROR_BYTES];
    enum tandem_status status = TANDEM_OK;

    if (!op_case_build(&t->c, t->point->op, t->point->rank, t->point->shape,
                       error))
        return TANDEM_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < t->c.inputs && status == TANDEM_OK; i++)
        status = make_input(t, i);
    for (uint32_t i = 0; i < t->c.outputs && status == TANDEM_OK; i++)
        status = tandem_tensor_create(t->bench->context, t->c.out[i].dtype,
                                      t->c.out[i].rank, t->c.out[i].shape,
                                      &t->out[i]);
    return status == TANDEM_OK ? inputs_place(t) : status;
}

static void point_close(struct point_run *t)
{
    tandem_context_synchronize(t->bench->context, TANDEM_TIMEOUT_INFINITE);
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        if (t->in[i] != t->host[i])
            tandem_tensor_destroy(t->in[i]);
        tandem_tensor_destroy(t->host[i]);
        tandem_tensor_destroy(t->out[i]);
    }
    tandem_context_synchronize(t->bench->context, TANDEM_TIMEOUT_INFINITE);
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++)
        free(t->memory[i]);
}

/* Returns true if the device can use the data without a transfer. */
static bool in_place(const struct point_run *t, uint32_t device)
{
    struct tandem_device_info info = {.struct_size = sizeof info};

    if (t->point->resident == device)
        return true;
    return t->point->resident == TANDEM_ANY_DEVICE &&
           tandem_device_describe(t->bench->context, device, &info) ==
               TANDEM_OK &&
           (info.caps & TANDEM_CAP_ZERO_COPY_IMPORT) != 0;
}

/* Measures many launches with one wait if the data is on the device, else
 * single launches, each with a wait. */
static double measure_device(struct point_run *t, uint32_t device,
                             double wait_ns)
{
    double samples[SAMPLES], once;
    bool resident = in_place(t, device);
    uint64_t count = 1;

    t->device = device;
    /* The first run compiles and allocates. */
    once = point_runs(t, 1);
    if (resident && once >= 0)
        once = point_runs(t, 1);
    if (resident)
        count = (uint64_t)fmin(fmax(LOOP_NS / fmax(once, 1), 1), LOOP_MAX);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        if (once < 0 || (!resident && inputs_place(t) != TANDEM_OK))
            return -1;
        once = samples[i] = point_runs(t, count);
    }
    t->point->waited_ns[device] = wait_ns / (double)count;
    return once < 0 ? -1 : quantile(samples, SAMPLES, 0.5);
}

static enum tandem_status predict(struct point_run *t)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_context *context = t->bench->context;
    enum tandem_status status;

    if (t->c.op.id == TANDEM_OP_GEMM)
        status = tandem_explain_matmul(context, NULL, t->in[0], t->in[1],
                                       t->out[0], &e);
    else
        status = tandem_explain_op(context, &t->c.op, t->in, t->c.inputs,
                                   t->out, t->c.outputs, &e);
    for (uint32_t i = 0; i < e.candidate_count; i++)
        if (e.candidates[i].status == TANDEM_OK)
            t->point->predicted_ns[e.candidates[i].device] =
                e.candidates[i].predicted_ns;
    t->point->chosen = 0;
    for (uint32_t d = 1; d < POINT_DEVICES; d++)
        if (t->point->predicted_ns[d] > 0 &&
            (t->point->predicted_ns[t->point->chosen] <= 0 ||
             t->point->predicted_ns[d] <
                 t->point->predicted_ns[t->point->chosen]))
            t->point->chosen = d;
    return status;
}

bool point_measure(struct bench *bench, struct point *point,
                   uint32_t device_count, const double *wait_ns)
{
    struct point_run t = {.bench = bench, .point = point};
    bool ok = point_open(&t) == TANDEM_OK && predict(&t) == TANDEM_OK;

    for (uint32_t d = 0; d < device_count && ok; d++) {
        if (point->predicted_ns[d] <= 0)
            continue;
        point->measured_ns[d] = measure_device(&t, d, wait_ns[d]);
        ok = point->measured_ns[d] >= 0 && inputs_place(&t) == TANDEM_OK;
    }
    if (!ok)
        bench_fail(bench, "%s: %s", point->op, tandem_last_error());
    point_close(&t);
    return ok;
}
