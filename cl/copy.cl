/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves elements of BITS, without looking at them, where two axes change
 * places: axis 0 (columns) is the target's innermost, axis 1 (rows) the
 * source's.  Tiles go through local memory, so that both sides are walked along
 * their lines, in vectors where they are aligned.  The other axes are the
 * space's, one plane of tiles each.  Other copies are elementwise.cl's.
 *
 *   source: lines of rows        tile: lines of columns     target
 *     0 1 2 3  (column 0)          0 4 8 c                    0 4 8 c  (row 0)
 *     4 5 6 7  (column 1)          1 5 9 d                    1 5 9 d
 *
 * In vectors, elements of 8 and 16 bits change places by BLOCK x BLOCK in
 * registers, and are in the tile as words of BLOCK.
 */
#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

#ifndef BITS
#define BITS uint
#endif
/* Elements of a word: 4 of 8 bits, 2 of 16, else 1. */
#ifndef BLOCK
#define BLOCK 1
#endif
/* 1: both sides' lines are aligned vectors of four. */
#ifndef VECTOR
#define VECTOR 1
#endif
/* Elements of a vector: 2 of 64 bits, else 4. */
#ifndef PER
#define PER 4
#endif
/* Where lines are no vectors: what a group writes of each begins at a multiple
 * of so many elements in memory, so tiles are sheared; a power of two, 1 for
 * vectors. */
#ifndef SHEAR
#define SHEAR (VECTOR ? 1 : 8)
#endif
/* A tile's sides, powers of two; a vector's part of each divides GROUP. */
#ifndef COLUMNS
#define COLUMNS 64
#endif
#ifndef ROWS
#define ROWS 64
#endif

#if BLOCK == 1
typedef BITS word;
#else
typedef uint word;
#endif
#define WORDS (COLUMNS / BLOCK)
#define FOUR CAT(BITS, PER)

struct tiled {
    ulong columns, rows;         /* extents of axis 0 and axis 1 */
    ulong tiles_across, tiles;   /* along axis 0; of one plane */
    ulong groups;
    ulong target_offset, source_offset;
    long target_pitch;           /* the target's stride along axis 1 */
    long source_pitch;           /* the source's along axis 0 */
    uint rank, skew;             /* of the other axes; of the target */
    struct extents space;
    long target_strides[AXES];
    long source_strides[AXES];
};

/* From element s of BLOCK lines, neighbours along rows, a word of the tile; and
 * from the tile's line, four elements of a target's. */
#if BLOCK == 4
#define WORD(s) as_uint((uchar4)(line0.s, line1.s, line2.s, line3.s))
#define LOAD_LINES(at)                                                         \
    FOUR line0 = LINE(at, 0), line1 = LINE(at, 1), line2 = LINE(at, 2),        \
         line3 = LINE(at, 3);
#define FOUR_OF(line, x) as_uchar4(line[x])
#elif BLOCK == 2
#define WORD(s) as_uint((ushort2)(line0.s, line1.s))
#define LOAD_LINES(at) FOUR line0 = LINE(at, 0), line1 = LINE(at, 1);
#define FOUR_OF(line, x)                                                       \
    (ushort4)(as_ushort2(line[2 * (x)]), as_ushort2(line[2 * (x) + 1]))
#else
#define WORD(s) line0.s
#define LOAD_LINES(at) FOUR line0 = LINE(at, 0);
#if PER == 2
#define FOUR_OF(line, x) (FOUR)(line[2 * (x)], line[2 * (x) + 1])
#else
#define FOUR_OF(line, x)                                                       \
    (FOUR)(line[4 * (x)], line[4 * (x) + 1], line[4 * (x) + 2],                \
           line[4 * (x) + 3])
#endif
#endif

/* The same, element by element: a work-item's j-th of every GROUP. */
#define WITHIN(j, side) ((id + (j)*GROUP) % (side))
#define LINE_OF(j, side) ((id + (j)*GROUP) / (side))
#define SOURCE(y, x) source[(place_t)(y)*from_pitch + (place_t)(x)]
#define SOURCE_IF(y, x)                                                        \
    (column + (y) < columns && row + (x) < rows ? SOURCE(y, x) : (BITS)0)
#if BLOCK == 4
#define WORD_OF(F, y, x)                                                       \
    ((word)F(y, x) | (word)F((y) + 1, x) << 8 | (word)F((y) + 2, x) << 16 |    \
     (word)F((y) + 3, x) << 24)
#define CELL(y, x) (BITS)(tile[y][(x) / 4] >> (x) % 4 * 8)
#elif BLOCK == 2
#define WORD_OF(F, y, x) ((word)F(y, x) | (word)F((y) + 1, x) << 16)
#define CELL(y, x) (BITS)(tile[y][(x) / 2] >> (x) % 2 * 16)
#else
#define WORD_OF(F, y, x) F(y, x)
#define CELL(y, x) tile[y][x]
#endif
#define TILE_TAKE(j)                                                           \
    word CAT(w, j) = WORD_OF(SOURCE_IF, LINE_OF(first + j, ROWS) * BLOCK,      \
                             WITHIN(first + j, ROWS));
#define TILE_KEEP(j)                                                           \
    tile[WITHIN(first + j, ROWS)][LINE_OF(first + j, ROWS)] = CAT(w, j);
