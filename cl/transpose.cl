/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a tensor with elements of type BITS and swaps two axes. Axis 0 is
 * contiguous in the target, axis 1 in the source. A work-group loads parts of
 * source columns into a tile in local memory and stores the rows of the tile,
 * so that all its accesses are contiguous. Axes 2 and higher form `space`, and
 * each position in `space` has a plane of tiles. elementwise.cl does other
 * copies.
 *
 *   source: a line per column    tile: a line per row       target
 *     0 1 2 3  (column 0)          0 4 8 c                    0 4 8 c  (row 0)
 *     4 5 6 7  (column 1)          1 5 9 d                    1 5 9 d
 *
 * Elements of 8 and 16 bits are transposed in registers in blocks of BLOCK x
 * BLOCK elements. The tile consists of words of BLOCK elements.
 */
#include "common/params.cl"

struct transpose_params {
    uint64_t columns, rows;                  /* extents of axis 0 and axis 1 */
    uint64_t tiles_per_row, tiles_per_plane; /* a plane spans axes 0 and 1 */
    uint64_t groups;
    uint64_t target_offset, source_offset;
    int64_t target_pitch;         /* the target's stride along axis 1 */
    int64_t source_pitch;         /* the source's stride along axis 0 */
    uint32_t rank, misalignments; /* rank of space */
    struct fast_divmod space;
    int64_t target_strides[MAX_AXES];
    int64_t source_strides[MAX_AXES];
};
PARAMS_SIZE(transpose_params, 336);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

#ifndef BITS
#define BITS uint
/* Elements per word of a tile: 4 if BITS has 8 bits, 2 if 16 bits, else 1. */
#define BLOCK 1
/* 1 if source columns and target rows are aligned to four elements. */
#define VECTOR 1
/* Elements per vector: 2 if BITS has 64 bits, else 4. */
#define VECTOR_ELEMENTS 4
/* A power of two, and 1 if VECTOR is 1. In each target row, the stores of a
 * work-group begin at a multiple of STORE_ALIGNMENT elements. To align them,
 * each row of a tile is shifted by its own distance. */
#define STORE_ALIGNMENT (VECTOR ? 1 : 8)
/* Numbers of columns and rows of a tile, both powers of two. GROUP_SIZE is a
 * multiple of the number of vectors in each column and row of a tile. */
#define COLUMNS 64
#define ROWS 64
#endif
/* 1 if unaligned columns and rows are accessed in words of BLOCK elements. */
#define UNALIGNED_WORDS (!VECTOR && BLOCK > 1)
#if BLOCK == 1
typedef BITS word;
#else
typedef uint word;
#endif
#define WORDS (COLUMNS / BLOCK)
#define vector_t CAT(BITS, VECTOR_ELEMENTS)

/* Number of elements from a 64-byte boundary to the start of a buffer. */
#define TARGET_MISALIGNMENT (p.misalignments & 0xffff)
#define SOURCE_MISALIGNMENT (p.misalignments >> 16)

/* WORD(s) builds a word of the tile from element s of BLOCK source columns.
 * VECTOR_OF builds vector x of a target row from `line`, a row of the tile. */
#if BLOCK == 4
#define WORD(s) as_uint((uchar4)(line0.s, line1.s, line2.s, line3.s))
#define LOAD_LINES(at)                                                         \
    vector_t line0 = SOURCE_VECTOR(at, 0), line1 = SOURCE_VECTOR(at, 1),       \
             line2 = SOURCE_VECTOR(at, 2), line3 = SOURCE_VECTOR(at, 3);
#define VECTOR_OF(line, x) as_uchar4(line[x])
#elif BLOCK == 2
#define WORD(s) as_uint((ushort2)(line0.s, line1.s))
#define LOAD_LINES(at)                                                         \
    vector_t line0 = SOURCE_VECTOR(at, 0), line1 = SOURCE_VECTOR(at, 1);
#define VECTOR_OF(line, x)                                                     \
    (ushort4)(as_ushort2(line[2 * (x)]), as_ushort2(line[2 * (x) + 1]))
