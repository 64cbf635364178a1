/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes devices. Devices on the same hardware share one cl_context,
 * because CLBlast compiles its kernels once for each context. */
#include "opencl/device_lifecycle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/program/kernel_variants.h"
#include "common/decimal.h"
#include "common/prepared_call.h"
#include "common/struct_size.h"
#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/device/driver_blocklist_check.h"
#include "opencl/device/quirks.h"
#include "opencl/device/tuning_section.h"
#include "opencl/launch/clblast.h"
#include "opencl/launch/prepared.h"
#include "opencl/memory/buffer.h"
#include "opencl/memory/deferred_release.h"
#include "opencl/memory/packed_copy.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/program/program_cache.h"
#include "opencl/queue/event.h"
#include "opencl/queue/event_callback.h"
#include "opencl/queue/stream_lifecycle.h"
#include "opencl/transfer/transfer_path.h"

/* Default value of the option blocking_timeout_ms of device_open. */
#define DEFAULT_BLOCKING_TIMEOUT_MS 300000u

/* Guards total_open_count, and the members `context` and `open_count` of each
 * platform_device. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t total_open_count;

/* ---- contexts ---- */

static void context_release(struct tandem_device *device)
{
    struct platform_device *hardware =
        (struct platform_device *)device->hardware;
    if (device->utility != NULL)
        clReleaseCommandQueue(device->utility);
    pthread_mutex_lock(&mutex);
    hardware->open_count -= !device->is_abandoned;
    total_open_count--;
    /* The next open must not share the context of a lost device. */
    if (hardware->context != NULL &&
        (hardware->open_count == 0 || (hardware->context == device->context &&
                                       atomic_load(&device->lost)))) {
        clReleaseContext(hardware->context);
        hardware->context = NULL;
    }
    if (total_open_count == 0)
        clblast_clear_cache();
    clReleaseContext(device->context);
    pthread_mutex_unlock(&mutex);
}

/* Sets the context of the device: `native`, or if this is NULL, the context
 * that the open devices of the hardware share. */
static enum tandem_status context_acquire(struct tandem_device *device,
                                          cl_context native)
{
    struct platform_device *hardware =
        (struct platform_device *)device->hardware;
    cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, (cl_context_properties)hardware->platform, 0};
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (native == NULL && hardware->context == NULL)
        hardware->context =
            clCreateContext(properties, 1, &hardware->id, NULL, NULL, &code);
    cl_context context = native != NULL ? native : hardware->context;
    /* The device and the hardware each hold a reference to the context. */
    if (context != NULL)
        code = clRetainContext(context);
    if (context != NULL && code == CL_SUCCESS) {
        device->context = context;
        hardware->open_count++;
        total_open_count++;
    } else if (hardware->context != NULL && hardware->open_count == 0) {
        clReleaseContext(hardware->context);
        hardware->context = NULL;
    }
    pthread_mutex_unlock(&mutex);
    if (device->context != NULL)
        device->utility =
            clCreateCommandQueue(device->context, hardware->id, 0, &code);
    if (device->utility != NULL)
        return TANDEM_OK;
    status_from_cl(device, code, "clCreateContext or clCreateCommandQueue");
    /* The next open must not share a context that cannot create queues. */
    atomic_store(&device->lost, true);
    if (device->context != NULL)
        context_release(device);
    char why[256];
    snprintf(why, sizeof(why), "%s", last_error_get());
    return last_error_set(
        TANDEM_NO_DEVICE,
        "open: the driver cannot create a context or queue: %s", why);
}

/* ---- open and close ---- */

/* Stores a value of the tuning profile.  Accepts unknown keys, because other
 * parts of the plugin or a later version can have written them. */
static bool tuning_value_parse(void *user, const char *key, const char *value)
{
    struct tandem_device *device = user;
    if (strncmp(key, "gemm.", 5) == 0)
        return gemm_cost_model_parse(&device->gemm_selector.cost_model, key + 5,
                                     value);
    if (strcmp(key, "sm90a_self_test") == 0)
        return sm90a_self_test_result_parse(
            value, sm90a_self_test_stamp(device->hardware),
            &device->sm90a_self_test);
    return true;
}

/* Applies the tuning profile.  Invalid values only cause a warning, because a
 * profile affects only speed. */
