/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands that lie in one buffer: an output exactly over an input, side by
 * side, interleaved, or overlapping.  What is true of them is found by marking
 * bytes.  See random_call.h.
 */
#include "random_call.h"

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

/* Puts operand guest into the buffer of host, its own buffer's start distance
 * bytes from the host's, a multiple of 8. */
static void buffers_join(struct problem *p, uint32_t host, uint32_t guest,
                         int64_t distance)
{
    struct operand *h = &p->operands[host], *g = &p->operands[guest];
    uint64_t shift = distance < 0 ? (uint64_t)-distance : 0;
    uint64_t at = shift + (uint64_t)distance;
    uint64_t bytes = shift + h->bytes;
    unsigned char *image, *old = h->image;

    if (at + g->bytes > bytes)
        bytes = at + g->bytes;
    image = must_allocate(bytes);
    memset(image, OPERAND_GAP, bytes);
    memcpy(image + shift, h->image, h->bytes);
    for (int64_t i = 0; guest < p->inputs && i < g->elements; i++)
        memcpy(image + at + g->offsets[i], g->image + g->offsets[i],
               bytes_of(g));
    free(g->image);
    operand_move(g, at);
    p->home[guest] = host;
    for (uint32_t i = 0; i < p->inputs + p->outputs; i++) {
        struct operand *member = &p->operands[i];

        if (p->home[i] != host)
            continue;
        if (i != guest)
            operand_move(member, shift);
        member->image = image;
        member->bytes = bytes;
    }
    free(old);
}

/* The output becomes exactly the input. */
static void output_replace(struct problem *p, uint32_t output, uint32_t input)
{
    struct operand *out = &p->operands[output], *in = &p->operands[input];
    uint64_t bytes = (uint64_t)in->elements * sizeof(int64_t);

    operand_finish(out);
    *out = *in;
    out->offsets = must_allocate(bytes);
    memcpy(out->offsets, in->offsets, bytes);
    p->home[output] = input;
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

/* Elements pairwise in one place, though strides of single ones may differ. */
static bool same_places(const struct operand *a, const struct operand *b)
{
    return a->elements == b->elements && a->desc.dtype == b->desc.dtype &&
           memcmp(a->offsets, b->offsets,
                  (uint64_t)a->elements * sizeof(int64_t)) == 0;
}

static bool in_place_class(const struct op_row *row)
{
    return row->op_class >= TANDEM_CLASS_UNARY &&
           row->op_class <= TANDEM_CLASS_OPTIMIZER;
}

static enum verdict worse(enum verdict a, enum verdict b)
{
    if (a == VERDICT_INVALID || b == VERDICT_INVALID)
        return VERDICT_INVALID;
    return a == VERDICT_OPEN ? a : b;
}

/* Of few axes: of those no search for a shared byte is given up. */
static bool few_axes(const struct operand *a, const struct operand *b)
{
    uint32_t axes = 0;

    for (uint32_t i = 0; i < a->desc.rank; i++)
        axes += a->desc.shape[i] > 1;
    for (uint32_t i = 0; i < b->desc.rank; i++)
        axes += b->desc.shape[i] > 1;
    return axes <= 2;
}

static enum verdict pair_judge(const struct problem *p, uint32_t output,
                               uint32_t other)
{
    const struct operand *a = &p->operands[output], *b = &p->operands[other];

    if (p->home[output] != p->home[other])
        return VERDICT_SERVED;
    if (other < p->inputs && in_place_class(p->row)) {
        if (same_layout(&a->desc, &b->desc))
            return VERDICT_SERVED;
        if (same_places(a, b))
            return VERDICT_OPEN;
    }
    if (operands_meet(a, b))
        return VERDICT_INVALID;
    return few_axes(a, b) ? VERDICT_SERVED : VERDICT_OPEN;
}

/* best: what is to be answered where nothing overlaps. */
static void overlaps_judge(struct problem *p, enum verdict best)
{
    uint32_t count = p->inputs + p->outputs;

    p->verdict = best;
    for (uint32_t i = p->inputs; i < count; i++) {
        if (overlaps_itself(&p->operands[i]))
            p->verdict = VERDICT_INVALID;
        for (uint32_t k = 0; k < i; k++)
            if (p->operands[k].present)
                p->verdict = worse(p->verdict, pair_judge(p, i, k));
    }
    p->memory_alone = p->verdict != VERDICT_SERVED;
}

static bool replaceable(const struct problem *p, uint32_t output,
                        uint32_t input)
{
    const struct operand *out = &p->operands[output];
    const struct operand *in = &p->operands[input];

    return in->present && in->desc.dtype == out->desc.dtype &&
           in->desc.rank == out->desc.rank && p->home[input] == input &&
           memcmp(in->desc.shape, out->desc.shape,
                  in->desc.rank * sizeof(int64_t)) == 0;
}

/* Each output over an input of its own, where there is one. */
static void in_place_make(struct problem *p, struct random *random)
{
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
        output_replace(p, k, input);
    }
    p->what = "in place";
}