#else
#define WORD(s) line0.s
#define LOAD_LINES(at) vector_t line0 = SOURCE_VECTOR(at, 0);
#if VECTOR_ELEMENTS == 2
#define VECTOR_OF(line, x) (vector_t)(line[2 * (x)], line[2 * (x) + 1])
#else
#define VECTOR_OF(line, x)                                                     \
    (vector_t)(line[4 * (x)], line[4 * (x) + 1], line[4 * (x) + 2],            \
               line[4 * (x) + 3])
#endif
#endif

/* Macros that copy single elements. Element j of a work-item comes j *
 * GROUP_SIZE elements after the work-item's first element. */
#define COLUMN_OF(j, side) ((id + (j)*GROUP_SIZE) % (side))
#define LINE_OF(j, side) ((id + (j)*GROUP_SIZE) / (side))
#define SOURCE(y, x) source[(offset_t)(y)*from_pitch + (offset_t)(x)]
#define SOURCE_IF(y, x)                                                        \
    (column + (y) < columns && row + (x) < rows ? SOURCE(y, x) : (BITS)0)
#if BLOCK == 4
#define PACK_WORD(F, y, x)                                                     \
    ((word)F(y, x) | (word)F((y) + 1, x) << 8 | (word)F((y) + 2, x) << 16 |    \
     (word)F((y) + 3, x) << 24)
#define TILE_ELEMENT(y, x) (BITS)(tile[y][(x) / 4] >> (x) % 4 * 8)
#elif BLOCK == 2
#define PACK_WORD(F, y, x) ((word)F(y, x) | (word)F((y) + 1, x) << 16)
#define TILE_ELEMENT(y, x) (BITS)(tile[y][(x) / 2] >> (x) % 2 * 16)
#else
#define PACK_WORD(F, y, x) F(y, x)
#define TILE_ELEMENT(y, x) tile[y][x]
#endif
#define TILE_READ(j)                                                           \
    word CAT(w, j) = PACK_WORD(SOURCE_IF, LINE_OF(first + j, ROWS) * BLOCK,    \
                               COLUMN_OF(first + j, ROWS));
#define TILE_PUT(j)                                                            \
    tile[COLUMN_OF(first + j, ROWS)][LINE_OF(first + j, ROWS)] = CAT(w, j);
#define TILE_LOAD                                                              \
    _Pragma("unroll 1") for (uint first = 0;                                   \
                             first < ROWS * WORDS / GROUP_SIZE; first += 4)    \
    {                                                                          \
        TILE_READ(0) TILE_READ(1) TILE_READ(2) TILE_READ(3)                    \
        TILE_PUT(0) TILE_PUT(1) TILE_PUT(2) TILE_PUT(3)                        \
    }
#define TILE_STORE                                                             \
    _Pragma("unroll 1") for (uint j = 0; j < ROWS * COLUMNS / GROUP_SIZE; ++j) \
    {                                                                          \
        uint x = COLUMN_OF(j, COLUMNS), y = LINE_OF(j, COLUMNS);               \
        if (row + y < rows && column + x < columns)                            \
            target[(offset_t)y * to_pitch + (offset_t)x] = TILE_ELEMENT(y, x); \
    }

/* Number of source columns in a tile. With VECTOR, BLOCK columns count as 1. */
#define LINES                                                                  \
    (UNALIGNED_WORDS ? COLUMNS + STORE_ALIGNMENT : WORDS + STORE_ALIGNMENT - 1)

/* Macros for tiles whose rows are shifted to align stores to the target. */
#define STORE_SHIFT(y)                                                         \
    ((misalignment + (y) * (uint)to_pitch) & (STORE_ALIGNMENT - 1))
#define TARGET(y, x)                                                           \
    target[(offset_t)(y)*to_pitch + (offset_t)(x) - (offset_t)lines_before]