static void tuning_section_apply(struct tandem_device *device, const char *text)
{
    char error[256];
    if (!tuning_section_read(text, tuning_value_parse, device, error,
                             sizeof(error)))
        device_log(device, TANDEM_LOG_WARNING,
                   "%s: values of the profile are ignored: %s",
                   device->hardware->info.name, error);
}

/* Enables the sm_90a programs if the profile says that they passed the
 * self-test with this driver.  Otherwise logs why they are not used. */
static void sm90a_self_test_result_apply(struct tandem_device *device)
{
    const char *why = sm90a_self_test_failure_reason(device->sm90a_self_test);
    if (!device->hardware->wgmma || device->self_test_only)
        return;
    if (why == NULL)
        gemm_selector_enable_sm90a(&device->gemm_selector);
    else
        device_log(device, TANDEM_LOG_INFO, "%s: GEMMs do not use wgmma: %s",
                   device->hardware->info.name, why);
}

/* Values of device_open options that struct tandem_device does not store. */
struct open_values {
    uint64_t memory_limit_bytes; /* 0 means no limit */
    uint64_t thread_count;       /* 0 means the default */
    uint64_t blocking_timeout_ms;
    uint64_t compile_processes, forced_compile_processes;
    const char *tuning; /* JSON text; NULL means no profile */
};

/* Parses a device_open option whose value is a number, a path or a flag.  An
 * empty path means none, "1" means true.  Returns NOT_READY for other
 * options. */
static enum tandem_status plain_option_parse(struct tandem_device *device,
                                             struct open_values *values,
                                             const char *key, const char *value)
{
    const struct {
        const char *key;
        uint64_t *number;
        bool *flag;
        char **path;
    } keys[] = {
        {"memory_limit_bytes", &values->memory_limit_bytes, NULL, NULL},
        {"num_threads", &values->thread_count, NULL, NULL},
        {"cache_limit_bytes", &device->cache.limit_bytes, NULL, NULL},
        {"blocking_timeout_ms", &values->blocking_timeout_ms, NULL, NULL},
        {"compile_processes", &values->compile_processes, NULL, NULL},
        {"test.compile_processes", &values->forced_compile_processes, NULL,
         NULL},
        {"cache_dir", NULL, NULL, &device->cache.path},
        {"system_cache_dir", NULL, NULL, &device->cache.system_path},
        {"cache_world_readable", NULL, &device->cache.world_readable, NULL},
        {"deterministic", NULL, &device->gemm_selector.deterministic, NULL},
        {"self_test_only", NULL, &device->self_test_only, NULL},
        {"test.force_program_cache", NULL, &device->cache.is_forced, NULL},
        {"test.packed_limit_bytes", &device->pool.packed_limit_bytes, NULL,
         NULL},
        {"test.exact_block_size", NULL, &device->pool.exact_block_size, NULL},
        {"test.device_scope_visibility", NULL,
         &device->has_device_scope_visibility, NULL}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(key, keys[i].key) != 0)
            continue;
        if (keys[i].number != NULL && !decimal_read(value, keys[i].number))
            return argument_error("open: %s is \"%.40s\"; expected a number",
                                  key, value);
        if (keys[i].flag != NULL)
            *keys[i].flag = strcmp(value, "1") == 0;
        if (keys[i].path != NULL) {
            free(*keys[i].path);
            *keys[i].path = value[0] != '\0' ? strdup(value) : NULL;
        }
        return TANDEM_OK;
    }
    return TANDEM_NOT_READY;
}

/* docs/kernels.md and extensions.h describe the first four keys. Others:
 *   test.compile_processes   number of compile processes, even on few CPUs
 *   test.compile_lock_timeout_ms  time limit of the lock of PoCL's compilers
 *   test.exact_block_size    "1": blocks have exactly the size of a buffer
 *   test.device_scope_visibility  "1": the last work-group of a reduction
 *                            combines the results of all */
static const char *const test_keys[] = {"test.gemm_kernel",
                                        "test.packed_limit_bytes",
                                        "test.transfer_path",
                                        "test.force_program_cache",
                                        "test.compile_processes",
                                        "test.compile_lock_timeout_ms",
                                        "test.exact_block_size",
                                        "test.device_scope_visibility",
                                        NULL};
const struct tandem_test_extension test_extension = {sizeof(test_extension),
                                                     test_keys};

/* Returns true if the key begins with "test." and test_keys lacks it. */
static bool test_key_is_unknown(const char *key)
{
    if (strncmp(key, "test.", 5) != 0)
        return false;
    for (const char *const *known = test_keys; *known != NULL; known++)
        if (strcmp(key, *known) == 0)
            return false;
    return true;
}

