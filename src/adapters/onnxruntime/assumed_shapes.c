/* SPDX-License-Identifier: Apache-2.0 */
/* Infers the shapes of a model for one guess of its open dimensions; see
 * assumed_shapes.h.  Has no state; any thread may call the functions. */
#include <config.h>

#include "adapters/onnxruntime/assumed_shapes.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- properties of values ---- */

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

/* Sets the content of a value of f32, i32 or i64. */
static void content_set(struct assumed_value *value, const int64_t *numbers,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (value->input.dtype == TANDEM_F32)
            value->content.f32[i] = (float)numbers[i];
        else if (value->input.dtype == TANDEM_I32)
            value->content.i32[i] = (int32_t)numbers[i];
        else
            value->content.i64[i] = numbers[i];
    }
    value->input.content = &value->content;
}

/* Guesses the content of a short tensor of integers, or of a limit of Range.
 * Returns the number of elements, or 0 if the content remains unknown. */
static uint32_t guess_content(const struct graph *graph, int32_t index,
                              int64_t length, struct assumed_value *value,
                              int64_t out_numbers[MAX_ASSUMED_CONTENT])
{
    uint32_t k;
    const struct graph_node *node = first_reader(graph, index, &k);
    const uint32_t dtype = value->input.dtype;
    const int64_t count = value->input.rank == 0 ? 1 : value->input.shape[0];

    if (node == NULL || node->outputs[0] == NO_VALUE || value->input.rank > 1 ||
        count > (int64_t)MAX_ASSUMED_CONTENT ||
        (dtype == TANDEM_F32 ? strcmp(node->type, "Range") != 0
                             : dtype != TANDEM_I32 && dtype != TANDEM_I64))
        return 0;
    for (uint32_t i = 0; i < (uint32_t)count; i++)
        out_numbers[i] =
            element_guess(graph, node, k, i, (uint32_t)count, length);
    content_set(value, out_numbers, (uint32_t)count);
    return (uint32_t)count;
}

/* ---- texts ---- */

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

/* ---- inference ---- */

struct inference {
    const struct graph *graph;
    const struct provider_options *options;
    const struct assumption *assumption;
    struct assumed_shapes *out;
    struct lowering lowering;
};

/* Sets the shape of an input of the model. */
static void guess_input(const struct inference *f, int32_t index)
{
    const struct graph_value *value = &f->graph->values[index];
    struct lower_input *input = &f->out->values[index].input;
    struct graph_value open = *value;
    const uint32_t given = given_shape(f->options, value, input->shape);
    bool is_open = rank_is_open(value);
    int64_t numbers[MAX_ASSUMED_CONTENT];
    uint32_t k;
    const struct graph_node *reader = first_reader(f->graph, index, &k);

    input->dtype = value->dtype;
    input->rank = value->rank;
    if (is_open && given > 0) {
        input->rank = given;
    } else if (is_open && reader != NULL &&
               strcmp(reader->type, "Range") == 0) {
        input->rank = 0;
        is_open = false;
    } else {
        if (is_open) {
            input->rank = f->assumption->rank;
            fit_reader(f->graph, index, input); /* may change the rank */
            for (k = 0; k < TANDEM_MAX_RANK; k++)
                open.shape[k] = -1;
        }
        open.rank = input->rank;
        for (k = 0; k < input->rank; k++) {
            const int64_t length = given_length(f->graph, f->options, &open, k);

            is_open |= open.shape[k] < 0;
            input->shape[k] =
                open.shape[k] >= 0 ? open.shape[k]
                : length >= 0
                    ? length
                    : assumption_length(f->graph, f->assumption, &open, k);
        }
        if (is_open && given == 0)
            fit_reader(f->graph, index, input);
    }
    if (is_open)
        text_add(f->out->text, value->name, input);
    guess_content(f->graph, index, f->assumption->lengths[AXIS_OF_SEQUENCE],
                  &f->out->values[index], numbers);
}

/* Returns the inferred length of an axis of this name, or -1. */
static int64_t named_length(const struct inference *f, const char *name)
{
    if (name == NULL || name[0] == '\0')
        return -1;
    for (uint32_t i = 0; i < f->graph->value_count; i++) {
        const struct graph_value *value = &f->graph->values[i];
        const struct operand *operand = &f->lowering.operands[i];

        for (uint32_t k = 0; k < value->rank && operand->present &&
                             operand->view.rank == value->rank;
             k++) {
            if (value->dimension_names[k] != NULL &&
                strcmp(value->dimension_names[k], name) == 0)
                return operand->view.shape[k];
        }
    }
    return -1;
}

