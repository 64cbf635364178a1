/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses what a model leaves open; see assumed_shapes.h.  Has no state; any
 * thread may call the functions. */
#include <config.h>

#include "adapters/onnxruntime/assumed_shapes.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of an input whose content is assumed. */
#define MAX_CONTENT 8u

union content {
    int64_t i64[MAX_CONTENT];
    int32_t i32[MAX_CONTENT];
    float f32[MAX_CONTENT];
};

/* ---- properties of inputs ---- */

/* ONNX Runtime reports rank 0 if it does not know the rank.  Integers of rank 0
 * are usually scalars. */
static bool rank_is_open(const struct graph_value *value)
{
    return !value->has_shape ||
           (value->rank == 0 && value->dtype == TANDEM_F32);
}

/* Returns the first node that reads the value, and the number of the input. */
static const struct graph_node *first_reader(const struct graph *graph,
                                             int32_t value, uint32_t *out_index)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];

        for (uint32_t k = 0; k < node->input_count && !node->removed; k++) {
            *out_index = k;
            if (node->inputs[k] == value)
                return node;
        }
    }
    *out_index = 0;
    return NULL;
}

/* Returns true if the axis is the first of several, or has the name of such an
 * axis. */
static bool is_batch(const struct graph *graph, const struct graph_value *value,
                     uint32_t axis)
{
    const char *name = value->dimension_names[axis];

    if (axis == 0 && value->rank != 1)
        return true;
    for (uint32_t i = 0; i < graph->value_count && name != NULL; i++) {
        const struct graph_value *other = &graph->values[i];

        if (other->rank > 1 && other->dimension_names[0] != NULL &&
            strcmp(other->dimension_names[0], name) == 0)
            return true;
    }
    return false;
}

/* Copies the shape that the option "shapes" gives to a value.  Returns the
 * rank, or 0 if the option gives none or one of another rank than the model. */
static uint32_t given_shape(const struct provider_options *options,
                            const struct graph_value *value,
                            int64_t out_shape[TANDEM_MAX_RANK])
{
    const uint32_t rank = options_shape(options, value->name, out_shape);

    return rank_is_open(value) || rank == value->rank ? rank : 0;
}

/* Returns the length that the option "shapes" gives to the value's axis or to
 * another axis of the same name, or -1. */
static int64_t given_length(const struct graph *graph,
                            const struct provider_options *options,
                            const struct graph_value *value, uint32_t axis)
{
    const char *name = value->dimension_names[axis];
    int64_t shape[TANDEM_MAX_RANK];

    if (given_shape(options, value, shape) > axis)
        return shape[axis];
    for (uint32_t i = 0; i < graph->value_count && name != NULL; i++) {
        const struct graph_value *other = &graph->values[i];

        for (uint32_t k = 0; k < other->rank; k++) {
            if (other->dimension_names[k] != NULL &&
                strcmp(other->dimension_names[k], name) == 0 &&
                given_shape(options, other, shape) > k)
                return shape[k];
        }
    }
    return -1;
}

/* Sets the rank and the last or second axis of a value from the constant weight
 * of the first node that reads the value. */
static void fit_reader(const struct graph *graph, int32_t index,
                       struct lower_input *input)
{
    uint32_t k;
    const struct graph_node *node = first_reader(graph, index, &k);
    const struct graph_value *value = &graph->values[index], *weight;
    uint32_t axis = 1;
    int64_t length;

    if (node == NULL || k != 0 || node->op == NULL)
        return;
    weight = graph_input(graph, node, 1);
    if (weight == NULL || weight->constant == NULL || weight->rank < 2)
        return;
    if (strstr(node->type, "Conv") != NULL) {
        length = node->op->tandem_op == TANDEM_OP_CONV
                     ? weight->shape[1] * graph_integer(node, "group", 1)
                     : weight->shape[0];
        if (rank_is_open(value))
            input->rank = weight->rank;
    } else if (node->op->tandem_op == TANDEM_OP_GEMM &&
               graph_integer(node, "transA", 0) == 0) {
        if (strcmp(node->type, "Gemm") == 0 && rank_is_open(value))
            input->rank = 2;
        axis = input->rank - 1;
        length = weight->shape[graph_integer(node, "transB", 0) != 0
                                   ? weight->rank - 1
                                   : weight->rank - 2];
    } else {
        return;
    }
    if (axis < input->rank && (rank_is_open(value) || value->shape[axis] < 0))
        input->shape[axis] = length;
}

