/* SPDX-License-Identifier: Apache-2.0 */
/* Implements cl-probe --calibrate, which measures one device after another. */
#include <config.h>

#include "calibration_timing.h"
#include "calibration_report.h"
#include "calibration_save.h"
#include "verify.h"

#include "../common/clock.h"

#define QUICK_LIMIT_S 120u
#define FULL_LIMIT_S 900u

/* ---- child process ---- */

/* Returns how many bytes a measurement may use: 4 GiB, but at most a quarter of
 * the device's memory, and at most its largest allocation. */
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
    calibration->compile_deadline_ns =
        clock_now_ns() + (quick ? 10 : 300) * NS_PER_S;
    calibration->budget_ns = (quick ? 5 : 50) * NS_PER_S;
    calibration->weight_all = WEIGHT_SCALARS + 4 * WEIGHT_TRANSFER +
                              9 * WEIGHT_CURVE + WEIGHT_PRODUCTS;
    calibration->weight_left = calibration->weight_all;
    calibration->max_bytes = working_set(&calibration->session.info);
}

static enum tandem_status calibration_steps(struct calibration_run *calibration)
{
    static enum tandem_status (*const steps[])(struct calibration_run *) = {
        measure_scalars, measure_transfers, measure_curves, measure_products,
        measure_tuning};
    enum tandem_status status = TANDEM_OK;

    for (size_t i = 0;
         i < sizeof steps / sizeof steps[0] && status == TANDEM_OK; i++)
        status = steps[i](calibration);
    if (status != TANDEM_OK)
        child_fail(calibration->link, "%s (%s)",
                   calibration->session.backend->last_error(),
                   tandem_status_name(status));
    return status;
}

/* Returns the names of all parts of a calibration. */
static json_t *part_names(void)
{
    json_t *names = json_pack("[s]", PART_SCALARS);

    for (size_t i = 0; calibration_curve(i) != NULL; i++)
        json_array_append_new(names, json_string(calibration_curve(i)));
    json_array_append_new(names, json_string(PART_GEMM));
    json_array_append_new(names, json_string(PART_TUNING));
    return names;
}

static void calibration_measure(struct calibration_run *calibration,
                                unsigned wait_s)
{
    const uint64_t precompile_ns = calibration->compile_total_ns;
    json_t *result = calibration->result;
    uint64_t start_ns;

    child_progress(calibration->link, 0, "waiting for other programs");
    machine_wait_idle(wait_s);
    start_ns = clock_now_ns() - precompile_ns;
    calibration->delay = cpu_delay_now();
    calibration_timing_plan(calibration);
    if (calibration_steps(calibration) != TANDEM_OK)
        return;
    json_object_set_new(result, "seconds",
                        json_real((double)(clock_now_ns() - start_ns -
                                           calibration->compile_total_ns) /
                                  1e9));
    json_object_set_new(result, "compile_seconds",
                        json_real((double)calibration->compile_total_ns / 1e9));
    child_answer(calibration->link, json_incref(result));
}

static void calibrate_body(void *argument, struct child_link *link)
{
    const struct device_job_request *request = argument;
    struct calibration_run calibration = {.quick = request->options->quick,
                                          .link = link};
    struct tandem_context *context;
    uint64_t start_ns = clock_now_ns();

    calibration.prebuilt = kernels_precompile(request, link);
    calibration.compile_total_ns = clock_now_ns() - start_ns;
    if (!device_job_open(request, link, &context, &calibration.session))
        return;
    calibration.result = json_pack(
        "{s:s, s:{}, s:{}, s:{}, s:[], s:{}, s:[], s:[], s:o}", "device",
        request->name, "operators", "scalars", "curves", "gemm", "tuning",
        "skipped", "unsupported", "missing", part_names());
    calibration_measure(&calibration, request->options->wait_s);
    device_session_close(&calibration.session);
    tandem_context_destroy(context);
    json_decref(calibration.result);
}

/* ---- parent process ---- */

/* Writes the profile, then runs the conformance suite on the device.  A quick
 * calibration skips the suite and keeps the results of an earlier run. */
static bool save_and_check(const struct probe_options *options,
                           const json_t *device, json_t *result)
{
    char program[VERIFY_PATH_BYTES];
    json_t *check;

    calibration_save(options, device, result);
    if (options->quick || json_object_get(result, "error") != NULL)
        return true;
    if (!verify_find_program(program)) {
        probe_complain("%s: not checked: the program tandem-conformance is "
                       "not beside cl-probe",
                       device_text(device, "name"));
        return false;
    }
    check = verify_device(options, device, program, "operators");
    json_object_set_new(result, "verification", check);
    if (!options->json)
        verify_print(check);
    return verify_good(check);
}

int probe_calibrate(const struct probe_options *options)
{
    const struct device_job job = {
        .verb = "calibrate",
        .work = "the calibration",
        .limit_s =
            options->wait_s + (options->quick ? QUICK_LIMIT_S : FULL_LIMIT_S),
        .saves = true,
        .self_test = true,
        .run = calibrate_body,
        .on_result = save_and_check,
        .print = summary_print,
    };

    return device_jobs_run(options, &job);
}
