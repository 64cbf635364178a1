/* SPDX-License-Identifier: Apache-2.0 */
/* Copies graphs of ONNX Runtime; see graph.h. */
#include <config.h>

#include "adapters/onnxruntime/graph.h"
#include "adapters/onnxruntime/mapped_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of graph_read.  `status` is the first failure. */
struct reader {
    struct graph *graph;
    const struct ort_api *api;
    struct mapped_files *files;
    const char *directory; /* of the model, with a slash at its end, or "" */
    struct OrtStatus *status;
    /* Hash table of value indices by name, open addressing; NO_VALUE is an
     * empty slot.  The number of slots is a power of two. */
    int32_t *slots;
    uint32_t slot_mask;
};

uint32_t dtype_from_onnx(enum onnx_dtype type)
{
    static const struct {
        enum onnx_dtype onnx;
        uint32_t tandem;
    } table[] = {
        {ONNX_F32, TANDEM_F32},   {ONNX_U8, TANDEM_U8},
        {ONNX_I8, TANDEM_I8},     {ONNX_U16, TANDEM_U16},
        {ONNX_I16, TANDEM_I16},   {ONNX_I32, TANDEM_I32},
        {ONNX_I64, TANDEM_I64},   {ONNX_BOOL, TANDEM_BOOL},
        {ONNX_F16, TANDEM_F16},   {ONNX_F64, TANDEM_F64},
        {ONNX_U32, TANDEM_U32},   {ONNX_U64, TANDEM_U64},
        {ONNX_BF16, TANDEM_BF16},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].onnx == type)
            return table[i].tandem;
    }
    return 0;
}

/* Returns true if the call succeeded and nothing failed before. */
static bool succeeded(struct reader *reader, struct OrtStatus *status)
{
    if (status == NULL)
        return reader->status == NULL;
    if (reader->status == NULL)
        reader->status = status;
    else
        reader->api->ReleaseStatus(status);
    return false;
}

static void *reader_allocate(struct reader *reader, size_t count, size_t bytes)
{
    void *memory = arena_allocate(&reader->graph->arena, count, bytes);

    if (memory == NULL && reader->status == NULL)
        reader->status = reader->api->CreateStatus(
            ORT_FAIL, "Tandem: out of memory while reading the graph");
    return memory;
}

/* ---- values ---- */

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv */
static uint32_t string_hash(const char *string)
{
    uint32_t hash = 2166136261u;

    for (; *string != '\0'; string++)
        hash = (hash ^ (uint8_t)*string) * 16777619u;
    return hash;
}

static void read_type(struct reader *reader, const struct OrtValueInfo *info,
                      struct graph_value *value)
{
    const struct ort_api *api = reader->api;
    const struct OrtTypeInfo *type = NULL;
    const struct OrtTensorTypeAndShapeInfo *tensor = NULL;
    const char *names[TANDEM_MAX_RANK] = {NULL};
    enum onnx_dtype dtype = 0;
    size_t rank = 0;

    if (!succeeded(reader, api->GetValueInfoTypeInfo(info, &type)) ||
        type == NULL ||
        !succeeded(reader, api->CastTypeInfoToTensorInfo(type, &tensor)) ||
        tensor == NULL ||
        !succeeded(reader, api->GetTensorElementType(tensor, &dtype)) ||
        !succeeded(reader, api->GetDimensionsCount(tensor, &rank)))
        return;
    if (rank > TANDEM_MAX_RANK)
        return; /* no operator of Tandem takes it */
    value->dtype = dtype_from_onnx(dtype);
    value->rank = (uint32_t)rank;
    value->has_shape =
        succeeded(reader, api->GetDimensions(tensor, value->shape, rank));
    if (!succeeded(reader, api->GetSymbolicDimensions(tensor, names, rank)))
        return;
    for (size_t i = 0; i < rank; i++) {
        if (names[i] != NULL && names[i][0] != '\0')
            value->dimension_names[i] =
                arena_copy_string(&reader->graph->arena, names[i]);
    }
}

