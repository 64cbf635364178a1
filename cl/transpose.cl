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
 * Elements of 8 and 16 bits change places by BLOCK x BLOCK in registers, and
 * are in the tile as words of BLOCK.
 */
#include "common/indexing.cl"

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

/* Lines that are no vectors, read and written in aligned words of BLOCK. */
#define TURNED (!VECTOR && BLOCK > 1)
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
    uint rank, skews;            /* of the other axes; see SKEW_OF */
    struct extents space;
    long target_strides[AXES];
    long source_strides[AXES];
};
/* Elements from where 64 bytes begin to place 0 of the target, the source. */
#define SKEW_OF_TARGET (p.skews & 0xffff)
#define SKEW_OF_SOURCE (p.skews >> 16)

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
#define LINES (TURNED ? COLUMNS + SHEAR : WORDS + SHEAR - 1)

/* A sheared tile all of whose elements are there. */
#define SKEW(y) ((skew + (y) * (uint)to_pitch) & (SHEAR - 1))
#define TARGET(y, x)                                                           \
    target[(place_t)(y)*to_pitch + (place_t)(x) - (place_t)before]
#if !TURNED
#define PITCH (LINES | 1)
#define CELLS (ROWS * PITCH)
#define CELL_AT(y, x) tile[(y)*PITCH + (x)]
#endif
#define SHEARED_FILL                                                           \
    _Pragma("unroll") for (uint j = 0; j * GROUP < LINES * ROWS; ++j)          \
        if ((j + 1) * GROUP <= LINES * ROWS || id + j * GROUP < LINES * ROWS)  \
            CELL_AT(WITHIN(j, ROWS), LINE_OF(j, ROWS)) =                       \
                SOURCE(LINE_OF(j, ROWS), WITHIN(j, ROWS));
#define SHEARED_EMPTY                                                          \
    _Pragma("unroll") for (uint j = 0; j < ROWS * COLUMNS / GROUP; ++j)        \
    {                                                                          \
        uint y = LINE_OF(j, COLUMNS);                                          \
        place_t x = (place_t)WITHIN(j, COLUMNS) - (place_t)SKEW(y);            \
        target[(place_t)y * to_pitch + x] = CELL_AT(y, x + before);            \
    }

#if TURNED
/*
 * Both sides are words of BLOCK elements, which begin anywhere in their lines.
 * A work-item reads BLOCK lines' words, two each, of which it makes one that
 * begins where the tile does, turns them, and keeps the words of BLOCK lines of
 * the target; one written is made of two of these.
 */
#define BITS_OF (32 / BLOCK)
/* A line of the tile, each BLOCK of which begin in the next bank. */
#define PITCH (LINES / BLOCK)
#define CELLS (ROWS * PITCH + ROWS / BLOCK)
#define CELL_AT(line, word) ((line)*PITCH + (line) / BLOCK + (word))
static inline uint word_within(uint low, uint high, uint elements)
{
    return (uint)(((ulong)high << 32 | low) >> elements * BITS_OF);
}

/* Word number at of the source's line that begins at place and ends remains
 * elements later; whole: it is there, and all of it is. */
static inline uint source_word(__global const uint *words, ulong place, uint at,
                               uint remains, bool there, bool whole)
{
    uint begins = (uint)place % BLOCK;
    ulong first = place / BLOCK + at;
    uint low = 0, high = 0;
    if (whole || (there && at * BLOCK < remains + begins))
        low = words[first];
    if (whole || (there && (at + 1) * BLOCK < remains + begins))
        high = words[first + 1];
    return word_within(low, high, begins);
}
#if BLOCK == 4
#define EVEN 0x00ff00ffu
#define TURN(store)                                                            \
    {                                                                          \
        uint even0 = (w0 & EVEN) | (w1 & EVEN) << 8;                           \
        uint odd0 = (w0 >> 8 & EVEN) | (w1 & ~EVEN);                           \
        uint even1 = (w2 & EVEN) | (w3 & EVEN) << 8;                           \
        uint odd1 = (w2 >> 8 & EVEN) | (w3 & ~EVEN);                           \
        store(0) = (even0 & 0xffff) | even1 << 16;                             \
        store(1) = (odd0 & 0xffff) | odd1 << 16;                               \
        store(2) = even0 >> 16 | (even1 & 0xffff0000u);                        \
        store(3) = odd0 >> 16 | (odd1 & 0xffff0000u);                          \
    }
