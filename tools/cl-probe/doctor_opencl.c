/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of OpenCL drivers and of the OpenCL loader; see doctor.h. */
#include <config.h>

#include "doctor.h"
#include "missing_device_diagnosis.h"

#include "common/environment.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_kind(const json_t *device, const char *kind)
{
    return strcmp(device_text(device, "kind"), kind) == 0;
}

static bool is_opencl(const json_t *device)
{
    return strcmp(device_text(device, "backend"), "opencl") == 0;
}

/* Returns true if a plugin offers an OpenCL device; it must be a GPU if `gpu`
 * is true. */
static bool has_opencl_device(const struct doctor_facts *facts, bool gpu)
{
    const json_t *devices = json_object_get(facts->found, "devices");

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);

        if (is_opencl(device) && (!gpu || !is_kind(device, "cpu")))
            return true;
    }
    return false;
}

/* ---- registered drivers ---- */

/* Reports the GPUs whose OpenCL driver is not registered. */
static void check_gpu_drivers(const struct doctor_facts *facts, json_t *result)
{
    struct diagnosis diagnosis;
    char pattern[PATH_MAX], advice[600];
    glob_t devices;

    snprintf(pattern, sizeof pattern, "%s/sys/bus/pci/devices/*", facts->root);
    if (glob(pattern, 0, NULL, &devices) != 0)
        return;
    for (size_t i = 0; i < devices.gl_pathc; i++) {
        if (!gpu_diagnose(devices.gl_pathv[i], &diagnosis) ||
            diagnosis.driver_file[0] != '\0')
            continue;
        snprintf(advice, sizeof advice, "install the driver: %s",
                 diagnosis.advice);
        result_problem(result, advice,
                       "%s, but its OpenCL driver is not registered",
                       diagnosis.text);
    }
    globfree(&devices);
}

void check_registered_drivers(const struct doctor_facts *facts, json_t *result)
{
    const char *variable = facts->driver_variable;
    const char *place = facts->driver_place;
    const uint32_t count = facts->driver_count;

    if (count == 0 && variable != NULL)
        result_problem(result,
                       "unset the variable, or set it to a directory of .icd "
                       "files",
                       access(place, F_OK) == 0
                           ? "%s is set to %.400s, and no .icd file there "
                             "names a driver"
                           : "%s is set to %.400s, which does not exist",
                       variable, place);
    else if (count == 0)
        result_problem(result,
                       "install the driver of your GPU, or PoCL, which runs on "
                       "any CPU (Debian, Ubuntu: pocl-opencl-icd; Fedora, "
                       "Arch: pocl)",
                       "no .icd file in %s names a driver", place);
    if (!has_opencl_device(facts, true))
        check_gpu_drivers(facts, result);
    result_ok(result, "%u driver%s in %.400s%s%s", (unsigned)count,
              count == 1 ? "" : "s", place, variable != NULL ? ", from " : "",
              variable != NULL ? variable : "");
}

/* ---- the drivers' libraries ---- */

/* Returns true if the .icd file names the driver of a GPU of this machine. */
static bool is_gpu_driver(const struct doctor_facts *facts, const char *file)
{
    struct diagnosis diagnosis;
    char pattern[PATH_MAX];
    bool found = false;
    glob_t devices;

    snprintf(pattern, sizeof pattern, "%s/sys/bus/pci/devices/*", facts->root);
    if (glob(pattern, 0, NULL, &devices) != 0)
        return false;
    for (size_t i = 0; i < devices.gl_pathc && !found; i++)
        found = gpu_diagnose(devices.gl_pathv[i], &diagnosis) &&
                strcmp(diagnosis.driver_file, file) == 0;
    globfree(&devices);
    return found;
}

/* Reports the problem of the driver that the user can solve (driver_test.h).
 * Returns false if the driver has no such problem. */
static bool report_solvable(json_t *result, const json_t *driver)
{
    const char *problem = device_text(driver, "problem");
    const char *advice = NULL;

    for (const char *at = problem; (at = strstr(at, "; ")) != NULL;)
        advice = at += 2;
    if (advice == NULL)
        return false;
    result_problem(result, advice, "%.300s: %.*s", device_text(driver, "file"),
                   (int)(advice - 2 - problem), problem);
    return true;
}

/* Reports the drivers that offer no device, if no driver works, or if such a
 * driver is that of a GPU of this machine and no OpenCL GPU was found.  Drivers
 * without a known reason share a problem. */
