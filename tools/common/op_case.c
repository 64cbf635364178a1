/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators with their operand shapes; see op_case.h.
 */
#include <config.h>

#include "op_case.h"

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

    snprintf(out, 160, "scalar");
    for (uint32_t axis = 0; axis < rank; axis++)
        used += (size_t)snprintf(out + used, 160 - used, "%s%lld",
                                 axis == 0 ? "" : "x", (long long)shape[axis]);
    return out;
}

double desc_elements(const struct tandem_tensor_desc *desc)
{
    double elements = 1;

    for (uint32_t axis = 0; axis < desc->rank; axis++)
        elements *= (double)desc->shape[axis];
    return elements;
}

double desc_bytes(const struct tandem_tensor_desc *desc)
{
    return desc_elements(desc) * TANDEM_DTYPE_BYTES(desc->dtype);
}

static void desc_fill(struct tandem_tensor_desc *desc, uint32_t dtype,
                      uint32_t rank, const int64_t *shape)
{
    int64_t stride = 1;

    memset(desc, 0, sizeof *desc);
    desc->dtype = dtype;
    desc->rank = rank;
    for (uint32_t axis = rank; axis-- > 0;) {
        desc->shape[axis] = shape[axis];
        desc->strides[axis] = stride;
        stride *= shape[axis] > 0 ? shape[axis] : 1;
    }
}

static void add_input(struct op_case *c, uint32_t dtype, uint32_t rank,
                      const int64_t *shape)
{
    desc_fill(&c->in[c->inputs++], dtype, rank, shape);
}

static void add_output(struct op_case *c, uint32_t dtype, uint32_t rank,
                       const int64_t *shape)
{
    c->alias[c->outputs] = -1;
    desc_fill(&c->out[c->outputs++], dtype, rank, shape);
}

static void build_elementwise(struct op_case *c, uint32_t rank,
                              const int64_t *shape)
{
    uint32_t op_class = c->info->op_class;
    bool logical = op_class == TANDEM_CLASS_LOGICAL;
    uint32_t in = logical ? TANDEM_BOOL : TANDEM_F32;
    uint32_t out =
        logical || op_class == TANDEM_CLASS_COMPARE ? TANDEM_BOOL : TANDEM_F32;

    for (uint32_t i = 0; i < c->info->input_count; i++)
        add_input(c, i == 0 && c->op.id == TANDEM_OP_WHERE ? TANDEM_BOOL : in,
                  rank, shape);
    add_output(c, op_class == TANDEM_CLASS_CAST ? TANDEM_I32 : out, rank,
               shape);
}

/* The inputs are w, g, m and v; the outputs are w, m and v, each of which
 * overwrites the input of its name. */
static void build_optimizer(struct op_case *c, uint32_t rank,
                            const int64_t *shape)
{
    for (uint32_t i = 0; i < c->info->input_count; i++)
        add_input(c, TANDEM_F32, rank, shape);
    for (uint32_t i = 0; i < c->info->output_count; i++) {
        add_output(c, TANDEM_F32, rank, shape);
        c->alias[i] = i == 0 ? 0 : (int)i + 1;
    }
}

static void build_transpose(struct op_case *c, uint32_t rank,
                            const int64_t *shape)
{
    int64_t turned[TANDEM_MAX_RANK] = {0};

    for (uint32_t axis = 0; axis < rank; axis++) {
        c->ints[axis] = rank - 1 - axis;
        turned[axis] = shape[rank - 1 - axis];
    }
    c->op.int_count = rank;
    add_input(c, TANDEM_F32, rank, shape);
    add_output(c, TANDEM_F32, rank, turned);
}

static void build_reduce(struct op_case *c, uint32_t rank, const int64_t *shape)
{
    c->ints[0] = rank == 0 ? 0 : INT64_C(1) << (rank - 1);
    add_input(c, TANDEM_F32, rank, shape);
    add_output(c,
               c->info->op_class == TANDEM_CLASS_ARG_REDUCE ? TANDEM_I64
                                                            : TANDEM_F32,
               rank == 0 ? 0 : rank - 1, shape);
}

static const char *build_rows(struct op_case *c, uint32_t rank,
                              const int64_t *shape)
{
    if (c->info->op_class == TANDEM_CLASS_GATHER) {
        if (rank < 1)
            return "the shape of the data, of rank 1 or more";
        c->index_limit = shape[0];
        add_input(c, TANDEM_F32, rank, shape);
        add_input(c, TANDEM_I32, 1, shape);
        add_output(c, TANDEM_F32, rank, shape);
        return NULL;
    }
    if (rank != 2)
        return "the logits' shape, ROWSxCLASSES";
    c->index_limit = shape[1];
    add_input(c, TANDEM_F32, 2, shape);
    add_input(c, TANDEM_I32, 1, shape);
    add_output(c, TANDEM_F32, c->op.id == TANDEM_OP_CROSS_ENTROPY_GRAD ? 2 : 1,
               shape);
    return NULL;
}

