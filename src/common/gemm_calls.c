/* SPDX-License-Identifier: Apache-2.0 */
/* The entry gemm; see gemm_calls.h.  A prepared operator depends on all members
 * of struct tandem_gemm except the memory, and on the alignment of the
 * operands. */
#include "common/gemm_calls.h"

#include <stdlib.h>
#include <string.h>

#include "common/gemm_operator.h"
#include "common/last_error.h"

#define MAX_ALIGNMENT 128u

/* Compared with memcmp: there are no gaps between the members. */
struct gemm_call_key {
    struct tandem_gemm gemm; /* without buffers and offsets */
    uint64_t alignments[4];  /* of a, b, c and bias, in bytes */
};

/* The calls' mutex guards `users`. */
struct gemm_call_entry {
    struct gemm_call_key key;
    struct tandem_prepared *prepared;
    uint32_t users; /* calls that launch it, and 1 while it is in the table */
};

bool gemm_calls_init(struct gemm_calls *calls,
                     const struct gemm_call_functions *functions)
{
    calls->functions = functions;
    memset(calls->entries, 0, sizeof(calls->entries));
    return pthread_mutex_init(&calls->mutex, NULL) == 0;
}

static void entry_free(const struct gemm_calls *calls,
                       struct gemm_call_entry *entry)
{
    calls->functions->release(entry->prepared);
    free(entry);
}

void gemm_calls_finish(struct gemm_calls *calls)
{
    for (uint32_t i = 0; i < GEMM_CALLS; i++)
        if (calls->entries[i] != NULL)
            entry_free(calls, calls->entries[i]);
    pthread_mutex_destroy(&calls->mutex);
}

static void entry_put(struct gemm_calls *calls, struct gemm_call_entry *entry)
{
    pthread_mutex_lock(&calls->mutex);
    bool last = --entry->users == 0;
    pthread_mutex_unlock(&calls->mutex);
    if (last)
        entry_free(calls, entry);
}