#define TILE_FILL                                                              \
    _Pragma("unroll 1") for (uint first = 0; first < ROWS * WORDS / GROUP;     \
                             first += 4)                                       \
    {                                                                          \
        TILE_TAKE(0) TILE_TAKE(1) TILE_TAKE(2) TILE_TAKE(3)                    \
        TILE_KEEP(0) TILE_KEEP(1) TILE_KEEP(2) TILE_KEEP(3)                    \
    }
#define TILE_EMPTY                                                             \
    _Pragma("unroll 1") for (uint j = 0; j < ROWS * COLUMNS / GROUP; ++j)      \
    {                                                                          \
        uint x = WITHIN(j, COLUMNS), y = LINE_OF(j, COLUMNS);                  \
        if (row + y < rows && column + x < columns)                            \
            target[(place_t)y * to_pitch + (place_t)x] = CELL(y, x);           \
    }

/* Lines of the source in a tile. */
#define LINES (WORDS + SHEAR - 1)

/* A sheared tile all of whose elements are there. */
#define SKEW(y) ((skew + (y) * (uint)to_pitch) & (SHEAR - 1))
#define TARGET(y, x)                                                           \
    target[(place_t)(y)*to_pitch + (place_t)(x) - (place_t)before]
#define SHEARED_FILL                                                           \
    _Pragma("unroll") for (uint j = 0; j * GROUP < LINES * ROWS; ++j)          \
        if ((j + 1) * GROUP <= LINES * ROWS || id + j * GROUP < LINES * ROWS)  \
            tile[WITHIN(j, ROWS)][LINE_OF(j, ROWS)] =                          \
                SOURCE(LINE_OF(j, ROWS), WITHIN(j, ROWS));
#define SHEARED_EMPTY                                                          \
    _Pragma("unroll") for (uint j = 0; j < ROWS * COLUMNS / GROUP; ++j)        \
    {                                                                          \
        uint y = LINE_OF(j, COLUMNS);                                          \
        place_t x = (place_t)WITHIN(j, COLUMNS) - (place_t)SKEW(y);            \
        target[(place_t)y * to_pitch + x] = tile[y][x + before];               \
    }

KERNEL void tiled(__global BITS *target, __global const BITS *source,
                  const struct tiled p)
{
    __local word tile[ROWS][LINES | 1];
    if ((index_t)get_group_id(0) >= (index_t)p.groups)
        return;
    TILE_FIND(p.tiles_across, p.tiles, COLUMNS, ROWS)
    index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    place_t to_pitch = (place_t)p.target_pitch;
    place_t from_pitch = (place_t)p.source_pitch;
    long to = (long)p.target_offset, from = (long)p.source_offset;
    WALK(to, plane, p.space, p.rank, p.target_strides);
    WALK(from, plane, p.space, p.rank, p.source_strides);
    source += from + ((place_t)column * from_pitch + (place_t)row);
    target += to + ((place_t)row * to_pitch + (place_t)column);
    uint id = get_local_id(0);
#if VECTOR
    bool whole = row + ROWS <= rows && column + COLUMNS <= columns;
    if (whole) {
        uint x = id % (ROWS / PER), first = id / (ROWS / PER);
        _Pragma("unroll") for (uint pass = 0; pass < WORDS;
                               pass += GROUP / (ROWS / PER))
        {
            uint y = pass + first;
#define LINE(at, i)                                                            \
    *(__global const FOUR *)(source + (place_t)((at)*BLOCK + i) * from_pitch + \
                             (place_t)(PER * x))
            LOAD_LINES(y)
            tile[PER * x][y] = WORD(s0);
            tile[PER * x + 1][y] = WORD(s1);
#if PER > 2
            tile[PER * x + 2][y] = WORD(s2);
            tile[PER * x + 3][y] = WORD(s3);
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        x = id % (COLUMNS / PER), first = id / (COLUMNS / PER);
        _Pragma("unroll") for (uint pass = 0; pass < ROWS;
                               pass += GROUP / (COLUMNS / PER))
        {
            uint y = pass + first;
            *(__global FOUR *)(target + (place_t)y * to_pitch +
                               (place_t)(PER * x)) = FOUR_OF(tile[y], x);
        }
        return;
    }
    TILE_FILL
    barrier(CLK_LOCAL_MEM_FENCE);
    TILE_EMPTY
#else
    /* The tile's first line is so many before column. */
    const uint before = SHEAR - 1;
    uint skew = p.skew + (uint)to + (uint)row * (uint)to_pitch;
    source -= (place_t)before * from_pitch;
    bool whole = column >= before && row + ROWS <= rows &&
                 column + COLUMNS <= columns;
    if (whole) {
        SHEARED_FILL
        barrier(CLK_LOCAL_MEM_FENCE);
        SHEARED_EMPTY
        return;
    }
    for (uint i = id; i < LINES * ROWS; i += GROUP) {
        uint x = i % ROWS, y = i / ROWS;
        if (row + x < rows && column + y >= before &&
            column + y - before < columns)
            tile[x][y] = SOURCE(y, x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < ROWS * COLUMNS; i += GROUP) {
        uint y = i / COLUMNS, x = i % COLUMNS + before - SKEW(y);
        /* What is before column 0 is, unsigned, beyond all. */
        if (row + y < rows && column + x - before < columns)
            TARGET(y, x) = tile[y][x];
    }
#endif
}
