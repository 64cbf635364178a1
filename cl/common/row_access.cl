/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the rows of softmax.cl and norm.cl. The lanes of a row are the
 * work-items of a work-group that work on it (lane_reduce.cl).
 *
 * Kernels for short rows read each row once and keep it in registers: a lane
 * has VECTORS_PER_ITEM vectors of four elements. Kernels for long rows divide
 * each row into splits and read it twice.
 *
 * The including file defines ROW_PARAMS as the type of the parameters, with the
 * members by, in_offset, in_strides, out_offset, out_strides, outer and
 * outer_rank. */
#ifndef TANDEM_ROW_ACCESS_CL
#define TANDEM_ROW_ACCESS_CL

#include "common/lane_reduce.cl"

/* Memory layouts of rows, and how the rows are read and written. */
#define ROW_ACCESS_STRIDED 0        /* elements with any strides */
#define ROW_ACCESS_VEC4 1           /* aligned vectors of four elements */
#define ROW_ACCESS_LOCAL_MEMORY 2   /* rows copied through local memory */
#define ROW_ACCESS_VEC4_COLUMNS 3   /* vectors across four rows */
#define ROW_ACCESS_SECTOR_ALIGNED 4 /* scalars, aligned to memory sectors */
#ifndef ROW_ACCESS
#define ROW_ACCESS ROW_ACCESS_VEC4
#endif
/* Number of elements in a memory sector. A row has at least this many lanes. */
#ifndef SECTOR_ELEMENTS
#define SECTOR_ELEMENTS 8
#endif
/* Number of vectors of four elements in a work-item's registers, at most 32. */
#ifndef VECTORS_PER_ITEM
#define VECTORS_PER_ITEM 1
#endif
/* For ROW_ACCESS_LOCAL_MEMORY: the length of a row, and the number of vectors
 * that a work-item copies to local memory. LANES_LOG2 is log2 of the lane
 * count. */
#ifndef ROW_ELEMENTS
#define ROW_ELEMENTS 4
#define STAGES_PER_ITEM 2
#endif
#ifndef LANES_LOG2
#define LANES_LOG2 0
#endif

/* The row of a work-item, and its lane in this row. */
struct own_row {
    __global const float *in; /* element 0 in the input */
    __global float *out;      /* element 0 in the output, or NULL */
    long in_step, out_step;   /* distances between neighbouring elements */
    ulong index;              /* number of the row */
    uint count;               /* number of elements, if the row is short */
    uint lanes, lane;
    /* For ROW_ACCESS_SECTOR_ALIGNED, the number of elements from a sector
     * boundary to element 0, otherwise 0. The first lane begins at this
     * boundary. */
    uint shift;
    /* False if the work-item is beyond the last row. It then reads the last
     * row, and stores nothing. */
    bool exists;
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    __local float *staged; /* element 0 in local memory */
#endif
};

/* ---- finding the row ---- */

/* Assigns a short row to a work-item. Neighbouring work-items work on the same
 * row unless `interleaved` is true. */
INLINE struct lane_assignment row_assign(const struct row_mapping *by,
                                         uint interleaved)
{
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY ||                                   \
    ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    return lane_assign(LANES_LOG2, 0, 1, 0);
#elif ROW_ACCESS == ROW_ACCESS_VEC4
    return lane_assign(by->lanes_log2, 0, 1, 0);
#else
    return lane_assign(by->lanes_log2, interleaved, 1, 0);
#endif
}

/* Returns the row without its output. `step` is the distance of its elements in
 * the input. */
INLINE struct own_row row_find(const struct lane_assignment *at,
                               __global const float *in, long step,
                               const ROW_PARAMS *p)
{
    struct own_row row;
    row.exists = at->row < p->by.rows;
    row.index = row.exists ? at->row : max(p->by.rows, (ulong)1) - 1;
    row.lanes = at->lanes;
    row.lane = at->lane;
    row.out = 0;
    row.shift = 0;
    long from = (long)p->in_offset;
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    row.count = ROW_ELEMENTS;
    from += (long)(row.index * ROW_ELEMENTS);
#else
    row.count = (uint)p->by.count;
    ADD_OFFSET(from, (index_t)row.index, p->outer, p->outer_rank,
               p->in_strides);
#endif
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    row.shift = (uint)from & (SECTOR_ELEMENTS - 1);
#endif
    row.in = in + from;
#if ROW_ACCESS == ROW_ACCESS_STRIDED || ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
    row.in_step = step;
#else
    row.in_step = 1;
#endif
    row.out_step = 1;
    return row;
}

