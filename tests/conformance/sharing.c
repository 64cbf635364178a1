/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of random calls that share a buffer: an output exactly over an
 * input, adjacent, interleaved, or overlapping. The expected status is
 * determined by marking bytes; see draw.h.
 */
#include "draw.h"

#include "suite_class.h"

#include <stdlib.h>
#include <string.h>

static uint32_t bytes_of(const struct operand *operand)
{
    return TANDEM_DTYPE_BYTES(operand->desc.dtype);
}

static void operand_move(struct operand *operand, uint64_t bytes)
{
    operand->desc.byte_offset += bytes;
    for (int64_t i = 0; i < operand->elements; i++)
        operand->offsets[i] += (int64_t)bytes;
}

/*
 * Moves operand `moved` into the buffer of `target`. Its data starts `distance`
 * bytes after the target's, a multiple of 8.
 */
static void buffers_join(struct call *p, uint32_t target, uint32_t moved,
                         int64_t distance)
{
    struct operand *h = &p->operands[target], *g = &p->operands[moved];
    uint64_t shift = distance < 0 ? (uint64_t)-distance : 0;
    uint64_t at = shift + (uint64_t)distance;
    uint64_t bytes = shift + h->bytes;
    unsigned char *image, *old = h->image;

    if (at + g->bytes > bytes)
        bytes = at + g->bytes;
    image = must_allocate(bytes);
    memset(image, OPERAND_GAP, bytes);
    memcpy(image + shift, h->image, h->bytes);
    for (int64_t i = 0; moved < p->inputs && i < g->elements; i++)
        memcpy(image + at + g->offsets[i], g->image + g->offsets[i],
               bytes_of(g));
    free(g->image);
    operand_move(g, at);
    p->storage[moved] = target;
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        struct operand *member = &p->operands[i];

        if (p->storage[i] != target)
            continue;
        if (i != moved)
            operand_move(member, shift);
        member->image = image;
        member->bytes = bytes;
    }
    free(old);
}

static bool overlaps_itself(const struct operand *operand)
{
    unsigned char *marks = must_allocate(operand->bytes);
    bool twice = false;

    for (int64_t i = 0; i < operand->elements && !twice; i++)
        twice = marks[operand->offsets[i]]++ != 0;
    free(marks);
    return twice;
}

static bool operands_meet(const struct operand *a, const struct operand *b)
{
    unsigned char *marks = must_allocate(a->bytes);
    bool meet = false;

    for (int64_t i = 0; i < a->elements; i++)
        memset(marks + a->offsets[i], 1, bytes_of(a));
    for (int64_t i = 0; i < b->elements && !meet; i++)
        for (uint32_t k = 0; k < bytes_of(b); k++)
            meet |= marks[b->offsets[i] + k] != 0;
    free(marks);
    return meet;
}

static bool same_layout(const struct tandem_tensor_desc *a,
                        const struct tandem_tensor_desc *b)
{
    bool same = a->rank == b->rank && a->dtype == b->dtype &&
                a->byte_offset == b->byte_offset;

    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i] && a->strides[i] == b->strides[i];
    return same;
}

/*
 * Returns true if corresponding elements have the same addresses, even if the
 * strides of axes of size 1 differ.
 */
static bool same_addresses(const struct operand *a, const struct operand *b)
{
    return a->elements == b->elements && a->desc.dtype == b->desc.dtype &&
           memcmp(a->offsets, b->offsets,
                  (uint64_t)a->elements * sizeof(int64_t)) == 0;
}

static enum expected_status combine_statuses(enum expected_status a,
                                             enum expected_status b)
{
    if (a == EXPECT_INVALID_ARGUMENT || b == EXPECT_INVALID_ARGUMENT)
        return EXPECT_INVALID_ARGUMENT;
    return a == EXPECT_OK_OR_INVALID ? a : b;
}

/* Returns true if the overlap check is exact, as it is for few axes. */
static bool have_few_axes(const struct operand *a, const struct operand *b)
{
    uint32_t axes = 0;

    for (uint32_t i = 0; i < a->desc.rank; i++)
        axes += a->desc.shape[i] > 1;
    for (uint32_t i = 0; i < b->desc.rank; i++)
        axes += b->desc.shape[i] > 1;
    return axes <= 2;
}

/* Returns true if an output may be exactly the input. */
static bool may_be_in_place(const struct call *p, uint32_t input)
{
    uint32_t rules = class_of(p->row)->rules;

    return (rules & IN_PLACE) != 0 ||
           (input == 0 && (rules & IN_PLACE_FIRST) != 0);
}

static enum expected_status
expected_status_of_pair(const struct call *p, uint32_t output, uint32_t other)
{
    const struct operand *a = &p->operands[output], *b = &p->operands[other];

    if (p->storage[output] != p->storage[other])
        return EXPECT_OK_IF_SUPPORTED;
    if (other < p->inputs && may_be_in_place(p, other)) {
        if (same_layout(&a->desc, &b->desc))
            return EXPECT_OK_IF_SUPPORTED;
        if (same_addresses(a, b))
            return EXPECT_OK_OR_INVALID;
    }
    if (operands_meet(a, b))
        return EXPECT_INVALID_ARGUMENT;
    return have_few_axes(a, b) ? EXPECT_OK_IF_SUPPORTED : EXPECT_OK_OR_INVALID;
}

