/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl-probe --calibrate: measures one device after another.  Parent process
 * only.
 */
#include <config.h>

#include "device_list.h"
#include "calibration_run.h"
#include "calibration_report.h"
#include "verify.h"

#define QUICK_LIMIT_S 120u
#define FULL_LIMIT_S 900u

/* Checks what the device computes, too; a quick calibration keeps what an
 * earlier check found. */
static bool check_operators(const struct probe_options *options,
                            const json_t *device, json_t *result)
{
    char program[VERIFY_PATH_BYTES];
    json_t *check;

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
        .limit_s = options->quick ? QUICK_LIMIT_S : FULL_LIMIT_S,
        .saves = true,
        .self_test = true,
        .body = measure_body,
        .then = check_operators,
        .print = summary_print,
    };

    return device_jobs_run(options, &job);
}
