/* SPDX-License-Identifier: Apache-2.0 */
/* The shared context and log messages; see runtime.h. */
#include <config.h>

#include "adapters/onnxruntime/runtime.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void runtime_init(struct runtime *runtime, const struct ort_api *api,
                  const struct OrtLogger *logger, uint32_t version,
                  const char *device)
{
    *runtime = (struct runtime){.api = api,
                                .ep_api = api->GetEpApi(),
                                .logger = logger,
                                .version = version,
                                .device = device};
    pthread_mutex_init(&runtime->mutex, NULL);
    pthread_mutex_init(&runtime->files.mutex, NULL);
}

void runtime_finish(struct runtime *runtime)
{
    tandem_context_destroy(runtime->context);
    runtime->context = NULL;
    pthread_mutex_destroy(&runtime->files.mutex);
    pthread_mutex_destroy(&runtime->mutex);
}

void device_label(struct tandem_context *context, uint32_t device,
                  char out[DEVICE_LABEL_BYTES])
{
    const char *backend;
    uint32_t number;

    snprintf(out, DEVICE_LABEL_BYTES, "?");
    if (tandem_device_name(context, device, &backend, &number) == TANDEM_OK)
        snprintf(out, DEVICE_LABEL_BYTES, "%.40s:%" PRIu32, backend, number);
}

void log_write(const struct runtime *runtime, const struct OrtLogger *logger,
               enum ort_logging_level level, const char *format, ...)
{
    char message[1024];
    struct OrtStatus *status;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    status = runtime->api->Logger_LogMessage(logger, level, message, __FILE__,
                                             __LINE__, "Tandem");
    if (status != NULL)
        runtime->api->ReleaseStatus(status);
}

/* Receives the messages of libtandem. */
static void context_log(void *user, uint32_t level, const char *message)
{
    const struct runtime *runtime = user;

    log_write(runtime, runtime->logger,
              level <= TANDEM_LOG_ERROR     ? ORT_LOG_ERROR
              : level <= TANDEM_LOG_WARNING ? ORT_LOG_WARNING
              : level <= TANDEM_LOG_INFO    ? ORT_LOG_INFO
                                            : ORT_LOG_VERBOSE,
              "%s", message);
}

enum tandem_status runtime_open(struct runtime *runtime)
{
    const struct tandem_context_options options = {
        .struct_size = sizeof(options),
        .device = runtime->device,
        .log = context_log,
        .log_user = runtime,
    };
    enum tandem_status status = TANDEM_OK;

    pthread_mutex_lock(&runtime->mutex);
    if (runtime->context == NULL)
        status = tandem_context_create(&options, &runtime->context);
    if (status == TANDEM_OK)
        runtime->sessions++;
    pthread_mutex_unlock(&runtime->mutex);
    return status;
}

void runtime_close(struct runtime *runtime)
{
    pthread_mutex_lock(&runtime->mutex);
    if (--runtime->sessions == 0) {
        tandem_context_destroy(runtime->context);
        runtime->context = NULL;
    }
    pthread_mutex_unlock(&runtime->mutex);
}
