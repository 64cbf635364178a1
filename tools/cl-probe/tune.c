/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl-probe --tune: searches for better parameters, one device after another,
 * each in a child process of its own, which saves the profile at each finding:
 * whatever ends it, what was found so far is kept.
 */
#include <config.h>

#include "devices.h"
#include "measure.h"

#include "../common/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define BUDGET_S 60u
/* A compile is not broken off when the budget is used up; on a processor it
 * takes many seconds. */
#define AFTER_S 120u
/* With --calibrate: what the quick part takes at most. */
#define QUICK_NS (4500 * NS_PER_MS)
#define TICK_NS 500000000

/* ---- the child's side ---- */

struct finder {
    struct tandem_profile *profile;
    bool save;
    json_t *found;
    enum tandem_status status; /* of the last saving */
    char path[4096];
};

static void note_finding(void *user, const char *key, const char *value)
{
    struct finder *finder = user;

    if (tandem_profile_tuning(finder->profile, key, value) != TANDEM_OK)
        return;
    json_object_set_new(finder->found, key, json_string(value));
    if (finder->save)
        finder->status = tandem_profile_save(
            finder->profile, NULL, finder->path, sizeof finder->path);
}

enum tandem_status tune_run(struct lane *lane, struct tandem_profile *profile,
                            uint64_t budget_ns, bool save, json_t *out_found)
{
    struct finder finder = {.profile = profile, .save = save,
                            .found = out_found};
    enum tandem_status status = TANDEM_UNSUPPORTED;

    if (lane->backend->tune != NULL)
        status = lane->backend->tune(lane->device, budget_ns, note_finding,
                                     &finder);
    if (finder.status != TANDEM_OK)
        return finder.status;
    return status == TANDEM_UNSUPPORTED ? TANDEM_OK : status;
}

enum tandem_status measure_tuning(struct session *session)
{
    enum tandem_status status;

    child_progress(session->link, 0.99, "tuning");
    status = tune_run(&session->lane, session->profile, QUICK_NS, false,
                      json_object_get(session->result, "tuning"));
    if (status == TANDEM_OK || status == TANDEM_DEVICE_LOST)
        return status;
    session_skip(session, "tuning");
    return TANDEM_OK;
}

/* Tells the parent how far the budget is used up, from a thread of its own: a
 * search may find nothing for long. */
struct ticker {
    struct child_link *link;
    uint64_t budget_ns;
    atomic_bool done;
    pthread_t thread;
    bool started;
};

static void *ticker_run(void *argument)
{
    struct ticker *ticker = argument;
    const struct timespec tick = {0, TICK_NS};
    uint64_t start = clock_now_ns();

    while (!atomic_load(&ticker->done)) {
        double used = (double)(clock_now_ns() - start);
        double fraction = used / (double)ticker->budget_ns;

        child_progress(ticker->link, fraction < 1 ? fraction : 1, "tuning");
        nanosleep(&tick, NULL);
    }
    return NULL;
}

static void ticker_start(struct ticker *ticker)
{
    ticker->started =
        pthread_create(&ticker->thread, NULL, ticker_run, ticker) == 0;
}

static void ticker_end(struct ticker *ticker)
{
    atomic_store(&ticker->done, true);
    if (ticker->started)
        pthread_join(ticker->thread, NULL);
}

static void tune_lane(const struct measure_request *request,
                      struct child_link *link, struct lane *lane,
                      struct tandem_profile *profile)
{
    unsigned budget_s = request->options->budget_s;
    uint64_t budget_ns = (budget_s > 0 ? budget_s : BUDGET_S) * NS_PER_S;
    struct ticker ticker = {.link = link, .budget_ns = budget_ns};
    json_t *found = json_object();
    char path[4096] = "";
    enum tandem_status status;

