/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves elements of BITS without looking at them.
 *
 * strided  any strides, as in elementwise.cl.
 * tiled    two axes change places: axis 0 is the target's innermost (stride
 *          1), axis 1 the source's; tiles of TILE x TILE go through local
 *          memory, so that both sides are walked along their rows, in vectors
 *          where they are aligned.  The other axes are the space's, one tile
 *          plane each.
 */
#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

#ifndef BITS
#define BITS uint
#endif
/* The side of a tile: a multiple of 16; GROUP is not below, and 4 GROUP divides
 * its square. */
#ifndef TILE
#define TILE 32
#endif

struct copy {
    ulong items;
    uint rank, vector;
    ulong target_offset, source_offset;
    uint span, inner; /* as in elementwise.cl */
    struct extents space;
    long target_strides[AXES];
    long source_strides[AXES];
};

KERNEL void strided(__global BITS *target, __global const BITS *source,
                    const struct copy p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long to = 0, from = 0;
    WALK(to, item, p.space, p.rank, p.target_strides);
    WALK(from, item, p.space, p.rank, p.source_strides);
    if (p.span != 0) {
        index_t left = item;
        long inner = (long)left;
        if (p.rank > 1)
            SPLIT(left, p.space, 0, inner);
#define INSIDE(j) ((uint)inner + (j)*p.span < p.inner)
#define FROM(j)                                                                \
    (INSIDE(j) ? source[p.source_offset + from +                               \
                        (long)((j)*p.span) * p.source_strides[0]]              \
               : 0)
#define PUT(j, x)                                                              \
    if (INSIDE(j))                                                             \
        target[p.target_offset + to +                                          \
               (long)((j)*p.span) * p.target_strides[0]] = x;
        BITS a = FROM(0), b = FROM(1), c = FROM(2), d = FROM(3);
        PUT(0, a) PUT(1, b) PUT(2, c) PUT(3, d)
        return;
    }
    if (p.vector)
        *(__global CAT(BITS, 4) *)(target + p.target_offset + to) =
            *(__global const CAT(BITS, 4) *)(source + p.source_offset + from);
    else
        target[p.target_offset + to] = source[p.source_offset + from];
}

struct tiled {
    ulong columns, rows;         /* extents of axis 0 and axis 1 */
    ulong tiles_across, tiles;   /* along axis 0; of one plane */
    ulong groups;
    ulong target_offset, source_offset;
    long target_pitch;           /* the target's stride along axis 1 */
    long source_pitch;           /* the source's along axis 0 */
    uint rank, vector;           /* of the other axes */
    struct extents space;
    long target_strides[AXES];
    long source_strides[AXES];
};

KERNEL void tiled(__global BITS *target, __global const BITS *source,
                  const struct tiled p)
{
    __local BITS tile[TILE][TILE + 1];
    ulong group = get_group_id(0);
    if (group >= p.groups)
        return;
    ulong plane = group / p.tiles;
    ulong within = group - plane * p.tiles;
    ulong down = within / p.tiles_across;
    ulong column = (within - down * p.tiles_across) * TILE;
    ulong row = down * TILE;
    long to = (long)p.target_offset, from = (long)p.source_offset;
    WALK(to, (index_t)plane, p.space, p.rank, p.target_strides);
    WALK(from, (index_t)plane, p.space, p.rank, p.source_strides);
    if (p.vector && row + TILE <= p.rows && column + TILE <= p.columns) {
        const uint fours = TILE / 4;
        uint x = get_local_id(0) % fours * 4;
        uint y = get_local_id(0) / fours;
#pragma unroll
        for (uint j = 0; j < TILE; j += GROUP / fours) {
            CAT(BITS, 4) v = *(__global const CAT(BITS, 4) *)(
                source + from + (long)(column + y + j) * p.source_pitch +
                (long)(row + x));
            tile[y + j][x] = v.s0;
            tile[y + j][x + 1] = v.s1;
            tile[y + j][x + 2] = v.s2;
            tile[y + j][x + 3] = v.s3;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint j = 0; j < TILE; j += GROUP / fours)
            *(__global CAT(BITS, 4) *)(target + to +
                                       (long)(row + y + j) * p.target_pitch +
                                       (long)(column + x)) =
                (CAT(BITS, 4))(tile[x][y + j], tile[x + 1][y + j],
                               tile[x + 2][y + j], tile[x + 3][y + j]);
        return;
    }
    const uint step = GROUP / TILE;
    uint x = get_local_id(0) % TILE;
    uint y = get_local_id(0) / TILE;
#define SOURCE(j)                                                              \
    (column + (j) < p.columns && row + x < p.rows                              \
         ? source[from + (long)(column + (j)) * p.source_pitch +               \
                  (long)(row + x)]                                             \
         : 0)
    for (uint j = y; j < TILE; j += 4 * step) {
        BITS a = SOURCE(j), b = SOURCE(j + step);
        BITS c = SOURCE(j + 2 * step), d = SOURCE(j + 3 * step);
        tile[j][x] = a;
        tile[j + step][x] = b;
        tile[j + 2 * step][x] = c;
        tile[j + 3 * step][x] = d;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = y; j < TILE; j += step)
        if (row + j < p.rows && column + x < p.columns)
            target[to + (long)(row + j) * p.target_pitch +
                   (long)(column + x)] = tile[x][j];
}