#if !UNALIGNED_WORDS
#define PITCH (LINES | 1)
#define TILE_ELEMENTS (ROWS * PITCH)
#define TILE_AT(y, x) tile[(y)*PITCH + (x)]
#endif
#define ALIGNED_TILE_LOAD                                                      \
    _Pragma("unroll") for (uint j = 0; j * GROUP_SIZE < LINES * ROWS;          \
                           ++j) if ((j + 1) * GROUP_SIZE <= LINES * ROWS ||    \
                                    id + j * GROUP_SIZE < LINES * ROWS)        \
        TILE_AT(COLUMN_OF(j, ROWS), LINE_OF(j, ROWS)) =                        \
            SOURCE(LINE_OF(j, ROWS), COLUMN_OF(j, ROWS));
#define ALIGNED_TILE_STORE                                                     \
    _Pragma("unroll") for (uint j = 0; j < ROWS * COLUMNS / GROUP_SIZE; ++j)   \
    {                                                                          \
        uint y = LINE_OF(j, COLUMNS);                                          \
        offset_t x =                                                           \
            (offset_t)COLUMN_OF(j, COLUMNS) - (offset_t)STORE_SHIFT(y);        \
        target[(offset_t)y * to_pitch + x] = TILE_AT(y, x + lines_before);     \
    }

#if UNALIGNED_WORDS
/* Source and target are accessed in aligned words of BLOCK elements, but
 * columns and rows can begin anywhere in a word. A work-item reads two words
 * from each of BLOCK source columns and shifts them into one word that is
 * aligned to the tile. It transposes these words and stores them in the tile. A
 * shift then combines two words of the tile into one word of the target. */
#define ELEMENT_BITS (32 / BLOCK)
/* Number of words from one row of a tile to the next. After every BLOCK rows,
 * TILE_AT skips one more word to avoid bank conflicts. */
#define PITCH (LINES / BLOCK)
#define TILE_ELEMENTS (ROWS * PITCH + ROWS / BLOCK)
#define TILE_AT(line, word) ((line)*PITCH + (line) / BLOCK + (word))
static inline uint word_extract(uint low, uint high, uint elements)
{
    return (uint)(((ulong)high << 32 | low) >> elements * ELEMENT_BITS);
}

/* Returns word `at` of the source column whose first element is first_element.
 * A word of the column overlaps two words of memory. If is_complete is false,
 * reads only those that hold one of the first row_elements elements, and none
 * if `exists` is false; bits that were not read are 0. */
static inline uint source_word(__global const uint *words,
                               ulong first_element, uint at,
                               uint row_elements, bool exists,
                               bool is_complete)
{
    uint word_shift = (uint)first_element % BLOCK;
    ulong first = first_element / BLOCK + at;
    uint low = 0, high = 0;
    if (is_complete || (exists && at * BLOCK < row_elements + word_shift))
        low = words[first];
    if (is_complete ||
        (exists && (at + 1) * BLOCK < row_elements + word_shift))
        high = words[first + 1];
    return word_extract(low, high, word_shift);
}
#if BLOCK == 4
#define EVEN_BYTES 0x00ff00ffu
#define TRANSPOSE_BLOCK(store)                                                 \
    {                                                                          \
        uint even0 = (w0 & EVEN_BYTES) | (w1 & EVEN_BYTES) << 8;               \
        uint odd0 = (w0 >> 8 & EVEN_BYTES) | (w1 & ~EVEN_BYTES);               \
        uint even1 = (w2 & EVEN_BYTES) | (w3 & EVEN_BYTES) << 8;               \
        uint odd1 = (w2 >> 8 & EVEN_BYTES) | (w3 & ~EVEN_BYTES);               \
        store(0) = (even0 & 0xffff) | even1 << 16;                             \
        store(1) = (odd0 & 0xffff) | odd1 << 16;                               \
        store(2) = even0 >> 16 | (even1 & 0xffff0000u);                        \
        store(3) = odd0 >> 16 | (odd1 & 0xffff0000u);                          \
    }
#define EACH_OF_BLOCK(F) F(0) F(1) F(2) F(3)
#else
#define TRANSPOSE_BLOCK(store)                                                 \
    {                                                                          \
        store(0) = (w0 & 0xffff) | w1 << 16;                                   \
        store(1) = w0 >> 16 | (w1 & 0xffff0000u);                              \
    }
#define EACH_OF_BLOCK(F) F(0) F(1)
#endif

