/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes profiles; see calibration_save.h.  A child process writes them,
 * because it has to load the plugin.  The child that measures does not, because
 * it may crash or hang.
 */
#include <config.h>

#include "calibration_save.h"
#include "calibration_timing.h"

#include <stdio.h>
#include <string.h>

#define SAVE_LIMIT_S 60u

struct save_request {
    struct device_job_request device;
    const json_t *result;
};

/* ---- child process ---- */

struct save_run {
    const json_t *result;
    json_t *earlier; /* the earlier profile, or NULL */
    /* The earlier costs were measured on a quiet machine, the new ones not. */
    bool earlier_is_better;
    struct tandem_profile *profile;
    enum tandem_status status; /* of the first call that failed */
    uint32_t taken;            /* number of new costs in the profile */
    json_t *kept;              /* names of earlier costs in the profile */
};

/* Returns the costs to write: the new or the earlier ones, or NULL if there are
 * none.  `member` is "scalars", "curves" or "tuning", and `name` is a name in
 * it.  For "gemm" it is NULL. */
static const json_t *costs_choose(struct save_run *run, const char *member,
                                  const char *name)
{
    const json_t *fresh = json_object_get(run->result, member);
    const json_t *earlier = json_object_get(run->earlier, member);

    if (name != NULL) {
        fresh = json_object_get(fresh, name);
        earlier = json_object_get(earlier, name);
    }
    /* An empty grid of GEMMs. */
    if (json_is_array(fresh) && json_array_size(fresh) == 0)
        fresh = NULL;
    if (json_is_array(earlier) && json_array_size(earlier) == 0)
        earlier = NULL;
    if (fresh != NULL && (earlier == NULL || !run->earlier_is_better)) {
        run->taken++;
        return fresh;
    }
    if (earlier != NULL)
        json_array_append_new(run->kept,
                              json_string(name != NULL ? name : member));
    return earlier;
}

/* Records the first error. */
static void costs_check(struct save_run *run, enum tandem_status status)
{
    if (run->status == TANDEM_OK)
        run->status = status;
}

static void save_scalars(struct save_run *run)
{
    static const char *const names[] = {"launch", "sync", "alloc", "compile",
                                        "gemm_compile"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *ns = costs_choose(run, "scalars", names[i]);

        if (ns != NULL)
            costs_check(run, tandem_profile_set_scalar(run->profile, names[i],
                                                       json_number_value(ns)));
    }
}

static void save_curve(struct save_run *run, const char *name)
{
    const json_t *points = costs_choose(run, "curves", name);

    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *point = json_array_get(points, i);

        costs_check(run, tandem_profile_add_curve_point(
                             run->profile, name,
                             json_number_value(json_array_get(point, 0)),
                             json_number_value(json_array_get(point, 1))));
    }
}

static void save_gemm(struct save_run *run)
{
    const json_t *points = costs_choose(run, "gemm", NULL);

    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *point = json_array_get(points, i);

        costs_check(run,
                    tandem_profile_add_gemm_point(
                        run->profile,
                        (int64_t)json_number_value(json_array_get(point, 0)),
                        (int64_t)json_number_value(json_array_get(point, 1)),
                        (int64_t)json_number_value(json_array_get(point, 2)),
                        json_number_value(json_array_get(point, 3))));
    }
}

/* tandem_profile_create has copied the earlier values. */
static void save_tuning(struct save_run *run)
{
    json_t *values = json_object_get(run->result, "tuning"), *value;
    const char *key;

    json_object_foreach (values, key, value) {
        const json_t *chosen = costs_choose(run, "tuning", key);

        costs_check(run, tandem_profile_set_tuning(run->profile, key,
                                                   json_string_value(chosen)));
    }
}

/* Returns true if the array contains the text. */
static bool texts_contain(const json_t *texts, const char *text)
{
    for (size_t i = 0; i < json_array_size(texts); i++)
        if (strcmp(json_string_value(json_array_get(texts, i)), text) == 0)
            return true;
    return false;
}

/* Returns true if the earlier values of a part stay in the profile. */
static bool part_is_kept(const struct save_run *run, const char *part)
{
    if (strcmp(part, PART_SCALARS) == 0)
        return texts_contain(run->kept, "launch");
    if (strcmp(part, PART_TUNING) == 0)
        return json_object_size(json_object_get(run->earlier, "tuning")) > 0;
    return texts_contain(run->kept, part);
}

static void save_note(struct save_run *run, const char *key, const char *text)
{
    costs_check(run, tandem_profile_set_note(run->profile, key, text));
}

