/* SPDX-License-Identifier: Apache-2.0 */
/* Makes forms: operands, views and steps; see lower.h.  The functions for each
 * operator are in lower_*.c. */
#include <config.h>

#include "adapters/onnxruntime/lower.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The most elements of a tensor that the host computes while it makes a form,
 * for example of an attention mask over all pairs of tokens.  This number of
 * int64 elements takes 1 GiB. */
#define MAX_INTEGERS 134217728

bool lower_fail(struct lowering *l, const char *format, ...)
{
    char reason[192];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (l->node != NULL)
        snprintf(l->problem, sizeof(l->problem), "%s \"%.40s\": %s",
                 l->node->type, l->node->name, reason);
    else
        snprintf(l->problem, sizeof(l->problem), "%s", reason);
    return false;
}

static bool out_of_memory(struct lowering *l)
{
    return lower_fail(l, "out of memory");
}

static bool content_unknown(struct lowering *l)
{
    l->is_unknown = true;
    return lower_fail(l, "the content of an input is not known in advance");
}

/* ---- operands ---- */

int64_t operand_elements(const struct operand *operand)
{
    int64_t elements = 1;

    for (uint32_t i = 0; i < operand->view.rank; i++)
        elements *= operand->view.shape[i];
    return elements;
}

void view_set_contiguous(struct form_view *view)
{
    int64_t stride = 1;

    for (uint32_t i = view->rank; i-- > 0;) {
        view->strides[i] = stride;
        stride *= view->shape[i];
    }
}

bool view_is_contiguous(const struct form_view *view)
{
    int64_t stride = 1;

    for (uint32_t i = view->rank; i-- > 0;) {
        if (view->shape[i] != 1 && view->strides[i] != stride)
            return false;
        stride *= view->shape[i];
    }
    return true;
}

struct operand *lower_input_operand(struct lowering *l, uint32_t index)
{
    const struct graph_node *node = l->node;

    if (index >= node->input_count || node->inputs[index] == NO_VALUE)
        return NULL;
    return &l->operands[node->inputs[index]];
}

/* Converts `count` elements of a dtype to int64.  Returns false if the dtype is
 * neither an integer nor bool. */
static bool integers_convert(uint32_t dtype, const void *content, int64_t count,
                             int64_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case TANDEM_I64:
            memcpy(&out[i], (const int64_t *)content + i, sizeof(out[i]));
            break;
        case TANDEM_I32:
            out[i] = ((const int32_t *)content)[i];
            break;
        case TANDEM_U8:
        case TANDEM_BOOL:
            out[i] = ((const uint8_t *)content)[i];
            break;
        default:
            return false;
        }
    }
    return true;
}

/* Returns the content of the operand's constant or input, or NULL. */
static const void *operand_content(struct lowering *l,
                                   const struct operand *operand)
{
    const struct form_storage *storage;

    if (operand->view.storage == NO_STORAGE)
        return NULL;
    storage = &l->form->storages[operand->view.storage];
    if (storage->kind == STORAGE_INPUT) {
        l->content_matters[storage->input] = true;
        return l->inputs[storage->input].content;
    }
    return storage->content;
}

const int64_t *lower_integers(struct lowering *l, struct operand *operand,
                              int64_t *out_count)
{
    const int64_t count = operand_elements(operand);
    const void *content;

    *out_count = count;
    if (operand->integers != NULL)
        return operand->integers;
    if (count > MAX_INTEGERS) {
        lower_fail(l, "a shape has %" PRId64 " elements; at most %d are read",
                   count, MAX_INTEGERS);
        return NULL;
    }
    content = operand_content(l, operand);
    if (content == NULL || !view_is_contiguous(&operand->view)) {
        content_unknown(l);
        return NULL;
    }
    operand->integers =
        arena_allocate(&l->form->arena, (size_t)count + 1, sizeof(int64_t));
    if (operand->integers == NULL) {
        out_of_memory(l);
        return NULL;
    }
    content = (const char *)content +
              operand->view.first_element * TANDEM_DTYPE_BYTES(operand->dtype);
    if (!integers_convert(operand->dtype, content, count, operand->integers)) {
        operand->integers = NULL;
        lower_fail(l, "expected integers");
        return NULL;
    }
    return operand->integers;
}