/* Parses a device_open option.  Ignores unknown keys. */
static enum tandem_status option_parse(struct tandem_device *device,
                                       struct open_values *values,
                                       const char *key, const char *value)
{
    if (test_key_is_unknown(key))
        return TANDEM_OK;
    enum tandem_status status = plain_option_parse(device, values, key, value);
    if (status != TANDEM_NOT_READY)
        return status;
    if (strcmp(key, "tuning") == 0)
        values->tuning = value;
    if (strcmp(key, "test.compile_lock_timeout_ms") == 0)
        device->cache.compile_lock_timeout_ms = (uint32_t)atoi(value);
    if (strcmp(key, "test.transfer_path") == 0 &&
        !transfer_path_force(device, value))
        return argument_error("open: test.transfer_path is \"%.40s\"; expected "
                              "driver or ring",
                              value);
    if (strcmp(key, "test.gemm_kernel") == 0 &&
        !gemm_selector_force(&device->gemm_selector, value))
        return argument_error(
            "open: test.gemm_kernel is \"%.40s\"; expected clblast or a "
            "kernel such as simt-128x128 or gemv-1, with [:SPLITS[:TILES]]",
            value);
    return TANDEM_OK;
}

static enum tandem_status read_options(struct tandem_device *device,
                                       const struct tandem_open_options *from,
                                       struct open_values *values)
{
    enum tandem_status status = open_options_check(from);
    if (from == NULL || status != TANDEM_OK)
        return status;
    device->log = from->log;
    device->log_user = from->log_user;
    for (uint32_t i = 0; i < from->count && status == TANDEM_OK; i++)
        status = option_parse(device, values, from->keys[i], from->values[i]);
    if (status == TANDEM_OK && values->tuning != NULL &&
        !device->gemm_selector.deterministic)
        tuning_section_apply(device, values->tuning);
    if (status == TANDEM_OK)
        sm90a_self_test_result_apply(device);
    return status;
}

/* Frees the device. device_close calls this function unless a build is still
 * running.  In that case, the last build thread calls this function. */
static void device_free(struct tandem_device *device)
{
    programs_free(device);
    compile_pool_free(device);
    context_release(device);
    pthread_mutex_destroy(&device->pool.mutex);
    pthread_mutex_destroy(&device->mutex);
    program_cache_close(device);
    handle_free(&device_handles, device);
}

static const struct program_callbacks program_callbacks = {
    .clblast_compile = clblast_warm, .device_free = device_free};

/* Hides a device whose work or build does not complete.  The handle becomes
 * invalid, and the host's log callback is not called again. */
static void device_hide(struct tandem_device *device, const char *what)
{
    device_log(device, TANDEM_LOG_ERROR,
               "%s: %s does not complete: the objects that it uses are kept",
               device->hardware->info.name, what);
    device->log = NULL;
    handle_hide(device);
}

/* Waits up to limit_ns for commands, releases memory and frees the device.  If
 * commands can still be running, returns false, and the device keeps the memory
 * that these commands use.  If the driver cannot tell whether commands run, it
 * gets back the device memory, which it keeps until no command uses it. */
static bool device_release(struct tandem_device *device, uint64_t limit_ns)
{
    enum tandem_status status = deferred_release_finish(device, limit_ns);
    if (status == TANDEM_OK) {
        pinned_finish(device);
        status = deferred_release_finish(device, limit_ns);
    }
    if (status != TANDEM_NOT_READY) {
        events_finish(device);
        pool_finish(device, status == TANDEM_OK);
    }
    if (status != TANDEM_OK)
        return false;
    pthread_mutex_lock(&device->programs.mutex);
    bool is_building = device->programs.thread_count != 0;
    if (is_building) {
        device_hide(device, "a build");
        device->programs.last_thread_frees_device = true;
    }
    pthread_mutex_unlock(&device->programs.mutex);
    if (!is_building)
        device_free(device);
    return true;
}

/* Closed devices whose commands can still be running.  `mutex` guards the
 * list.  Each open and each close tries to free these devices. */
static struct tandem_device *first_abandoned;

static void abandoned_add(struct tandem_device *device)
{
    pthread_mutex_lock(&mutex);
    device->next = first_abandoned;
    first_abandoned = device;
    pthread_mutex_unlock(&mutex);
}