KERNEL void transpose_tiled(__global BITS *target, __global const BITS *source,
                            const struct transpose_params p)
{
    __local uint tile[TILE_ELEMENTS];
    if ((index_t)get_group_id(0) >= (index_t)p.groups)
        return;
    const struct tile_position first_element =
        tile_position(p.tiles_per_row, p.tiles_per_plane, COLUMNS, ROWS);
    const index_t plane = first_element.plane, column = first_element.column,
                  row = first_element.row;
    index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    offset_t to_pitch = (offset_t)p.target_pitch;
    offset_t from_pitch = (offset_t)p.source_pitch;
    uint source_misalignment = SOURCE_MISALIGNMENT % BLOCK;
    long to = (long)p.target_offset;
    long from = (long)p.source_offset + source_misalignment;
    ADD_OFFSET(to, plane, p.space, p.rank, p.target_strides);
    ADD_OFFSET(from, plane, p.space, p.rank, p.source_strides);
    uint id = get_local_id(0);
    __global const uint *words =
        (__global const uint *)(source - source_misalignment);
    bool is_complete = column >= STORE_ALIGNMENT &&
                       column + COLUMNS < columns && row + ROWS + BLOCK <= rows;
    uint row_elements = (uint)min((index_t)ROWS + BLOCK, rows - row);
    long first = from + (long)row +
                 ((long)column - STORE_ALIGNMENT) * (long)from_pitch;
#define READ(i)                                                                \
    uint w##i = source_word(                                                   \
        words, (ulong)(first + (long)((offset_t)(y + i) * from_pitch)), x,     \
        row_elements, column + (y + i) - STORE_ALIGNMENT < columns,            \
        is_complete);