static struct gemm_call_entry **entry_slot(struct gemm_calls *calls,
                                           const struct gemm_call_key *key)
{
    uint64_t words[sizeof(*key) / sizeof(uint64_t)], hash = 0;
    memcpy(words, key, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return &calls->entries[(hash >> 32) % GEMM_CALLS];
}

/* Returns the entry of the key, which the caller puts, or NULL. */
static struct gemm_call_entry *entry_find(struct gemm_calls *calls,
                                          const struct gemm_call_key *key)
{
    pthread_mutex_lock(&calls->mutex);
    struct gemm_call_entry *entry = *entry_slot(calls, key);
    if (entry != NULL && memcmp(&entry->key, key, sizeof(*key)) == 0)
        entry->users++;
    else
        entry = NULL;
    pthread_mutex_unlock(&calls->mutex);
    return entry;
}

static void entry_insert(struct gemm_calls *calls,
                         struct gemm_call_entry *entry)
{
    pthread_mutex_lock(&calls->mutex);
    struct gemm_call_entry **slot = entry_slot(calls, &entry->key);
    struct gemm_call_entry *old = *slot;
    *slot = entry;
    bool last = old != NULL && --old->users == 0;
    pthread_mutex_unlock(&calls->mutex);
    if (last)
        entry_free(calls, old);
}

/* Sets *out to the alignment of an operand.  Fails if the buffer is invalid. */
static bool alignment_find(uint64_t *out, const struct tandem_buffer *buffer,
                           uint64_t byte_offset, uint64_t min_alignment,
                           address_range_fn span,
                           const struct tandem_device *device)
{
    struct address_range range;
    if (buffer == NULL || span(device, buffer, &range) != TANDEM_OK)
        return false;
    uint64_t low = (range.base + byte_offset) % MAX_ALIGNMENT;
    *out = low != 0 ? low & -low : MAX_ALIGNMENT;
    /* The address of an empty matrix does not matter. */
    if (*out < min_alignment)
        *out = min_alignment;
    return true;
}

/* Returns false if the buffer of an operand is invalid. */
static bool key_fill(struct gemm_call_key *out, const struct tandem_gemm *gemm,
                     address_range_fn span, const struct tandem_device *device)
{
    uint64_t *alignments = out->alignments;
    const uint64_t ab_bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    const uint64_t c_bytes = TANDEM_DTYPE_BYTES(gemm->c_dtype);
    out->gemm = *gemm;
    out->gemm.a.buffer = out->gemm.b.buffer = out->gemm.c.buffer = NULL;
    out->gemm.a.byte_offset = out->gemm.b.byte_offset = 0;
    out->gemm.c.byte_offset = out->gemm.bias_byte_offset = 0;
    out->gemm.bias = NULL;
    alignments[3] = 0;
    return alignment_find(&alignments[0], gemm->a.buffer, gemm->a.byte_offset,
                          ab_bytes, span, device) &&
           alignment_find(&alignments[1], gemm->b.buffer, gemm->b.byte_offset,
                          ab_bytes, span, device) &&
           alignment_find(&alignments[2], gemm->c.buffer, gemm->c.byte_offset,
                          c_bytes, span, device) &&
           (gemm->bias_kind == TANDEM_BIAS_NONE ||
            alignment_find(&alignments[3], gemm->bias, gemm->bias_byte_offset,
                           c_bytes, span, device));
}

static void alignments_set(struct gemm_operator *operator,
                           const struct gemm_call_key * key)
{
    const uint32_t inputs = operator->input_count;
    for (uint32_t i = 0; i < 2; i++)
        operator->operands[i].alignment_bytes =(uint32_t) key->alignments[i];
    if (key->gemm.bias_kind != TANDEM_BIAS_NONE)
        operator->operands[2].alignment_bytes =(uint32_t) key->alignments[3];
    for (uint32_t i = key->gemm.beta != 0 ? inputs - 1 : inputs; i <= inputs;
         i++)
        operator->operands[i].alignment_bytes =(uint32_t) key->alignments[2];
}

/* Prepares the operator and adds it to the table. */
static enum tandem_status entry_create(struct gemm_calls *calls,
                                       struct tandem_device *device,
                                       const struct gemm_call_key *key,
                                       struct gemm_operator *operator,
                                       struct gemm_call_entry ** out_entry)
{
    struct gemm_call_entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return memory_error("gemm: out of host memory");
    alignments_set(operator, key);
    enum tandem_status status = calls->functions->prepare(
        device, &operator->op, operator->pointers, operator->input_count,
        &operator->pointers[operator->input_count], 1, 0, NULL,
                            &entry->prepared);
    if (status != TANDEM_OK) {
        free(entry);
        return status;
    }
    entry->key = *key;
    entry->users = 2;
    entry_insert(calls, entry);
    *out_entry = entry;
    return TANDEM_OK;
}

enum tandem_status gemm_call_launch(struct gemm_calls *calls,
                                    struct tandem_device *device,
                                    struct tandem_stream *stream,
                                    const struct tandem_gemm *gemm,
                                    address_range_fn span)
{
    struct tandem_gemm normalized;
    struct gemm_operator operator;
    struct gemm_call_entry *entry = NULL;
    struct gemm_call_key key;
    enum tandem_status status = gemm_check_size(gemm);
    if (status != TANDEM_OK)
        return status;
    gemm_args_normalize(&normalized, gemm);
    bool is_valid = key_fill(&key, &normalized, span, device);
    if (is_valid)
        entry = entry_find(calls, &key);
    if (entry == NULL)
        status = check_gemm(gemm, span, device);
    if (status != TANDEM_OK)
        return status;
    gemm_operator_make(&operator, & normalized);
    if (entry == NULL)
        status = entry_create(calls, device, &key, &operator, & entry);
    if (status != TANDEM_OK)
        return status;
    status = calls->functions->launch(
        stream, entry->prepared, operator.memory, operator.input_count + 1,
        NULL, 0);
    entry_put(calls, entry);
    return status;
}