    ticker_start(&ticker);
    status = tune_run(lane, profile, budget_ns, true, found);
    ticker_end(&ticker);
    if (status == TANDEM_OK && json_object_size(found) > 0)
        status = tandem_profile_save(profile, NULL, path, sizeof path);
    if (status != TANDEM_OK)
        child_fail(link, "%s; %s (%s)", lane->backend->last_error(),
                   tandem_last_error(), tandem_status_name(status));
    else
        child_answer(link, json_pack("{s:s, s:O, s:s}", "device",
                                     request->name, "tuning", found,
                                     "profile", path));
    json_decref(found);
}

static void tune_body(void *argument, struct child_link *link)
{
    const struct measure_request *request = argument;
    struct tandem_context *context;
    struct tandem_profile *profile = NULL;
    struct lane lane = {0};
    enum tandem_status status =
        probe_context(request->options, request->backend, &context);

    if (status != TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return;
    }
    child_progress(link, 0, "opening");
    status = lane_open(&lane, context, request->device, 0);
    if (status == TANDEM_OK)
        status = tandem_profile_revise(context, request->device, &profile);
    if (status == TANDEM_OK)
        tune_lane(request, link, &lane, profile);
    else
        child_fail(link, "%s", tandem_last_error());
    tandem_profile_destroy(profile);
    lane_close(&lane);
    tandem_context_destroy(context);
}

/* ---- the parent's side ---- */

static void tune_print(const json_t *result)
{
    const json_t *found = json_object_get(result, "tuning");
    const char *name = device_text(result, "device"), *key;
    json_t *value;

    if (json_object_get(result, "error") != NULL) {
        printf("%s: FAILED: %s\n", name, device_text(result, "error"));
        return;
    }
    if (json_object_size(found) == 0) {
        printf("%s: there is nothing to tune\n", name);
        return;
    }
    printf("%s: written to %s\n", name, device_text(result, "profile"));
    json_object_foreach((json_t *)found, key, value)
        printf("  %s: %s\n", key, json_string_value(value));
}

static json_t *tune_device(const struct probe_options *options,
                           const json_t *device)
{
    struct measure_request request = {
        .options = options,
        .backend = device_text(device, "backend"),
        .device = (uint32_t)device_number(device, "index"),
        .name = device_text(device, "name"),
    };
    unsigned budget_s = options->budget_s > 0 ? options->budget_s : BUDGET_S;
    struct child_outcome outcome;
    struct progress progress;
    json_t *result;

    progress_begin(&progress, request.name, options->verbose);
    child_run(tune_body, &request,
              options->time_limit_s > 0 ? options->time_limit_s
                                        : budget_s + AFTER_S,
              &progress, &outcome);
    progress_end(&progress);
    result = json_incref(outcome.result);
    if (result == NULL) {
        result = json_pack("{s:s, s:s}", "device", request.name, "error",
                           outcome.message);
        probe_complain("%s: %s", request.name, outcome.message);
    }
    child_outcome_destroy(&outcome);
    return result;
}

int probe_tune(const struct probe_options *options)
{
    int status;
    json_t *found = devices_find(options, options->device, &status);
    json_t *results = json_array(), *devices;

    if (found == NULL) {
        json_decref(results);
        return status;
    }
    status = json_is_true(json_object_get(found, "failed")) ? PROBE_FAILED
                                                            : PROBE_OK;
    devices = json_object_get(found, "devices");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        json_t *result;

        if (!device_wanted(options, device))
            continue;
        result = tune_device(options, device);
        if (json_object_get(result, "error") != NULL)
            status = PROBE_FAILED;
        if (!options->json)
            tune_print(result);
        fflush(stdout);
        json_array_append_new(results, result);
    }
    if (json_array_size(results) == 0 && status == PROBE_OK) {
        probe_complain("there is no device to tune; cl-probe --list says "
                       "what is missing");
        status = PROBE_NO_DEVICE;
    }
    if (options->json)
        probe_print_json(json_pack("{s:O}", "results", results));
    json_decref(results);
    json_decref(found);
    return status;
}
