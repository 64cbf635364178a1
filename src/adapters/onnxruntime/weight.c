/* SPDX-License-Identifier: Apache-2.0 */
/* The table of weights; see weight.h. */
#include <config.h>

#include "adapters/onnxruntime/weight.h"

#include <stdlib.h>
#include <string.h>

/* Vector loads of the CPU plugin want their cache line. */
#define WEIGHT_ALIGNMENT 64u

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

void *weight_allocate(uint64_t bytes)
{
    /* aligned_alloc wants a multiple of the alignment. */
    return aligned_alloc(WEIGHT_ALIGNMENT,
                         (bytes / WEIGHT_ALIGNMENT + 1) * WEIGHT_ALIGNMENT);
}

/* Frees content that a weight owns or that was to pass to a weight. */
static void content_free(const struct weight_content *content)
{
    if (content->memory == WEIGHT_OWNED)
        free((void *)content->content);
    mapped_file_release(content->file);
}

static void weight_free(struct weight *weight)
{
    tandem_tensor_destroy(weight->tensor);
    content_free(&weight->content);
    free(weight);
}

/* Sets the content of a new weight. */
static bool content_take(const struct weight_content *content,
                         struct weight_content *out)
{
    void *copy;

    *out = *content;
    mapped_file_retain(out->file);
    if (content->memory != WEIGHT_COPIED)
        return true;
    copy = weight_allocate(content->bytes);
    if (copy == NULL)
        return false;
    memcpy(copy, content->content, content->bytes);
    out->content = copy;
    out->memory = WEIGHT_OWNED;
    return true;
}

static enum tandem_status weight_create(struct runtime *runtime,
                                        const struct weight_content *content,
                                        struct weight **out)
{
    const int64_t elements =
        (int64_t)(content->bytes / TANDEM_DTYPE_BYTES(content->dtype));
    struct weight *weight = calloc(1, sizeof(*weight));
    enum tandem_status status = TANDEM_OUT_OF_MEMORY;

    *out = NULL;
    if (weight == NULL) {
        if (content->memory == WEIGHT_OWNED)
            free((void *)content->content);
        return status;
    }
    if (content_take(content, &weight->content))
        status = tandem_tensor_wrap(
            runtime->context, (void *)weight->content.content, content->dtype,
            1, &elements, NULL, TANDEM_TENSOR_READ_ONLY, &weight->tensor);
    if (status != TANDEM_OK) {
        weight_free(weight);
        return status;
    }
    *out = weight;
    return TANDEM_OK;
}

/* Returns true if a weight has the content that a caller wants, and their
 * hashes are equal.  A file is mapped once, so the content of files need not be
 * read.  Borrowed content must not be read, because ONNX Runtime frees it
 * before it releases the groups of a session. */
static bool content_matches(const struct weight_content *weight,
                            const struct weight_content *wanted)
{
    if (weight->dtype != wanted->dtype || weight->bytes != wanted->bytes ||
        weight->file != wanted->file)
        return false;
    if (weight->memory == WEIGHT_BORROWED)
        return wanted->memory == WEIGHT_BORROWED &&
               weight->content == wanted->content;
    return weight->content == wanted->content ||
           (weight->file == NULL &&
            memcmp(weight->content, wanted->content, wanted->bytes) == 0);
}

enum tandem_status weight_acquire(struct runtime *runtime,
                                  const struct weight_content *content,
                                  struct weight **out)
{
    const uint64_t hash =
        content->file != NULL
            ? content_hash(&content->content, sizeof(content->content))
            : content_hash(content->content, content->bytes);
    struct weight **bucket = &runtime->weights[hash % WEIGHT_BUCKETS], *weight;
    enum tandem_status status = TANDEM_OK;

    pthread_mutex_lock(&runtime->mutex);
    for (weight = *bucket; weight != NULL; weight = weight->next) {
        if (weight->hash == hash && content_matches(&weight->content, content))
            break;
    }
    if (weight != NULL) {
        weight->users++;
        if (content->memory == WEIGHT_OWNED)
            free((void *)content->content);
    } else {
        status = weight_create(runtime, content, &weight);
        if (status == TANDEM_OK) {
            weight->hash = hash;
            weight->users = 1;
            weight->next = *bucket;
            *bucket = weight;
        }
    }
    pthread_mutex_unlock(&runtime->mutex);
    *out = weight;
    return status;
}

bool weight_exists(struct runtime *runtime, uint32_t dtype, uint64_t bytes,
                   const void *content)
{
    const uint64_t hash = content_hash(content, bytes);
    const struct weight *weight;

    pthread_mutex_lock(&runtime->mutex);
    weight = runtime->weights[hash % WEIGHT_BUCKETS];
    while (weight != NULL &&
           (weight->hash != hash || weight->content.file != NULL ||
            weight->content.dtype != dtype || weight->content.bytes != bytes))
        weight = weight->next;
    pthread_mutex_unlock(&runtime->mutex);
    return weight != NULL;
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