static int64_t distance_draw(struct random *random, const struct operand *a,
                             const struct operand *b)
{
    int64_t before = -(int64_t)b->bytes - 64, after = (int64_t)a->bytes + 64;
    int64_t distance = random_between(random, before, after);

    if (random_once_in(random, 2)) /* a few elements off */
        distance = 8 * random_between(random, -4, 4);
    return distance / 8 * 8;
}

/* Two operands, of which one is an output at times, in one buffer. */
static void buffers_share(struct problem *p, struct random *random)
{
    uint32_t count = p->inputs + p->outputs;
    uint32_t guest = (uint32_t)random_between(random, 1, count - 1);
    uint32_t host = (uint32_t)random_below(random, guest);
    struct operand *h = &p->operands[host], *g = &p->operands[guest];

    if (!h->present || !g->present || p->home[host] != host ||
        ((p->unbound >> host | p->unbound >> guest) & 1u) != 0)
        return;
    /* Inputs of one dtype may lie over one another; bools stay 0 or 1. */
    if (guest < p->inputs && (h->desc.dtype != g->desc.dtype ||
                              p->row->op_class == TANDEM_CLASS_GEMM))
        return;
    buffers_join(p, host, guest, distance_draw(random, h, g));
    p->what = "operands in one buffer";
}

/* An output whose strides were thrown together. */
static bool output_fold(struct problem *p, struct random *random)
{
    uint32_t place = p->inputs;
    struct operand *out = &p->operands[place];
    struct tandem_tensor_desc was = out->desc;
    int64_t strides[TANDEM_MAX_RANK];

    if (was.rank == 0 || p->row->op_class == TANDEM_CLASS_GEMM ||
        out->elements > 5000)
        return false;
    for (uint32_t i = 0; i < was.rank; i++)
        strides[i] = random_between(random, 0, 3) == 0
                         ? random_between(random, -60, 60)
                         : was.strides[i];
    operand_finish(out);
    operand_init_strided(out, was.dtype, was.rank, was.shape, strides, 3, 5);
    p->what = "an output of odd strides";
    return true;
}

void sharing_make(struct problem *problem, struct random *random)
{
    uint64_t kind = random_below(random, 8);
    enum verdict best = VERDICT_SERVED;

    if (kind < 4 && in_place_class(problem->row))
        in_place_make(problem, random);
    else if (kind < 7)
        buffers_share(problem, random);
    else if (output_fold(problem, random))
        best = VERDICT_OPEN;
    if (problem->row->op_class == TANDEM_CLASS_GEMM) {
        problem->gemm.a.byte_offset = problem->operands[0].desc.byte_offset;
        problem->gemm.b.byte_offset = problem->operands[1].desc.byte_offset;
        problem->gemm.bias_byte_offset = problem->operands[2].desc.byte_offset;
        problem->gemm.c.byte_offset = problem->operands[3].desc.byte_offset;
    }
    overlaps_judge(problem, best);
}