static const char *build_gemm(struct op_case *c, uint32_t rank,
                              const int64_t *shape)
{
    uint32_t first = rank == 4 ? 0 : 1, operand = rank == 4 ? 3 : 2;
    const int64_t *mnk = shape + (rank == 4 ? 1 : 0);

    if (rank != 3 && rank != 4)
        return "MxNxK or BATCHxMxNxK";
    c->batch = rank == 4 ? shape[0] : 1;
    c->m = mnk[0];
    c->n = mnk[1];
    c->k = mnk[2];
    add_input(c, TANDEM_F32, operand,
              &(int64_t[]){c->batch, c->m, c->k}[first]);
    add_input(c, TANDEM_F32, operand,
              &(int64_t[]){c->batch, c->k, c->n}[first]);
    add_output(c, TANDEM_F32, operand,
               &(int64_t[]){c->batch, c->m, c->n}[first]);
    return NULL;
}

/* Returns NULL, or the shape that the operator requires instead. */
static const char *build_operands(struct op_case *c, uint32_t rank,
                                  const int64_t *shape)
{
    switch (c->info->op_class) {
    case TANDEM_CLASS_OPTIMIZER:
        build_optimizer(c, rank, shape);
        return NULL;
    case TANDEM_CLASS_TRANSPOSE:
        build_transpose(c, rank, shape);
        return NULL;
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
        build_reduce(c, rank, shape);
        return NULL;
    case TANDEM_CLASS_SOFTMAX:
        if (rank < 1)
            return "a rank of 1 or more";
        c->ints[0] = (int64_t)rank - 1;
        build_elementwise(c, rank, shape);
        return NULL;
    case TANDEM_CLASS_NORM:
        if (rank < 1)
            return "a rank of 1 or more";
        c->ints[0] = (int64_t)rank - 1;
        add_input(c, TANDEM_F32, rank, shape);
        for (uint32_t i = 1; i < c->info->input_count; i++)
            add_input(c, TANDEM_F32, 1, &shape[rank - 1]);
        add_output(c, TANDEM_F32, rank, shape);
        return NULL;
    case TANDEM_CLASS_DOT:
        if (rank != 1)
            return "the number of elements, of rank 1";
        add_input(c, TANDEM_F32, 1, shape);
        add_input(c, TANDEM_F32, 1, shape);
        add_output(c, TANDEM_F32, 0, shape);
        return NULL;
    case TANDEM_CLASS_GATHER:
    case TANDEM_CLASS_CROSS_ENTROPY:
        return build_rows(c, rank, shape);
    case TANDEM_CLASS_GEMM:
        return build_gemm(c, rank, shape);
    default:
        build_elementwise(c, rank, shape);
        return NULL;
    }
}

void op_case_reduce_axes(struct op_case *c, uint32_t axes)
{
    const struct tandem_tensor_desc *in = &c->in[0];
    int64_t kept[TANDEM_MAX_RANK];
    uint32_t rank = 0;

    for (uint32_t axis = 0; axis < in->rank; axis++)
        if ((axes >> axis & 1) == 0)
            kept[rank++] = in->shape[axis];
    c->ints[0] = axes;
    c->bytes -= desc_bytes(&c->out[0]);
    desc_fill(&c->out[0], c->out[0].dtype, rank, kept);
    c->bytes += desc_bytes(&c->out[0]);
}

void op_case_transpose_input(struct op_case *c)
{
    struct tandem_tensor_desc *in = &c->in[0];

    in->strides[0] = 1;
    in->strides[1] = in->shape[0];
}

/* Sets attributes that are valid for every operator. */
static void set_attributes(struct op_case *c)
{
    static const double clip[] = {-1, 1};
    static const double sgd[] = {0.01, 0.9, 0, 0};
    static const double adam[] = {0.001, 0.9, 0.999, 1e-8, 0};
    const double *values = c->op.id == TANDEM_OP_CLIP   ? clip
                           : c->op.id == TANDEM_OP_SGD  ? sgd
                           : c->op.id == TANDEM_OP_ADAM ? adam
                                                        : NULL;

    for (uint32_t i = 0; i < c->info->float_count; i++)
        c->floats[i] = values == NULL ? 1.0 : values[i];
    if (c->op.id == TANDEM_OP_ADAM)
        c->ints[0] = 1;
    c->op.int_count = c->info->int_count;
    c->op.float_count = c->info->float_count;
    c->op.ints = c->ints;
    c->op.floats = c->floats;
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
    const char *wants;

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
    c->op.struct_size = sizeof c->op;
    c->op.id = c->info->id;
    set_attributes(c);
    wants = build_operands(c, rank, shape);
    if (wants != NULL) {
        snprintf(error, OPCASE_ERROR_BYTES, "%s wants %s", name, wants);
        return false;
    }
    for (uint32_t i = 0; i < c->inputs; i++)
        c->bytes += desc_bytes(&c->in[i]);
    for (uint32_t i = 0; i < c->outputs; i++)
        c->bytes += desc_bytes(&c->out[i]);
    return true;
}
