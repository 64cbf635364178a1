/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes the entries of the cache; see prepared_cache.h. */
#include <config.h>

#include "host/run/prepared_cache.h"

#include "common/argument_check.h"
#include "common/gemm_operator.h"
#include "common/last_error.h"
#include "common/op_class.h"
#include "common/tensor_overlap.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

/* Returns the number of float attributes that belong to the key.  Others are
 * passed to each launch, so that calls with different ones share an entry. */
static uint32_t fixed_floats(const struct call *call)
{
    const struct op_class *class;

    if (call->op->float_count == 0)
        return 0;
    class = op_class_get(call->row->op_class);
    return class->floats_change || class->scalars ? 0 : call->op->float_count;
}

static uint32_t first_int_of_key(const struct tandem_op *op)
{
    return op->id == TANDEM_OP_ADAM ? 1 : 0; /* step is a scalar */
}

/* The parts of the scalars that are fixed when the operator is prepared. */
static void gemm_key_floats(const struct tandem_op *op, double out[GEMM_FLOATS])
{
    memcpy(out, op->floats, GEMM_FLOATS * sizeof(*out));
    out[GEMM_ALPHA] = gemm_factor(op->floats[GEMM_ALPHA]) != 0;
    out[GEMM_BETA] = gemm_factor(op->floats[GEMM_BETA]) != 0;
}

/* The operands of a call as far as they distinguish it from other calls. Inputs
 * come before outputs. */
struct call_key {
    uint64_t hash;
    /* NULL and 0 for a scalar. */
    const struct tandem_tensor_desc *descs[2 * TANDEM_MAX_OPERANDS];
    uint32_t alignments[2 * TANDEM_MAX_OPERANDS];
    uint32_t same_as_input[TANDEM_MAX_OPERANDS]; /* of the outputs */
};

/* Returns 1 + the input that the output is and may be, or 0. */
static uint32_t same_input(const struct call *call, const struct call_key *key,
                           uint32_t output)
{
    const struct tandem_tensor_desc *out =
        key->descs[call->input_count + output];

    for (uint32_t i = 0; i < call->input_count; i++) {
        const struct tandem_tensor_desc *input = key->descs[i];
        const struct op_call checked = {.info = call->row,
                                        .op = call->op,
                                        .input_count = call->input_count};

        if (input == NULL || input->buffer != out->buffer)
            continue;
        if (tensor_has_elements(out) && tensors_same(input, out) &&
            op_input_in_place(&checked, i))
            return i + 1;
    }
    return 0;
}

/* Records operand i in the key, and returns the hash of its layout. */
static uint64_t operand_key_fill(struct call_key *out, const struct call *call,
                                 uint32_t i)
{
    const struct tandem_tensor *tensor;

    if (call->described != NULL) {
        out->descs[i] = call_operand_desc(call, i);
        out->alignments[i] = call->described[i].layout.alignment;
        return call->described[i].layout.hash;
    }
    tensor = call_operand_tensor(call, i);
    out->descs[i] = tensor != NULL ? &tensor->desc : NULL;
    out->alignments[i] = tensor != NULL ? tensor->alignment : 0;
    return tensor != NULL ? tensor->layout_hash : 0;
}

static void call_key_fill(struct call_key *out, const struct call *call)
{
    const struct tandem_op *op = call->op;
    const uint32_t floats = fixed_floats(call);
    uint64_t hash = hash_add(op->id | (uint64_t)op->flags << 32,
                             op->int_count | (uint64_t)op->float_count << 32);

    for (uint32_t i = 0; i < call->input_count; i++)
        hash = hash_add(hash, operand_key_fill(out, call, i));
    for (uint32_t i = 0; i < call->output_count; i++) {
        const uint64_t layout =
            operand_key_fill(out, call, call->input_count + i);

        out->same_as_input[i] = same_input(call, out, i);
        hash = hash_add(hash, layout + out->same_as_input[i]);
    }
    for (uint32_t i = first_int_of_key(op); i < op->int_count; i++)
        hash = hash_add(hash, (uint64_t)op->ints[i]);
    for (uint32_t i = 0; i < floats; i++) {
        uint64_t bits;

        memcpy(&bits, &op->floats[i], sizeof(bits));
        hash = hash_add(hash, bits);
    }
    out->hash = hash;
}

