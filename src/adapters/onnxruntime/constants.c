/* SPDX-License-Identifier: Apache-2.0 */
/* Makes weights of a graph's constants; see constants.h. */
#include <config.h>

#include "adapters/onnxruntime/constants.h"
#include "adapters/onnxruntime/mapped_file.h"
#include "adapters/onnxruntime/weight.h"

#include <string.h>

/* Smaller constants are copied, because forms can depend on their content, and
 * their size does not matter. */
#define MIN_BORROWED_BYTES (UINT64_C(64) << 10)

/* Returns the product of the lengths of the axes from `axis` on, times the size
 * of an element. */
static uint64_t bytes_from_axis(const struct graph_value *value, uint32_t axis)
{
    uint64_t bytes = TANDEM_DTYPE_BYTES(value->dtype);

    for (uint32_t i = axis; i < value->rank; i++)
        bytes *= (uint64_t)value->shape[i];
    return bytes;
}

/* Concatenates the parts of the constant.  Returns memory from weight_allocate,
 * or NULL. */
static void *concatenate(const struct graph *graph,
                         const struct graph_value *value)
{
    const struct constant_parts *parts = value->parts;
    const uint64_t bytes = bytes_from_axis(value, 0);
    const uint64_t pitch = bytes_from_axis(value, parts->axis);
    char *memory = weight_allocate(bytes), *column = memory;

    for (uint32_t i = 0; i < parts->count && memory != NULL; i++) {
        const struct graph_value *part = &graph->values[parts->values[i]];
        const uint64_t width = bytes_from_axis(part, parts->axis);
        const char *from = part->constant;

        for (uint64_t at = 0; at < bytes; at += pitch, from += width)
            memcpy(column + at, from, width);
        column += width;
        if (part->file != NULL)
            mapped_file_unload(part->file, part->constant,
                               bytes_from_axis(part, 0));
    }
    return memory;
}

/* Returns true if a node or an output needs the constant. */
static bool is_used_constant(const struct graph_value *value)
{
    return value->constant != NULL && (value->readers > 0 || value->is_output);
}

static bool is_aligned(const void *content, uint32_t dtype)
{
    return (uintptr_t)content % TANDEM_DTYPE_BYTES(dtype) == 0;
}

/* Returns true if ONNX Runtime has the constant in memory, and it is large.
 * ONNX Runtime does not align what it maps from a file. */
static bool can_borrow(const struct graph_value *value)
{
    return value->file == NULL && value->parts == NULL &&
           bytes_from_axis(value, 0) >= MIN_BORROWED_BYTES &&
           is_aligned(value->constant, value->dtype);
}

bool constants_should_stay(struct runtime *runtime, const struct graph *graph)
{
    /* ONNX Runtime would keep all constants, also those in `others`. */
    uint64_t borrowed = 0, others = 0;
    const struct graph_value *first = NULL;

    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct graph_value *value = &graph->values[i];

        if (!is_used_constant(value))
            continue;
        if (!can_borrow(value)) {
            others += bytes_from_axis(value, 0);
            continue;
        }
        borrowed += bytes_from_axis(value, 0);
        if (first == NULL)
            first = value;
    }
    return borrowed > others &&
           !weight_exists(runtime, first->dtype, bytes_from_axis(first, 0),
                          first->constant);
}

static enum tandem_status constant_acquire(struct runtime *runtime,
                                           const struct graph *graph,
                                           struct graph_value *value)
{
    struct weight_content content = {
        .memory = value->file != NULL ? WEIGHT_MAPPED : WEIGHT_COPIED,
        .dtype = value->dtype,
        .bytes = bytes_from_axis(value, 0),
        .content = value->constant,
        .file = value->file,
    };
    enum tandem_status status;

    if (value->parts != NULL) {
        content.memory = WEIGHT_OWNED;
        content.content = concatenate(graph, value);
        if (content.content == NULL)
            return TANDEM_OUT_OF_MEMORY;
    } else if (value->input >= 0 && can_borrow(value)) {
        content.memory = WEIGHT_BORROWED;
    }
    status = weight_acquire(runtime, &content, &value->weight);
    if (status == TANDEM_OK)
        value->constant = value->weight->content.content;
    return status;
}

enum tandem_status constants_acquire(struct runtime *runtime,
                                     struct graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        struct graph_value *value = &graph->values[i];
        enum tandem_status status;

        if (value->constant != NULL && value->input >= 0)
            graph->inputs[value->input] = NO_VALUE;
        if (!is_used_constant(value))
            continue;
        status = constant_acquire(runtime, graph, value);
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

/* Replaces the weight of a borrowed constant if ONNX Runtime has moved the
 * constant. */
static struct OrtStatus *constant_rebind(struct runtime *runtime,
                                         struct graph_value *value,
                                         struct OrtKernelContext *context)
{
    const struct ort_api *api = runtime->api;
    struct weight_content content = value->weight->content;
    struct weight *moved;
    const struct OrtValue *tensor = NULL;
    struct OrtStatus *status =
        api->KernelContext_GetInput(context, (size_t)value->input, &tensor);

    if (status == NULL)
        status = api->GetTensorData(tensor, &content.content);
    if (status != NULL || content.content == value->constant)
        return status;
    if (!is_aligned(content.content, content.dtype))
        content.memory = WEIGHT_COPIED;
    if (weight_acquire(runtime, &content, &moved) != TANDEM_OK)
        return api->CreateStatus(
            ORT_FAIL, "Tandem: out of memory for the model's constants");
    weight_release(runtime, value->weight);
    value->weight = moved;
    value->constant = value->weight->content.content;
    return NULL;
}

struct OrtStatus *constants_rebind(struct runtime *runtime, struct graph *graph,
                                   struct OrtKernelContext *context)
{
    struct OrtStatus *status = NULL;

    for (uint32_t i = 0; i < graph->value_count && status == NULL; i++) {
        struct graph_value *value = &graph->values[i];

        if (value->weight != NULL &&
            value->weight->content.memory == WEIGHT_BORROWED)
            status = constant_rebind(runtime, value, context);
    }
    return status;
}

void constants_release(struct runtime *runtime, struct graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        weight_release(runtime, graph->values[i].weight);
        graph->values[i].weight = NULL;
    }
}
