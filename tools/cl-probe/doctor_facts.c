/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the facts that need a driver, in child processes; see doctor.h. */
#include <config.h>

#include "../common/statistics.h"
#include "child_process.h"
#include "device_job.h"
#include "doctor.h"
#include "representative_op.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOADER_LIMIT_S 10u
#define OPEN_LIMIT_S 60u
#define KERNEL_LIMIT_S 10u
/* Number of readings of a GPU's load, and the time between them. */
#define LOAD_READS 3
#define LOAD_PAUSE_NS 100000000
#define LATENCY_SAMPLES 33

/* ---- the OpenCL loader ---- */

/* Parameters of clGetICDLoaderInfoOCLICD, which ocl-icd has since 2.0.2 and
 * Khronos' loader since v2023.02.06 (extension cl_loader_info). */
#define LOADER_VERSION 2u
#define LOADER_NAME 3u

typedef int32_t (*loader_info_fn)(uint32_t parameter, size_t bytes, void *value,
                                  size_t *out_bytes);

static json_t *loader_text(loader_info_fn loader_info, uint32_t parameter)
{
    char text[256] = "";

    if (loader_info == NULL ||
        loader_info(parameter, sizeof text, text, NULL) != 0)
        return json_string("");
    text[sizeof text - 1] = '\0';
    return child_text("%s", text);
}

/* Makes the loader find no driver, because a driver could crash or hang.  The
 * directory has no .icd files: its names are numbers. */
static void drivers_exclude(void)
{
    setenv("OCL_ICD_VENDORS", "/proc/self/fdinfo/", 1);
    unsetenv("OCL_ICD_FILENAMES");
}

static void loader_body(void *argument, struct child_link *link)
{
    void *(*address)(const char *name) = NULL;
    loader_info_fn loader_info = NULL;
    struct link_map *map = NULL;
    void *library;

    (void)argument;
    drivers_exclude();
    library = dlopen("libOpenCL.so.1", RTLD_LAZY);
    if (library == NULL) {
        child_answer(link,
                     json_pack("{s:o}", "error", child_text("%s", dlerror())));
        return;
    }
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    *(void **)&address = dlsym(library, "clGetExtensionFunctionAddress");
    if (address != NULL)
        *(void **)&loader_info = address("clGetICDLoaderInfoOCLICD");
    /* The functions are the first that the versions of OpenCL added. */
    child_answer(
        link,
        json_pack(
            "{s:o, s:o, s:o, s:b, s:b}", "library",
            child_text("%s", map != NULL ? map->l_name : "libOpenCL.so.1"),
            "name", loader_text(loader_info, LOADER_NAME), "version",
            loader_text(loader_info, LOADER_VERSION), "has_opencl_1_2",
            dlsym(library, "clEnqueueFillBuffer") != NULL, "has_opencl_3_0",
            dlsym(library, "clSetContextDestructorCallback") != NULL));
}

/* Runs the function in a child process and returns its answer, or { "error" }.
 */
static json_t *child_ask(const struct probe_options *options, child_fn body,
                         void *argument, unsigned limit_s)
{
    struct child_outcome outcome;
    json_t *answer;

    child_run(body, argument, options->timeout_s ? options->timeout_s : limit_s,
              NULL, &outcome);
    answer =
        outcome.result != NULL
            ? json_incref(outcome.result)
            : json_pack("{s:o}", "error", child_text("%s", outcome.message));
    child_outcome_destroy(&outcome);
    return answer;
}

json_t *doctor_loader_find(const struct probe_options *options)
{
    return child_ask(options, loader_body, NULL, LOADER_LIMIT_S);
}

/* ---- the kernel ---- */

const char *const doctor_device_files[] = {
    "/dev/dri/renderD*", "/dev/kfd",        "/dev/nvidia[0-9]*",
    "/dev/nvidiactl",    "/dev/nvidia-uvm", NULL};

/* Calls `read` with each path that matches the pattern below `root`. */
static void paths_read(const char *root, const char *pattern, json_t *out,
                       void (*read)(const char *path, json_t *out))
{
    char path[PATH_MAX];
    glob_t files;

    snprintf(path, sizeof path, "%s%s", root, pattern);
    if (glob(path, 0, NULL, &files) != 0)
        return;
    for (size_t i = 0; i < files.gl_pathc; i++)
        read(files.gl_pathv[i], out);
    globfree(&files);
}

static void file_open(const char *path, json_t *out)
{
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);

    if (file >= 0)
        close(file);
    else
        json_object_set_new(out, path, json_string(strerror(errno)));
}

/* Adds the smallest of a few readings, because the checks before this one used
 * the GPU, too. */
