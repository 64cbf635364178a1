/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring one device: budget, bookkeeping and the order of the steps; see
 * calibration_run.h.
 */
#include <config.h>

#include "calibration_run.h"

#include "../common/clock.h"
#include "../common/statistics.h"

#include <stdio.h>
#include <string.h>

/* A first launch that took so much longer than the second compiled. */
#define COMPILE_VISIBLE_NS (2 * NS_PER_MS)

void step_begin(struct calibration_run *calibration, double weight,
                const char *name)
{
    double share =
        (double)calibration->budget_ns * weight / calibration->weight_left;

    calibration->weight_left -= weight;
    calibration->step_start_ns = clock_now_ns();
    calibration->step_compile_ns = 0;
    calibration->deadline_ns = calibration->step_start_ns + (uint64_t)share;
    child_progress(calibration->link,
                   1 - (calibration->weight_left + weight) /
                           calibration->weight_all,
                   name);
}

void step_end(struct calibration_run *calibration)
{
    uint64_t used = clock_now_ns() - calibration->step_start_ns;

    used -= used < calibration->step_compile_ns ? used
                                                : calibration->step_compile_ns;
    calibration->budget_ns -=
        used < calibration->budget_ns ? used : calibration->budget_ns;
}

uint64_t step_left_ns(const struct calibration_run *calibration)
{
    uint64_t now = clock_now_ns();

    return now < calibration->deadline_ns ? calibration->deadline_ns - now : 0;
}

bool calibration_is_late(const struct calibration_run *calibration)
{
    return clock_now_ns() > calibration->late_ns;
}

static void note_compile(struct calibration_run *calibration,
                         const struct timing *timing, bool fresh)
{
    double compile = (double)timing->first_ns - (double)timing->second_ns;

    if (compile > (double)COMPILE_VISIBLE_NS) {
        calibration->deadline_ns += (uint64_t)compile;
        calibration->step_compile_ns += (uint64_t)compile;
    }
    if (fresh && calibration->compile_count <
                     (calibration->prebuilt ? 1 : COMPILE_SAMPLES))
        calibration->compile_ns[calibration->compile_count++] =
            compile > 0 ? compile : 0;
}

/* As many batches as half the time left has room for. */
static uint32_t batches_for(const struct calibration_run *calibration,
                            double expected_ns)
{
    double batch = (double)calibration->plan.batch_ns, room;

    if (expected_ns > batch)
        batch = expected_ns;
    room = (double)step_left_ns(calibration) / 2 / batch;
    if (room >= calibration->plan.batches)
        return calibration->plan.batches;
    return room < 1 ? 1 : (uint32_t)room;
}

enum tandem_status calibration_time(struct calibration_run *calibration,
                                    struct resident_op *work, bool fresh,
                                    double expected_ns, struct timing *out)
{
    struct timing_plan plan = calibration->plan;
    enum tandem_status status;

    plan.batches = batches_for(calibration, expected_ns);
    status = resident_op_time(work, &plan, out);
    if (status == TANDEM_OK)
        note_compile(calibration, out, fresh);
    return status;
}

void calibration_add_scalar(struct calibration_run *calibration,
                            const char *name, double ns)
{
    json_object_set_new(json_object_get(calibration->result, "scalars"), name,
                        json_real(ns));
    tandem_profile_set_scalar(calibration->profile, name, ns);
}

void calibration_add_point(struct calibration_run *calibration,
                           const char *curve, double x, double ns)
{
    json_t *curves = json_object_get(calibration->result, "curves");

    if (json_object_get(curves, curve) == NULL)
        json_object_set_new(curves, curve, json_array());
    json_array_append_new(json_object_get(curves, curve),
                          json_pack("[f, f]", x, ns));
    tandem_profile_add_curve_point(calibration->profile, curve, x, ns);
}

void calibration_add_gemm_point(struct calibration_run *calibration, int64_t m,
                                int64_t n, int64_t k, double ns)
{
    json_array_append_new(json_object_get(calibration->result, "gemm"),
                          json_pack("[I, I, I, f]", (json_int_t)m,
                                    (json_int_t)n, (json_int_t)k, ns));
    tandem_profile_add_gemm_point(calibration->profile, m, n, k, ns);
}

void calibration_skip(struct calibration_run *calibration, const char *what)
{
    const char *why = calibration->session.backend->last_error();

    json_array_append_new(json_object_get(calibration->result, "skipped"),
                          child_text("%s: %s", what, why));
}