/* Describes operand i of the call, for the plugins. */
static void operand_describe(struct tandem_operand_desc *out,
                             const struct call *call,
                             const struct call_key *key, uint32_t i)
{
    const struct tandem_tensor_desc *desc;

    desc = key->descs[i];
    if (desc == NULL) {
        out->rank = SCALAR_RANK;
        return;
    }
    out->dtype = desc->dtype;
    out->rank = desc->rank;
    memcpy(out->shape, desc->shape, desc->rank * sizeof(*desc->shape));
    memcpy(out->strides, desc->strides, desc->rank * sizeof(*desc->strides));
    out->alignment_bytes = key->alignments[i];
    if (i >= call->input_count)
        out->same_as_input = key->same_as_input[i - call->input_count];
}

static bool operand_matches(const struct tandem_operand_desc *from,
                            const struct call *call, const struct call_key *key,
                            uint32_t i)
{
    const struct tandem_tensor_desc *desc;
    bool equal = true;

    desc = key->descs[i];
    if (from->rank == SCALAR_RANK || desc == NULL)
        return from->rank == SCALAR_RANK && desc == NULL;
    if (from->dtype != desc->dtype || from->rank != desc->rank ||
        from->alignment_bytes != key->alignments[i] ||
        (i >= call->input_count &&
         from->same_as_input != key->same_as_input[i - call->input_count]))
        return false;
    for (uint32_t k = 0; k < desc->rank; k++)
        equal &= from->shape[k] == desc->shape[k] &&
                 from->strides[k] == desc->strides[k];
    return equal;
}

static bool floats_equal(const struct call *call,
                         const struct prepared_entry *entry)
{
    double a[GEMM_FLOATS], b[GEMM_FLOATS];

    if (call->op->id == TANDEM_OP_GEMM) {
        gemm_key_floats(call->op, a);
        gemm_key_floats(&entry->op, b);
        return memcmp(a, b, sizeof(a)) == 0;
    }
    return fixed_floats(call) == 0 ||
           memcmp(call->op->floats, entry->op.floats,
                  call->op->float_count * sizeof(double)) == 0;
}

static bool entry_matches(const struct prepared_entry *entry,
                          const struct call *call, const struct call_key *key)
{
    const struct tandem_op *op = call->op;
    const uint32_t first = first_int_of_key(op);

    if (entry->op.id != op->id || entry->op.flags != op->flags ||
        entry->op.int_count != op->int_count ||
        entry->op.float_count != op->float_count ||
        entry->input_count != call->input_count ||
        entry->output_count != call->output_count)
        return false;
    for (uint32_t i = first; i < op->int_count; i++) {
        if (entry->op.ints[i] != op->ints[i])
            return false;
    }
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        if (!operand_matches(&entry->operands[i], call, key, i))
            return false;
    }
    return floats_equal(call, entry);
}

/* ---- entries ---- */

static void entry_free(struct tandem_context *context,
                       struct prepared_entry *entry, bool releases)
{
    for (uint32_t i = 0; releases && i < context->device_count; i++) {
        if (entry->prepared[i] != NULL)
            context->devices[i]->vtable->prepared_release(entry->prepared[i]);
    }
    free(entry);
}

/* ---- the cache ---- */

enum tandem_status prepared_cache_make(struct tandem_context *context)
{
    struct prepared_cache *cache =
        aligned_alloc(_Alignof(struct prepared_cache), sizeof(*cache));

    if (cache == NULL)
        return memory_error("no memory for a context");
    memset(cache, 0, sizeof(*cache));
    for (uint32_t i = 0; i < CACHE_STRIPES; i++)
        pthread_mutex_init(&cache->stripes[i].mutex, NULL);
    context->prepared_cache = cache;
    return TANDEM_OK;
}

void prepared_cache_free(struct tandem_context *context, bool releases)
{
    struct prepared_cache *cache = context->prepared_cache;

    for (uint32_t i = 0; cache != NULL && i < PREPARED_CACHE_BUCKETS; i++) {
        struct prepared_entry *entry = cache->buckets[i];

        while (entry != NULL) {
            struct prepared_entry *next = entry->next;

            entry_free(context, entry, releases);
            entry = next;
        }
    }
    free(cache);
    context->prepared_cache = NULL;
}