const float *lower_reals(struct lowering *l, struct operand *operand,
                         int64_t *out_count)
{
    const void *content = operand_content(l, operand);

    *out_count = operand_elements(operand);
    if (operand->dtype != TANDEM_F32) {
        lower_fail(l, "expected f32 numbers");
        return NULL;
    }
    if (content == NULL || !view_is_contiguous(&operand->view)) {
        content_unknown(l);
        return NULL;
    }
    return (const float *)content + operand->view.first_element;
}

int64_t integer_narrow(uint32_t dtype, int64_t value)
{
    switch (dtype) {
    case TANDEM_I32:
        return (int32_t)value;
    case TANDEM_U8:
        return (uint8_t)value;
    case TANDEM_BOOL:
        return value != 0;
    default:
        return value;
    }
}

bool lower_constant_scalar(struct lowering *l, uint32_t index, double *out)
{
    return graph_constant_scalar(l->graph, l->node, index, out);
}

static bool shape_check(struct lowering *l, uint32_t rank, const int64_t *shape)
{
    int64_t elements = 1;

    if (rank > TANDEM_MAX_RANK)
        return lower_fail(l, "rank %" PRIu32 "; at most %u are supported", rank,
                          TANDEM_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0 ||
            __builtin_mul_overflow(elements, shape[i], &elements) ||
            elements > INT64_MAX / 16)
            return lower_fail(l,
                              "axis %" PRIu32 " has length %" PRId64
                              "; the tensor is not valid or too large",
                              i, shape[i]);
    }
    return true;
}

/* Sets *out to a contiguous view of a new storage. */
static bool operand_init(struct lowering *l, uint32_t dtype, uint32_t rank,
                         const int64_t *shape, struct operand *out)
{
    struct operand operand = {.present = true,
                              .dtype = dtype,
                              .view = {.storage = NO_STORAGE, .rank = rank}};

    if (!shape_check(l, rank, shape))
        return false;
    for (uint32_t i = 0; i < rank; i++) /* the shape of a scalar is NULL */
        operand.view.shape[i] = shape[i];
    view_set_contiguous(&operand.view);
    *out = operand;
    return true;
}

static bool storage_add(struct lowering *l, enum storage_kind kind,
                        struct operand *operand)
{
    const uint32_t index = form_add_storage(l->form);
    struct form_storage *storage;

    if (index == UINT32_MAX)
        return out_of_memory(l);
    storage = &l->form->storages[index];
    storage->kind = kind;
    storage->dtype = operand->dtype;
    storage->elements = operand_elements(operand);
    operand->view.storage = (int32_t)index;
    return true;
}

bool lower_new(struct lowering *l, uint32_t dtype, uint32_t rank,
               const int64_t *shape, struct operand *out)
{
    return operand_init(l, dtype, rank, shape, out) &&
           storage_add(l, STORAGE_TEMPORARY, out);
}

bool lower_new_integers(struct lowering *l, uint32_t dtype, uint32_t rank,
                        const int64_t *shape, struct operand *out)
{
    if (!operand_init(l, dtype, rank, shape, out))
        return false;
    if (operand_elements(out) > MAX_INTEGERS)
        return lower_fail(l, "a shape has more than %d elements", MAX_INTEGERS);
    out->integers = arena_allocate(
        &l->form->arena, (size_t)operand_elements(out) + 1, sizeof(int64_t));
    return out->integers != NULL || out_of_memory(l);
}

bool lower_new_constant(struct lowering *l, double value, uint32_t rank,
                        const int64_t *shape, struct operand *out)
{
    const int64_t one = 1;
    struct operand element;
    float *content;

    if (!operand_init(l, TANDEM_F32, 1, &one, &element) ||
        !storage_add(l, STORAGE_FOLDED, &element))
        return false;
    content = arena_allocate(&l->form->arena, 1, sizeof(*content));
    if (content == NULL)
        return out_of_memory(l);
    *content = (float)value;
    l->form->storages[element.view.storage].content = content;
    element.view.rank = 0;
    return lower_expand(l, &element, rank, shape, out);
}