#define STORE(i) tile[TILE_AT(x * BLOCK + i, y / BLOCK)]
#define LOAD_BLOCKS                                                            \
    {                                                                          \
        uint x = (id + pass * GROUP_SIZE) % (ROWS / BLOCK);                    \
        uint y = (id + pass * GROUP_SIZE) / (ROWS / BLOCK) * BLOCK;            \
        if ((pass + 1) * GROUP_SIZE <= PITCH * ROWS / BLOCK || y < LINES) {    \
            EACH_OF_BLOCK(READ)                                                \
            TRANSPOSE_BLOCK(STORE)                                             \
        }                                                                      \
    }
    if (is_complete) {
        _Pragma("unroll") for (uint pass = 0;
                               pass * GROUP_SIZE < PITCH * ROWS / BLOCK; ++pass)
            LOAD_BLOCKS
    } else {
        _Pragma("unroll 1") for (uint pass = 0;
                                 pass * GROUP_SIZE < PITCH * ROWS / BLOCK;
                                 ++pass) LOAD_BLOCKS
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    target += to + ((offset_t)row * to_pitch + (offset_t)column);
    uint misalignment = TARGET_MISALIGNMENT + (uint)to +
                        (uint)row * (uint)to_pitch + (uint)column;
    _Pragma("unroll 4") for (uint i = id; i < ROWS * WORDS; i += GROUP_SIZE)
    {
        uint y = i / WORDS, x = i % WORDS;
        uint shift = STORE_SHIFT(y);
        uint offset = STORE_ALIGNMENT - shift;
        __local const uint *stored_word = tile + TILE_AT(y, offset / BLOCK + x);
        uint value =
            word_extract(stored_word[0], stored_word[1], offset % BLOCK);
        int at = (int)(x * BLOCK) - (int)shift;
        __global BITS *target_word =
            target + ((offset_t)y * to_pitch + (offset_t)at);
        if (is_complete) {
            *(__global uint *)target_word = value;
        } else if (row + y < rows) {
            for (uint k = 0; k < BLOCK; ++k)
                if (column + (index_t)at + k < columns)
                    target_word[k] = (BITS)(value >> k * ELEMENT_BITS);
        }
    }
}
#else
KERNEL void transpose_tiled(__global BITS *target, __global const BITS *source,
                            const struct transpose_params p)
{
#if VECTOR
    __local word tile[ROWS][LINES | 1];
#else
    __local word tile[TILE_ELEMENTS];
#endif
    if ((index_t)get_group_id(0) >= (index_t)p.groups)
        return;
    const struct tile_position first_element =
        tile_position(p.tiles_per_row, p.tiles_per_plane, COLUMNS, ROWS);
    const index_t plane = first_element.plane, column = first_element.column,
                  row = first_element.row;
    index_t columns = (index_t)p.columns, rows = (index_t)p.rows;
    offset_t to_pitch = (offset_t)p.target_pitch;
    offset_t from_pitch = (offset_t)p.source_pitch;
    long to = (long)p.target_offset, from = (long)p.source_offset;
    ADD_OFFSET(to, plane, p.space, p.rank, p.target_strides);
    ADD_OFFSET(from, plane, p.space, p.rank, p.source_strides);
    source += from + ((offset_t)column * from_pitch + (offset_t)row);
    target += to + ((offset_t)row * to_pitch + (offset_t)column);
    uint id = get_local_id(0);
#if VECTOR
    bool is_complete = row + ROWS <= rows && column + COLUMNS <= columns;
    if (is_complete) {
        uint x = id % (ROWS / VECTOR_ELEMENTS),
             first = id / (ROWS / VECTOR_ELEMENTS);
        _Pragma("unroll") for (uint pass = 0; pass < WORDS;
                               pass += GROUP_SIZE / (ROWS / VECTOR_ELEMENTS))
        {
            uint y = pass + first;
#define SOURCE_VECTOR(at, i)                                                   \
    *(__global const vector_t *)(source +                                      \
                                 (offset_t)((at)*BLOCK + i) * from_pitch +     \
                                 (offset_t)(VECTOR_ELEMENTS * x))
            LOAD_LINES(y)
            tile[VECTOR_ELEMENTS * x][y] = WORD(s0);
            tile[VECTOR_ELEMENTS * x + 1][y] = WORD(s1);
#if VECTOR_ELEMENTS > 2
            tile[VECTOR_ELEMENTS * x + 2][y] = WORD(s2);
            tile[VECTOR_ELEMENTS * x + 3][y] = WORD(s3);
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        x = id % (COLUMNS / VECTOR_ELEMENTS),
        first = id / (COLUMNS / VECTOR_ELEMENTS);
        _Pragma("unroll") for (uint pass = 0; pass < ROWS;
                               pass += GROUP_SIZE / (COLUMNS / VECTOR_ELEMENTS))
        {
            uint y = pass + first;
            *(__global vector_t *)(target + (offset_t)y * to_pitch +
                                   (offset_t)(VECTOR_ELEMENTS * x)) =
                VECTOR_OF(tile[y], x);
        }
        return;
    }
    TILE_LOAD
    barrier(CLK_LOCAL_MEM_FENCE);
    TILE_STORE
#else
    /* Number of extra source columns at the start of the tile. */
    const uint lines_before = STORE_ALIGNMENT - 1;
    uint misalignment =
        TARGET_MISALIGNMENT + (uint)to + (uint)row * (uint)to_pitch;
    source -= (offset_t)lines_before * from_pitch;
    bool is_complete = column >= lines_before && row + ROWS <= rows &&
                       column + COLUMNS <= columns;
    if (is_complete) {
        ALIGNED_TILE_LOAD
        barrier(CLK_LOCAL_MEM_FENCE);
        ALIGNED_TILE_STORE
        return;
    }
    for (uint i = id; i < LINES * ROWS; i += GROUP_SIZE) {
        uint x = i % ROWS, y = i / ROWS;
        if (row + x < rows && column + y >= lines_before &&
            column + y - lines_before < columns)
            TILE_AT(x, y) = SOURCE(y, x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < ROWS * COLUMNS; i += GROUP_SIZE) {
        uint y = i / COLUMNS, x = i % COLUMNS + lines_before - STORE_SHIFT(y);
        /* A negative column wraps to a large number, which is out of range. */
        if (row + y < rows && column + x - lines_before < columns)
            TARGET(y, x) = TILE_AT(y, x);
    }
#endif
}
#endif

#endif