/* ---- contents ---- */

/* Returns the assumed element `i` of input `k` of a node that needs the content
 * of this input. */
static int64_t element_guess(const struct graph *graph,
                             const struct graph_node *node, uint32_t k,
                             uint32_t i, uint32_t count, int64_t length)
{
    const bool reshapes = strcmp(node->type, "Reshape") == 0;
    const struct graph_value *output = &graph->values[node->outputs[0]];

    if (strcmp(node->type, "Range") == 0)
        return k == 0 ? 0 : k == 1 ? length : 1;
    if (strcmp(node->type, "Slice") == 0)
        return k == 1 ? 0 : k == 2 ? INT32_MAX : k == 3 ? i : 1;
    if (reshapes || strcmp(node->type, "Expand") == 0 ||
        strcmp(node->type, "ConstantOfShape") == 0) {
        if (output->has_shape && i < output->rank && output->shape[i] >= 0)
            return output->shape[i];
        return i + 1 < count ? 1 : reshapes ? -1 : length;
    }
    if (strcmp(node->type, "TopK") == 0 || strcmp(node->type, "Tile") == 0)
        return 1;
    return node->op != NULL && k < 32 && (node->op->parameters >> k & 1)
               ? (int64_t)i
               : length;
}

/* Sets the content of a short input of integers, or of a limit of Range. */
static void assume_content(const struct graph *graph, int32_t index,
                           int64_t length, struct lower_input *input,
                           union content *content)
{
    uint32_t k;
    const struct graph_node *node = first_reader(graph, index, &k);
    const int64_t count = input->rank == 0 ? 1 : input->shape[0];

    if (node == NULL || node->outputs[0] == NO_VALUE || input->rank > 1 ||
        count > (int64_t)MAX_CONTENT ||
        (input->dtype == TANDEM_F32 && strcmp(node->type, "Range") != 0))
        return;
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        const int64_t guess =
            element_guess(graph, node, k, i, (uint32_t)count, length);

        if (input->dtype == TANDEM_F32)
            content->f32[i] = (float)guess;
        else if (input->dtype == TANDEM_I32)
            content->i32[i] = (int32_t)guess;
        else if (input->dtype == TANDEM_I64)
            content->i64[i] = guess;
        else
            return;
    }
    input->content = content;
}

/* ---- inputs ---- */

static int64_t axis_length(const struct graph *graph,
                           const struct provider_options *options,
                           const struct assumption *assumption,
                           const struct graph_value *value, uint32_t axis)
{
    const char *name = value->dimension_names[axis];
    const int64_t given = given_length(graph, options, value, axis);

    if (given >= 0)
        return given;
    if (is_batch(graph, value, axis))
        return 1;
    return assumption->empty_past && name != NULL &&
                   strstr(name, "past") != NULL && strchr(name, '+') == NULL
               ? 0
               : assumption->length;
}

/* Sets the shape of an input.  Returns true if the model leaves it open. */
static bool assume_shape(const struct graph *graph,
                         const struct provider_options *options,
                         const struct assumption *assumption, int32_t index,
                         struct lower_input *input)
{
    const struct graph_value *value = &graph->values[index];
    struct graph_value open = *value;
    const uint32_t given = given_shape(options, value, input->shape);
    bool is_open = rank_is_open(value);
    uint32_t reader_index;
    const struct graph_node *reader = first_reader(graph, index, &reader_index);