bool lower_materialize(struct lowering *l, struct operand *operand)
{
    const size_t bytes = TANDEM_DTYPE_BYTES(operand->dtype);
    const int64_t count = operand_elements(operand);
    char *content;

    if (operand->view.storage != NO_STORAGE)
        return true;
    content = arena_allocate(&l->form->arena, (size_t)count + 1, bytes);
    if (content == NULL)
        return out_of_memory(l);
    /* Integers are little-endian on every host that Tandem supports, so their
     * first bytes are the value in a shorter type. */
    for (int64_t i = 0; i < count; i++)
        memcpy(content + (size_t)i * bytes, &operand->integers[i], bytes);
    view_set_contiguous(&operand->view);
    if (!storage_add(l, STORAGE_FOLDED, operand))
        return false;
    l->form->storages[operand->view.storage].content = content;
    return true;
}

/* ---- views ---- */

struct operand operand_align(const struct operand *operand, uint32_t rank)
{
    struct operand aligned = *operand;
    const uint32_t added = rank - operand->view.rank;

    aligned.view.rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        aligned.view.shape[i] = i < added ? 1 : operand->view.shape[i - added];
        aligned.view.strides[i] =
            i < added ? 0 : operand->view.strides[i - added];
    }
    return aligned;
}

bool lower_expand(struct lowering *l, const struct operand *operand,
                  uint32_t rank, const int64_t *shape, struct operand *out)
{
    struct operand source = *operand;
    const uint32_t dropped =
        operand->view.rank > rank ? operand->view.rank - rank : 0;

    if (!shape_check(l, rank, shape) || !lower_materialize(l, &source))
        return false;
    for (uint32_t i = 0; i < dropped; i++) {
        if (source.view.shape[i] != 1)
            return lower_fail(l,
                              "a tensor of rank %" PRIu32
                              " does not broadcast to rank %" PRIu32,
                              operand->view.rank, rank);
    }
    source.view.rank -= dropped;
    memmove(source.view.shape, source.view.shape + dropped,
            source.view.rank * sizeof(source.view.shape[0]));
    memmove(source.view.strides, source.view.strides + dropped,
            source.view.rank * sizeof(source.view.strides[0]));
    *out = operand_align(&source, rank);
    out->integers = NULL;
    for (uint32_t i = 0; i < rank; i++) {
        if (out->view.shape[i] == shape[i])
            continue;
        if (out->view.shape[i] != 1)
            return lower_fail(l,
                              "length %" PRId64 " of axis %" PRIu32
                              " does not broadcast to %" PRId64,
                              out->view.shape[i], i, shape[i]);
        out->view.shape[i] = shape[i];
        out->view.strides[i] = 0;
    }
    return true;
}

/* Computes strides with which the view has another shape of as many elements.
 * Splits both shapes into the shortest groups of axes with equal products; the
 * old axes of a group must follow each other in memory.  Returns false if there
 * are no such strides. */
static bool view_reshape(const struct form_view *view, uint32_t rank,
                         const int64_t *shape, int64_t *out_strides)
{
    int64_t old_shape[TANDEM_MAX_RANK], old_strides[TANDEM_MAX_RANK];
    uint32_t old_rank = 0, from = 0, to = 0;

    for (uint32_t i = 0; i < view->rank; i++) {
        if (view->shape[i] == 1)
            continue;
        old_shape[old_rank] = view->shape[i];
        old_strides[old_rank++] = view->strides[i];
    }
    while (to < rank) {
        uint32_t from_end = from, to_end = to;
        int64_t have = 1, want = 1, stride;

        do {
            want *= shape[to_end++];
            while (have < want && from_end < old_rank)
                have *= old_shape[from_end++];
        } while (have != want && to_end < rank);
        if (have != want)
            return false;
        for (uint32_t i = from; i + 1 < from_end; i++) {
            if (old_strides[i] != old_strides[i + 1] * old_shape[i + 1])
                return false;
        }
        stride = from_end > from ? old_strides[from_end - 1] : 1;
        for (uint32_t i = to_end; i-- > to;) {
            out_strides[i] = stride;
            stride *= shape[i];
        }
        from = from_end;
        to = to_end;
    }
    return from == old_rank;
}