/* Returns the bytes of a constant of known dtype, or -1 if its shape is
 * unknown. */
static int64_t constant_bytes(const struct graph_value *value)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(value->dtype);

    if (!value->has_shape)
        return -1;
    for (uint32_t i = 0; i < value->rank; i++) {
        if (value->shape[i] < 0 ||
            __builtin_mul_overflow(bytes, value->shape[i], &bytes))
            return -1;
    }
    return bytes;
}

/* Maps the file of the constant. */
static void map_constant(struct reader *reader, const char *path,
                         uint64_t offset, uint64_t bytes,
                         struct graph_value *value)
{
    const size_t length = strlen(reader->directory) + strlen(path) + 1;
    char *full = malloc(length);

    if (full == NULL)
        return;
    snprintf(full, length, "%s%s", path[0] == '/' ? "" : reader->directory,
             path);
    value->file = mapped_file_open(reader->files, full);
    free(full);
    if (value->file == NULL)
        return;
    if (offset > value->file->bytes || bytes > value->file->bytes - offset ||
        offset % TANDEM_DTYPE_BYTES(value->dtype) != 0) {
        mapped_file_release(value->file);
        value->file = NULL;
        return;
    }
    value->constant = value->file->memory + offset;
    reader->graph->uses_files = true;
}

/* Maps the content of a constant that is in a file.  Returns false if the
 * content is elsewhere or cannot be mapped; ONNX Runtime then reads it, or
 * reports what is wrong with the file. */
static bool read_external(struct reader *reader,
                          const struct OrtValueInfo *info,
                          struct graph_value *value)
{
    const struct ort_api *api = reader->api;
    const int64_t bytes = constant_bytes(value);
    struct OrtExternalInitializerInfo *external = NULL;
    const char *path;
    int64_t offset;
    uint64_t size;

    /* Files are little-endian. */
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || bytes <= 0 ||
        reader->directory == NULL ||
        !succeeded(reader,
                   api->ValueInfo_GetExternalInitializerInfo(info,
                                                             &external)) ||
        external == NULL)
        return false;
    path = api->ExternalInitializerInfo_GetFilePath(external);
    offset = api->ExternalInitializerInfo_GetFileOffset(external);
    size = api->ExternalInitializerInfo_GetByteSize(external);
    /* The model may leave out the size, which is 0 then. */
    if (path != NULL && path[0] != '\0' && offset >= 0 &&
        (size == 0 || size == (uint64_t)bytes))
        map_constant(reader, path, (uint64_t)offset, (uint64_t)bytes, value);
    api->ReleaseExternalInitializerInfo(external);
    return value->constant != NULL;
}

/* Reads the shape and content of a constant.  A value that is not constant
 * remains without content. */
static void read_constant(struct reader *reader,
                          const struct OrtValueInfo *info,
                          struct graph_value *value)
{
    const struct ort_api *api = reader->api;
    const struct OrtValue *content = NULL;
    struct OrtTensorTypeAndShapeInfo *shape = NULL;
    bool constant = false;
    size_t rank = 0;

    if (!succeeded(reader,
                   api->ValueInfo_IsConstantInitializer(info, &constant)) ||
        !constant || value->dtype == 0 || read_external(reader, info, value) ||
        !succeeded(reader,
                   api->ValueInfo_GetInitializerValue(info, &content)) ||
        content == NULL ||
        !succeeded(reader, api->GetTensorTypeAndShape(content, &shape)))
        return;
    if (succeeded(reader, api->GetDimensionsCount(shape, &rank)) &&
        rank <= TANDEM_MAX_RANK &&
        succeeded(reader, api->GetDimensions(shape, value->shape, rank))) {
        value->rank = (uint32_t)rank;
        value->has_shape = true;
        succeeded(reader, api->GetTensorData(content, &value->constant));
        /* The content of an empty tensor may be NULL. */
        if (value->constant == NULL)
            value->constant = "";
    }
    api->ReleaseTensorTypeAndShapeInfo(shape);
}

