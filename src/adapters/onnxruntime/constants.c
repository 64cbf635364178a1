/* SPDX-License-Identifier: Apache-2.0 */
/* Makes weights of a graph's constants; see constants.h. */
#include <config.h>

#include "adapters/onnxruntime/constants.h"
#include "adapters/onnxruntime/mapped_file.h"
#include "adapters/onnxruntime/weight.h"

#include <string.h>

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

        if (value->constant == NULL ||
            (value->readers == 0 && !value->is_output))
            continue;
        status = constant_acquire(runtime, graph, value);
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

void constants_release(struct runtime *runtime, struct graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        weight_release(runtime, graph->values[i].weight);
        graph->values[i].weight = NULL;
    }
}
