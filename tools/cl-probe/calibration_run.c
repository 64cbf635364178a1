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

void step_begin(struct session *session, double weight, const char *name)
{
    double share = (double)session->budget_ns * weight / session->weight_left;

    session->weight_left -= weight;
    session->step_start_ns = clock_now_ns();
    session->step_compile_ns = 0;
    session->deadline_ns = session->step_start_ns + (uint64_t)share;
    child_progress(session->link,
                   1 - (session->weight_left + weight) / session->weight_all,
                   name);
}

void step_end(struct session *session)
{
    uint64_t used = clock_now_ns() - session->step_start_ns;

    used -= used < session->step_compile_ns ? used : session->step_compile_ns;
    session->budget_ns -= used < session->budget_ns ? used
                                                    : session->budget_ns;
}

uint64_t step_left_ns(const struct session *session)
{
    uint64_t now = clock_now_ns();

    return now < session->deadline_ns ? session->deadline_ns - now : 0;
}

bool session_late(const struct session *session)
{
    return clock_now_ns() > session->late_ns;
}

static void note_compile(struct session *session, const struct timing *timing,
                         bool fresh)
{
    double compile = (double)timing->first_ns - (double)timing->second_ns;

    if (compile > (double)COMPILE_VISIBLE_NS) {
        session->deadline_ns += (uint64_t)compile;
        session->step_compile_ns += (uint64_t)compile;
    }
    if (fresh && session->compile_count <
                     (session->prebuilt ? 1 : COMPILE_SAMPLES))
        session->compile_ns[session->compile_count++] =
            compile > 0 ? compile : 0;
}

/* As many batches as half the time left has room for. */
static uint32_t batches_for(const struct session *session, double expected_ns)
{
    double batch = (double)session->plan.batch_ns, room;

    if (expected_ns > batch)
        batch = expected_ns;
    room = (double)step_left_ns(session) / 2 / batch;
    if (room >= session->plan.batches)
        return session->plan.batches;
    return room < 1 ? 1 : (uint32_t)room;
}

enum tandem_status session_time(struct session *session, struct work *work,
                                bool fresh, double expected_ns,
                                struct timing *out)
{
    struct timing_plan plan = session->plan;
    enum tandem_status status;

    plan.batches = batches_for(session, expected_ns);
    status = resident_op_time(work, &plan, out);
    if (status == TANDEM_OK)
        note_compile(session, out, fresh);
    return status;
}

void calibration_add_scalar(struct session *session, const char *name,
                            double ns)
{
    json_object_set_new(json_object_get(session->result, "scalars"), name,
                        json_real(ns));
    tandem_profile_set_scalar(session->profile, name, ns);
}

void session_point(struct session *session, const char *curve, double x,
                   double ns)
{
    json_t *curves = json_object_get(session->result, "curves");

    if (json_object_get(curves, curve) == NULL)
        json_object_set_new(curves, curve, json_array());
    json_array_append_new(json_object_get(curves, curve),
                          json_pack("[f, f]", x, ns));
    tandem_profile_add_curve_point(session->profile, curve, x, ns);
}

void session_product(struct session *session, int64_t m, int64_t n, int64_t k,
                     double ns)
{
    json_array_append_new(json_object_get(session->result, "gemm"),
                          json_pack("[I, I, I, f]", (json_int_t)m,
                                    (json_int_t)n, (json_int_t)k, ns));
    tandem_profile_add_gemm_point(session->profile, m, n, k, ns);
}

void session_skip(struct session *session, const char *what)
{
    const char *why = session->lane.backend->last_error();

    json_array_append_new(json_object_get(session->result, "skipped"),
                          child_text("%s: %s", what, why));
}

enum tandem_status session_failed(struct session *session, const char *what,
                                  enum tandem_status status)
{
    if (status == TANDEM_DEVICE_LOST || status == TANDEM_NOT_READY)
        return status;
    session_skip(session, what);
    return TANDEM_OK;
}

void session_measured(struct session *session, const char *what,
                      const char *op)
{
    if (op != NULL)
        json_object_set_new(json_object_get(session->result, "operators"),
                            what, json_string(op));
    else
        json_array_append_new(json_object_get(session->result, "unsupported"),
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

static void session_plan(struct session *session)
{
    bool quick = session->quick;

    session->plan.batch_ns = (quick ? 1 : 4) * NS_PER_MS;
    session->plan.batches = quick ? 5 : 9;
    session->plan.max_count = 4096;
    session->late_ns = clock_now_ns() + (quick ? 10 : 300) * NS_PER_S;
    session->budget_ns = (quick ? 5 : 50) * NS_PER_S;
    session->weight_all = WEIGHT_SCALARS + 4 * WEIGHT_TRANSFER +
                          9 * WEIGHT_CURVE + WEIGHT_PRODUCTS;
    session->weight_left = session->weight_all;
    session->max_bytes = working_set(&session->lane.info);
}

static enum tandem_status session_steps(struct session *session)
{
    enum tandem_status status = measure_scalars(session);

    if (status == TANDEM_OK)
        status = measure_transfers(session);
    if (status == TANDEM_OK)
        status = measure_curves(session);
    if (status == TANDEM_OK)
        status = measure_products(session);
    if (status == TANDEM_OK)
        status = measure_tuning(session);
    if (status != TANDEM_OK)
        child_fail(session->link, "%s (%s)",
                   session->lane.backend->last_error(),
                   tandem_status_name(status));
    return status;
}

static void session_save(struct session *session)
{
    char path[4096];

    if (tandem_profile_save(session->profile, NULL, path, sizeof path) !=
        TANDEM_OK) {
        child_fail(session->link, "the profile could not be written: %s",
                   tandem_last_error());
        return;
    }
    json_object_set_new(session->result, "profile", child_text("%s", path));
    child_answer(session->link, json_incref(session->result));
}

static void session_run(struct session *session, uint64_t start_ns)
{
    session_plan(session);
    if (session_steps(session) != TANDEM_OK)
        return;
    json_object_set_new(session->result, "seconds",
                        json_real((double)(clock_now_ns() - start_ns) / 1e9));
    session_save(session);
}

void measure_body(void *argument, struct child_link *link)
{
    const struct campaign_request *request = argument;
    struct session session = {.quick = request->options->quick, .link = link};
    struct tandem_context *context;
    uint64_t start_ns = clock_now_ns();

    session.prebuilt = prebuild(request, link);
    if (!campaign_open(request, link, &context, &session.lane))
        return;
    session.result =
        json_pack("{s:s, s:{}, s:{}, s:{}, s:[], s:{}, s:[], s:[]}", "device",
                  request->name, "operators", "scalars", "curves", "gemm",
                  "tuning", "skipped", "unsupported");
    if (tandem_profile_create(context, request->device, &session.profile) ==
        TANDEM_OK)
        session_run(&session, start_ns);
    else
        child_fail(link, "%s", tandem_last_error());
    tandem_profile_destroy(session.profile);
    lane_close(&session.lane);
    tandem_context_destroy(context);
    json_decref(session.result);
}