#define EACH_OF_BLOCK(F) F(0) F(1) F(2) F(3)
#else
#define TURN(store)                                                            \
    {                                                                          \
        store(0) = (w0 & 0xffff) | w1 << 16;                                   \
        store(1) = w0 >> 16 | (w1 & 0xffff0000u);                              \
    }
#define EACH_OF_BLOCK(F) F(0) F(1)
#endif

KERNEL void tiled(__global BITS *target, __global const BITS *source,
                  const struct tiled p)
{
    __local uint tile[CELLS];
    if ((index_t)get_group_id(0) >= (index_t)p.groups)
        return;
    TILE_FIND(p.tiles_across, p.tiles, COLUMNS, ROWS)
    index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    place_t to_pitch = (place_t)p.target_pitch;
    place_t from_pitch = (place_t)p.source_pitch;
    uint source_skew = SKEW_OF_SOURCE % BLOCK;
    long to = (long)p.target_offset;
    long from = (long)p.source_offset + source_skew;
    WALK(to, plane, p.space, p.rank, p.target_strides);
    WALK(from, plane, p.space, p.rank, p.source_strides);
    uint id = get_local_id(0);
    __global const uint *words = (__global const uint *)(source - source_skew);
    bool whole = column >= SHEAR && column + COLUMNS < columns &&
                 row + ROWS + BLOCK <= rows;
    uint remains = (uint)min((index_t)ROWS + BLOCK, rows - row);
    long first = from + (long)row +
                 ((long)column - SHEAR) * (long)from_pitch;
#define READ(i)                                                                \
    uint w##i = source_word(words,                                             \
                            (ulong)(first + (long)((place_t)(y + i) *          \
                                                   from_pitch)),               \
                            x, remains, column + (y + i) - SHEAR < columns,    \
                            whole);
#define STORE(i) tile[CELL_AT(x * BLOCK + i, y / BLOCK)]
#define FILL                                                                   \
    {                                                                          \
        uint x = (id + pass * GROUP) % (ROWS / BLOCK);                         \
        uint y = (id + pass * GROUP) / (ROWS / BLOCK) * BLOCK;                 \
        if ((pass + 1) * GROUP <= PITCH * ROWS / BLOCK || y < LINES) {         \
            EACH_OF_BLOCK(READ)                                                \
            TURN(STORE)                                                        \
        }                                                                      \
    }
    if (whole) {
        _Pragma("unroll") for (uint pass = 0;
                               pass * GROUP < PITCH * ROWS / BLOCK; ++pass) FILL
    } else {
        _Pragma("unroll 1") for (uint pass = 0;
                                 pass * GROUP < PITCH * ROWS / BLOCK; ++pass)
            FILL
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    target += to + ((place_t)row * to_pitch + (place_t)column);
    uint skew = SKEW_OF_TARGET + (uint)to + (uint)row * (uint)to_pitch +
                (uint)column;
    _Pragma("unroll 4") for (uint i = id; i < ROWS * WORDS; i += GROUP)
    {
        uint y = i / WORDS, x = i % WORDS;
        uint past = (skew + y * (uint)to_pitch) & (SHEAR - 1);
        uint offset = SHEAR - past;
        __local const uint *cell = tile + CELL_AT(y, offset / BLOCK + x);
        uint value = word_within(cell[0], cell[1], offset % BLOCK);
        int at = (int)(x * BLOCK) - (int)past;
        __global BITS *place = target + ((place_t)y * to_pitch + (place_t)at);
        if (whole) {
            *(__global uint *)place = value;
        } else if (row + y < rows) {
            for (uint k = 0; k < BLOCK; ++k)
                if (column + (index_t)at + k < columns)
                    place[k] = (BITS)(value >> k * BITS_OF);
        }
    }
}
#else
KERNEL void tiled(__global BITS *target, __global const BITS *source,
                  const struct tiled p)
{
#if VECTOR
    __local word tile[ROWS][LINES | 1];
#else
    __local word tile[CELLS];
#endif
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
    uint skew = SKEW_OF_TARGET + (uint)to + (uint)row * (uint)to_pitch;
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
            CELL_AT(x, y) = SOURCE(y, x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < ROWS * COLUMNS; i += GROUP) {
        uint y = i / COLUMNS, x = i % COLUMNS + before - SKEW(y);
        /* What is before column 0 is, unsigned, beyond all. */
        if (row + y < rows && column + x - before < columns)
            TARGET(y, x) = CELL_AT(y, x);
    }
#endif
}
#endif