/* Returns the index of the value, which is added if it is new, or NO_VALUE for
 * an absent one. */
static int32_t read_value(struct reader *reader,
                          const struct OrtValueInfo *info)
{
    struct graph *graph = reader->graph;
    struct graph_value *value;
    const char *name = NULL;
    uint32_t slot;
    bool is_output = false;

    if (info == NULL ||
        !succeeded(reader, reader->api->GetValueInfoName(info, &name)) ||
        name == NULL || name[0] == '\0')
        return NO_VALUE;
    slot = string_hash(name) & reader->slot_mask;
    while (reader->slots[slot] != NO_VALUE) {
        if (strcmp(graph->values[reader->slots[slot]].name, name) == 0)
            return reader->slots[slot];
        slot = (slot + 1) & reader->slot_mask;
    }
    if (graph->value_count >= (reader->slot_mask + 1) / 2)
        return NO_VALUE;
    value = &graph->values[graph->value_count];
    value->name = arena_copy_string(&graph->arena, name);
    if (value->name == NULL)
        return NO_VALUE;
    value->producer = NO_VALUE;
    value->input = NO_VALUE;
    read_type(reader, info, value);
    read_constant(reader, info, value);
    succeeded(reader, reader->api->ValueInfo_IsGraphOutput(info, &is_output));
    value->is_output = is_output;
    reader->slots[slot] = (int32_t)graph->value_count;
    return (int32_t)graph->value_count++;
}

/* ---- attributes ---- */

static size_t attribute_bytes(struct reader *reader,
                              const struct OrtOpAttr *ort_attribute,
                              enum ort_attribute_type type)
{
    size_t bytes = 0;
    struct OrtStatus *status =
        reader->api->ReadOpAttr(ort_attribute, type, NULL, 0, &bytes);

    if (status != NULL)
        reader->api->ReleaseStatus(status);
    return bytes;
}

/* Reads the element of a tensor that has only one. */
static void read_tensor_attribute(struct reader *reader,
                                  const struct OrtOpAttr *ort_attribute,
                                  struct graph_attribute *attribute)
{
    const struct ort_api *api = reader->api;
    struct OrtValue *tensor = NULL;
    struct OrtTensorTypeAndShapeInfo *info = NULL;
    const void *content = NULL;
    enum onnx_dtype type = 0;
    size_t elements = 0;

    if (!succeeded(reader, api->OpAttr_GetTensorAttributeAsOrtValue(
                               ort_attribute, &tensor)) ||
        tensor == NULL)
        return;
    if (succeeded(reader, api->GetTensorTypeAndShape(tensor, &info)) &&
        succeeded(reader, api->GetTensorElementType(info, &type)) &&
        succeeded(reader, api->GetTensorShapeElementCount(info, &elements)) &&
        elements == 1 &&
        succeeded(reader, api->GetTensorData(tensor, &content))) {
        attribute->tensor_dtype = dtype_from_onnx(type);
        if (type == ONNX_F32)
            attribute->real = *(const float *)content;
        else if (type == ONNX_I64)
            memcpy(&attribute->integer, content, sizeof(attribute->integer));
        else if (type == ONNX_I32)
            attribute->integer = *(const int32_t *)content;
        else if (type == ONNX_BOOL)
            attribute->integer = *(const uint8_t *)content;
        else
            attribute->tensor_dtype = 0;
    }
    if (info != NULL)
        api->ReleaseTensorTypeAndShapeInfo(info);
    api->ReleaseValue(tensor);
}

/* Reads an integer, a float, a string or a list of numbers.  Attributes of
 * other types keep only their name and type. */
static void read_attribute(struct reader *reader,
                           const struct OrtOpAttr *ort_attribute,
                           struct graph_attribute *attribute)
{
    const struct ort_api *api = reader->api;
    const char *name = NULL;
    size_t bytes = 0;
    void *data;