static void check_empty_drivers(const struct doctor_facts *facts,
                                json_t *result, bool any_works)
{
    const json_t *drivers = json_object_get(facts->found, "drivers");
    const bool has_gpu = has_opencl_device(facts, true);
    char files[1000] = "";
    const char *message = "";
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(drivers); i++) {
        const json_t *driver = json_array_get(drivers, i);
        const char *file = device_text(driver, "file");
        const size_t used = strlen(files);

        if (strcmp(device_text(driver, "state"), "empty") != 0 ||
            (any_works && (has_gpu || !is_gpu_driver(facts, file))) ||
            report_solvable(result, driver))
            continue;
        snprintf(files + used, sizeof files - used, "%s%.300s",
                 count == 0 ? "" : ", ", file);
        message = device_text(driver, "message");
        count++;
    }
    if (count > 0)
        result_problem(result,
                       "install the driver of your GPU; see also the lines on "
                       "device files and on containers",
                       "%s: %.600s", files,
                       count == 1 ? message
                                  : "they offer no device: there is no "
                                    "hardware that they serve, or this user "
                                    "may not use it");
}

/* Returns what to do about a driver, or NULL if its state is not a problem by
 * itself. */
static const char *driver_advice(const json_t *driver)
{
    const char *state = device_text(driver, "state");
    const char *file = device_text(driver, "file");
    static const struct {
        const char *state, *advice;
    } states[] = {
        {"missing", "install the package that contains the library, or remove "
                    "the .icd file"},
        {"unloadable", "install what the message names, or install the driver "
                       "again"},
        {"unreadable", "write the name of the driver's library into the first "
                       "line of the file, or remove the file"},
        {"broken", "update or remove the driver, or set OCL_ICD_VENDORS to the "
                   ".icd file of a good one (or to a directory of such files); "
                   "until then, Tandem does not use OpenCL"},
    };

    /* A value of OCL_ICD_VENDORS that is not a directory can be a library. */
    if (strcmp(state, "missing") == 0 && file[0] != '\0' &&
        strcmp(file, device_text(driver, "library")) == 0)
        return "unset OCL_ICD_VENDORS, or set it to a directory of .icd files";
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcmp(state, states[i].state) == 0)
            return states[i].advice;
    return NULL;
}

void check_driver_libraries(const struct doctor_facts *facts, json_t *result)
{
    const json_t *drivers = json_object_get(facts->found, "drivers");
    const size_t count = json_array_size(drivers);
    const char *backends = environment_get("TANDEM_BACKENDS");
    size_t working = 0, empty = 0;

    if (drivers == NULL && backends != NULL &&
        strstr(backends, "opencl") == NULL) {
        result_not_applicable(result,
                              "TANDEM_BACKENDS excludes the OpenCL plugin");
        return;
    }
    if (drivers == NULL)
        result_problem(result,
                       "install the plugin (Debian: tandem-plugin-opencl), or "
                       "name its directory in TANDEM_PLUGIN_PATH",
                       "Tandem's OpenCL plugin, tandem-opencl.so, is not "
                       "installed, so no driver is used");
    for (size_t i = 0; i < count; i++) {
        const json_t *driver = json_array_get(drivers, i);
        const char *state = device_text(driver, "state");
        const char *advice = driver_advice(driver);

        if (strcmp(state, "ok") == 0) {
            working++;
            report_solvable(result, driver);
        }
        empty += strcmp(state, "empty") == 0;
        if (advice != NULL)
            result_problem(result, advice, "%.300s: %.600s",
                           device_text(driver, "file"),
                           device_text(driver, "message"));
    }
    check_empty_drivers(facts, result, working > 0);
    if (working == 0)
        result_not_applicable(result, "no OpenCL driver could be tested");
    else if (empty > 0)
        result_ok(result, "%zu of %zu drivers work; the others offer no device",
                  working, count);
    else
        result_ok(result, "%zu of %zu drivers work", working, count);
}

/* ---- two drivers for one GPU ---- */

/* Writes a device's name without the parts that differ between drivers: Mesa
 * adds "Mesa " before it and the chip in parentheses after it. */
static void name_simplify(const char *name, char *out, size_t bytes)
{
    const char *end;

    if (strncmp(name, "Mesa ", 5) == 0)
        name += 5;
    end = strstr(name, " (");
    snprintf(out, bytes, "%.*s",
             end != NULL ? (int)(end - name) : (int)strlen(name), name);
}

static bool names_equal(const json_t *a, const json_t *b)
{
    char x[256], y[256];

    name_simplify(device_text(a, "description"), x, sizeof x);
    name_simplify(device_text(b, "description"), y, sizeof y);
    return x[0] != '\0' && strcasecmp(x, y) == 0;
}

static bool platforms_equal(const json_t *a, const json_t *b)
{
    return strcmp(device_text(a, "platform"), device_text(b, "platform")) == 0;
}