static void load_read(const char *path, json_t *out)
{
    const struct timespec pause = {0, LOAD_PAUSE_NS};
    int smallest = INT_MAX;

    for (int i = 0; i < LOAD_READS; i++) {
        FILE *file = fopen(path, "re");
        int percent = 0;
        const bool good = file != NULL && fscanf(file, "%d", &percent) == 1;

        if (file != NULL)
            fclose(file);
        if (!good)
            return;
        smallest = percent < smallest ? percent : smallest;
        nanosleep(&pause, NULL);
    }
    json_object_set_new(out, path, json_integer(smallest));
}

static void kernel_body(void *argument, struct child_link *link)
{
    const char *root = argument;
    json_t *unopened = json_object(), *busy_percent = json_object();

    for (size_t i = 0; doctor_device_files[i] != NULL; i++)
        paths_read(root, doctor_device_files[i], unopened, file_open);
    paths_read(root, "/sys/class/drm/card*/device/gpu_busy_percent",
               busy_percent, load_read);
    child_answer(link, json_pack("{s:o, s:o}", "unopened", unopened,
                                 "busy_percent", busy_percent));
}

json_t *doctor_kernel_ask(const struct probe_options *options, const char *root)
{
    return child_ask(options, kernel_body, (void *)root, KERNEL_LIMIT_S);
}

/* ---- devices ---- */

/* Maximum number of warnings that are kept. */
#define MAX_WARNINGS 32u

/* Guards the list of warnings, because any thread may log. */
static pthread_mutex_t warnings_mutex = PTHREAD_MUTEX_INITIALIZER;

static void warning_add(void *user, enum tandem_log_level level,
                        const char *message)
{
    json_t *warnings = user;

    pthread_mutex_lock(&warnings_mutex);
    if (level <= TANDEM_LOG_WARNING && json_array_size(warnings) < MAX_WARNINGS)
        json_array_append_new(warnings, child_text("%s", message));
    pthread_mutex_unlock(&warnings_mutex);
}

static json_t *warnings_copy(json_t *warnings)
{
    json_t *copy;

    pthread_mutex_lock(&warnings_mutex);
    copy = json_deep_copy(warnings);
    pthread_mutex_unlock(&warnings_mutex);
    return copy;
}

/* Measures the median time of a small operator with the wait for it, as
 * --calibrate does for the scalars "launch" and "sync" of a profile. */
static enum tandem_status latency_measure(struct device_session *session,
                                          double *out_ns)
{
    double samples[LATENCY_SAMPLES];
    struct resident_op work;
    enum tandem_status status =
        representative_op_create_smallest(session, &work);
    uint64_t ns;
    uint32_t count;

    *out_ns = 0;
    if (status == TANDEM_UNSUPPORTED)
        return TANDEM_OK;
    if (status != TANDEM_OK)
        return status;
    status = resident_op_stream(&work, 1, &ns); /* compiles */
    for (count = 0; count < LATENCY_SAMPLES && status == TANDEM_OK; count++) {
        status = resident_op_stream(&work, 1, &ns);
        samples[count] = (double)ns;
    }
    if (status == TANDEM_OK)
        *out_ns = quantile(samples, count, 0.5);
    resident_op_destroy(&work);
    return status;
}

static void open_body(void *argument, struct child_link *link)
{
    const struct device_job_request *request = argument;
    json_t *warnings = json_array();
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .log = warning_add,
        .log_user = warnings,
        .log_level = TANDEM_LOG_WARNING,
        .backends = request->backend,
    };
    struct tandem_context *context = NULL;
    struct device_session session = {.backend = NULL};
    double latency_ns = 0;
    enum tandem_status status = tandem_context_create(&options, &context);

    if (status == TANDEM_OK)
        status = device_session_open(&session, context, request->device);
    if (status == TANDEM_OK && !request->processor)
        status = latency_measure(&session, &latency_ns);
    if (status == TANDEM_OK)
        child_answer(link, json_pack("{s:o, s:f}", "warnings",
                                     warnings_copy(warnings), "latency_ns",
                                     latency_ns));
    else
        child_fail(link, "%s", tandem_last_error());
    device_session_close(&session);
    tandem_context_destroy(context);
    json_decref(warnings);
}

json_t *doctor_devices_open(const struct probe_options *options,
                            const json_t *found)
{
    const json_t *devices = json_object_get(found, "devices");
    json_t *opened = json_object();

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        struct device_job_request request =
            device_job_request_make(options, device);

        if (json_is_null(json_object_get(device, "duplicate_of")))
            json_object_set_new(
                opened, request.name,
                child_ask(options, open_body, &request, OPEN_LIMIT_S));
    }
    return opened;
}