    if (ort_attribute == NULL ||
        !succeeded(reader, api->OpAttr_GetName(ort_attribute, &name)) ||
        !succeeded(reader,
                   api->OpAttr_GetType(ort_attribute, &attribute->type)))
        return;
    attribute->name = arena_copy_string(&reader->graph->arena, name);
    switch (attribute->type) {
    case ORT_ATTRIBUTE_INT:
        succeeded(reader, api->ReadOpAttr(ort_attribute, attribute->type,
                                          &attribute->integer,
                                          sizeof(attribute->integer), &bytes));
        break;
    case ORT_ATTRIBUTE_FLOAT:
        succeeded(reader, api->ReadOpAttr(ort_attribute, attribute->type,
                                          &attribute->real,
                                          sizeof(attribute->real), &bytes));
        break;
    case ORT_ATTRIBUTE_INTS:
    case ORT_ATTRIBUTE_FLOATS:
    case ORT_ATTRIBUTE_STRING:
        bytes = attribute_bytes(reader, ort_attribute, attribute->type);
        data = reader_allocate(reader, bytes + 1, 1);
        if (data == NULL)
            break;
        if (bytes > 0)
            succeeded(reader, api->ReadOpAttr(ort_attribute, attribute->type,
                                              data, bytes, &bytes));
        attribute->string = data;
        attribute->integers = data;
        attribute->reals = data;
        if (attribute->type == ORT_ATTRIBUTE_FLOATS)
            attribute->real_count = bytes / sizeof(float);
        else
            attribute->integer_count = bytes / sizeof(int64_t);
        break;
    case ORT_ATTRIBUTE_TENSOR:
        read_tensor_attribute(reader, ort_attribute, attribute);
        break;
    default:
        break;
    }
}

/* ---- nodes ---- */

/* Sets the directory of the model's file. */
static void read_directory(struct reader *reader,
                           const struct OrtGraph *ort_graph)
{
    const char *path = NULL;
    char *directory, *slash;

    if (!succeeded(reader,
                   reader->api->Graph_GetModelPath(ort_graph, &path)) ||
        path == NULL)
        path = "";
    directory = arena_copy_string(&reader->graph->arena, path);
    if (directory == NULL)
        return;
    slash = strrchr(directory, '/');
    directory[slash != NULL ? slash + 1 - directory : 0] = '\0';
    reader->directory = directory;
}

/* Reads the inputs of the node, and those that a node with subgraphs reads from
 * within them. */
static void read_inputs(struct reader *reader, const struct OrtNode *ort_node,
                        struct graph_node *node)
{
    const struct ort_api *api = reader->api;
    size_t count = 0, implicit_count = 0;
    const struct OrtValueInfo **infos;

    if (!succeeded(reader, api->Node_GetNumInputs(ort_node, &count)) ||
        !succeeded(reader,
                   api->Node_GetNumImplicitInputs(ort_node, &implicit_count)))
        return;
    infos = reader_allocate(reader, count + implicit_count, sizeof(infos[0]));
    node->inputs =
        reader_allocate(reader, count + implicit_count, sizeof(int32_t));
    if (infos == NULL || node->inputs == NULL ||
        !succeeded(reader, api->Node_GetInputs(ort_node, infos, count)) ||
        !succeeded(reader, api->Node_GetImplicitInputs(ort_node, infos + count,
                                                       implicit_count)))
        return;
    node->input_count = (uint32_t)(count + implicit_count);
    for (uint32_t i = 0; i < node->input_count; i++)
        node->inputs[i] = read_value(reader, infos[i]);
}

static void read_outputs(struct reader *reader, const struct OrtNode *ort_node,
                         struct graph_node *node)
{
    const struct ort_api *api = reader->api;
    size_t count = 0;
    const struct OrtValueInfo **infos;