    input->dtype = value->dtype;
    input->rank = value->rank;
    if (is_open && given > 0) {
        input->rank = given;
        return true;
    }
    if (is_open && reader != NULL && strcmp(reader->type, "Range") == 0) {
        input->rank = 0;
        return false;
    }
    if (is_open) {
        input->rank = open.rank = assumption->rank;
        fit_reader(graph, index, input); /* may change the rank */
        open.rank = input->rank;
        for (uint32_t k = 0; k < TANDEM_MAX_RANK; k++)
            open.shape[k] = -1;
    }
    for (uint32_t k = 0; k < input->rank; k++) {
        input->shape[k] = open.shape[k];
        if (open.shape[k] >= 0)
            continue;
        is_open = true;
        input->shape[k] = axis_length(graph, options, assumption, &open, k);
    }
    if (is_open && given == 0)
        fit_reader(graph, index, input);
    return is_open;
}

/* Writes "1x3x224x224".  Open axes are question marks. */
static void shape_print(char text[128], uint32_t rank, const int64_t *shape)
{
    size_t length = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < rank && length < 128; i++)
        length += (size_t)snprintf(text + length, 128 - length,
                                   shape[i] < 0 ? "%s?" : "%s%" PRId64,
                                   i > 0 ? "x" : "", shape[i]);
}

bool assumed_shape_check(const struct graph *graph, const char *name,
                         size_t name_length, uint32_t rank,
                         const int64_t *shape, char message[512])
{
    const int names = name_length < 100 ? (int)name_length : 100;
    const struct graph_value *value = NULL;
    char given[128], expected[128];
    bool fits;

    for (uint32_t i = 0; i < graph->value_count && value == NULL; i++) {
        if (strlen(graph->values[i].name) == name_length &&
            memcmp(graph->values[i].name, name, name_length) == 0)
            value = &graph->values[i];
    }
    if (value == NULL) {
        snprintf(message, 512,
                 "option shapes: no node of the model reads or computes a "
                 "tensor \"%.*s\"; the entry has no effect",
                 names, name);
        return false;
    }
    if (rank_is_open(value))
        return true;
    fits = value->rank == rank;
    for (uint32_t i = 0; fits && i < rank; i++)
        fits = value->shape[i] < 0 || value->shape[i] == shape[i];
    if (!fits) {
        shape_print(given, rank, shape);
        shape_print(expected, value->rank, value->shape);
        snprintf(
            message, 512,
            "option shapes: tensor \"%.*s\" is given the shape %s, but has "
            "the shape %s in the model; the model counts",
            names, name, given, expected);
    }
    return fits;
}

/* Appends "name:1x3x224x224" to a text, if there is room. */
static void text_add(char text[256], const char *name,
                     const struct lower_input *input)
{
    char entry[256], shape[128];

    shape_print(shape, input->rank, input->shape);
    snprintf(entry, sizeof(entry), "%s%.100s:%s", text[0] != '\0' ? ";" : "",
             name, shape);
    if (strlen(text) + strlen(entry) + sizeof(";...") <= 256)
        strcat(text, entry);
    else if (strstr(text, ";...") == NULL)
        strcat(text, ";...");
}

bool assumption_lower(const struct graph *graph,
                      const struct provider_options *options,
                      const struct assumption *assumption, struct form *form,
                      char text[256], uint32_t *out_failed, char problem[256])
{
    const size_t count = graph->input_count + 1;
    struct lower_input *inputs = calloc(count, sizeof(inputs[0]));
    union content *contents = calloc(count, sizeof(contents[0]));
    bool *content_matters = calloc(count, sizeof(bool));
    const struct graph_node *failed = NULL;
    bool lowered = false;

    *out_failed = UINT32_MAX;
    text[0] = '\0';
    if (inputs == NULL || contents == NULL || content_matters == NULL) {
        snprintf(problem, 256, "out of memory");
        goto end;
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (assume_shape(graph, options, assumption, graph->inputs[i],
                         &inputs[i]))
            text_add(text, graph->values[graph->inputs[i]].name, &inputs[i]);
        assume_content(graph, graph->inputs[i], assumption->length, &inputs[i],
                       &contents[i]);
    }
    lowered =
        lower_graph(graph, inputs, content_matters, form, &failed, problem);
    if (!lowered && failed != NULL)
        *out_failed = (uint32_t)(failed - graph->nodes);
end:
    free(inputs);
    free(contents);
    free(content_matters);
    return lowered;
}

/* ---- assumptions ---- */