/* Adds the output to the row. The lanes are then aligned to sectors of the
 * output, not of the input. */
INLINE void row_add_output(struct own_row *row, __global float *out, long step,
                           const ROW_PARAMS *p)
{
    long to = (long)p->out_offset;
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    to += (long)(row->index * ROW_ELEMENTS);
#else
    ADD_OFFSET(to, (index_t)row->index, p->outer, p->outer_rank,
               p->out_strides);
#endif
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    row->shift = ((uint)to + p->by.misalignments) & (SECTOR_ELEMENTS - 1);
#endif
    row->out = out + to;
#if ROW_ACCESS == ROW_ACCESS_STRIDED || ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
    row->out_step = step;
#endif
}

INLINE float4 vec4_load(__global const float *x)
{
    return *(__global const float4 *)x;
}
INLINE void vec4_store(__global float *x, float4 y)
{
    *(__global float4 *)x = y;
}

/* ---- elements of a short row ---- */

/* With ROW_ACCESS_LOCAL_MEMORY, each lane has a contiguous part of the row. The
 * parts of neighbouring lanes start in different banks of local memory. */
#define LANE_ELEMENTS ((ROW_ELEMENTS + (1u << LANES_LOG2) - 1) >> LANES_LOG2)

/* Returns the index, in the row, of the lane's first element. It can be
 * negative with ROW_ACCESS_SECTOR_ALIGNED. */
INLINE int lane_first(const struct own_row *row)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    return (int)(row->lane * 4);
#elif ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    return (int)(row->lane * LANE_ELEMENTS);
#else
    return (int)row->lane - (int)row->shift;
#endif
}

/* Returns how many elements element c (0 to 3) of the lane's vector k is away
 * from the lane's first element. With ROW_ACCESS_VEC4_COLUMNS, the elements of
 * a vector belong to four rows, and have the same index. */
INLINE int lane_distance(const struct own_row *row, uint k, uint c)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    return (int)(k * row->lanes * 4 + c);
#elif ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    return (int)(4 * k + c);
#elif ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
    return (int)(k * row->lanes);
#elif ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    return (int)((4 * k + c) << LANES_LOG2);
#else
    return (int)((4 * k + c) * row->lanes);
#endif
}

INLINE int element_index(const struct own_row *row, uint k, uint c)
{
    return lane_first(row) + lane_distance(row, k, c);
}

/* True if some lane has an element c of vector k; known when compiling. */
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
#define IN_LANE(k, c) (4 * (k) + (c) < LANE_ELEMENTS)
#else
#define IN_LANE(k, c) true
#endif

/* Returns true if element c of the lane's vector k is in the row. */
INLINE bool element_exists(const struct own_row *row, uint k, uint c)
{
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    /* Only a lane's first element and its last five can be outside the row. */
    if (4 * k + c >= 1 && 4 * k + c + 6 <= 4 * VECTORS_PER_ITEM)
        return true;
#endif
    return IN_LANE(k, c) && (uint)element_index(row, k, c) < row->count;
}

/* Returns element c of the lane's vector k in the input, or `missing` if it is
 * not in the row. */
INLINE float element_load(const struct own_row *row, uint k, uint c,
                          float missing)
{
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    /* The lane's elements are at constant offsets from one pointer. */
    return element_exists(row, k, c)
               ? (row->in + lane_first(row))[lane_distance(row, k, c)]
               : missing;
#else
    /* Loads the row's last element in place of a missing element, so that no
     * load has to wait for a comparison. */
    uint j = min((uint)element_index(row, k, c), row->count - 1);
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    float x = row->staged[j];
#else
    float x = row->in[(long)j * row->in_step];
#endif
    return element_exists(row, k, c) ? x : missing;
#endif
}

/* Stores element c of the lane's vector k, which must be in the row. */
INLINE void element_store(const struct own_row *row, uint k, uint c, float y)
{
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    (row->out + lane_first(row))[lane_distance(row, k, c)] = y;
#elif ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
    row->staged[element_index(row, k, c)] = y;
#else
    row->out[(long)element_index(row, k, c) * row->out_step] = y;
#endif
}