/* Returns the first input of the node that may have the shape of the value, or
 * NULL. */
static const struct operand *similar_input(const struct inference *f,
                                           const struct graph_node *node,
                                           const struct graph_value *value)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct operand *operand;
        bool fits;

        if (node->inputs[i] == NO_VALUE)
            continue;
        operand = &f->lowering.operands[node->inputs[i]];
        fits = operand->present && operand->dtype == value->dtype &&
               f->graph->values[node->inputs[i]].constant == NULL &&
               (rank_is_open(value) || operand->view.rank == value->rank);
        for (uint32_t k = 0; fits && k < value->rank; k++)
            fits = value->shape[k] < 0 ||
                   value->shape[k] == operand->view.shape[k];
        if (fits)
            return operand;
    }
    return NULL;
}

/* Sets the shape of an output of a node that is not lowered: from what ONNX
 * Runtime knows, from axes of the same names, from an input of the node, or as
 * for inputs of the model. */
static void guess_shape(const struct inference *f,
                        const struct graph_node *node, int32_t index)
{
    const struct graph_value *value = &f->graph->values[index];
    const struct operand *similar = similar_input(f, node, value);
    struct lower_input *input = &f->out->values[index].input;
    struct graph_value open = *value;
    bool is_guess = false;

    input->dtype = value->dtype;
    input->rank = value->rank;
    if (rank_is_open(value)) {
        input->rank =
            similar != NULL ? similar->view.rank : f->assumption->rank;
        fit_reader(f->graph, index, input);
        for (uint32_t k = 0; k < TANDEM_MAX_RANK; k++)
            open.shape[k] = -1;
        if (similar != NULL && similar->view.rank != input->rank)
            similar = NULL;
    }
    open.rank = input->rank;
    for (uint32_t k = 0; k < input->rank; k++) {
        int64_t length = open.shape[k];

        if (length < 0)
            length = given_length(f->graph, f->options, &open, k);
        if (length < 0)
            length = named_length(f, open.dimension_names[k]);
        if (length < 0 && similar != NULL)
            length = similar->view.shape[k];
        if (length < 0) {
            is_guess = true;
            length = assumption_length(f->graph, f->assumption, &open, k);
        }
        input->shape[k] = length;
    }
    if (is_guess) {
        fit_reader(f->graph, index, input);
        text_add(f->out->text, value->name, input);
    }
}

/* Makes the operand of an output of a node that is not lowered.  The operand
 * remains absent if that is not possible. */
static void guess_output(struct inference *f, const struct graph_node *node,
                         int32_t index)
{
    struct assumed_value *value;
    struct operand operand;
    int64_t numbers[MAX_ASSUMED_CONTENT];
    uint32_t count;
    bool made;

    if (index == NO_VALUE || f->graph->values[index].dtype == 0)
        return;
    guess_shape(f, node, index);
    value = &f->out->values[index];
    count =
        guess_content(f->graph, index, f->assumption->lengths[AXIS_OF_SEQUENCE],
                      value, numbers);
    if (count == 0) {
        made = lower_new(&f->lowering, value->input.dtype, value->input.rank,
                         value->input.shape, &operand);
    } else if (value->input.dtype == TANDEM_F32) {
        made =
            lower_new_constant(&f->lowering, (double)numbers[0],
                               value->input.rank, value->input.shape, &operand);
    } else {
        made =
            lower_new_integers(&f->lowering, value->input.dtype,
                               value->input.rank, value->input.shape, &operand);
        if (made)
            memcpy(operand.integers, numbers, count * sizeof(numbers[0]));
    }
    if (made)
        f->lowering.operands[index] = operand;
}

static bool failure_add(struct assumed_shapes *out, uint32_t node,
                        const char problem[256])
{
    const size_t count = out->failure_count + 1u;
    struct assumed_failure *grown =
        realloc(out->failures, count * sizeof(grown[0]));

    if (grown == NULL)
        return false;
    out->failures = grown;
    grown[out->failure_count].node = node;
    memcpy(grown[out->failure_count++].problem, problem, 256);
    return true;
}

/* Returns true if the first output is empty, but not the first input. */
static bool makes_empty(struct lowering *l)
{
    const struct operand *input = lower_input_operand(l, 0);
    const struct operand *output;

    if (input == NULL || l->node->output_count == 0 ||
        l->node->outputs[0] == NO_VALUE)
        return false;
    output = &l->operands[l->node->outputs[0]];
    return output->present && operand_elements(output) == 0 &&
           operand_elements(input) > 0;
}

