/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with their operand shapes; see op_case.h. */
#include <config.h>

#include "op_case.h"

#include "common/op_class.h"
#include "common/tensor_extent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 0x1p50

bool shape_parse(const char *text, uint32_t *out_rank,
                 int64_t shape[TANDEM_MAX_RANK])
{
    uint32_t rank = 0;
    char *end;

    *out_rank = 0;
    while (*text != '\0') {
        long long extent;

        if (rank == TANDEM_MAX_RANK || *text < '0' || *text > '9')
            return false;
        errno = 0;
        extent = strtoll(text, &end, 10);
        if (errno != 0 || extent > INT64_C(1) << 40)
            return false;
        shape[rank++] = extent;
        if (*end != '\0' && (*end != 'x' || end[1] == '\0'))
            return false;
        text = *end == 'x' ? end + 1 : end;
    }
    *out_rank = rank;
    return true;
}

char *shape_text(char *out, uint32_t rank, const int64_t *shape)
{
    size_t used = 0;

    snprintf(out, SHAPE_TEXT_BYTES, "scalar");
    for (uint32_t axis = 0; axis < rank; axis++)
        used += (size_t)snprintf(out + used, SHAPE_TEXT_BYTES - used, "%s%lld",
                                 axis == 0 ? "" : "x", (long long)shape[axis]);
    return out;
}

double desc_elements(const struct tandem_tensor_desc *desc)
{
    return (double)shape_elements(desc->rank, desc->shape);
}

double desc_bytes(const struct tandem_tensor_desc *desc)
{
    return tensor_data_bytes(desc);
}

/* Sets the cost class and the bytes that the operator reads and writes. */
static void case_work_compute(struct op_case *c)
{
    const struct tandem_tensor_desc *in[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *out[TANDEM_MAX_OPERANDS];
    const struct op_call call = {.info = operator_lookup(c->op.id),
                                 .op = &c->op,
                                 .inputs = in,
                                 .outputs = out,
                                 .input_count = c->inputs,
                                 .output_count = c->outputs};
    struct op_work work;

    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        in[i] = &c->in[i];
        out[i] = &c->out[i];
    }
    op_work_compute(&call, &work);
    c->bytes = work.bytes;
    c->cost_class = work.cost_class;
}

void op_case_reduce_axes(struct op_case *c, uint32_t axes)
{
    const struct tandem_tensor_desc *in = &c->in[0];
    struct tandem_tensor_desc *out = &c->out[0];

    c->ints[0] = axes;
    infer_output(&c->op, &in, 1, 0, out);
    shape_strides(out->rank, out->shape, out->strides);
    case_work_compute(c);
}

void op_case_transpose_input(struct op_case *c)
{
    struct tandem_tensor_desc *in = &c->in[0];

    in->strides[0] = 1;
    in->strides[1] = in->shape[0];
    case_work_compute(c);
}

static void example_take(struct op_case *c, const struct op_example *example)
{
    c->op = (struct tandem_op){.struct_size = sizeof c->op,
                               .id = c->info->id,
                               .int_count = example->int_count,
                               .float_count = example->float_count,
                               .ints = c->ints,
                               .floats = c->floats};
    memcpy(c->ints, example->ints, sizeof c->ints);
    memcpy(c->floats, example->floats, sizeof c->floats);
    memcpy(c->in, example->inputs, sizeof c->in);
    memcpy(c->out, example->outputs, sizeof c->out);
    memcpy(c->alias, example->alias, sizeof c->alias);
    c->inputs = example->input_count;
    c->outputs = example->output_count;
    c->index_limit = example->index_limit;
}

static void gemm_sizes_set(struct op_case *c)
{
    const struct tandem_tensor_desc *a = &c->in[0], *out = &c->out[0];

    c->batch = out->rank == 3 ? out->shape[0] : 1;
    c->m = out->shape[out->rank - 2];
    c->n = out->shape[out->rank - 1];
    c->k = a->shape[a->rank - 1];
}

/* Returns true if no operand exceeds MAX_ELEMENTS.  No operand has more
 * elements than the product of the extents. */
static bool shape_small(uint32_t rank, const int64_t *shape)
{
    double elements = 1;

    for (uint32_t axis = 0; axis < rank; axis++)
        elements *= shape[axis] > 0 ? (double)shape[axis] : 1;
    return elements <= MAX_ELEMENTS;
}

bool op_case_build(struct op_case *c, const char *name, uint32_t rank,
                   const int64_t *shape, char error[OPCASE_ERROR_BYTES])
{
    struct op_example example;
    const char *needed;

    memset(c, 0, sizeof *c);
    c->info = tandem_op_by_name(name);
    if (c->info == NULL) {
        snprintf(error, OPCASE_ERROR_BYTES, "there is no operator \"%.60s\"",
                 name);
        return false;
    }
    if (!shape_small(rank, shape)) {
        snprintf(error, OPCASE_ERROR_BYTES,
                 "%s: the shape has more than 2^50 elements", name);
        return false;
    }
    needed =
        op_example_build(operator_lookup(c->info->id), rank, shape, &example);
    if (needed != NULL) {
        snprintf(error, OPCASE_ERROR_BYTES, "%s wants %s", name, needed);
        return false;
    }
    example_take(c, &example);
    if (c->op.id == TANDEM_OP_GEMM)
        gemm_sizes_set(c);
    case_work_compute(c);
    return true;
}
