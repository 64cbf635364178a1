/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --warm-cache, which makes each device compile the kernels
 * of all operators, so that programs find them in the caches of the driver and
 * the plugin.  With --system, the plugin's cache is a directory for all users.
 */
#include <config.h>

#include "device_job.h"
#include "kernel_list.h"

#include "../common/clock.h"
#include "../common/text_table.h"
#include "common/op_class.h"
#include "common/secure_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARM_LIMIT_S 3600u

/* ---- what is compiled ---- */

/* Shapes to compile kernels for.  Kernels of some operators depend on the
 * length of rows or on the extents.  The list has common lengths, and lengths
 * at which the plugin chooses another kernel.  Duplicates and unsupported
 * shapes are ignored. */
static const char *const flat_shapes[] = {"1048576", "16777216", "1024x1000",
                                          NULL};
static const char *const row_shapes[] = {
    "16777216",   "4096x10",   "4096x64",   "4096x128",  "4096x256",
    "4096x512",   "4096x768",  "4096x1000", "4096x1024", "1024x2048",
    "1024x4096",  "1024x8192", "512x16384", "512x32000", "64x131072",
    "16x1048576", NULL};
static const char *const gemm_shapes[] = {"16x16x16",       "64x64x64",
                                          "128x128x128",    "256x256x256",
                                          "512x512x512",    "1024x1024x1024",
                                          "2048x2048x2048", "1000x1000x1000",
                                          "1x1024x1024",    "1024x1x1024",
                                          "64x64x4096",     "64x1024x784",
                                          "16x64x64x64",    NULL};

static const char *const *shapes_of(const struct tandem_op_info *info)
{
    switch (op_class_get(info->op_class)->example_shape) {
    case OP_EXAMPLE_ROWS:
        return row_shapes;
    case OP_EXAMPLE_CUBE:
        return gemm_shapes;
    default:
        return flat_shapes;
    }
}

/* ---- the child's side ---- */

/* Adds a GEMM with and without bias and activation, with b and with b
 * transposed, as frameworks store weights. */
static void gemm_case_add(struct kernel_list *list, const char *name,
                          const char *shape)
{
    static const uint32_t ends[] = {KERNEL_PLAIN, KERNEL_BIAS,
                                    KERNEL_BIAS | KERNEL_RELU,
                                    KERNEL_BIAS | KERNEL_GELU};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        kernels_add(list, name, shape, ends[i]);
        kernels_add(list, name, shape, ends[i] | KERNEL_TRANSPOSED);
    }
}

static void operator_add(struct kernel_list *list,
                         const struct tandem_op_info *info)
{
    const char *const *shapes = shapes_of(info);

    for (size_t i = 0; shapes[i] != NULL; i++) {
        if (info->id == TANDEM_OP_GEMM) {
            gemm_case_add(list, info->name, shapes[i]);
            continue;
        }
        kernels_add(list, info->name, shapes[i], KERNEL_PLAIN);
        /* A matrix and a row, which is broadcast. */
        if (op_class_get(info->op_class)->scalars &&
            strchr(shapes[i], 'x') != NULL)
            kernels_add(list, info->name, shapes[i], KERNEL_REPEATED);
    }
}

static void operators_add(struct kernel_list *list, const char *only)
{
    for (uint32_t id = 1; id < TANDEM_OP_ID_END; id++) {
        const struct tandem_op_info *info = tandem_op_by_id(id);

        if (info != NULL && info->required != 0 &&
            (only == NULL || strcmp(only, info->name) == 0))
            operator_add(list, info);
    }
}

static void tell(void *link, double fraction, const char *name)
{
    child_progress(link, fraction, name);
}

static uint64_t kernels_built(struct device_session *session)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};

    return session->backend->memory_stats(session->device, &stats) == TANDEM_OK
               ? stats.cached_kernel_count
               : 0;
}

static void warm_lane(const struct device_job_request *request,
                      struct child_link *link, struct device_session *session)
{
    const uint64_t start = clock_now_ns();
    struct kernel_list list;