static bool infer_nodes(struct inference *f)
{
    struct lowering *l = &f->lowering;

    for (uint32_t i = 0; i < f->graph->node_count; i++) {
        const struct graph_node *node = &f->graph->nodes[i];

        l->node = node;
        l->is_unknown = false;
        if (node->op != NULL && lower_node(l)) {
            f->out->empty_count += makes_empty(l);
            continue;
        }
        if (l->form->arena.exhausted || (node->op != NULL && !l->is_unknown &&
                                         !failure_add(f->out, i, l->problem)))
            return false;
        for (uint32_t k = 0; k < node->output_count; k++)
            guess_output(f, node, node->outputs[k]);
    }
    return true;
}

/* Copies the shapes, and short contents of integers, of the operands. */
static void record_values(const struct inference *f)
{
    for (uint32_t i = 0; i < f->graph->value_count; i++) {
        const struct operand *operand = &f->lowering.operands[i];
        struct assumed_value *value = &f->out->values[i];

        value->known = operand->present;
        if (!operand->present || value->input.content != NULL)
            continue;
        value->input.dtype = operand->dtype;
        value->input.rank = operand->view.rank;
        memcpy(value->input.shape, operand->view.shape,
               sizeof(value->input.shape));
        if (operand->integers != NULL && operand->dtype != TANDEM_F32 &&
            (operand->dtype == TANDEM_I32 || operand->dtype == TANDEM_I64) &&
            operand_elements(operand) <= (int64_t)MAX_ASSUMED_CONTENT)
            content_set(value, operand->integers,
                        (uint32_t)operand_elements(operand));
    }
}

bool assumed_shapes_infer(const struct graph *graph,
                          const struct provider_options *options,
                          const struct assumption *assumption,
                          struct assumed_shapes *out)
{
    struct form form = {.storages = NULL};
    struct inference f = {
        .graph = graph,
        .options = options,
        .assumption = assumption,
        .out = out,
        .lowering = {.graph = graph, .form = &form},
    };
    struct lower_input *inputs =
        calloc(graph->input_count + 1u, sizeof(inputs[0]));
    bool inferred = false;

    *out = (struct assumed_shapes){
        .values = calloc(graph->value_count + 1u, sizeof(out->values[0])),
    };
    f.lowering.inputs = inputs;
    f.lowering.content_matters = calloc(graph->input_count + 1u, sizeof(bool));
    if (inputs != NULL && out->values != NULL &&
        f.lowering.content_matters != NULL) {
        for (uint32_t i = 0; i < graph->input_count; i++) {
            guess_input(&f, graph->inputs[i]);
            inputs[i] = out->values[graph->inputs[i]].input;
        }
        inferred = lower_begin(&f.lowering) && infer_nodes(&f);
    }
    if (inferred)
        record_values(&f);
    else
        assumed_shapes_free(out);
    form_free(&form);
    free(inputs);
    free(f.lowering.content_matters);
    return inferred;
}

void assumed_shapes_free(struct assumed_shapes *shapes)
{
    free(shapes->values);
    free(shapes->failures);
    *shapes = (struct assumed_shapes){.values = NULL};
}

bool assumed_shapes_lower(const struct assumed_shapes *shapes,
                          const struct graph *part, struct form *form,
                          uint32_t *out_failed, char problem[256])
{
    struct lower_input *inputs =
        calloc(part->input_count + 1u, sizeof(inputs[0]));
    bool *content_matters = calloc(part->input_count + 1u, sizeof(bool));
    const struct graph_node *failed = NULL;
    bool lowered = false, known = true;

    *out_failed = UINT32_MAX;
    for (uint32_t i = 0; inputs != NULL && known && i < part->input_count;
         i++) {
        inputs[i] = shapes->values[part->inputs[i]].input;
        known = shapes->values[part->inputs[i]].known;
        if (!known)
            snprintf(problem, 256, "the shape of \"%.100s\" is not known",
                     part->values[part->inputs[i]].name);
    }
    if (inputs == NULL || content_matters == NULL)
        snprintf(problem, 256, "out of memory");
    else if (known)
        lowered =
            lower_graph(part, inputs, content_matters, form, &failed, problem);
    if (failed != NULL)
        *out_failed = (uint32_t)(failed - part->nodes);
    free(inputs);
    free(content_matters);
    return lowered;
}