/* Returns the lane's vector k of the input. */
INLINE float4 vector_load(const struct own_row *row, uint k, float missing)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4 || ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
    float4 x = (float4)(missing);
    if (element_exists(row, k, 0))
        x = vec4_load(row->in + (long)element_index(row, k, 0) * row->in_step);
    return x;
#else
    return (float4)(element_load(row, k, 0, missing),
                    element_load(row, k, 1, missing),
                    element_load(row, k, 2, missing),
                    element_load(row, k, 3, missing));
#endif
}

INLINE void element_store_if_exists(const struct own_row *row, uint k, uint c,
                                    float y)
{
    if (row->exists && element_exists(row, k, c))
        element_store(row, k, c, y);
}
/* Stores the lane's vector k. */
INLINE void vector_store(const struct own_row *row, uint k, float4 y)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4 || ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
    if (row->exists && element_exists(row, k, 0))
        vec4_store(row->out + (long)element_index(row, k, 0) * row->out_step,
                   y);
#else
    element_store_if_exists(row, k, 0, y.s0);
    element_store_if_exists(row, k, 1, y.s1);
    element_store_if_exists(row, k, 2, y.s2);
    element_store_if_exists(row, k, 3, y.s3);
#endif
}

/* ---- short rows in local memory ---- */

/* Local memory holds the rows of the work-group, copied as aligned vectors. The
 * first and the last vector can cover elements outside these rows. The first
 * four work-items therefore copy these two vectors element by element. */
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
#define STAGED_VECTORS (GROUP_SIZE * STAGES_PER_ITEM + 1)

/* The rows of a work-group in a buffer: elements shift to end - 1, counted from
 * the vector boundary at offset `begin`. */
struct row_block {
    long begin;
    uint shift, end;
};

/* `offset` is the offset of row 0. A vector boundary is `misalignment` elements
 * before offset 0. */
INLINE struct row_block row_block_find(ulong offset, uint misalignment,
                                       const struct row_mapping *by)
{
    const ulong group_rows = GROUP_SIZE >> LANES_LOG2;
    const ulong first = get_group_id(0) * group_rows;
    const uint elements =
        (uint)min(group_rows, by->rows - first) * ROW_ELEMENTS;
    struct row_block block;
    block.begin = (long)(offset + first * ROW_ELEMENTS);
    block.shift = ((uint)block.begin + misalignment) & 3;
    block.begin -= block.shift;
    block.end = block.shift + elements;
    return block;
}

/* Copies the work-group's rows to local memory. All work-items must call this
 * function. */
