/* SPDX-License-Identifier: Apache-2.0 */
/* The shared context, log messages and weights; see runtime.h. */
#include <config.h>

#include "adapters/onnxruntime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Vector loads of the CPU plugin want their cache line. */
#define WEIGHT_ALIGNMENT 64u

void runtime_init(struct runtime *runtime, const struct ort_api *api,
                  const struct OrtLogger *logger, uint32_t version)
{
    *runtime = (struct runtime){.api = api,
                                .ep_api = api->GetEpApi(),
                                .logger = logger,
                                .version = version};
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

/* ---- weights ---- */

/* Multiplies by the odd constant of SplitMix64 (Steele, Lea, Flood 2014) and
 * folds the high bits, eight bytes at a time. */
static uint64_t content_hash(const void *content, uint64_t bytes)
{
    const unsigned char *at = content;
    uint64_t hash = bytes;

    while (bytes > 0) {
        const size_t part = bytes < 8 ? (size_t)bytes : 8;
        uint64_t word = 0;

        memcpy(&word, at, part);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
        at += part;
        bytes -= part;
    }
    return hash;
}

static void weight_free(struct weight *weight)
{
    tandem_tensor_destroy(weight->tensor);
    if (weight->file == NULL)
        free((void *)weight->memory);
    mapped_file_release(weight->file);
    free(weight);
}

/* Returns a copy of the content, or NULL if memory is exhausted. */
static const void *content_copy(const void *content, uint64_t bytes)
{
    /* aligned_alloc wants a multiple of the alignment. */
    const uint64_t rounded = (bytes / WEIGHT_ALIGNMENT + 1) * WEIGHT_ALIGNMENT;
    void *memory = aligned_alloc(WEIGHT_ALIGNMENT, rounded);

    if (memory != NULL)
        memcpy(memory, content, bytes);
    return memory;
}

static enum tandem_status weight_create(struct runtime *runtime, uint32_t dtype,
                                        uint64_t bytes, const void *content,
                                        struct mapped_file *file,
                                        struct weight **out)
{
    struct weight *weight = calloc(1, sizeof(*weight));
    const int64_t elements = (int64_t)(bytes / TANDEM_DTYPE_BYTES(dtype));
    enum tandem_status status;

    *out = NULL;
    if (weight == NULL)
        return TANDEM_OUT_OF_MEMORY;
    weight->dtype = dtype;
    weight->bytes = bytes;
    weight->memory = file != NULL ? content : content_copy(content, bytes);
    if (weight->memory == NULL) {
        weight_free(weight);
        return TANDEM_OUT_OF_MEMORY;
    }
    weight->file = file;
    mapped_file_retain(file);
    status = tandem_tensor_wrap(runtime->context, (void *)weight->memory, dtype,
                                1, &elements, NULL, TANDEM_TENSOR_READ_ONLY,
                                &weight->tensor);
    if (status != TANDEM_OK) {
        weight_free(weight);
        return status;
    }
    *out = weight;
    return TANDEM_OK;
}

/* Returns true if the weight has this content.  All of a file is mapped at one
 * address, so the content of a file is not compared, nor read. */
static bool weight_matches(const struct weight *weight, uint64_t hash,
                           uint32_t dtype, uint64_t bytes, const void *content,
                           const struct mapped_file *file)
{
    return weight->hash == hash && weight->dtype == dtype &&
           weight->bytes == bytes && weight->file == file &&
           (file != NULL ? weight->memory == content
                         : memcmp(weight->memory, content, bytes) == 0);
}

enum tandem_status weight_acquire(struct runtime *runtime, uint32_t dtype,
                                  uint64_t bytes, const void *content,
                                  struct mapped_file *file,
                                  struct weight **out)
{
    const uint64_t hash = file != NULL
                              ? content_hash(&content, sizeof(content))
                              : content_hash(content, bytes);
    struct weight **bucket = &runtime->weights[hash % WEIGHT_BUCKETS], *weight;
    enum tandem_status status = TANDEM_OK;

    pthread_mutex_lock(&runtime->mutex);
    for (weight = *bucket; weight != NULL; weight = weight->next) {
        if (weight_matches(weight, hash, dtype, bytes, content, file))
            break;
    }
    if (weight == NULL) {
        status = weight_create(runtime, dtype, bytes, content, file, &weight);
        if (status == TANDEM_OK) {
            weight->hash = hash;
            weight->next = *bucket;
            *bucket = weight;
        }
    }
    if (weight != NULL)
        weight->users++;
    pthread_mutex_unlock(&runtime->mutex);
    *out = weight;
    return status;
}

void weight_release(struct runtime *runtime, struct weight *weight)
{
    struct weight **link;

    if (weight == NULL)
        return;
    pthread_mutex_lock(&runtime->mutex);
    if (--weight->users == 0) {
        link = &runtime->weights[weight->hash % WEIGHT_BUCKETS];
        while (*link != weight)
            link = &(*link)->next;
        *link = weight->next;
        weight_free(weight);
    }
    pthread_mutex_unlock(&runtime->mutex);
}