/* Sets the expected status. best: the status if nothing overlaps. */
static void expected_status_set(struct call *p, enum expected_status best)
{
    uint32_t count = p->inputs + p->outputs;

    p->expected_status = best;
    for (uint32_t i = p->inputs; i < count; i++) {
        if (overlaps_itself(&p->operands[i]))
            p->expected_status = EXPECT_INVALID_ARGUMENT;
        for (uint32_t k = 0; k < i; k++)
            if (p->operands[k].present)
                p->expected_status = combine_statuses(
                    p->expected_status, expected_status_of_pair(p, i, k));
    }
    p->only_launch_detects = p->expected_status != EXPECT_OK_IF_SUPPORTED;
}

static bool replaceable(const struct call *p, uint32_t output, uint32_t input)
{
    const struct operand *out = &p->operands[output];
    const struct operand *in = &p->operands[input];

    return in->present && in->desc.dtype == out->desc.dtype &&
           in->desc.rank == out->desc.rank && p->storage[input] == input &&
           memcmp(in->desc.shape, out->desc.shape,
                  in->desc.rank * sizeof(int64_t)) == 0;
}

/* Makes each output identical to another input, if one is suitable. */
static void in_place_make(struct call *p)
{
    struct random *random = p->random;
    uint32_t taken = 0, first = (uint32_t)random_below(random, p->inputs);

    for (uint32_t k = p->inputs; k < p->inputs + p->outputs; k++) {
        uint32_t input = p->inputs;

        for (uint32_t i = 0; i < p->inputs && input == p->inputs; i++) {
            uint32_t at = (first + i) % p->inputs;

            if (!(taken >> at & 1u) && replaceable(p, k, at))
                input = at;
        }
        if (input == p->inputs || random_once_in(random, 4))
            continue;
        taken |= 1u << input;
        call_in_place(p, k - p->inputs, input);
    }
    p->what = "in place";
}

static int64_t distance_draw(struct random *random, const struct operand *a,
                             const struct operand *b)
{
    int64_t before = -(int64_t)b->bytes - 64, after = (int64_t)a->bytes + 64;
    int64_t distance = random_between(random, before, after);

    if (random_once_in(random, 2)) /* Off by a few elements. */
        distance = 8 * random_between(random, -4, 4);
    return distance / 8 * 8;
}

/* Moves two operands into one buffer. One of them may be an output. */
static void operands_share_buffer(struct call *p)
{
    struct random *random = p->random;
    uint32_t count = p->inputs + p->outputs;
    uint32_t moved = (uint32_t)random_between(random, 1, count - 1);
    uint32_t target = (uint32_t)random_below(random, moved);
    struct operand *h = &p->operands[target], *g = &p->operands[moved];

    if (!h->present || !g->present || p->storage[target] != target ||
        ((p->without_buffer >> target | p->without_buffer >> moved) & 1u) != 0)
        return;
    /*
     * Inputs of the same dtype may overlap. Bool elements must remain 0 or 1.
     */
    if (moved < p->inputs &&
        (h->desc.dtype != g->desc.dtype || call_is_gemm(p)))
        return;
    buffers_join(p, target, moved, distance_draw(random, h, g));
    p->what = "operands in one buffer";
}

/* Gives an output random strides. */
static bool output_random_strides(struct call *p)
{
    uint32_t place = p->inputs;
    struct operand *out = &p->operands[place];
    struct tandem_tensor_desc was = out->desc;
    int64_t strides[TANDEM_MAX_RANK];

    if (was.rank == 0 || call_is_gemm(p) || out->elements > 5000)
        return false;
    for (uint32_t i = 0; i < was.rank; i++)
        strides[i] = random_between(p->random, 0, 3) == 0
                         ? random_between(p->random, -60, 60)
                         : was.strides[i];
    operand_finish(out);
    operand_init_strided(out, was.dtype, was.rank, was.shape, strides, 3, 5);
    p->what = "an output of odd strides";
    return true;
}

void sharing_draw(struct call *call)
{
    uint64_t kind = random_below(call->random, 8);
    enum expected_status best = EXPECT_OK_IF_SUPPORTED;

    if (kind < 4 && may_be_in_place(call, 0))
        in_place_make(call);
    else if (kind < 7)
        operands_share_buffer(call);
    else if (output_random_strides(call))
        best = EXPECT_OK_OR_INVALID;
    if (call_is_gemm(call)) {
        call->gemm.a.byte_offset = call->operands[0].desc.byte_offset;
        call->gemm.b.byte_offset = call->operands[1].desc.byte_offset;
        call->gemm.bias_byte_offset = call->operands[2].desc.byte_offset;
        call->gemm.c.byte_offset = call->operands[3].desc.byte_offset;
    }
    expected_status_set(call, best);
}