enum tandem_status calibration_op_failed(struct calibration_run *calibration,
                                         const char *what,
                                         enum tandem_status status)
{
    if (status == TANDEM_DEVICE_LOST || status == TANDEM_NOT_READY)
        return status;
    calibration_skip(calibration, what);
    return TANDEM_OK;
}

void calibration_set_operator(struct calibration_run *calibration,
                              const char *what, const char *op)
{
    if (op != NULL)
        json_object_set_new(json_object_get(calibration->result, "operators"),
                            what, json_string(op));
    else
        json_array_append_new(
            json_object_get(calibration->result, "unsupported"),
            json_string(what));
}

/* A quarter of the device's memory, and of one allocation's room, at most. */
static uint64_t working_set(const struct tandem_device_info *info)
{
    uint64_t bytes = UINT64_C(4) << 30;

    if (info->memory_bytes > 0 && info->memory_bytes / 4 < bytes)
        bytes = info->memory_bytes / 4;
    if (info->max_alloc_bytes > 0 && info->max_alloc_bytes < bytes)
        bytes = info->max_alloc_bytes;
    return bytes;
}

static void calibration_timing_plan(struct calibration_run *calibration)
{
    bool quick = calibration->quick;

    calibration->plan.batch_ns = (quick ? 1 : 4) * NS_PER_MS;
    calibration->plan.batches = quick ? 5 : 9;
    calibration->plan.max_count = 4096;
    calibration->late_ns = clock_now_ns() + (quick ? 10 : 300) * NS_PER_S;
    calibration->budget_ns = (quick ? 5 : 50) * NS_PER_S;
    calibration->weight_all = WEIGHT_SCALARS + 4 * WEIGHT_TRANSFER +
                              9 * WEIGHT_CURVE + WEIGHT_PRODUCTS;
    calibration->weight_left = calibration->weight_all;
    calibration->max_bytes = working_set(&calibration->session.info);
}

static enum tandem_status calibration_steps(struct calibration_run *calibration)
{
    enum tandem_status status = measure_scalars(calibration);

    if (status == TANDEM_OK)
        status = measure_transfers(calibration);
    if (status == TANDEM_OK)
        status = measure_curves(calibration);
    if (status == TANDEM_OK)
        status = measure_products(calibration);
    if (status == TANDEM_OK)
        status = measure_tuning(calibration);
    if (status != TANDEM_OK)
        child_fail(calibration->link, "%s (%s)",
                   calibration->session.backend->last_error(),
                   tandem_status_name(status));
    return status;
}

static void calibration_save(struct calibration_run *calibration)
{
    char path[4096];

    if (tandem_profile_save(calibration->profile, NULL, path, sizeof path) !=
        TANDEM_OK) {
        child_fail(calibration->link, "the profile could not be written: %s",
                   tandem_last_error());
        return;
    }
    json_object_set_new(calibration->result, "profile", child_text("%s", path));
    child_answer(calibration->link, json_incref(calibration->result));
}

static void calibration_run_steps(struct calibration_run *calibration,
                                  uint64_t start_ns)
{
    calibration_timing_plan(calibration);
    if (calibration_steps(calibration) != TANDEM_OK)
        return;
    json_object_set_new(calibration->result, "seconds",
                        json_real((double)(clock_now_ns() - start_ns) / 1e9));
    calibration_save(calibration);
}

void measure_body(void *argument, struct child_link *link)
{
    const struct device_job_request *request = argument;
    struct calibration_run calibration = {.quick = request->options->quick,
                                          .link = link};
    struct tandem_context *context;
    uint64_t start_ns = clock_now_ns();

    calibration.prebuilt = kernels_precompile(request, link);
    if (!device_job_open(request, link, &context, &calibration.session))
        return;
    calibration.result =
        json_pack("{s:s, s:{}, s:{}, s:{}, s:[], s:{}, s:[], s:[]}", "device",
                  request->name, "operators", "scalars", "curves", "gemm",
                  "tuning", "skipped", "unsupported");
    if (tandem_profile_create(context, request->device, &calibration.profile) ==
        TANDEM_OK)
        calibration_run_steps(&calibration, start_ns);
    else
        child_fail(link, "%s", tandem_last_error());
    tandem_profile_destroy(calibration.profile);
    device_session_close(&calibration.session);
    tandem_context_destroy(context);
    json_decref(calibration.result);
}