static void stripes_lock(struct prepared_cache *cache)
{
    for (uint32_t i = 0; i < CACHE_STRIPES; i++)
        pthread_mutex_lock(&cache->stripes[i].mutex);
}

static void stripes_unlock(struct prepared_cache *cache)
{
    for (uint32_t i = CACHE_STRIPES; i-- > 0;)
        pthread_mutex_unlock(&cache->stripes[i].mutex);
}

/* Sets the call's entry.  The stripe must be locked. */
static void entry_use(struct call *call, struct cache_stripe *stripe,
                      struct prepared_entry *entry)
{
    const uint64_t additions = call->context->prepared_cache->additions;

    if (entry->last_use != additions)
        entry->last_use = additions;
    call->entry = entry;
    for (uint32_t i = 0; i < STRIPE_USES; i++) {
        call->entry_use = &stripe->uses[i];
        if (atomic_load_explicit(call->entry_use, memory_order_relaxed) != NULL)
            continue;
        atomic_store_explicit(call->entry_use, entry, memory_order_relaxed);
        return;
    }
    call->entry_use = NULL;
    entry->unlisted_uses++;
}

void prepared_entry_put(struct call *call)
{
    if (call->entry == NULL)
        return;
    if (call->entry_use != NULL)
        atomic_store_explicit(call->entry_use, NULL, memory_order_release);
    else
        call->entry->unlisted_uses--;
    call->entry = NULL;
}

/* All stripes must be locked. */
static bool entry_is_used(const struct prepared_cache *cache,
                          const struct prepared_entry *entry)
{
    for (uint32_t i = 0; i < CACHE_STRIPES * STRIPE_USES; i++) {
        if (cache->stripes[i / STRIPE_USES].uses[i % STRIPE_USES] == entry)
            return true;
    }
    return entry->unlisted_uses != 0;
}

/* Removes and returns the entry that no call uses and that was not used for the
 * longest time, or NULL.  All stripes must be locked. */
static struct prepared_entry *entry_evict(struct prepared_cache *cache)
{
    struct prepared_entry **oldest = NULL, *removed;

    for (uint32_t i = 0; i < PREPARED_CACHE_BUCKETS; i++) {
        for (struct prepared_entry **at = &cache->buckets[i]; *at != NULL;
             at = &(*at)->next) {
            if ((oldest == NULL || (*at)->last_use < (*oldest)->last_use) &&
                !entry_is_used(cache, *at))
                oldest = at;
        }
    }
    if (oldest == NULL)
        return NULL;
    removed = *oldest;
    *oldest = removed->next;
    cache->count--;
    return removed;
}

/* Returns an entry with copies of the attributes, or NULL. */
static struct prepared_entry *entry_new(const struct call *call,
                                        const struct call_key *key)
{
    const struct tandem_op *op = call->op;
    const uint32_t count = call->input_count + call->output_count;
    struct prepared_entry *entry =
        calloc(1, sizeof(*entry) + count * sizeof(entry->operands[0]) +
                      ((size_t)op->int_count + op->float_count) * 8);
    char *attributes;

    if (entry == NULL)
        return NULL;
    attributes = (char *)&entry->operands[count];
    for (uint32_t i = 0; i < count; i++)
        operand_describe(&entry->operands[i], call, key, i);
    entry->input_count = call->input_count;
    entry->output_count = call->output_count;
    entry->op = (struct tandem_op){.struct_size = sizeof(entry->op),
                                   .id = op->id,
                                   .flags = op->flags,
                                   .int_count = op->int_count,
                                   .float_count = op->float_count,
                                   .ints = (const int64_t *)(void *)attributes};
    if (op->int_count > 0)
        memcpy(attributes, op->ints, op->int_count * 8);
    attributes += op->int_count * 8;
    entry->op.floats = (const double *)(void *)attributes;
    if (op->float_count > 0)
        memcpy(attributes, op->floats, op->float_count * 8);
    return entry;
}

