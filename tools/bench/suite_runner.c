/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites on the devices; see suite_runner.h. */
#include <config.h>

#include "suite_runner.h"

#include "../common/progress_bar.h"
#ifdef BENCH_OPENCL
#include "raw_opencl.h"
#endif

#include <stdio.h>
#include <string.h>

#define ANY_DEVICE_NAME "any" /* the library chooses the device */
#define WAKE_ELEMENTS (INT64_C(1) << 22)
#define WAKE_NS (300 * NS_PER_MS)

#ifdef BENCH_OPENCL
#define OPENCL_SUITE(name) name##_list, name##_run
#else
#define OPENCL_SUITE(name) NULL, NULL
#endif

const struct suite suites[SUITE_COUNT] = {
    {"launch", "opencl", false,
     "a small addition, compared with clEnqueueNDRangeKernel",
     OPENCL_SUITE(launch)},
    {"transfer", "opencl", false, "uploads and downloads, compared with OpenCL",
     OPENCL_SUITE(transfer)},
    {"bandwidth", NULL, false,
     "operators that are limited by memory, compared with a copy",
     bandwidth_list, bandwidth_run},
    {"operators", NULL, false,
     "an example of each operator, compared with a copy", operators_list,
     operators_run},
    {"gemm", NULL, false, "GEMM, compared with CLBlast or CBLAS", gemm_list,
     gemm_run},
    {"layers", NULL, false, "operators of published networks", layers_list,
     layers_run},
    {"networks", NULL, false, "forward passes of published networks",
     networks_list, networks_run},
    {"cold-start", NULL, true, "new processes with empty and with warm caches",
     cold_start_list, cold_start_run},
    {"user-cases", NULL, true,
     "operators and sizes of user reports, with data on the device or the host",
     user_cases_list, user_cases_run},
    {"allocator", "opencl", false,
     "allocating and freeing, compared with clCreateBuffer",
     OPENCL_SUITE(allocator)},
    {"small-ops", "cpu", false, "operators on the CPU, compared with a C loop",
     small_ops_list, small_ops_run},
    {"placement", NULL, true,
     "predicted and measured times, and the chosen devices", placement_list,
     placement_run},
};

static void list_filter(struct list *list, const char *text)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        if (strstr(list->rows[i].name, text) != NULL)
            list->rows[kept++] = list->rows[i];
    list->count = kept;
}

void selection_list(const struct selection *selection,
                    const struct suite *suite, struct list *list)
{
    for (size_t i = 0; i < SUITE_COUNT; i++) {
        if ((suite != NULL && suite != &suites[i]) ||
            (selection->any_suite && !selection->suites[i]) ||
            suites[i].list == NULL)
            continue;
        list->suite = suites[i].name;
        suites[i].list(list);
    }
    if (selection->filter != NULL)
        list_filter(list, selection->filter);
}

/* ---- one device ---- */

static bool suite_applies(const struct bench *bench, const struct suite *suite)
{
    if (bench->device == TANDEM_ANY_DEVICE)
        return suite->any;
    if (suite->run == placement_run)
        return false;
    return suite->backend == NULL || bench_on(bench, suite->backend);
}

static double seconds_since(uint64_t start)
{
    return (double)(clock_now_ns() - start) / (double)NS_PER_S;
}

/* Runs a suite and adds its time to `seconds`.  Returns the number of rows that
 * were too large. */
static size_t run_suite(struct bench *bench, const struct selection *selection,
                        const struct suite *suite, json_t *seconds)
{
    uint64_t start = clock_now_ns();
    struct progress progress;
    bool chosen = bench->device == TANDEM_ANY_DEVICE;
    struct list list = {.scale = bench->scale,
                        .device = chosen ? NULL : &bench->session.info,
                        .chosen = chosen};
    char step[64];

    selection_list(selection, suite, &list);
    progress_begin(&progress, "bench", true);
    for (size_t i = 0; i < list.count; i++) {
        bench->row = &list.rows[i];
        snprintf(step, sizeof step, "%.20s %.20s %.20s", bench->device_text,
                 suite->name, progress.terminal ? bench->row->name : "");
        progress_show(&progress, (double)i / (double)list.count, step);
        suite->run(bench);
        if (bench->session.backend != NULL)
            bench->session.backend->trim(bench->session.device, 0);
    }
    progress_end(&progress);
    json_object_set_new(seconds, suite->name, json_real(seconds_since(start)));
    list_destroy(&list);
    return list.skipped_rows;
}