/* Returns true if the device's platform has another device of this name, such
 * as the second of two equal GPUs. */
static bool has_twin(const json_t *devices, const json_t *device)
{
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *other = json_array_get(devices, i);

        if (other != device && is_opencl(other) &&
            platforms_equal(other, device) && names_equal(other, device))
            return true;
    }
    return false;
}

/* Returns "is" if both devices are certainly the same GPU, "seems to be" if
 * only their names are equal, or NULL if they are different.  PCI addresses and
 * UUIDs decide if both devices have them. */
static const char *same_gpu(const json_t *devices, const json_t *a,
                            const json_t *b)
{
    const char *x = device_text(a, "pci"), *y = device_text(b, "pci");

    if (is_kind(a, "cpu") || is_kind(b, "cpu") || !is_opencl(a) ||
        !is_opencl(b))
        return NULL;
    if (strcmp(device_text(b, "duplicate_of"), device_text(a, "name")) == 0)
        return "is";
    if (platforms_equal(a, b))
        return NULL;
    if (x[0] != '\0' && y[0] != '\0')
        return strcmp(x, y) == 0 ? "is" : NULL;
    x = device_text(a, "uuid");
    y = device_text(b, "uuid");
    if (x[0] != '\0' && y[0] != '\0')
        return strcmp(x, y) == 0 ? "is" : NULL;
    return names_equal(a, b) && !has_twin(devices, a) && !has_twin(devices, b)
               ? "seems to be"
               : NULL;
}

/* Returns the .icd file of the driver with this platform, or "". */
static const char *platform_file(const struct doctor_facts *facts,
                                 const char *platform)
{
    const json_t *drivers = json_object_get(facts->found, "drivers");

    for (size_t i = 0; i < json_array_size(drivers); i++) {
        const json_t *driver = json_array_get(drivers, i);
        const json_t *platforms = json_object_get(driver, "platforms");

        for (size_t k = 0; k < json_array_size(platforms); k++)
            if (strcmp(json_string_value(json_array_get(platforms, k)),
                       platform) == 0)
                return device_text(driver, "file");
    }
    return "";
}

/* Reports that both devices are one GPU. */
static void report_gpu(const struct doctor_facts *facts, json_t *result,
                       const json_t *a, const json_t *b, const char *verb)
{
    const char *file = platform_file(facts, device_text(a, "platform"));
    const char *other = platform_file(facts, device_text(b, "platform"));
    const bool khronos =
        strstr(device_text(facts->loader, "name"), "Khronos") != NULL;
    char advice[900];

    if (file[0] == '\0' || other[0] == '\0')
        snprintf(advice, sizeof advice,
                 "to use only one of them, set OCL_ICD_VENDORS to its .icd "
                 "file");
    else
        snprintf(advice, sizeof advice,
                 "to use only one of them, set OCL_ICD_VENDORS=%.300s or "
                 "OCL_ICD_VENDORS=%.300s",
                 file, other);
    if (khronos)
        snprintf(advice + strlen(advice), sizeof advice - strlen(advice),
                 "; this OpenCL loader wants a directory that contains only "
                 "that file");
    result_problem(result, advice,
                   "%s (platform %.80s) %s the same GPU as %s (platform "
                   "%.80s), with another driver",
                   device_text(b, "name"), device_text(b, "platform"), verb,
                   device_text(a, "name"), device_text(a, "platform"));
}

void check_drivers_per_gpu(const struct doctor_facts *facts, json_t *result)
{
    const json_t *devices = json_object_get(facts->found, "devices");

    for (size_t i = 0; i < json_array_size(devices); i++)
        for (size_t k = 0; k < i; k++) {
            const json_t *a = json_array_get(devices, k);
            const json_t *b = json_array_get(devices, i);
            const char *verb = same_gpu(devices, a, b);

            if (verb != NULL)
                report_gpu(facts, result, a, b, verb);
        }
    if (!has_opencl_device(facts, true))
        result_not_applicable(result, "there is no OpenCL GPU");
    else
        result_ok(result, "each GPU has one driver");
}

/* ---- the loader ---- */

/* Returns true if the version is lower than that of ocl-icd 2.2.9 (2016), the
 * first that reads OPENCL_VENDOR_PATH.  Tandem finds out by this variable, too,
 * which drivers the loader will load, and tests them. */
static bool is_old_ocl_icd(const char *version)
{
    unsigned part[3] = {0, 0, 0};

    return sscanf(version, "%u.%u.%u", &part[0], &part[1], &part[2]) >= 2 &&
           (part[0] < 2 || (part[0] == 2 && part[1] < 2) ||
            (part[0] == 2 && part[1] == 2 && part[2] < 9));
}