INLINE void rows_stage_in(struct own_row *row, __local float4 *staged,
                          __global const float *in, const ROW_PARAMS *p)
{
    const struct row_block block =
        row_block_find(p->in_offset, p->by.misalignments, &p->by);
    const uint id = get_local_id(0);
    __local float *elements = (__local float *)staged;
    float4 x[STAGES_PER_ITEM];
    in += block.begin;
    REPEAT(k, STAGES_PER_ITEM)
    {
        const uint first = (k * GROUP_SIZE + id) * 4;
        x[k] = (float4)(0.0f);
        if (first >= block.shift && first + 4 <= block.end)
            x[k] = vec4_load(in + first);
    }
    REPEAT(k, STAGES_PER_ITEM)
    staged[k * GROUP_SIZE + id] = x[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (block.shift != 0 && id >= block.shift && id < 4 && id < block.end)
        elements[id] = in[id];
    const uint tail = (block.end & ~3u) + id;
    if (id < 4 && tail >= block.shift && tail < block.end)
        elements[tail] = in[tail];
    barrier(CLK_LOCAL_MEM_FENCE);
    row->staged = elements + block.shift + (id >> LANES_LOG2) * ROW_ELEMENTS;
}

/* Copies the work-group's rows from local memory to the output. All work-items
 * must call this function. */
INLINE void rows_stage_out(__local const float4 *staged, __global float *out,
                           const ROW_PARAMS *p)
{
    const struct row_block from =
        row_block_find(p->in_offset, p->by.misalignments, &p->by);
    const struct row_block to =
        row_block_find(p->out_offset, p->by.misalignments >> 2, &p->by);
    const uint id = get_local_id(0);
    __local const float *elements = (__local const float *)staged;
    const int distance = (int)from.shift - (int)to.shift;
    out += to.begin;
    barrier(CLK_LOCAL_MEM_FENCE);
    REPEAT(k, STAGES_PER_ITEM)
    {
        const uint first = (k * GROUP_SIZE + id) * 4;
        if (first >= to.shift && first + 4 <= to.end) {
            __local const float *x = elements + ((int)first + distance);
            vec4_store(out + first, (float4)(x[0], x[1], x[2], x[3]));
        }
    }
    if (to.shift != 0 && id >= to.shift && id < 4 && id < to.end)
        out[id] = elements[(int)id + distance];
    const uint tail = (to.end & ~3u) + id;
    if (id < 4 && tail >= to.shift && tail < to.end)
        out[tail] = elements[(int)tail + distance];
}
#else
#define STAGED_VECTORS 1
/* Other rows are not copied to local memory. */
INLINE void rows_stage_in(struct own_row *row, __local float4 *staged,
                          __global const float *in, const ROW_PARAMS *p)
{
}
INLINE void rows_stage_out(__local const float4 *staged, __global float *out,
                           const ROW_PARAMS *p)
{
}
#endif

/* ---- elements of a split ---- */

/* Part of a long row. The lane's first element has the index `first`, which is
 * negative if it is not in the row. Index `end` is behind the last element. */
struct own_split {
    long first, end;
};

/* Returns the number of lanes of a split. It is a constant if all work-items
 * share the split. */
INLINE long split_lanes(const struct own_row *row)
{
    return ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED ? GROUP_SIZE
                                                   : (long)row->lanes;
}

INLINE struct own_split split_find(const struct own_row *row, ulong split,
                                   const struct row_mapping *by)
{
    const long begin =
        (long)(split * by->elements_per_split) - (long)row->shift;
    const long lane_elements = ROW_ACCESS == ROW_ACCESS_VEC4 ? 4 : 1;
    struct own_split result;
    result.first = begin + (long)row->lane * lane_elements;
    result.end =
        row->exists ? min(begin + (long)by->elements_per_split, (long)by->count)
                    : begin;
    return result;
}

/* The distance of the four elements that the functions below access. */
#define SPLIT_DISTANCE(row)                                                    \
    (ROW_ACCESS == ROW_ACCESS_VEC4 ? 1 : split_lanes(row))

/* Returns the four elements j, j + SPLIT_DISTANCE, ..., all in the split. */
INLINE float4 elements4_load(const struct own_row *row, long j)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    return vec4_load(row->in + j);
#else
    const long distance = SPLIT_DISTANCE(row), step = row->in_step;
    __global const float *x = row->in;
    /* The distance is constant, and so are the offsets from one pointer. */
    if (ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED)
        x += j, j = 0;
    return (float4)(x[j * step], x[(j + distance) * step],
                    x[(j + 2 * distance) * step], x[(j + 3 * distance) * step]);
#endif
}
INLINE void elements4_store(const struct own_row *row, long j, float4 y)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    vec4_store(row->out + j, y);
#else
    const long distance = SPLIT_DISTANCE(row), step = row->out_step;
    __global float *x = row->out;
    if (ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED)
        x += j, j = 0;
    x[j * step] = y.s0;
    x[(j + distance) * step] = y.s1;
    x[(j + 2 * distance) * step] = y.s2;
    x[(j + 3 * distance) * step] = y.s3;
#endif
}

/* Returns element j, or `missing` if it is not in the split. */
INLINE float element_load_if(const struct own_row *row, long j, long end,
                             float missing)
{
    return j >= 0 && j < end ? row->in[j * row->in_step] : missing;
}
INLINE float4 elements4_load_if(const struct own_row *row, long j, long end,
                                float missing)
{
    const long distance = SPLIT_DISTANCE(row);
    return (float4)(element_load_if(row, j, end, missing),
                    element_load_if(row, j + distance, end, missing),
                    element_load_if(row, j + 2 * distance, end, missing),
                    element_load_if(row, j + 3 * distance, end, missing));
}
INLINE void element_store_if(const struct own_row *row, long j, long end,
                             float y)
{
    if (j >= 0 && j < end)
        row->out[j * row->out_step] = y;
}
INLINE void elements4_store_if(const struct own_row *row, long j, long end,
                               float4 y)
{
    const long distance = SPLIT_DISTANCE(row);
    element_store_if(row, j, end, y.s0);
    element_store_if(row, j + distance, end, y.s1);
    element_store_if(row, j + 2 * distance, end, y.s2);
    element_store_if(row, j + 3 * distance, end, y.s3);
}

#endif