/* Properties of the open dimensions of a group's inputs. */
struct openness {
    bool lengths, ranks, past;
    bool known_tensor; /* an input has a known rank of at least 1 */
    bool waveform;     /* one or two channels of samples */
    uint32_t space;    /* axes of space: 3 for volumes, 2 for images, else 1 */
};

/* Adds an input whose rank is known. */
static void openness_add(const struct graph *graph,
                         const struct graph_value *value, struct openness *out)
{
    int64_t channels = 1;
    uint32_t open_axes = 0;

    out->known_tensor |= value->rank > 0;
    for (uint32_t k = 0; k < value->rank; k++) {
        const char *name = value->dimension_names[k];

        if (k > 0 && k + 1 < value->rank)
            channels *= value->shape[k];
        if (value->shape[k] >= 0)
            continue;
        out->past |= name != NULL && strstr(name, "past") != NULL;
        if (is_batch(graph, value, k))
            continue;
        open_axes++;
        out->waveform &= k + 1 == value->rank && value->dtype == TANDEM_F32 &&
                         channels >= 1 && channels <= 2 && value->rank <= 3;
    }
    out->lengths |= open_axes > 0;
    if (value->rank >= 5 && open_axes >= 3)
        out->space = 3;
    else if (value->rank >= 4 && open_axes >= 2 && out->space < 2)
        out->space = 2;
}

static void openness_find(const struct graph *graph, struct openness *out)
{
    *out = (struct openness){.waveform = true, .space = 1};
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct graph_value *value = &graph->values[graph->inputs[i]];

        if (rank_is_open(value))
            out->ranks = true;
        else
            openness_add(graph, value, out);
    }
    out->waveform &= out->lengths;
    /* Masks of attention have two open axes, too. */
    if (out->past)
        out->space = 1;
}

struct lengths {
    uint32_t count, typical;
    int64_t values[16]; /* typical ones first */
};

/* Returns the lengths to try, if values of unknown rank have the given rank. */
static const struct lengths *lengths_of(const struct openness *open,
                                        uint32_t rank)
{
    /* Models often work for a single length, such as 77 tokens (CLIP), 3000
     * frames (Whisper), or images of 320, 416 or 640 (YOLO). */
    static const struct lengths sequence = {16,
                                            2,
                                            {128, 1024, 256, 512, 640, 64, 32,
                                             224, 384, 77, 960, 2048, 3000,
                                             16000, 16, 8}};
    static const struct lengths wave = {
        8, 1, {16000, 1024, 128, 640, 512, 256, 64, 32}};
    static const struct lengths image = {
        14,
        2,
        {224, 640, 256, 512, 320, 416, 384, 128, 1024, 64, 32, 480, 768, 299}};
    static const struct lengths volume = {4, 2, {64, 128, 32, 256}};

    if (open->waveform)
        return &wave;
    if (open->space == 3 || rank >= 5)
        return &volume;
    return open->space == 2 || rank == 4 ? &image : &sequence;
}

uint32_t assumptions_list(const struct graph *graph, struct assumption *out,
                          uint32_t *out_typical)
{
    static const uint32_t unknown[] = {4, 3, 2, 1, 0}, scalar[] = {0, 4, 3, 2};
    const uint32_t *ranks;
    uint32_t rank_count = 1, count = 0;
    struct openness open;

    openness_find(graph, &open);
    /* Next to other tensors, rank 0 is rather a scalar than unknown. */
    ranks = open.known_tensor ? scalar : unknown;
    if (open.ranks)
        rank_count = open.known_tensor ? 4 : 5;
    *out_typical = 0;
    for (uint32_t past = 0; past <= (open.past ? 1 : 0); past++) {
        for (uint32_t r = 0; r < rank_count; r++) {
            const struct lengths *lengths =
                lengths_of(&open, open.ranks ? ranks[r] : 0);

            if (count == 0)
                *out_typical = lengths->typical;
            for (uint32_t i = 0; i < lengths->count && count < MAX_ASSUMPTIONS;
                 i++)
                out[count++] = (struct assumption){
                    .length = lengths->values[i],
                    .rank = ranks[r],
                    .empty_past = past > 0,
                };
        }
    }
    return count;
}