bool lower_contiguous(struct lowering *l, struct operand *operand,
                      struct operand *out)
{
    struct operand source;

    if (operand->view.storage == NO_STORAGE ||
        view_is_contiguous(&operand->view)) {
        *out = *operand;
        return true;
    }
    source = *operand;
    return lower_new(l, source.dtype, source.view.rank, source.view.shape,
                     out) &&
           lower_copy(l, &source, out);
}

bool lower_reshape(struct lowering *l, struct operand *operand, uint32_t rank,
                   const int64_t *shape, struct operand *out)
{
    int64_t strides[TANDEM_MAX_RANK] = {0};
    int64_t elements = 1;

    if (!shape_check(l, rank, shape))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        elements *= shape[i];
    if (elements != operand_elements(operand))
        return lower_fail(l,
                          "%" PRId64 " elements do not fit the new shape, "
                          "which has %" PRId64,
                          operand_elements(operand), elements);
    if (elements == 0 || !view_reshape(&operand->view, rank, shape, strides)) {
        if (!lower_contiguous(l, operand, out))
            return false;
        out->view.rank = rank;
        memcpy(out->view.shape, shape, rank * sizeof(shape[0]));
        view_set_contiguous(&out->view);
        return true;
    }
    *out = *operand;
    out->view.rank = rank;
    memcpy(out->view.shape, shape, rank * sizeof(shape[0]));
    memcpy(out->view.strides, strides, rank * sizeof(strides[0]));
    return true;
}

bool lower_broadcast(struct lowering *l, struct operand *const *operands,
                     uint32_t count, uint32_t *out_rank, int64_t *out_shape)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (operands[i]->view.rank > rank)
            rank = operands[i]->view.rank;
    }
    for (uint32_t axis = 0; axis < rank; axis++)
        out_shape[axis] = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct form_view *view = &operands[i]->view;

        for (uint32_t k = 0; k < view->rank; k++) {
            int64_t *length = &out_shape[rank - view->rank + k];

            if (*length == 1)
                *length = view->shape[k];
            else if (view->shape[k] != 1 && view->shape[k] != *length)
                return lower_fail(
                    l, "lengths %" PRId64 " and %" PRId64 " do not broadcast",
                    *length, view->shape[k]);
        }
    }
    *out_rank = rank;
    return true;
}

/* ---- steps ---- */

struct form_step step_make(const struct lowering *l, uint32_t op)
{
    return (struct form_step){.op = op, .node = l->node, .alpha = 1};
}

/* Replaces an operand without elements by a constant, because nothing writes
 * it. */
static bool operand_make_empty(struct lowering *l, struct operand *operand)
{
    operand->view.first_element = 0;
    view_set_contiguous(&operand->view);
    if (!storage_add(l, STORAGE_FOLDED, operand))
        return false;
    l->form->storages[operand->view.storage].content = "";
    return true;
}

bool step_add_input(struct lowering *l, struct form_step *step,
                    struct operand *operand)
{
    uint32_t view = NO_VIEW;

    if (operand != NULL) {
        struct operand input = *operand;

        if (!lower_materialize(l, &input) ||
            (operand_elements(&input) == 0 && !operand_make_empty(l, &input)))
            return false;
        view = form_add_view(l->form, &input.view);
        if (view == UINT32_MAX)
            return out_of_memory(l);
    }
    step->inputs[step->input_count++] = view;
    return true;
}

bool lower_step_outputs(struct lowering *l, struct form_step *step,
                        const struct operand *outputs, uint32_t count)
{
    if (operand_elements(&outputs[0]) == 0)
        return true;
    step->output_count = count;
    for (uint32_t i = 0; i < count; i++) {
        step->outputs[i] = form_add_view(l->form, &outputs[i].view);
        if (step->outputs[i] == UINT32_MAX)
            return out_of_memory(l);
    }
    return form_add_step(l->form, step) != UINT32_MAX || out_of_memory(l);
}

