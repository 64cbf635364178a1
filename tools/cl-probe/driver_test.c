/* SPDX-License-Identifier: Apache-2.0 */
/* Tests OpenCL drivers; see driver_test.h. */
#include <config.h>

#include "driver_test.h"

#include "child_process.h"
#include "common/icd_list.h"
#include "common/pocl_diagnosis.h"
#include "driver_blocklist_writer.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_LIMIT_S 10u
#define WHAT_BYTES sizeof(((struct child_outcome *)NULL)->what)

struct driver_test {
    const struct probe_options *options;
    const struct icd *icd; /* NULL to test all drivers together */
};

/* ---- in the child ---- */

/* Makes the ICD loader load only this driver.  ocl-icd reads OCL_ICD_VENDORS.
 * Khronos' loader reads OCL_ICD_FILENAMES, and finds no directory with the name
 * in OCL_ICD_VENDORS. */
static void choose_driver(const struct icd *icd)
{
    setenv("OCL_ICD_VENDORS", icd->file, 1);
    setenv("OCL_ICD_FILENAMES", icd->library, 1);
}

/* Returns the reason why the driver's library cannot be loaded. */
static json_t *library_json(const struct icd *icd, const char *error,
                            const char **out_state)
{
    const size_t length = strlen(icd->library);
    const bool own =
        strncmp(error, icd->library, length) == 0 && error[length] == ':';

    if (own && strstr(error, strerror(ENOENT)) != NULL) {
        *out_state = "missing";
        return child_text("its library is not installed: %s", error);
    }
    *out_state = "unloadable";
    if (own && strstr(error, strerror(EACCES)) != NULL)
        return child_text("its library may not be read by this user: %s",
                          error);
    return child_text("its library does not load: %s", error);
}

/* Returns the number of platforms, queried like the ICD loader does, or -1 if
 * the library is not an OpenCL driver. */
static int platforms_count(void *library)
{
    typedef void *(*address_fn)(const char *name);
    typedef int (*platforms_fn)(uint32_t room, void **out, uint32_t *out_count);
    address_fn address;
    platforms_fn platforms;
    uint32_t count = 0;

    *(void **)&address = dlsym(library, "clGetExtensionFunctionAddress");
    if (address == NULL)
        return -1;
    *(void **)&platforms = address("clIcdGetPlatformIDsKHR");
    if (platforms == NULL)
        return -1;
    return platforms(0, NULL, &count) == 0 ? (int)count : 0;
}

static bool is_pocl(const struct icd *icd)
{
    return strstr(icd->library, "pocl") != NULL;
}

/* Writes why the driver has no device, or "" if that is not known.  "; "
 * separates a known reason from what the user can do. */
static void absence_explain(const struct icd *icd, char out_why[POCL_WHY_BYTES])
{
    out_why[0] = '\0';
    if (strstr(icd->library, "usticl") != NULL &&
        getenv("RUSTICL_ENABLE") == NULL)
        snprintf(out_why, POCL_WHY_BYTES,
                 "RUSTICL_ENABLE is not set, so rusticl serves no hardware; "
                 "set it to a driver of Mesa, such as radeonsi or llvmpipe");
    else if (is_pocl(icd))
        pocl_explain_absence(out_why, POCL_WHY_BYTES);
}

/* Returns the reason why the driver has no device. */
static json_t *excuse_json(const struct icd *icd, const char *why,
                           const char **out_state)
{
    void *library = dlopen(icd->library, RTLD_LAZY);
    const char *between = why[0] != '\0' ? "; " : "";
    int platforms;

    if (library == NULL)
        return library_json(icd, dlerror(), out_state);
    platforms = platforms_count(library);
    if (platforms < 0)
        return child_text("its library is no OpenCL driver: it has no "
                          "clIcdGetPlatformIDsKHR");
    if (platforms == 0)
        return child_text("it loads, but offers no platform, and so no "
                          "device: there is no hardware that it serves, or "
                          "this user may not use it%s%s",
                          between, why);
    return child_text("it loads, but offers no device that Tandem can use%s%s",
                      between, why);
}

/* Tells the parent process why the driver has no device. */
static void answer_empty(struct child_link *link, const struct icd *icd)
{
    const char *state = "empty";
    char why[POCL_WHY_BYTES] = "";
    json_t *message;

    if (icd != NULL)
        absence_explain(icd, why);
    message = icd != NULL ? excuse_json(icd, why, &state)
                          : json_string("there is no device");
    child_answer(link,
                 json_pack("{s:s, s:i, s:o, s:o}", "state", state, "devices", 0,
                           "message", message, "problem",
                           child_text("%s", strstr(why, "; ") ? why : "")));
}

/* Returns the names of the platforms of the context's devices. */
static json_t *platforms_json(struct tandem_context *context, uint32_t count)
{
    json_t *out = json_array();

    for (uint32_t device = 0; device < count; device++) {
        struct tandem_device_info info = {.struct_size = sizeof info};
        json_t *name;
        bool listed = false;

        if (tandem_device_describe(context, device, &info) != TANDEM_OK)
            continue;
        name = child_text("%s", info.platform);
        for (size_t i = 0; i < json_array_size(out); i++)
            listed |= json_equal(json_array_get(out, i), name);
        if (!listed)
            json_array_append(out, name);
        json_decref(name);
    }
    return out;
}

