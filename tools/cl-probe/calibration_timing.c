/* SPDX-License-Identifier: Apache-2.0 */
/* Time budget and results of a calibration; see calibration_timing.h. */
#include <config.h>

#include "calibration_timing.h"
#include "representative_op.h"

#include "../common/clock.h"

#include <string.h>

/* The first launch compiled a kernel if it took this much longer than the
 * second.
 */
#define COMPILE_VISIBLE_NS (2 * NS_PER_MS)

void step_begin(struct calibration_run *calibration, double weight,
                const char *name)
{
    double share =
        (double)calibration->budget_ns * weight / calibration->weight_left;

    calibration->weight_left -= weight;
    calibration->step = name;
    calibration->step_start_ns = clock_now_ns();
    calibration->step_compile_ns = 0;
    calibration->deadline_ns = calibration->step_start_ns + (uint64_t)share;
    child_progress(calibration->link,
                   1 - (calibration->weight_left + weight) /
                           calibration->weight_all,
                   name);
}

void calibration_finish_part(struct calibration_run *calibration,
                             const char *part)
{
    json_t *missing = json_object_get(calibration->result, "missing");

    for (size_t i = json_array_size(missing); i-- > 0;)
        if (strcmp(json_string_value(json_array_get(missing, i)), part) == 0)
            json_array_remove(missing, i);
    machine_load_note(&calibration->delay, calibration->spreads,
                      calibration->spread_count, calibration->result);
    child_partial(calibration->link, calibration->result);
}

void step_end(struct calibration_run *calibration, enum tandem_status status)
{
    uint64_t used = clock_now_ns() - calibration->step_start_ns;

    used -= used < calibration->step_compile_ns ? used
                                                : calibration->step_compile_ns;
    calibration->budget_ns -=
        used < calibration->budget_ns ? used : calibration->budget_ns;
    if (status == TANDEM_OK)
        calibration_finish_part(calibration, calibration->step);
}

uint64_t step_left_ns(const struct calibration_run *calibration)
{
    uint64_t now = clock_now_ns();

    return now < calibration->deadline_ns ? calibration->deadline_ns - now : 0;
}

bool calibration_is_late(const struct calibration_run *calibration)
{
    return clock_now_ns() > calibration->compile_deadline_ns;
}

static void note_compile(struct calibration_run *calibration,
                         const struct timing *timing, bool fresh)
{
    double compile = (double)timing->first_ns - (double)timing->second_ns;

    if (compile > (double)COMPILE_VISIBLE_NS) {
        calibration->deadline_ns += (uint64_t)compile;
        calibration->step_compile_ns += (uint64_t)compile;
        calibration->compile_total_ns += (uint64_t)compile;
    }
    if (fresh && calibration->compile_count <
                     (calibration->prebuilt ? 1 : COMPILE_SAMPLES))
        calibration->compile_ns[calibration->compile_count++] =
            compile > 0 ? compile : 0;
}

/* Returns how many batches fit into half of the time left. */
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
    if (status != TANDEM_OK)
        return status;
    note_compile(calibration, out, fresh);
    if (calibration->spread_count < MAX_SPREADS)
        calibration->spreads[calibration->spread_count++] = out->spread;
    return status;
}

const char *calibration_curve(size_t i)
{
    static const char *const transfers[] = {"upload", "download",
                                            "upload_pinned", "download_pinned"};

    if (i < 4)
        return transfers[i];
    i -= 4;
    i += i >= TANDEM_COST_GEMM; /* has a grid instead */
    return i < TANDEM_COST_CLASS_COUNT ? cost_class_curve((uint32_t)i) : NULL;
}

void calibration_add_scalar(struct calibration_run *calibration,
                            const char *name, double ns)
{
    json_object_set_new(json_object_get(calibration->result, "scalars"), name,
                        json_real(ns));
}

void calibration_add_point(struct calibration_run *calibration,
                           const char *curve, double x, double ns)
{
    json_t *curves = json_object_get(calibration->result, "curves");

    if (json_object_get(curves, curve) == NULL)
        json_object_set_new(curves, curve, json_array());
    json_array_append_new(json_object_get(curves, curve),
                          json_pack("[f, f]", x, ns));
}

void calibration_add_gemm_point(struct calibration_run *calibration, int64_t m,
                                int64_t n, int64_t k, double ns)
{
    json_array_append_new(json_object_get(calibration->result, "gemm"),
                          json_pack("[I, I, I, f]", (json_int_t)m,
                                    (json_int_t)n, (json_int_t)k, ns));
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