static void workload_compute(const struct call *call, struct workload *out)
{
    struct call_descs descs;
    const struct op_call op_call = {.info = call->row,
                                    .op = call->op,
                                    .inputs = descs.inputs,
                                    .outputs = descs.outputs,
                                    .input_count = call->input_count,
                                    .output_count = call->output_count};
    struct op_work work;

    call_descs_get(call, &descs);
    op_work_compute(&op_call, &work);
    *out = (struct workload){.op = call->op->id,
                             .cost_class = work.cost_class,
                             .elements = work.elements,
                             .bytes = work.bytes};
    memcpy(out->gemm_size, work.gemm_size, sizeof(out->gemm_size));
}

/* A stripe must be locked. */
static struct prepared_entry *entry_find(const struct call *call,
                                         const struct call_key *key)
{
    const struct prepared_cache *cache = call->context->prepared_cache;
    struct prepared_entry *entry =
        cache->buckets[key->hash % PREPARED_CACHE_BUCKETS];

    while (entry != NULL &&
           (entry->hash != key->hash || !entry_matches(entry, call, key)))
        entry = entry->next;
    return entry;
}

static void entry_link(struct prepared_cache *cache,
                       struct prepared_entry *entry)
{
    struct prepared_entry **bucket =
        &cache->buckets[entry->hash % PREPARED_CACHE_BUCKETS];

    entry->next = *bucket;
    *bucket = entry;
    cache->count++;
    cache->additions++;
}

/* Adds the call's entry to the cache, unless another thread just did. */
static enum tandem_status entry_add(struct call *call,
                                    const struct call_key *key,
                                    struct cache_stripe *stripe)
{
    struct prepared_cache *cache = call->context->prepared_cache;
    struct prepared_entry *entry, *added, *removed = NULL;
    enum tandem_status status = call_check(call);

    if (status != TANDEM_OK)
        return status;
    added = entry_new(call, key);
    if (added == NULL)
        return memory_error("%s: no memory for the call", call->row->name);
    workload_compute(call, &added->workload);
    added->hash = key->hash;
    stripes_lock(cache);
    entry = entry_find(call, key);
    if (entry == NULL) {
        if (cache->count >= MAX_PREPARED_ENTRIES)
            removed = entry_evict(cache);
        entry_link(cache, added);
        entry = added;
    }
    entry_use(call, stripe, entry);
    stripes_unlock(cache);
    if (entry != added)
        free(added);
    if (removed != NULL)
        entry_free(call->context, removed, true);
    return TANDEM_OK;
}

/* Returns true if the key can be read from the attributes.  The check of the
 * call says what is wrong with others. */
static bool attributes_are_readable(const struct call *call)
{
    const struct tandem_op *op = call->op;

    return op->int_count >= call->row->ints &&
           op->int_count <= TANDEM_MAX_ATTRIBUTES &&
           op->float_count >= call->row->floats &&
           op->float_count <= TANDEM_MAX_ATTRIBUTES &&
           (op->int_count == 0 || op->ints != NULL) &&
           (op->float_count == 0 || op->floats != NULL);
}

enum tandem_status prepared_cache_find(struct call *call)
{
    struct call_key key;
    struct cache_stripe *stripe;
    const struct operator_info *row;
    enum tandem_status status = TANDEM_OK;
    struct prepared_entry *entry;

    call->entry = NULL;
    call->rebinds = call->context->rebinds;
    if (call->op->struct_size != sizeof(*call->op))
        status = operator_check(call->op, &row);
    if (status == TANDEM_OK && !attributes_are_readable(call))
        status = call_check(call);
    if (status != TANDEM_OK)
        return status;
    stripe = &call->context->prepared_cache
                  ->stripes[thread_number() % CACHE_STRIPES];
    call_key_fill(&key, call);
    pthread_mutex_lock(&stripe->mutex);
    entry = entry_find(call, &key);
    if (entry != NULL)
        entry_use(call, stripe, entry);
    pthread_mutex_unlock(&stripe->mutex);
    return entry != NULL ? call_check_memory(call)
                         : entry_add(call, &key, stripe);
}

bool prepared_entry_fits(const struct call *call)
{
    if (call->rebinds == call->context->rebinds)
        return true;
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        const struct tandem_tensor *tensor = call_operand_tensor(call, i);

        if (tensor != NULL &&
            tensor->alignment != call->entry->operands[i].alignment_bytes)
            return false;
    }
    return true;
}