static void driver_body(void *argument, struct child_link *link)
{
    const struct driver_test *test = argument;
    struct tandem_context *context;
    char why[POCL_WHY_BYTES] = "";
    uint32_t count = 0;

    child_progress(link, 0, "listing its devices");
    if (test->icd != NULL)
        choose_driver(test->icd);
    setenv("TANDEM_OPENCL_BLOCKLIST", "ignore", 1);
    if (probe_context(test->options, "opencl", &context) != TANDEM_OK ||
        tandem_device_count(context, &count) != TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return;
    }
    if (count > 0 && test->icd != NULL && is_pocl(test->icd))
        pocl_cache_is_writable(why, sizeof why);
    if (count == 0)
        answer_empty(link, test->icd);
    else
        child_answer(link,
                     json_pack("{s:s, s:i, s:s, s:o, s:o}", "state", "ok",
                               "devices", (int)count, "message", "", "problem",
                               child_text("%s", why), "platforms",
                               platforms_json(context, count)));
    tandem_context_destroy(context);
}

/* ---- in the parent ---- */

/* Tests the driver, or all together, in a child, and adds the result to
 * `driver` unless it is NULL.  If the child crashed or hung, returns true and
 * writes to out_what (WHAT_BYTES) what happened. */
static bool breaks(const struct driver_test *test, json_t *driver,
                   char *out_what)
{
    const unsigned limit_s = test->options->driver_timeout_s;
    struct child_outcome outcome;

    child_run(driver_body, (void *)test, limit_s ? limit_s : DRIVER_LIMIT_S,
              NULL, &outcome);
    memcpy(out_what, outcome.what, WHAT_BYTES);
    if (outcome.what[0] != '\0' || outcome.result == NULL) {
        json_decref(outcome.result);
        outcome.result =
            json_pack("{s:s, s:i, s:s}", "state",
                      outcome.what[0] != '\0' ? "broken" : "untested",
                      "devices", 0, "message", outcome.message);
    }
    if (driver != NULL)
        json_object_update(driver, outcome.result);
    child_outcome_destroy(&outcome);
    return out_what[0] != '\0';
}

/* Prints the problem, unless the output lists it, and adds it to the list. */
__attribute__((format(printf, 3, 4))) static void
complain(const struct probe_options *options, json_t *problems,
         const char *format, ...)
{
    char text[DRIVER_PROBLEM_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!options->lists_problems)
        probe_complain("%s", text);
    json_array_append_new(problems, child_text("%s", text));
}

static void complain_driver(const struct probe_options *options,
                            json_t *problems, const struct icd *icd,
                            const char *what)
{
    complain(options, problems,
             "the OpenCL driver %.300s (%.200s) %.160s while listing its "
             "devices: OpenCL is not used as long as this driver would be "
             "loaded; remove or repair the driver, or set OCL_ICD_VENDORS to "
             "a working .icd file (or to a directory of such files), then run "
             "cl-probe again",
             icd->file, icd->library, what);
}

static void complain_all(const struct probe_options *options, json_t *problems,
                         const char *what)
{
    complain(options, problems,
             "each OpenCL driver works alone, but together they %.160s: OpenCL "
             "is not used as long as all of them would be loaded; set "
             "OCL_ICD_VENDORS to the .icd file of one (or to a directory of "
             "some), then run cl-probe again",
             what);
}

/* Tests each driver alone.  Returns the number of broken drivers. */
static uint32_t test_each(struct driver_test *test, json_t *found,
                          const struct icd_list *list,
                          struct driver_test_results *results)
{
    json_t *drivers = json_object_get(found, "drivers");
    json_t *problems = json_object_get(found, "load_errors");
    uint32_t broken = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct icd *icd = &list->icds[i];
        json_t *driver =
            json_pack("{s:o, s:o}", "file", child_text("%s", icd->file),
                      "library", child_text("%s", icd->library));
        char what[WHAT_BYTES];

        test->icd = icd;
        if (breaks(test, driver, what)) {
            complain_driver(test->options, problems, icd, what);
            driver_test_results_add(
                results, &(struct icd_list){.icds = {*icd}, .count = 1}, what);
            broken++;
        }
        if (strcmp(device_text(driver, "state"), "untested") != 0)
            icd_list_add(&results->tested, icd->file, icd->library);
        json_array_append_new(drivers, driver);
    }
    return broken;
}

/* Adds the .icd files that name no driver. */
static void add_useless(json_t *drivers)
{
    struct icd_list list;

    if (!icd_list_find_useless(&list))
        return;
    for (uint32_t i = 0; i < list.count; i++)
        json_array_append_new(
            drivers, json_pack("{s:o, s:s, s:s, s:i, s:s}", "file",
                               child_text("%s", list.icds[i].file), "library",
                               "", "state", "unreadable", "devices", 0,
                               "message", list.icds[i].library));
    icd_list_finish(&list);
}

bool drivers_check(const struct probe_options *options, json_t *found)
{
    struct driver_test test = {.options = options};
    struct driver_test_results results = {.tested = {.count = 0}};
    struct icd_list list;
    char problem[DRIVER_PROBLEM_BYTES], what[WHAT_BYTES];
    bool good;

    json_object_set_new(found, "drivers", json_array());
    if (!icd_list_find(&list))
        return true;
    good = test_each(&test, found, &list, &results) == 0;
    add_useless(json_object_get(found, "drivers"));
    if (good && list.count > 1) {
        test.icd = NULL;
        for (uint32_t i = 0; i < list.count; i++)
            icd_list_add(&results.together, list.icds[i].file,
                         list.icds[i].library);
        if (breaks(&test, NULL, what)) {
            complain_all(options, json_object_get(found, "load_errors"), what);
            driver_test_results_add(&results, &list, what);
            good = false;
        }
    }
    if (!driver_test_results_write(&results, problem))
        complain(options, json_object_get(found, "load_errors"), "%s", problem);
    icd_list_finish(&list);
    return good;
}