    kernels_start(&list, session);
    operators_add(&list, request->options->op);
    if (!kernels_await(&list, tell, link))
        child_fail(link, "%s", session->backend->last_error());
    else
        child_answer(
            link, json_pack("{s:s, s:I, s:I, s:f, s:O}", "device",
                            request->name, "operators", (json_int_t)list.count,
                            "kernels", (json_int_t)kernels_built(session),
                            "seconds", (double)(clock_now_ns() - start) / 1e9,
                            "failures", list.failures));
    kernels_finish(&list);
}

static void warm_body(void *argument, struct child_link *link)
{
    const struct device_job_request *request = argument;
    struct tandem_context *context;
    struct device_session session;

    if (!device_job_open(request, link, &context, &session))
        return;
    if ((session.info.caps & TANDEM_CAP_JIT_COMPILATION) != 0)
        warm_lane(request, link, &session);
    else
        child_answer(link, json_pack("{s:s, s:i, s:i, s:f, s:[]}", "device",
                                     request->name, "operators", 0, "kernels",
                                     0, "seconds", 0.0, "failures"));
    device_session_close(&session);
    tandem_context_destroy(context);
}

/* ---- the parent's side ---- */

/* Counts the programs in the directory for all users, and their bytes. */
static void programs_count(const char *path, json_int_t *out_count,
                           json_int_t *out_bytes)
{
    DIR *entries = opendir(path);
    const struct dirent *entry;
    struct stat status;

    *out_count = *out_bytes = 0;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (!probe_is_program(entry->d_name) ||
            fstatat(dirfd(entries), entry->d_name, &status,
                    AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        ++*out_count;
        *out_bytes += (json_int_t)status.st_size;
    }
    if (entries != NULL)
        closedir(entries);
}

static bool warm_print(const struct probe_options *options,
                       const json_t *device, json_t *result)
{
    const char *name = device_text(device, "name");
    const bool failed = json_object_get(result, "error") != NULL;
    const bool good =
        !failed && json_array_size(json_object_get(result, "failures")) == 0;

    if (options->json)
        return good;
    if (failed)
        printf("%s: FAILED: %s\n", name, device_text(result, "error"));
    else if (device_number(result, "operators") == 0)
        printf("%s: there is nothing to compile\n", name);
    else
        printf("%s: %.0f kernel%s there, in %.1f s\n", name,
               device_number(result, "kernels"),
               device_number(result, "kernels") > 1 ? "s are" : " is",
               device_number(result, "seconds"));
    probe_print_texts("  ", json_object_get(result, "failures"), "\n  ", "\n");
    return good;
}

/* Creates the directory for all users if it is missing, and checks it. */
static bool system_check(const char *path)
{
    char why[SECURE_WHY_BYTES];
    struct stat status;
    const int directory = secure_directory_open(path, SECURE_PUBLISH, why);
    bool good = directory >= 0;

    if (!good)
        probe_complain("%s cannot be used: %s", path,
                       why[0] != '\0' ? why : "it cannot be made");
    else if (faccessat(directory, ".", W_OK, AT_EACCESS) != 0) {
        probe_complain("%s cannot be written: %s (--system is root's)", path,
                       strerror(errno));
        good = false;
    } else if (fstat(directory, &status) == 0 &&
               (status.st_mode & S_IXOTH) == 0) {
        probe_complain("warning: %s is not open to other users", path);
    }
    if (directory >= 0)
        close(directory);
    return good;
}

static void system_print(const struct probe_options *options)
{
    char text[TEXT_BYTES];
    json_int_t count, bytes;

    programs_count(options->system, &count, &bytes);
    printf("%s: %lld compiled program%s for all users (%s)\n", options->system,
           (long long)count, count == 1 ? "" : "s",
           text_bytes(text, (double)bytes));
}

int probe_warm_cache(const struct probe_options *options)
{
    const struct device_job job = {
        .verb = "warm",
        .work = "the compilation of the kernels",
        .limit_s = WARM_LIMIT_S,
        .run = warm_body,
        .on_result = warm_print,
    };
    int status;

    if (options->system != NULL && !system_check(options->system))
        return PROBE_FAILED;
    status = device_jobs_run(options, &job);
    if (options->system != NULL && !options->json && status != PROBE_NO_DEVICE)
        system_print(options);
    return status;
}
