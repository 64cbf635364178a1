/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --doctor, which checks what users of OpenCL stumble over
 * and prints one line for each check, with what to do.  Parent process only.
 */
#include <config.h>

#include "../common/text_wrap.h"
#include "calibration_state.h"
#include "child_process.h"
#include "device_list.h"
#include "doctor.h"

#include "common/icd_list.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Columns of the names of the checks, and of the texts. */
#define NAME_COLUMN 16
#define TEXT_COLUMN 37

/* Runs the checks.  Returns the array of their results. */
static json_t *checks_run(const struct doctor_facts *facts)
{
    static const struct {
        const char *name;
        doctor_check_fn check;
    } checks[] = {
        {"devices", check_devices},
        {"OpenCL drivers", check_registered_drivers},
        {"driver libraries", check_driver_libraries},
        {"OpenCL loader", check_loader},
        {"drivers per GPU", check_drivers_per_gpu},
        {"device files", check_device_files},
        {"container", check_container},
        {"cache directory", check_cache},
        {"profiles", check_profiles},
        {"GPU load", check_gpu_load},
        {"CPU limits", check_cpu_limits},
        {"OpenBLAS", check_blas},
    };
    json_t *results = json_array();

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        json_t *result =
            json_pack("{s:s, s:s, s:s, s:[]}", "check", checks[i].name, "state",
                      "", "text", "", "problems");

        checks[i].check(facts, result);
        json_array_append_new(results, result);
    }
    return results;
}

/* ---- the conclusion ---- */

static const char *next_step(const json_t *devices, size_t problems)
{
    if (problems > 0)
        return "Do what the lines after the arrows say, then run \"cl-probe "
               "--doctor\" again.";
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);

        if (calibration_is_needed(device))
            return "Next, run \"cl-probe --calibrate\", which measures the "
                   "devices, so that Tandem can choose the fastest.";
    }
    return "Next, run \"cl-probe --explain gemm 512x512x512\", which says "
           "which device would run this operator, and why.";
}

static json_t *summary(const struct doctor_facts *facts, const json_t *devices,
                       size_t problems)
{
    const char *vendor = doctor_gpu_vendor(facts);

    if (problems > 0)
        return child_text("%zu check%s found a problem.", problems,
                          problems == 1 ? "" : "s");
    for (size_t i = 0; i < json_array_size(devices); i++)
        if (strcmp(device_text(json_array_get(devices, i), "kind"), "cpu") != 0)
            return json_string("No problem was found.");
    if (vendor != NULL)
        return child_text("No problem was found, and no GPU, although this "
                          "machine shows a GPU of %s on its PCI bus.",
                          vendor);
    return json_string("No problem was found, and no GPU: this machine shows "
                       "none of NVIDIA, AMD or Intel on its PCI bus.");
}

json_t *doctor_report(const struct doctor_facts *facts)
{
    const json_t *devices = json_object_get(facts->found, "devices");
    json_t *results = checks_run(facts);
    size_t problems = 0;

    for (size_t i = 0; i < json_array_size(results); i++)
        problems += result_is_problem(json_array_get(results, i));
    return json_pack(
        "{s:s, s:o, s:i, s:o, s:s, s:s}", "version", tandem_version(), "checks",
        results, "problems", (int)problems, "summary",
        summary(facts, devices, problems), "note", devices_speed_note(devices),
        "next", next_step(devices, problems));
}

/* ---- output ---- */

static void print_result(const json_t *result)
{
    const json_t *problems = json_object_get(result, "problems");
    const size_t columns = output_columns(stdout);

    printf("%-*s%-*s", NAME_COLUMN, device_text(result, "state"),
           TEXT_COLUMN - NAME_COLUMN - 2, device_text(result, "check"));
    if (json_array_size(problems) == 0) {
        printf("  ");
        text_wrap(stdout, device_text(result, "text"), TEXT_COLUMN, TEXT_COLUMN,
                  columns);
    }
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *problem = json_array_get(problems, i);

        printf("%*s", i == 0 ? 2 : TEXT_COLUMN, "");
        text_wrap(stdout, device_text(problem, "text"), TEXT_COLUMN,
                  TEXT_COLUMN, columns);
        printf("%*s", TEXT_COLUMN, "-> ");
        text_wrap(stdout, device_text(problem, "advice"), TEXT_COLUMN,
                  TEXT_COLUMN, columns);
    }
}

static void print_paragraph(const char *text)
{
    if (text[0] == '\0')
        return;
    printf("\n");
    text_wrap(stdout, text, 0, 0, output_columns(stdout));
}

static void print_results(const json_t *report)
{
    const json_t *results = json_object_get(report, "checks");

    printf("Tandem %s\n\n", device_text(report, "version"));
    for (size_t i = 0; i < json_array_size(results); i++)
        print_result(json_array_get(results, i));
    print_paragraph(device_text(report, "summary"));
    print_paragraph(device_text(report, "note"));
    print_paragraph(device_text(report, "next"));
}

/* Sets the facts that this process finds itself. */
static void facts_set(struct doctor_facts *facts)
{
    struct icd_list list;
    cpu_set_t set;

    facts->driver_place = icd_place(&facts->driver_variable);
    if (icd_list_find(&list))
        facts->driver_count = list.count;
    icd_list_finish(&list);
    facts->online_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    facts->affinity_cpus = sched_getaffinity(0, sizeof set, &set) == 0
                               ? (uint32_t)CPU_COUNT(&set)
                               : facts->online_cpus;
}

int probe_doctor(const struct probe_options *options)
{
    int status;
    json_t *found = devices_find(options, NULL, &status);
    json_t *loader = doctor_loader_find(options);
    json_t *opened = doctor_devices_open(options, found);
    json_t *kernel = doctor_kernel_ask(options, ""), *report;
    struct doctor_facts facts = {.root = "",
                                 .found = found,
                                 .loader = loader,
                                 .opened = opened,
                                 .kernel = kernel,
                                 .forced = options->forced};

    facts_set(&facts);
    report = doctor_report(&facts);
    status = device_number(report, "problems") > 0 ? PROBE_FAILED : PROBE_OK;
    if (options->json)
        probe_print_json(json_incref(report));
    else
        print_results(report);
    json_decref(report);
    json_decref(kernel);
    json_decref(opened);
    json_decref(loader);
    json_decref(found);
    return status;
}
