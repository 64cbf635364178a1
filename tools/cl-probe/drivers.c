/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Testing OpenCL drivers; see drivers.h.
 */
#include <config.h>

#include "drivers.h"

#include "child.h"
#include "common/icd.h"
#include "devices.h"
#include "driver_record.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_LIMIT_S 10u

struct driver_test {
    const struct probe_options *options;
    const struct icd *icd; /* NULL: all drivers together */
};

/* ---- in the child ---- */

/* Leaves this one driver: ocl-icd goes by the file; Khronos' loader takes the
 * library, and finds no directory of that name. */
static void choose_driver(const struct icd *icd)
{
    setenv("OCL_ICD_VENDORS", icd->file, 1);
    setenv("OCL_ICD_FILENAMES", icd->library, 1);
}

/* Why there is no device. */
static json_t *excuse_json(struct tandem_context *context,
                           const struct icd *icd)
{
    const char *problem = tandem_context_problem(context, 0);
    json_t *text;

    if (icd != NULL && dlopen(icd->library, RTLD_LAZY) == NULL)
        problem = dlerror();
    text = problem != NULL ? json_string(problem) : NULL;
    return text != NULL ? text : json_string("it lists no device");
}

static void driver_body(void *argument, struct child_link *link)
{
    const struct driver_test *test = argument;
    struct tandem_context *context;
    uint32_t count = 0;

    child_progress(link, 0, "listing its devices");
    if (test->icd != NULL)
        choose_driver(test->icd);
    setenv("TANDEM_OPENCL_RECORD", "ignore", 1);
    if (probe_context(test->options, "opencl", &context) != TANDEM_OK ||
        tandem_device_count(context, &count) != TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return;
    }
    child_answer(link,
                 json_pack("{s:i, s:o}", "devices", (int)count, "message",
                           count > 0 ? json_string("")
                                     : excuse_json(context, test->icd)));
    tandem_context_destroy(context);
}

/* ---- in the parent ---- */

/* One child; true where the driver, or all together, took it down.  out_what
 * is then what happened. */
static bool breaks(const struct driver_test *test, json_t *driver,
                   char *out_what, size_t what_bytes)
{
    const unsigned limit_s = test->options->driver_limit_s;
    struct child_outcome outcome;
    json_t *result;
    bool broken;

    child_run(driver_body, (void *)test, limit_s ? limit_s : DRIVER_LIMIT_S,
              NULL, &outcome);
    result = outcome.result;
    broken = outcome.what[0] != '\0';
    if (broken)
        snprintf(out_what, what_bytes, "%s", outcome.what);
    if (driver != NULL) {
        const bool empty = device_number(result, "devices") == 0;

        json_object_set_new(driver, "state",
                            json_string(broken           ? "broken"
                                        : result == NULL ? "untested"
                                        : empty          ? "empty"
                                                         : "ok"));
        json_object_set_new(
            driver, "devices",
            json_integer((json_int_t)device_number(result, "devices")));
        json_object_set_new(driver, "message",
                            json_string(broken || result == NULL
                                            ? outcome.message
                                            : device_text(result, "message")));
    }
    child_outcome_destroy(&outcome);
    return broken;
}

static void complain(json_t *problems, const char *text)
{
    probe_complain("%s", text);
    json_array_append_new(problems, json_string(text));
}

static void complain_driver(json_t *problems, const struct icd *icd,
                            const char *what)
{
    char text[1024];

    snprintf(text, sizeof text,
             "the OpenCL driver %.300s (%.200s) %.160s while listing its "
             "devices: OpenCL is left alone as long as this driver would be "
             "loaded; remove or mend it, or set OCL_ICD_VENDORS to the .icd "
             "file of a good one (or to a directory of such files), then run "
             "cl-probe again",
             icd->file, icd->library, what);
    complain(problems, text);
}

static void complain_all(json_t *problems, const char *what)
{
    char text[512];

    snprintf(text, sizeof text,
             "the OpenCL drivers, each well alone, together %.160s: OpenCL is "
             "left alone as long as all of them would be loaded; set "
             "OCL_ICD_VENDORS to the .icd file of one (or to a directory of "
             "some), then run cl-probe again",
             what);
    complain(problems, text);
}

/* Tests each driver alone; how many are broken. */
static uint32_t test_each(struct driver_test *test, json_t *found,
                          const struct icd_list *list,
                          struct driver_verdicts *verdicts)
{
    json_t *drivers = json_object_get(found, "drivers");
    json_t *problems = json_object_get(found, "problems");
    uint32_t broken = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct icd *icd = &list->icds[i];
        json_t *driver = json_pack("{s:s, s:s}", "file", icd->file, "library",
                                   icd->library);
        char what[160];

        if (driver == NULL)
            driver = json_pack("{s:s, s:s}", "file", "(not valid text)",
                               "library", "(not valid text)");
        test->icd = icd;
        if (breaks(test, driver, what, sizeof what)) {
            complain_driver(problems, icd, what);
            verdicts_broken(verdicts, icd, what);
            broken++;
        } else if (strcmp(device_text(driver, "state"), "untested") != 0) {
            verdicts_good(verdicts, icd);
        }
        json_array_append_new(drivers, driver);
    }
    return broken;
}

bool drivers_check(const struct probe_options *options, json_t *found)
{
    struct driver_test test = {.options = options};
    struct driver_verdicts verdicts;
    struct icd_list list;
    char problem[DRIVER_PROBLEM_BYTES], what[160];
    bool good;

    json_object_set_new(found, "drivers", json_array());
    if (!icd_list_find(&list))
        return true;
    verdicts_begin(&verdicts);
    good = test_each(&test, found, &list, &verdicts) == 0;
    if (good && list.count > 1) {
        test.icd = NULL;
        if (breaks(&test, NULL, what, sizeof what)) {
            complain_all(json_object_get(found, "problems"), what);
            verdicts_together(&verdicts, &list, what);
            good = false;
        } else {
            verdicts_together(&verdicts, &list, NULL);
        }
    }
    if (!verdicts_write(&verdicts, problem))
        complain(json_object_get(found, "problems"), problem);
    verdicts_finish(&verdicts);
    icd_list_finish(&list);
    return good;
}
