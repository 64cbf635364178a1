/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of calls under test; see operand.h. */
#include "operand.h"

#include "element_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool exact_buffers;

void operands_set_exact_buffers(void)
{
    exact_buffers = true;
}

bool operands_have_exact_buffers(void)
{
    return exact_buffers;
}

void *must_allocate(uint64_t bytes)
{
    void *memory = calloc(1, bytes == 0 ? 1 : bytes);

    if (memory == NULL) {
        fprintf(stderr,
                "tandem-conformance: out of memory (%" PRIu64
                " bytes); try --level standard\n",
                bytes);
        exit(1);
    }
    return memory;
}

int64_t shape_count(uint32_t rank, const int64_t *shape)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

void index_next(uint32_t rank, const int64_t *shape, int64_t *index)
{
    for (uint32_t axis = rank; axis-- > 0;) {
        if (++index[axis] < shape[axis])
            return;
        index[axis] = 0;
    }
}

static int64_t at_least_one(int64_t n)
{
    return n < 1 ? 1 : n;
}

/* Parameters of a memory layout. */
struct layout_parameters {
    int64_t order[TANDEM_MAX_RANK]; /* The innermost axis first. */
    /* Elements after each axis, in the order above. */
    int64_t pad[TANDEM_MAX_RANK];
    int64_t step; /* The stride of the innermost axis. */
    /* Elements before and after the tensor. */
    int64_t lead, trail;
    uint32_t negative, zero; /* Masks of axes. */
    /* Axes of size 1 have arbitrary strides. */
    bool arbitrary;
};

static uint32_t axes_some(struct random *random, uint32_t rank)
{
    uint32_t all = (1u << rank) - 1u;
    uint32_t axes = (uint32_t)random_u64(random) & all;

    return axes != 0 ? axes : all;
}

static void arrange_random(struct layout_parameters *a, struct random *random,
                           uint32_t rank, bool output)
{
    if (random_once_in(random, 2))
        random_shuffle(random, rank, a->order);
    if (random_once_in(random, 2))
        for (uint32_t i = 0; i < rank; i++)
            a->pad[i] = random_between(random, 0, 3);
    if (random_once_in(random, 3))
        a->step = random_between(random, 2, 3);
    if (random_once_in(random, 3))
        a->negative = axes_some(random, rank);
    if (!output && random_once_in(random, 4))
        a->zero = axes_some(random, rank);
    a->lead = random_between(random, 0, 9);
    a->arbitrary = true;
}

static void arrange(struct layout_parameters *a, struct random *random,
                    uint32_t rank, uint32_t bytes, enum operand_layout layout,
                    bool output)
{
    *a = (struct layout_parameters){.step = 1};
    for (uint32_t i = 0; i < rank; i++)
        a->order[i] = rank - 1u - i;
    a->lead = random_between(random, 0, 2) * (256 / bytes);
    a->trail = random_once_in(random, 4) ? 0 : 256 / bytes;
    switch (layout) {
    case OFFSET:
        a->lead = 2 * random_between(random, 0, 9) + 1;
        break;
    case PADDED:
        a->pad[0] = random_between(random, 1, 5);
        break;
    case STEP:
        a->step = random_between(random, 2, 3);
        break;
    case REVERSED:
        for (uint32_t i = 0; i < rank; i++)
            a->order[i] = i;
        break;
    case PERMUTED:
        random_shuffle(random, rank, a->order);
        break;
    case CHANNELS_LAST:
        for (uint32_t i = 1; i + 1 < rank; i++)
            a->order[i] = rank - i;
        if (rank > 1)
            a->order[0] = 1;
        break;
    case NEGATIVE:
        a->negative = axes_some(random, rank);
        break;
    case REPEATED:
        if (!output)
            a->zero = axes_some(random, rank);
        break;
    case ANY:
        arrange_random(a, random, rank, output);
        break;
    default:
        break;
    }
}

/* Returns a stride for an axis that no address depends on. */
static int64_t stride_arbitrary(struct random *random)
{
    switch (random_below(random, 4)) {
    case 0:
        return INT64_MIN;
    case 1:
        return INT64_MAX;
    default:
        return random_between(random, -50, 50);
    }
}