/* Notes how the costs were measured, for cl-probe --list. */
static void save_notes(struct save_run *run)
{
    const char *earlier_busy = json_string_value(
        json_object_get(json_object_get(run->earlier, "notes"), "busy"));
    const json_t *missing = json_object_get(run->result, "missing");
    char text[512];

    calibration_spread_text(run->result, text, sizeof text);
    if (json_is_true(json_object_get(run->result, "busy")))
        save_note(run, "busy", text);
    else if (earlier_busy != NULL && json_array_size(run->kept) > 0)
        save_note(run, "busy", earlier_busy);
    else
        save_note(run, "quiet", text);
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const char *part = json_string_value(json_array_get(missing, i));

        if (!part_is_kept(run, part))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                     text[0] != '\0' ? ", " : "", part);
    }
    if (text[0] != '\0')
        save_note(run, "missing", text);
}

static void save_costs(struct save_run *run)
{
    save_scalars(run);
    for (size_t i = 0; calibration_curve(i) != NULL; i++)
        save_curve(run, calibration_curve(i));
    save_gemm(run);
    save_tuning(run);
    save_notes(run);
}

/* Reads the profile that the device uses now, unless it is to be replaced. */
static void earlier_read(const struct save_request *request,
                         struct tandem_context *context, struct save_run *run)
{
    const char *path = NULL;
    bool was_busy;

    if (!request->device.options->replace &&
        tandem_device_profile_path(context, request->device.device, &path) ==
            TANDEM_OK &&
        path != NULL)
        run->earlier = json_load_file(path, 0, NULL);
    was_busy =
        json_object_get(json_object_get(run->earlier, "notes"), "busy") != NULL;
    run->earlier_is_better = run->earlier != NULL && !was_busy &&
                             json_is_true(json_object_get(run->result, "busy"));
}

static void save_run_costs(const struct save_request *request,
                           struct tandem_context *context,
                           struct child_link *link, struct save_run *run)
{
    const char *earlier_path = NULL;
    char path[4096] = "";

    earlier_read(request, context, run);
    save_costs(run);
    if (run->status == TANDEM_OK && run->taken > 0)
        run->status =
            tandem_profile_save(run->profile, NULL, path, sizeof path);
    else
        tandem_device_profile_path(context, request->device.device,
                                   &earlier_path);
    if (run->status != TANDEM_OK)
        child_fail(link, "the profile could not be written: %s",
                   tandem_last_error());
    else
        child_answer(
            link, json_pack("{s:o, s:b, s:O}", "profile",
                            child_text("%s", earlier_path != NULL ? earlier_path
                                                                  : path),
                            "written", run->taken > 0, "kept", run->kept));
}

static void save_body(void *argument, struct child_link *link)
{
    const struct save_request *request = argument;
    struct save_run run = {.result = request->result, .kept = json_array()};
    struct tandem_context *context;

    child_progress(link, 1, "writing the profile");
    if (probe_context(request->device.options, request->device.backend,
                      &context) != TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return;
    }
    if (tandem_profile_create(context, request->device.device, &run.profile) ==
        TANDEM_OK)
        save_run_costs(request, context, link, &run);
    else
        child_fail(link, "%s", tandem_last_error());
    tandem_profile_destroy(run.profile);
    tandem_context_destroy(context);
    json_decref(run.earlier);
    json_decref(run.kept);
}

/* ---- parent process ---- */

void calibration_spread_text(const json_t *result, char *out, size_t bytes)
{
    snprintf(out, bytes,
             "repeated measurements differ by %.0f%%, threads waited for a CPU "
             "%.0f%% of the time",
             100 * device_number(result, "spread"),
             100 * device_number(result, "cpu_wait"));
}

static bool is_measured(const json_t *result)
{
    return json_object_size(json_object_get(result, "scalars")) > 0 ||
           json_object_size(json_object_get(result, "curves")) > 0 ||
           json_array_size(json_object_get(result, "gemm")) > 0;
}

void calibration_save(const struct probe_options *options, const json_t *device,
                      json_t *result)
{
    struct save_request request = {device_job_request_make(options, device),
                                   result};
    struct child_outcome outcome;

    if (!is_measured(result))
        return;
    child_run(save_body, &request, SAVE_LIMIT_S, NULL, &outcome);
    if (outcome.result != NULL) {
        json_object_update(result, outcome.result);
    } else {
        json_object_set_new(result, "error", json_string(outcome.message));
        probe_complain("%s: %s", request.device.name, outcome.message);
    }
    child_outcome_destroy(&outcome);
}
