/* SPDX-License-Identifier: Apache-2.0 */
/* Copies GEMM operands so that each line (contiguous row or column) is aligned
 * to four elements and padded with zeros to a multiple of four. */
#include "common/params.cl"

/* Parameters of operands `a` (index 0) and `b` (index 1). There is always at
 * least one batch. */
struct pad_params {
    uint64_t from[2], to[2]; /* offsets; the unit of `to` is four elements */
    int64_t ld[2], batch[2]; /* strides of the source operand */
    uint32_t length[2], vectors_per_line[2], lines[2],
        batches[2]; /* length is in elements */
};
PARAMS_SIZE(pad_params, 96);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

/* An unsigned type with the size of an element. */
#ifndef BITS
#define BITS uint
#endif
typedef BITS bits_t;
typedef CAT(BITS, 4) bits_t4;

/* Copies four elements of an operand to vector i of the padded copy. */
static inline void vec4_copy(__global bits_t4 *to, __global const bits_t *from,
                             index_t i, uint length, uint vectors_per_line,
                             uint lines, long ld, long batch_stride)
{
    index_t line = i / vectors_per_line, batch = line / lines;
    uint column = (uint)(i - line * vectors_per_line) * 4,
         elements_left = length - column;
    from +=
        (long)batch * batch_stride + (long)(line - batch * lines) * ld + column;
    to[i] = (bits_t4)(from[0], elements_left > 1 ? from[1] : (bits_t)0,
                      elements_left > 2 ? from[2] : (bits_t)0,
                      elements_left > 3 ? from[3] : (bits_t)0);
}

KERNEL void pad_operands(__global bits_t4 *to, __global const bits_t *a,
                         __global const bits_t *b, const struct pad_params p)
{
    index_t i = (index_t)get_global_id(0);
    index_t a_vectors =
        (index_t)p.vectors_per_line[0] * p.lines[0] * p.batches[0];
    index_t b_vectors =
        (index_t)p.vectors_per_line[1] * p.lines[1] * p.batches[1];
    if (i < a_vectors)
        vec4_copy(to + p.to[0], a + p.from[0], i, p.length[0],
                  p.vectors_per_line[0], p.lines[0], p.ld[0], p.batch[0]);
    else if (i - a_vectors < b_vectors)
        vec4_copy(to + p.to[1], b + p.from[1], i - a_vectors, p.length[1],
                  p.vectors_per_line[1], p.lines[1], p.ld[1], p.batch[1]);
}

#endif
