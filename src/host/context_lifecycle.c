/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys contexts.  Any thread may call the public functions. */
#include <config.h>

#include "common/cpu_info.h"
#include "common/environment.h"
#include "common/last_error.h"
#include "host/run/prepared_cache.h"
#include "host/context/context.h"
#include "host/context/directories.h"
#include "host/device/device.h"
#include "host/device/device_name.h"
#include "host/device/stream.h"
#include "host/loader/loader.h"
#include "host/tensor/tensor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void locks_make(struct tandem_context *context)
{
    pthread_mutex_init(&context->enumeration_mutex, NULL);
    pthread_mutex_init(&context->mutex, NULL);
}

static void cache_directory_find(struct tandem_context *context)
{
    char path[PATH_BYTES], why[SECURE_WHY_BYTES];
    int directory;

    if (!environment_cache(path, sizeof(path)))
        return;
    context->cache_path = strdup(path);
    directory = directory_open_writable(path, why);
    context->cache_usable = context->cache_path != NULL && directory >= 0;
    if (directory >= 0)
        close(directory);
    else
        log_message(&context->log, TANDEM_LOG_WARNING,
                    "compiled programs and profiles are not cached in %s: %s; "
                    "XDG_CACHE_HOME names another directory",
                    path, why);
}

/* Frees the context, even if it is only partly initialized. */
static void context_free(struct tandem_context *context)
{
    for (size_t i = 0; i < context->load_error_count; i++)
        free(context->load_errors[i]);
    free(context->load_errors);
    prepared_cache_free(context, false);
    free(context->backends);
    free(context->cache_path);
    context_options_free(context);
    context->log.function = NULL; /* a hung device's plugin can still log */
    if (context->generation == fork_generation) {
        pthread_mutex_destroy(&context->enumeration_mutex);
        pthread_mutex_destroy(&context->mutex);
    }
    handle_free(&context_pool, context);
}

enum tandem_status
tandem_context_create(const struct tandem_context_options *options,
                      struct tandem_context **out_context)
{
    static uint32_t serials;
    struct tandem_context_options own;
    struct tandem_context *context;
    enum tandem_status status;

    if (out_context == NULL)
        return argument_error("out_context: NULL");
    *out_context = NULL;
    status = context_options_read(options, &own);
    if (status != TANDEM_OK)
        return status;
    if (!fork_watch() || (context = handle_new(&context_pool)) == NULL)
        return memory_error("no memory for a context");
    context->generation = fork_generation;
    context->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
    context->forced = TANDEM_ANY_DEVICE;
    locks_make(context);
    status = context_options_apply(context, &own);
    context->forced_is_named = context->forced_name != NULL;
    if (status == TANDEM_OK) {
        cache_directory_find(context);
        processor_name(context->host_cpu, sizeof(context->host_cpu));
        status = plugins_load(context, own.plugin_path);
    }
    if (status == TANDEM_OK)
        status = prepared_cache_make(context);
    if (status == TANDEM_OK)
        status = forced_device_check(context);
    if (status != TANDEM_OK) {
        context_free(context);
        return status;
    }
    *out_context = context;
    return TANDEM_OK;
}

void tandem_context_destroy(struct tandem_context *context)
{
    if (!handle_live(&context_pool, context))
        return;
    /* After a fork, the child must not touch the parent's devices, because the
     * state of their drivers is undefined in the child. */
    if (context->generation == fork_generation) {
        const struct float_env host = float_env_enter();

        for (uint32_t i = 0; i < context->device_count; i++)
            wait_idle(context->devices[i], HANG_DEADLINE);
        tensors_free(context);
        prepared_cache_free(context, true);
        for (uint32_t i = context->device_count; i-- > 0;)
            device_destroy(context->devices[i]);
        float_env_leave(host);
    }
    context_free(context);
}