bool lower_step(struct lowering *l, struct form_step *step,
                const struct operand *output)
{
    return lower_step_outputs(l, step, output, 1);
}

bool lower_unary(struct lowering *l, uint32_t op, struct operand *x,
                 struct operand *out)
{
    struct form_step step = step_make(l, op);

    /* x and out may be the same operand. */
    return step_add_input(l, &step, x) &&
           lower_new(l, x->dtype, x->view.rank, x->view.shape, out) &&
           lower_step(l, &step, out);
}

bool lower_parametric(struct lowering *l, uint32_t op,
                      const double parameters[2], struct operand *x,
                      struct operand *out)
{
    struct form_step step = step_make(l, op);

    switch (op) {
#define ATTRIBUTES_OF_OP(ID, number, name, CLASS, inputs, outputs, int_names,  \
                         ints, float_names, floats, ...)                       \
    case TANDEM_OP_##ID:                                                       \
        step.int_count = ints;                                                 \
        step.float_count = floats;                                             \
        break;
        TANDEM_OPERATORS(ATTRIBUTES_OF_OP)
#undef ATTRIBUTES_OF_OP
    default:
        break;
    }
    step.ints[0] = parameters[0] != 0; /* the formula of gelu */
    memcpy(step.floats, parameters, 2 * sizeof(parameters[0]));
    /* x and out may be the same operand. */
    return step_add_input(l, &step, x) &&
           lower_new(l, x->dtype, x->view.rank, x->view.shape, out) &&
           lower_step(l, &step, out);
}

bool lower_binary(struct lowering *l, uint32_t op, struct operand *a,
                  struct operand *b, struct operand *out)
{
    struct operand *const operands[] = {a, b};
    struct form_step step = step_make(l, op);
    int64_t shape[TANDEM_MAX_RANK];
    struct operand aligned_a, aligned_b;
    uint32_t rank;

    if (!lower_materialize(l, a) || !lower_materialize(l, b) ||
        !lower_broadcast(l, operands, 2, &rank, shape))
        return false;
    aligned_a = operand_align(a, rank);
    aligned_b = operand_align(b, rank);
    return lower_new(l, a->dtype, rank, shape, out) &&
           step_add_input(l, &step, &aligned_a) &&
           step_add_input(l, &step, &aligned_b) && lower_step(l, &step, out);
}

bool lower_copy(struct lowering *l, struct operand *from,
                const struct operand *to)
{
    struct form_step step = step_make(l, TANDEM_OP_COPY);

    return step_add_input(l, &step, from) && lower_step(l, &step, to);
}

bool lower_output(struct lowering *l, uint32_t index,
                  const struct operand *operand)
{
    const struct graph_node *node = l->node;

    if (index < node->output_count && node->outputs[index] != NO_VALUE) {
        l->operands[node->outputs[index]] = *operand;
        l->operands[node->outputs[index]].present = true;
    }
    return true;
}

/* ---- whole graphs ---- */

bool lower_begin(struct lowering *l)
{
    l->operands = arena_allocate(&l->form->arena, l->graph->value_count + 1,
                                 sizeof(l->operands[0]));
    if (l->operands == NULL)
        return out_of_memory(l);
    for (uint32_t i = 0; i < l->graph->value_count; i++) {
        const struct graph_value *value = &l->graph->values[i];
        struct operand *operand = &l->operands[i];
        struct form_storage *storage;

        if (value->constant == NULL && value->input < 0)
            continue;
        if (value->constant != NULL) {
            if (!operand_init(l, value->dtype, value->rank, value->shape,
                              operand) ||
                !storage_add(l, STORAGE_CONSTANT, operand))
                return false;
            storage = &l->form->storages[operand->view.storage];
            storage->content = value->parts == NULL || value->weight != NULL
                                   ? value->constant
                                   : NULL;
            storage->weight = value->weight;
        } else {
            const struct lower_input *input = &l->inputs[value->input];

            if (!operand_init(l, input->dtype, input->rank, input->shape,
                              operand) ||
                !storage_add(l, STORAGE_INPUT, operand))
                return false;
            storage = &l->form->storages[operand->view.storage];
            storage->input = value->input;
        }
    }
    return true;
}