    if (!succeeded(reader, api->Node_GetNumOutputs(ort_node, &count)))
        return;
    infos = reader_allocate(reader, count, sizeof(infos[0]));
    node->outputs = reader_allocate(reader, count, sizeof(int32_t));
    if (infos == NULL || node->outputs == NULL ||
        !succeeded(reader, api->Node_GetOutputs(ort_node, infos, count)))
        return;
    node->output_count = (uint32_t)count;
    for (uint32_t i = 0; i < node->output_count; i++)
        node->outputs[i] = read_value(reader, infos[i]);
}

static void read_attributes(struct reader *reader,
                            const struct OrtNode *ort_node,
                            struct graph_node *node)
{
    const struct ort_api *api = reader->api;
    size_t count = 0;
    const struct OrtOpAttr **attributes;

    if (!succeeded(reader, api->Node_GetNumAttributes(ort_node, &count)))
        return;
    attributes = reader_allocate(reader, count, sizeof(attributes[0]));
    node->attributes =
        reader_allocate(reader, count, sizeof(node->attributes[0]));
    if (attributes == NULL || node->attributes == NULL ||
        !succeeded(reader,
                   api->Node_GetAttributes(ort_node, attributes, count)))
        return;
    node->attribute_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        read_attribute(reader, attributes[i], &node->attributes[i]);
}

static void read_node(struct reader *reader, const struct OrtNode *ort_node,
                      struct graph_node *node)
{
    const struct ort_api *api = reader->api;
    struct arena *arena = &reader->graph->arena;
    const char *name = NULL, *type = NULL, *domain = NULL;

    if (!succeeded(reader, api->Node_GetName(ort_node, &name)) ||
        !succeeded(reader, api->Node_GetOperatorType(ort_node, &type)) ||
        !succeeded(reader, api->Node_GetDomain(ort_node, &domain)) ||
        !succeeded(reader,
                   api->Node_GetSinceVersion(ort_node, &node->since_version)))
        return;
    node->name = arena_copy_string(arena, name);
    node->type = arena_copy_string(arena, type);
    /* "ai.onnx" is another name of the default domain. */
    node->domain =
        arena_copy_string(arena, strcmp(domain, "ai.onnx") == 0 ? "" : domain);
    node->epilogue.bias = NO_VALUE;
    read_inputs(reader, ort_node, node);
    read_outputs(reader, ort_node, node);
    read_attributes(reader, ort_node, node);
}

/* Returns an upper bound of the number of values in the graph, or 0 if the
 * graph cannot be read. */
static size_t count_values(struct reader *reader, size_t node_count)
{
    const struct ort_api *api = reader->api;
    size_t total = 1;

    for (size_t i = 0; i < node_count; i++) {
        const struct OrtNode *node = reader->graph->ort_nodes[i];
        size_t inputs = 0, implicit = 0, outputs = 0;

        if (!succeeded(reader, api->Node_GetNumInputs(node, &inputs)) ||
            !succeeded(reader,
                       api->Node_GetNumImplicitInputs(node, &implicit)) ||
            !succeeded(reader, api->Node_GetNumOutputs(node, &outputs)))
            return 0;
        total += inputs + implicit + outputs;
    }
    return total;
}

static bool values_allocate(struct reader *reader, size_t node_count)
{
    const size_t count = count_values(reader, node_count);
    uint32_t slots = 16;

    if (count == 0 || count > INT32_MAX / 4)
        return false;
    while (slots < 2 * count)
        slots *= 2;
    reader->slot_mask = slots - 1;
    reader->slots = reader_allocate(reader, slots, sizeof(int32_t));
    reader->graph->value_capacity = slots / 2 + 2 * (uint32_t)node_count;
    reader->graph->values = reader_allocate(
        reader, reader->graph->value_capacity, sizeof(struct graph_value));
    if (reader->slots == NULL || reader->graph->values == NULL)
        return false;
    memset(reader->slots, 0xff, slots * sizeof(int32_t)); /* NO_VALUE */
    return true;
}