static void abandoned_release(void)
{
    pthread_mutex_lock(&mutex);
    struct tandem_device *list = first_abandoned;
    first_abandoned = NULL;
    pthread_mutex_unlock(&mutex);
    while (list != NULL) {
        struct tandem_device *device = list;
        list = device->next;
        if (!device_release(device, 0))
            abandoned_add(device);
    }
}

enum tandem_status device_open_in(const struct platform_device *hardware,
                                  cl_context native,
                                  const struct tandem_open_options *options,
                                  struct tandem_device **out_device)
{
    struct open_values values = {.blocking_timeout_ms =
                                     DEFAULT_BLOCKING_TIMEOUT_MS,
                                 .compile_processes = MAX_COMPILE_PROCESSES};
    *out_device = NULL;
    if (fork_detected())
        return last_error_set(TANDEM_DEVICE_LOST,
                              "open: OpenCL was used before this process was "
                              "forked and does not work here");
    abandoned_release();
    struct tandem_device *device = handle_new(&device_handles);
    if (device == NULL)
        return memory_error("open: out of host memory");
    device->hardware = hardware;
    device->has_device_scope_visibility = hardware->has_device_scope_visibility;
    program_cache_init(&device->cache);
    device->pool.packed_limit_bytes =
        hardware->info.memory_bytes / PACKED_COPIES_MEMORY_DIVISOR;
    gemm_selector_init(&device->gemm_selector, hardware);
    enum tandem_status status = read_options(device, options, &values);
    if (values.blocking_timeout_ms < UINT64_MAX / 1000000u)
        device->blocking_timeout_ns = values.blocking_timeout_ms * 1000000u;
    if (status == TANDEM_OK)
        status = context_acquire(device, native);
    if (status != TANDEM_OK) {
        program_cache_close(device);
        handle_free(&device_handles, device);
        return status;
    }
    program_cache_open(device);
    if (driver_blocklist_warning()[0] != '\0')
        device_log(device, TANDEM_LOG_WARNING, "%s",
                   driver_blocklist_warning());
    device->id = device_id_new();
    gemm_calls_init(&device->gemm_calls, &gemm_functions);
    pthread_mutex_init(&device->mutex, NULL);
    pool_start(&device->pool, values.memory_limit_bytes);
    pthread_mutex_init(&device->copy_mutex, NULL);
    copy_threads_start(&device->copy_threads, values.thread_count);
    /* The device memory of compile processes cannot be limited. */
    compile_pool_init(
        device, values.memory_limit_bytes == 0 ? values.compile_processes : 0,
        values.forced_compile_processes);
    programs_init(device, &program_callbacks);
    *out_device = device;
    return TANDEM_OK;
}

enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device)
{
    *out_device = NULL;
    /* In a fork, the search for devices would call OpenCL. */
    const struct platform_device *hardware =
        fork_detected() ? NULL : opencl_device_get(index);
    if (hardware == NULL && !fork_detected())
        return TANDEM_NO_DEVICE;
    return device_open_in(hardware, NULL, options, out_device);
}

/* Detaches the device from its hardware, so that the next open creates a new
 * context, and keeps the device until its commands have ended. */
static void device_abandon(struct tandem_device *device)
{
    struct platform_device *hardware =
        (struct platform_device *)device->hardware;
    compile_pool_end_idle(device);
    pthread_mutex_lock(&mutex);
    device->is_abandoned = true;
    hardware->open_count--;
    if (hardware->context == device->context) {
        clReleaseContext(hardware->context);
        hardware->context = NULL;
    }
    pthread_mutex_unlock(&mutex);
    atomic_store(&device->lost, true);
    device_hide(device, "work");
    abandoned_add(device);
}

void device_close(struct tandem_device *device)
{
    if (!handle_live(&device_handles, device) || fork_detected())
        return;
    abandoned_release();
    build_threads_stop(device);
    while (device->streams != NULL)
        stream_destroy(device->streams);
    event_callbacks_finish(device);
    gemm_calls_finish(&device->gemm_calls);
    copy_threads_finish(&device->copy_threads);
    pthread_mutex_destroy(&device->copy_mutex);
    uint64_t limit_ns = device_timeout_ns(device);
    if (atomic_load(&device->lost) && limit_ns > HEALTH_CHECK_TIMEOUT_NS)
        limit_ns = HEALTH_CHECK_TIMEOUT_NS;
    if (!device_release(device, limit_ns))
        device_abandon(device);
}