/*
 * Fills the strides. Returns the number of elements that the tensor reaches
 * from element (0, ..., 0) on, and in *out_before the number of those before
 * it.
 */
static int64_t strides_fill(struct tandem_tensor_desc *desc,
                            const struct layout_parameters *a,
                            struct random *random, int64_t *out_before)
{
    const bool empty = shape_count(desc->rank, desc->shape) == 0;
    int64_t stride = a->step, after = 1;

    *out_before = 0;
    for (uint32_t i = 0; i < desc->rank; i++) {
        uint32_t axis = (uint32_t)a->order[i];
        int64_t n = at_least_one(desc->shape[axis]);

        if (a->zero & (1u << axis)) {
            desc->strides[axis] = 0;
            continue;
        }
        desc->strides[axis] = stride;
        if (a->arbitrary && (n == 1 || empty))
            desc->strides[axis] = stride_arbitrary(random);
        else if (a->negative & (1u << axis)) {
            desc->strides[axis] = -stride;
            *out_before += (n - 1) * stride;
        } else
            after += (n - 1) * stride;
        stride = stride * n + a->pad[i];
    }
    return after;
}

static void offsets_fill(struct operand *operand)
{
    const struct tandem_tensor_desc *desc = &operand->desc;
    int64_t bytes = TANDEM_DTYPE_BYTES(desc->dtype);
    int64_t index[TANDEM_MAX_RANK] = {0};

    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t at = 0;

        for (uint32_t axis = 0; axis < desc->rank; axis++)
            at += index[axis] * desc->strides[axis];
        operand->offsets[i] = (int64_t)desc->byte_offset + at * bytes;
        index_next(desc->rank, desc->shape, index);
    }
}

/*
 * Creates the buffer. The tensor reaches `before` elements before element (0,
 * ..., 0) and `after` elements from there on.
 */
static void memory_make(struct operand *operand, int64_t before, int64_t after,
                        int64_t lead, int64_t trail)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(operand->desc.dtype);

    operand->desc.byte_offset = (uint64_t)(lead + before) * bytes;
    operand->bytes = (uint64_t)(lead + before + after + trail) * bytes;
    operand->offsets =
        must_allocate((uint64_t)operand->elements * sizeof(int64_t));
    operand->image = must_allocate(operand->bytes);
    memset(operand->image, OPERAND_GAP, operand->bytes);
    offsets_fill(operand);
}

static void desc_make(struct operand *operand, uint32_t dtype, uint32_t rank,
                      const int64_t *shape)
{
    memset(operand, 0, sizeof(*operand));
    operand->present = true;
    operand->desc.dtype = dtype;
    operand->desc.rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        operand->desc.shape[i] = shape[i];
    operand->elements = shape_count(rank, shape);
}

void operand_init(struct operand *operand, struct random *random,
                  uint32_t dtype, uint32_t rank, const int64_t *shape,
                  enum operand_layout layout, bool output)
{
    struct layout_parameters a;
    int64_t before, after;

    desc_make(operand, dtype, rank, shape);
    arrange(&a, random, rank, TANDEM_DTYPE_BYTES(dtype), layout, output);
    if (exact_buffers)
        a.trail = 0;
    after = strides_fill(&operand->desc, &a, random, &before);
    memory_make(operand, before, after, a.lead, a.trail);
}

void operand_init_strided(struct operand *operand, uint32_t dtype,
                          uint32_t rank, const int64_t *shape,
                          const int64_t *strides, int64_t lead, int64_t trail)
{
    int64_t before = 0, after = 1;

    desc_make(operand, dtype, rank, shape);
    for (uint32_t i = 0; i < rank; i++) {
        /* The strides of an empty tensor are arbitrary. */
        int64_t reach =
            operand->elements == 0 ? 0 : (shape[i] - 1) * strides[i];

        operand->desc.strides[i] = strides[i];
        before += reach < 0 ? -reach : 0;
        after += reach > 0 ? reach : 0;
    }
    memory_make(operand, before, operand->elements == 0 ? 0 : after, lead,
                trail);
}

void operand_scalar(struct operand *operand, uint32_t dtype, double value)
{
    memset(operand, 0, sizeof(*operand));
    operand->desc.dtype = dtype;
    operand->scalar = value;
    operand->elements = 1;
}