static json_t *device_json(const struct bench *bench)
{
    const struct tandem_device_info *info = &bench->session.info;
    bool any = bench->device == TANDEM_ANY_DEVICE;

    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "device", bench->device_text,
                     "name", any ? "the library's choice" : info->name,
                     "platform", info->platform, "driver", info->driver_version,
                     "scale", scale_names[bench->scale]);
}

static void run_suites(struct bench *bench, const struct selection *selection)
{
    json_t *device = device_json(bench), *seconds = json_object();
    uint64_t start = clock_now_ns();
    size_t skipped_rows = 0;

    for (size_t i = 0; i < SUITE_COUNT; i++)
        if ((!selection->any_suite || selection->suites[i]) &&
            suites[i].run != NULL && suite_applies(bench, &suites[i]))
            skipped_rows += run_suite(bench, selection, &suites[i], seconds);
    json_object_set_new(device, "skipped_rows",
                        json_integer((json_int_t)skipped_rows));
    json_object_set_new(device, "seconds", json_real(seconds_since(start)));
    json_object_set_new(device, "suite_seconds", seconds);
    json_array_append_new(json_object_get(bench->document, "devices"), device);
}

/* Keeps the device busy until a GPU has raised its clock frequency. */
static void wake(struct bench *bench)
{
    const int64_t shape[] = {WAKE_ELEMENTS};
    uint64_t start = clock_now_ns(), ns;
    struct resident_op work;

    if (bench->scale != SCALE_FULL ||
        resident_op_create(&work, &bench->session, "add", 1, shape) !=
            TANDEM_OK)
        return;
    while (clock_now_ns() - start < WAKE_NS &&
           resident_op_stream(&work, 100, &ns) == TANDEM_OK)
        ;
    resident_op_destroy(&work);
}

static enum scale scale_of(const struct selection *selection,
                           const struct tandem_device_info *info)
{
    if (selection->scale >= 0)
        return (enum scale)selection->scale;
    return info->kind == TANDEM_DEVICE_CPU ? SCALE_SMALL : SCALE_FULL;
}

static void run_device(struct bench *bench, const struct selection *selection,
                       uint32_t device)
{
    static const struct row open_row = {
        .suite = "open", .op = "open", .mode = "", .name = "open the device"};

    bench->device = device;
    bench->row = &open_row;
    device_name(bench->context, device, bench->device_text);
    if (device_session_open(&bench->session, bench->context, device) !=
        TANDEM_OK) {
        bench_fail(bench, "%s", tandem_last_error());
        return;
    }
    bench->scale = scale_of(selection, &bench->session.info);
    if ((bench->session.info.caps & TANDEM_CAP_CORE_OPERATORS) != 0) {
        wake(bench);
        run_suites(bench, selection);
    }
#ifdef BENCH_OPENCL
    raw_opencl_release(bench);
#endif
    device_session_close(&bench->session);
    memset(&bench->session, 0, sizeof bench->session);
}

/* Runs the suites with the device that the library chooses, at the scale of the
 * fastest device. */
static void run_choice(struct bench *bench, const struct selection *selection,
                       uint32_t count)
{
    bench->device = TANDEM_ANY_DEVICE;
    bench->scale = SCALE_TINY;
    for (uint32_t device = 0; device < count; device++) {
        struct tandem_device_info info = {.struct_size = sizeof info};
        enum scale scale;

        if (tandem_device_describe(bench->context, device, &info) != TANDEM_OK)
            continue;
        scale = scale_of(selection, &info);
        bench->scale = scale > bench->scale ? scale : bench->scale;
    }
    snprintf(bench->device_text, sizeof bench->device_text, ANY_DEVICE_NAME);
    run_suites(bench, selection);
}

bool run_selection(struct bench *bench, const struct selection *selection)
{
    uint32_t count = 0, only = TANDEM_ANY_DEVICE;
    enum tandem_status status = tandem_device_count(bench->context, &count);
    bool any = selection->device == NULL ||
               strcmp(selection->device, ANY_DEVICE_NAME) == 0;

    if (status == TANDEM_OK && !any)
        status = tandem_device_find(bench->context, selection->device, &only);
    if (status != TANDEM_OK || count == 0) {
        fprintf(stderr, "tandem-bench: %s\n", tandem_last_error());
        return false;
    }
    for (uint32_t device = 0; device < count; device++)
        if (selection->device == NULL || only == device)
            run_device(bench, selection, device);
    if (any)
        run_choice(bench, selection, count);
    return true;
}
