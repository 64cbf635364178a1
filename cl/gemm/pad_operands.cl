/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the operands of a product so that their lines start at aligned fours,
 * and end in zeros that make them as long as fours go.
 */
#include "common/indexing.cl"

/* Elements of as many bits. */
#ifndef BITS
#define BITS uint
#endif
typedef BITS bits_t;
typedef CAT(BITS, 4) bits_t4;

/* a and b, of which either may have no batches. */
struct padding {
    ulong from[2], to[2]; /* to: in fours */
    long ld[2], batch[2]; /* of what is copied */
    uint length[2], fours[2], lines[2], batches[2]; /* fours of a padded line */
};

/* Four i of an operand. */
static inline void four_copy(__global bits_t4 *to, __global const bits_t *from,
                             index_t i, uint length, uint fours, uint lines,
                             long ld, long batch_stride)
{
    index_t line = i / fours, batch = line / lines;
    uint at = (uint)(i - line * fours) * 4, left = length - at;
    from += (long)batch * batch_stride + (long)(line - batch * lines) * ld + at;
    to[i] = (bits_t4)(from[0], left > 1 ? from[1] : (bits_t)0,
                      left > 2 ? from[2] : (bits_t)0,
                      left > 3 ? from[3] : (bits_t)0);
}

/* An item four elements. */
KERNEL void pad(__global bits_t4 *to, __global const bits_t *a,
                __global const bits_t *b, const struct padding p)
{
    index_t i = (index_t)get_global_id(0);
    index_t a_fours = (index_t)p.fours[0] * p.lines[0] * p.batches[0];
    index_t b_fours = (index_t)p.fours[1] * p.lines[1] * p.batches[1];
    if (i < a_fours)
        four_copy(to + p.to[0], a + p.from[0], i, p.length[0], p.fours[0],
                  p.lines[0], p.ld[0], p.batch[0]);
    else if (i - a_fours < b_fours)
        four_copy(to + p.to[1], b + p.from[1], i - a_fours, p.length[1],
                  p.fours[1], p.lines[1], p.ld[1], p.batch[1]);
}