/* ---- devices ---- */

/* Calls prepare of the plugin. */
static enum tandem_status entry_prepare(const struct prepared_entry *entry,
                                        const struct device *device,
                                        uint32_t flags,
                                        struct tandem_prepared_info *out_info,
                                        struct tandem_prepared **out_prepared)
{
    const struct tandem_operand_desc *operands[2 * TANDEM_MAX_OPERANDS];
    enum tandem_status status;

    for (uint32_t i = 0; i < entry->input_count + entry->output_count; i++)
        operands[i] =
            entry->operands[i].rank != SCALAR_RANK ? &entry->operands[i] : NULL;
    status = plugin_reply_sanitize_status(device->vtable->prepare(
        device->handle, &entry->op, operands, entry->input_count,
        operands + entry->input_count, entry->output_count, flags, out_info,
        out_prepared));
    if (status != TANDEM_OK)
        last_error_set(status, "%s: %s", device->label,
                       plugin_reply_error(device->vtable));
    return status;
}

enum tandem_status call_prepare_on(const struct call *call,
                                   struct device *device)
{
    struct prepared_entry *entry = call->entry;
    struct tandem_prepared *prepared = NULL, *other = NULL;
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK || entry->prepared[device->id] != NULL)
        return status;
    status = entry_prepare(entry, device, 0, NULL, &prepared);
    /* Another thread may have prepared it meanwhile. */
    if (status == TANDEM_OK &&
        !atomic_compare_exchange_strong(&entry->prepared[device->id], &other,
                                        prepared))
        device->vtable->prepared_release(prepared);
    return status;
}

enum tandem_status call_query_on(const struct call *call, struct device *device)
{
    const struct prepared_entry *entry = call->entry;
    struct tandem_prepared_info info = {.struct_size = sizeof(info)};
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK)
        return status;
    if (entry->prepared[device->id] != NULL)
        return device->jit_compiles ? device->vtable->prepared_wait(
                                          entry->prepared[device->id], 0)
                                    : TANDEM_OK;
    status = entry_prepare(entry, device, TANDEM_PREPARE_QUERY, &info, NULL);
    return status == TANDEM_OK && device->jit_compiles && !info.is_ready
               ? TANDEM_NOT_READY
               : status;
}

/* ---- the host fast path ---- */

/* Returns the first open device in `usable` (a mask) that is synchronous,
 * computes in host memory and supports all core operators, or NULL. */
static struct device *host_device_find(const struct tandem_context *context,
                                       uint32_t usable)
{
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];

        if ((usable >> i & 1) && device->is_zero_copy && !device->async &&
            device->state == DEVICE_OPEN &&
            (device->info.caps & TANDEM_CAP_CORE_OPERATORS))
            return device;
    }
    return NULL;
}

/* Chooses the device of the host fast path; see prepared_entry.host_device. */
static struct device *
host_fast_path_device_choose(const struct tandem_context *context,
                             struct prepared_entry *entry,
                             struct device *host_device, uint32_t usable)
{
    const uint32_t eligible = chooser_eligible_candidates(
        context, entry->workload.cost_class, usable);
    const struct run_time best = chooser_predict_run_time(
        &entry->workload, &entry->run_cost, host_device);

    if (!(eligible >> host_device->id & 1))
        return NULL;
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct run_time time;

        if (i == host_device->id || !(eligible >> i & 1))
            continue;
        time = chooser_predict_run_time(&entry->workload, &entry->run_cost,
                                        context->devices[i]);
        if (time.launch_ns + time.execute_ns < best.launch_ns + best.execute_ns)
            return NULL;
    }
    return host_device;
}

struct device *host_fast_path_device(struct tandem_context *context,
                                     struct prepared_entry *entry)
{
    const uint32_t usable = context->usable;
    const uint32_t allowed = usable & ~context->op_blocked[entry->workload.op];
    struct device *host_device;

    if (entry->usable == usable)
        return entry->host_device;
    host_device = host_device_find(context, allowed);
    if (host_device == NULL)
        return NULL;
    host_device =
        host_fast_path_device_choose(context, entry, host_device, allowed);
    entry->host_device = host_device;
    entry->usable = usable;
    return host_device;
}