static void read_nodes(struct reader *reader, const struct OrtGraph *ort_graph)
{
    struct graph *graph = reader->graph;
    size_t count = 0;

    if (!succeeded(reader, reader->api->Graph_GetNumNodes(ort_graph, &count)))
        return;
    graph->ort_nodes =
        reader_allocate(reader, count, sizeof(graph->ort_nodes[0]));
    graph->nodes = reader_allocate(reader, count, sizeof(graph->nodes[0]));
    if (graph->ort_nodes == NULL || graph->nodes == NULL ||
        !succeeded(reader, reader->api->Graph_GetNodes(
                               ort_graph, graph->ort_nodes, count)) ||
        !values_allocate(reader, count))
        return;
    for (size_t i = 0; i < count && reader->status == NULL; i++)
        read_node(reader, graph->ort_nodes[i], &graph->nodes[i]);
    graph->node_count = (uint32_t)count;
}

/* ---- connections ---- */

/* Sets producer and readers of all values from the nodes. */
static void connect_values(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        graph->values[i].producer = NO_VALUE;
        graph->values[i].readers = 0;
        graph->values[i].input = NO_VALUE;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];

        for (uint32_t k = 0; k < node->input_count; k++) {
            if (node->inputs[k] != NO_VALUE)
                graph->values[node->inputs[k]].readers++;
        }
        for (uint32_t k = 0; k < node->output_count; k++) {
            if (node->outputs[k] != NO_VALUE)
                graph->values[node->outputs[k]].producer = (int32_t)i;
        }
    }
}

/* Makes inputs and outputs of the graph from the values' properties. */
static bool find_inputs_and_outputs(struct graph *graph)
{
    graph->inputs =
        arena_allocate(&graph->arena, graph->value_count, sizeof(int32_t));
    graph->outputs =
        arena_allocate(&graph->arena, graph->value_count, sizeof(int32_t));
    if (graph->inputs == NULL || graph->outputs == NULL)
        return false;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        struct graph_value *value = &graph->values[i];

        if (value->is_output && value->producer != NO_VALUE)
            graph->outputs[graph->output_count++] = (int32_t)i;
        if (value->producer != NO_VALUE || value->readers == 0 ||
            value->constant != NULL)
            continue;
        value->input = (int32_t)graph->input_count;
        graph->inputs[graph->input_count++] = (int32_t)i;
    }
    return true;
}

/* Takes inputs and outputs from the node that replaces the graph. */
static void read_fused_node(struct reader *reader,
                            const struct OrtNode *fused_node)
{
    struct graph *graph = reader->graph;
    struct graph_node ends = {.inputs = NULL};

    read_inputs(reader, fused_node, &ends);
    read_outputs(reader, fused_node, &ends);
    if (reader->status != NULL)
        return;
    graph->inputs = ends.inputs;
    graph->input_count = ends.input_count;
    graph->outputs = ends.outputs;
    graph->output_count = ends.output_count;
    for (uint32_t i = 0; i < graph->value_count; i++)
        graph->values[i].is_output = false;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (graph->inputs[i] != NO_VALUE)
            graph->values[graph->inputs[i]].input = (int32_t)i;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i] != NO_VALUE)
            graph->values[graph->outputs[i]].is_output = true;
    }
}

struct OrtStatus *graph_read(struct graph *graph, const struct ort_api *api,
                             struct mapped_files *files,
                             const struct OrtGraph *ort_graph,
                             const struct OrtNode *fused_node)
{
    struct reader reader = {.graph = graph, .api = api, .files = files};

    *graph = (struct graph){.values = NULL};
    read_directory(&reader, ort_graph);
    read_nodes(&reader, ort_graph);
    if (reader.status == NULL) {
        connect_values(graph);
        if (fused_node != NULL)
            read_fused_node(&reader, fused_node);
        else
            find_inputs_and_outputs(graph);
    }
    if (reader.status == NULL && graph->arena.exhausted)
        reader.status = api->CreateStatus(
            ORT_FAIL, "Tandem: out of memory while reading the graph");
    if (reader.status != NULL)
        graph_free(graph);
    return reader.status;
}

/* Copies an array of values into the graph.  Returns NULL if memory is
 * exhausted. */