void operand_finish(struct operand *operand)
{
    free(operand->offsets);
    free(operand->image);
    memset(operand, 0, sizeof(*operand));
}

void operand_set(struct operand *operand, int64_t element, uint64_t bits)
{
    if (operand->present)
        bits_write(operand->image + operand->offsets[element],
                   TANDEM_DTYPE_BYTES(operand->desc.dtype), bits);
}

uint64_t operand_get(const struct operand *operand, int64_t element)
{
    return bits_read(operand->image + operand->offsets[element],
                     TANDEM_DTYPE_BYTES(operand->desc.dtype));
}

const char *shape_text(uint32_t rank, const int64_t *shape)
{
    static char texts[4][200];
    static unsigned next;
    const size_t size = sizeof(texts[0]);
    char *text = texts[next++ % 4];
    size_t used = (size_t)snprintf(text, size, "[");

    for (uint32_t i = 0; i < rank && used + 24 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64,
                                 i == 0 ? "" : ",", shape[i]);
    snprintf(text + used, size - used, "]");
    return text;
}

void operand_text(const struct operand *operand, char *text, size_t size)
{
    const struct tandem_tensor_desc *desc = &operand->desc;

    if (!operand->present) {
        snprintf(text, size, "scalar %.9g", operand->scalar);
        return;
    }
    if (desc->rank > TANDEM_MAX_RANK) {
        snprintf(text, size, "%s of rank %" PRIu32, dtype_text(desc->dtype),
                 desc->rank);
        return;
    }
    snprintf(text, size, "%s%s strides%s offset %" PRIu64,
             dtype_text(desc->dtype), shape_text(desc->rank, desc->shape),
             shape_text(desc->rank, desc->strides), desc->byte_offset);
}

/* Converts a scalar like CAST. */
static uint64_t scalar_bits(double value, uint32_t dtype)
{
    uint64_t smallest;

    if (dtype_is_float(dtype))
        return bits_from_real(dtype, value);
    if (dtype == TANDEM_BOOL)
        return value != 0.0;
    if (isnan(value))
        return 0;
    smallest = UINT64_C(1) << (dtype == TANDEM_I32 ? 31 : 63);
    if (fabs(value) >= (double)smallest)
        return value < 0.0 ? smallest : smallest - 1;
    return (uint64_t)(int64_t)value;
}

void dense_load(struct dense *dense, const struct operand *operand,
                uint32_t rank, const int64_t *shape)
{
    const struct tandem_tensor_desc *desc = &operand->desc;
    int64_t index[TANDEM_MAX_RANK] = {0}, step[TANDEM_MAX_RANK] = {0};
    int64_t count = 1;

    memset(dense, 0, sizeof(*dense));
    dense->dtype = desc->dtype;
    dense->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        dense->shape[i] = shape[i];
    dense->elements = shape_count(rank, shape);
    dense->bits = must_allocate((uint64_t)dense->elements * sizeof(uint64_t));
    for (uint32_t i = 0; i < desc->rank; i++) {
        uint32_t axis = desc->rank - 1u - i;

        step[rank - 1u - i] = desc->shape[axis] == 1 ? 0 : count;
        count *= desc->shape[axis];
    }
    for (int64_t i = 0; i < dense->elements; i++) {
        int64_t at = 0;

        for (uint32_t axis = 0; axis < rank; axis++)
            at += index[axis] * step[axis];
        dense->bits[i] = operand->present
                             ? operand_get(operand, at)
                             : scalar_bits(operand->scalar, desc->dtype);
        index_next(rank, shape, index);
    }
}

void dense_finish(struct dense *dense)
{
    free(dense->bits);
    dense->bits = NULL;
}

double dense_real(const struct dense *dense, int64_t element)
{
    uint64_t bits = dense->bits[element];

    if (dense->flush)
        bits = bits_flushed(dense->dtype, bits);
    return bits_real(dense->dtype, bits);
}

int64_t dense_integer(const struct dense *dense, int64_t element)
{
    return bits_integer(dense->dtype, dense->bits[element]);
}

bool dense_has_subnormals(const struct dense *dense)
{
    for (int64_t i = 0; i < dense->elements; i++)
        if (bits_subnormal(dense->dtype, dense->bits[i]))
            return true;
    return false;
}