/* Returns true if a device belongs to one of the driver's platforms. */
static bool has_device_of(const struct doctor_facts *facts,
                          const json_t *driver)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    const json_t *platforms = json_object_get(driver, "platforms");

    for (size_t i = 0; i < json_array_size(platforms); i++)
        for (size_t k = 0; k < json_array_size(devices); k++)
            if (strcmp(device_text(json_array_get(devices, k), "platform"),
                       json_string_value(json_array_get(platforms, i))) == 0)
                return true;
    return false;
}

/* Reports the drivers that have devices if the loader is told to load only
 * that driver, but none in a program.  The test of a driver selects it with
 * OCL_ICD_FILENAMES.  Without that variable, NVIDIA's loader in CUDA ignores an
 * .icd file that names the library with its directory. */
static void check_ignored_drivers(const struct doctor_facts *facts,
                                  json_t *result, const char *loader)
{
    const json_t *drivers = json_object_get(facts->found, "drivers");

    /* If a driver or a plugin crashed, OpenCL is not used at all. */
    if (json_is_true(json_object_get(facts->found, "failed")))
        return;
    for (size_t i = 0; i < json_array_size(drivers); i++) {
        const json_t *driver = json_array_get(drivers, i);
        const char *file = device_text(driver, "file");
        const char *library = device_text(driver, "library");
        const char *slash = strrchr(library, '/');
        char advice[900];

        if (json_array_size(json_object_get(driver, "platforms")) == 0 ||
            has_device_of(facts, driver))
            continue;
        snprintf(advice, sizeof advice,
                 "let programs use the loader of your distribution (Debian, "
                 "Ubuntu: ocl-icd-libopencl1; Fedora, Arch: ocl-icd): put its "
                 "directory first in LD_LIBRARY_PATH");
        if (slash != NULL && strcmp(file, library) != 0)
            snprintf(advice + strlen(advice), sizeof advice - strlen(advice),
                     "; or write only the name %.200s into %.300s", slash + 1,
                     file);
        result_problem(result, advice,
                       "%.300s does not load the driver that %.300s names; "
                       "tested alone, the driver works",
                       loader, file);
    }
}

/* Tandem calls functions up to OpenCL 1.2.  Khronos' loaders before v2020.03.13
 * ignore OCL_ICD_VENDORS and OCL_ICD_FILENAMES, and those before v2020.06.16
 * want a final slash.  The first release with the functions of OpenCL 3.0 is
 * v2020.12.18, so a loader that has them is new enough, also one that does not
 * report its version. */
void check_loader(const struct doctor_facts *facts, json_t *result)
{
    static const char advice[] =
        "install a current one: Debian, Ubuntu: ocl-icd-libopencl1; Fedora, "
        "Arch: ocl-icd";
    const json_t *loader = facts->loader;
    const char *library = device_text(loader, "library");
    const char *name = device_text(loader, "name");
    const char *version = device_text(loader, "version");
    const char *error = device_text(loader, "error");
    const bool ocl_icd = strcmp(name, "OpenCL ICD Loader") == 0;

    check_ignored_drivers(facts, result,
                          error[0] != '\0' ? "the OpenCL loader" : library);
    if (error[0] != '\0' && has_opencl_device(facts, false)) {
        result_ok(result, "the loader comes with Tandem's OpenCL plugin");
        return;
    }
    if (error[0] != '\0')
        result_problem(result, advice,
                       "there is no usable OpenCL loader: %.600s", error);
    else if (!json_is_true(json_object_get(loader, "has_opencl_1_2")))
        result_problem(result, advice,
                       "%.300s lacks functions of OpenCL 1.2, which Tandem "
                       "needs",
                       library);
    else if (ocl_icd && is_old_ocl_icd(version))
        result_problem(result, advice,
                       "%.300s is ocl-icd %.40s: versions before 2.2.9 ignore "
                       "OPENCL_VENDOR_PATH, so Tandem may test other drivers "
                       "than those that the loader uses",
                       library, version);
    else if (!ocl_icd &&
             !json_is_true(json_object_get(loader, "has_opencl_3_0")))
        result_problem(result, advice,
                       "%.300s has no functions of OpenCL 3.0: loaders that "
                       "are older than these may ignore OCL_ICD_VENDORS, so "
                       "Tandem cannot test one driver at a time, and you "
                       "cannot select one",
                       library);
    result_ok(result, "%.300s%s%s%s%s", library, name[0] != '\0' ? ": " : ", ",
              name[0] != '\0' ? name : "of unknown origin",
              version[0] != '\0' ? " " : "", version);
}