static bool output_init(struct lowering *l, struct operand *operand,
                        struct form_output *output)
{
    const char *content;

    output->dtype = operand->dtype;
    output->rank = operand->view.rank;
    memcpy(output->shape, operand->view.shape, sizeof(output->shape));
    output->bytes = (uint64_t)operand_elements(operand) *
                    TANDEM_DTYPE_BYTES(operand->dtype);
    output->view = NO_VIEW;
    if (output->bytes == 0)
        return true;
    if (!lower_materialize(l, operand))
        return false;
    if (l->form->storages[operand->view.storage].kind == STORAGE_FOLDED &&
        view_is_contiguous(&operand->view)) {
        content = l->form->storages[operand->view.storage].content;
        output->content = content + operand->view.first_element *
                                        TANDEM_DTYPE_BYTES(operand->dtype);
        return true;
    }
    output->view = form_add_view(l->form, &operand->view);
    return output->view != UINT32_MAX || out_of_memory(l);
}

/* Returns true if the content of the operand is known: it was computed on the
 * host, or is a constant of integers. */
static bool content_is_known(const struct lowering *l,
                             const struct operand *operand)
{
    const struct form_storage *storage;

    if (operand->view.storage == NO_STORAGE || operand->integers != NULL)
        return true;
    storage = &l->form->storages[operand->view.storage];
    return storage->kind == STORAGE_CONSTANT &&
           storage->elements <= MAX_INTEGERS &&
           view_is_contiguous(&operand->view);
}

bool lower_node(struct lowering *l)
{
    const struct graph_node *node = l->node;
    bool known = node_computes_integers(l->graph, node);

    if (node->op == NULL)
        return lower_fail(l, "the operator is not served");
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct operand *operand = lower_input_operand(l, i);

        if (operand == NULL)
            continue;
        if (!operand->present) {
            l->is_unknown = true;
            return lower_fail(l, "input %" PRIu32 " has no value", i);
        }
        known = known &&
                (node->op->rule == RULE_SHAPE || content_is_known(l, operand));
    }
    if (known)
        return node->op->evaluate(l);
    if (!node_runs_on_device(l->graph, node))
        return content_unknown(l);
    return node->op->lower(l);
}

static bool lower_nodes(struct lowering *l)
{
    for (uint32_t i = 0; i < l->graph->node_count; i++) {
        l->node = &l->graph->nodes[i];
        if (l->node->removed)
            continue;
        if (!lower_node(l))
            return false;
    }
    l->node = NULL;
    return true;
}

static bool outputs_init(struct lowering *l)
{
    const struct graph *graph = l->graph;
    struct form *form = l->form;

    form->outputs = arena_allocate(&form->arena, graph->output_count + 1,
                                   sizeof(form->outputs[0]));
    if (form->outputs == NULL)
        return out_of_memory(l);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        struct operand *operand;

        form->outputs[i].view = NO_VIEW;
        if (graph->outputs[i] == NO_VALUE)
            continue;
        operand = &l->operands[graph->outputs[i]];
        if (!operand->present)
            return lower_fail(l, "output %" PRIu32 " has no value", i);
        if (!output_init(l, operand, &form->outputs[i]))
            return false;
    }
    form->output_count = graph->output_count;
    return true;
}

bool lower_graph(const struct graph *graph, const struct lower_input *inputs,
                 bool *content_matters, struct form *form,
                 const struct graph_node **out_failed, char problem[256])
{
    struct lowering l = {.graph = graph,
                         .form = form,
                         .inputs = inputs,
                         .content_matters = content_matters};

    if (out_failed != NULL)
        *out_failed = NULL;
    *form = (struct form){.storages = NULL};
    if (!lower_begin(&l) || !lower_nodes(&l) || !outputs_init(&l) ||
        (!form_assign_slots(form) && !out_of_memory(&l))) {
        memcpy(problem, l.problem, sizeof(l.problem));
        if (out_failed != NULL)
            *out_failed = l.node;
        form_free(form);
        return false;
    }
    return true;
}