static int32_t *values_copy(struct graph *graph, const int32_t *values,
                            uint32_t count)
{
    int32_t *copy =
        arena_allocate(&graph->arena, count + 1, sizeof(values[0]));

    if (copy != NULL && count > 0)
        memcpy(copy, values, count * sizeof(values[0]));
    return copy;
}

bool graph_extract(struct graph *graph, const struct graph *from,
                   const uint32_t *nodes, uint32_t count)
{
    *graph = (struct graph){.value_count = from->value_count};
    graph->value_capacity = from->value_count + 2 * count;
    graph->values = arena_allocate(&graph->arena, graph->value_capacity,
                                   sizeof(graph->values[0]));
    graph->nodes =
        arena_allocate(&graph->arena, count, sizeof(graph->nodes[0]));
    if (graph->values == NULL || graph->nodes == NULL)
        goto fail;
    memcpy(graph->values, from->values,
           from->value_count * sizeof(graph->values[0]));
    /* Fusion changes the inputs and outputs of nodes, but not those of `from`,
     * which is extracted several times. */
    for (uint32_t i = 0; i < count; i++) {
        struct graph_node *node = &graph->nodes[i];

        *node = from->nodes[nodes[i]];
        node->inputs = values_copy(graph, node->inputs, node->input_count);
        node->outputs = values_copy(graph, node->outputs, node->output_count);
        if (node->inputs == NULL || node->outputs == NULL)
            goto fail;
    }
    graph->node_count = count;
    connect_values(graph);
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (from->values[i].readers > graph->values[i].readers)
            graph->values[i].is_output = true;
    }
    if (find_inputs_and_outputs(graph))
        return true;
fail:
    graph_free(graph);
    return false;
}

int32_t graph_add_value(struct graph *graph)
{
    struct graph_value *value = &graph->values[graph->value_count];

    if (graph->value_count == graph->value_capacity)
        return NO_VALUE;
    *value = (struct graph_value){
        .name = "", .producer = NO_VALUE, .input = NO_VALUE};
    return (int32_t)graph->value_count++;
}

void graph_free(struct graph *graph)
{
    for (uint32_t i = 0; graph->uses_files && i < graph->value_count; i++)
        mapped_file_release(graph->values[i].file);
    arena_free(&graph->arena);
    *graph = (struct graph){.values = NULL};
}

const struct graph_attribute *graph_attribute(const struct graph_node *node,
                                              const char *name)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].name != NULL &&
            strcmp(node->attributes[i].name, name) == 0)
            return &node->attributes[i];
    }
    return NULL;
}

int64_t graph_integer(const struct graph_node *node, const char *name,
                      int64_t otherwise)
{
    const struct graph_attribute *attribute = graph_attribute(node, name);

    return attribute != NULL && attribute->type == ORT_ATTRIBUTE_INT
               ? attribute->integer
               : otherwise;
}

int64_t graph_list_integer(const struct graph_node *node, const char *name,
                           uint32_t i, int64_t otherwise)
{
    const struct graph_attribute *list = graph_attribute(node, name);

    return list != NULL && i < list->integer_count ? list->integers[i]
                                                   : otherwise;
}

bool graph_constant_scalar(const struct graph *graph,
                           const struct graph_node *node, uint32_t index,
                           double *out)
{
    const struct graph_value *value = graph_input(graph, node, index);

    if (value == NULL || value->constant == NULL || !value->has_shape ||
        value->dtype != TANDEM_F32)
        return false;
    for (uint32_t i = 0; i < value->rank; i++) {
        if (value->shape[i] != 1)
            return false;
    }
    *out = *(const float *)value->constant;
    return true;
}

double graph_real(const struct graph_node *node, const char *name,
                  double otherwise)
{
    const struct graph_attribute *attribute = graph_attribute(node, name);

    return attribute != NULL && attribute->type == ORT_ATTRIBUTE_FLOAT
               ? attribute->real
               : otherwise;
}
