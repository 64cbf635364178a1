/* SPDX-License-Identifier: Apache-2.0 */
/* Access to rows whose elements are needed twice, for softmax.cl and norm.cl.
 * The lanes of a row are work-items of one work-group (lane_reduce.cl). They
 * read the row once and keep it in registers. Each lane has VECTORS_PER_ITEM
 * vectors of four elements, the variables x0, x1, ...
 *
 * The including file defines these macros: IN_STEP and OUT_STEP are the strides
 * of the input and the output along a row. IDENTITY is the value of a missing
 * element. RESULT_SCALAR(x, j) is the result for element j, whose value is x.
 * RESULT_VEC4(x, j) is a vector of four results. With ROW_ACCESS_VEC4_COLUMNS,
 * these are for element j of four rows. Otherwise, they are for four elements
 * of one row, from element j on. */
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

/* EACH(F) expands to F(0) F(1) ... F(VECTORS_PER_ITEM - 1). */
#define EACH_1(F) F(0)
#define EACH_2(F) EACH_1(F) F(1)
#define EACH_3(F) EACH_2(F) F(2)
#define EACH_4(F) EACH_3(F) F(3)
#define EACH_5(F) EACH_4(F) F(4)
#define EACH_6(F) EACH_5(F) F(5)
#define EACH_7(F) EACH_6(F) F(6)
#define EACH_8(F) EACH_7(F) F(7)
#define EACH_9(F) EACH_8(F) F(8)
#define EACH_10(F) EACH_9(F) F(9)
#define EACH_11(F) EACH_10(F) F(10)
#define EACH_12(F) EACH_11(F) F(11)
#define EACH_13(F) EACH_12(F) F(12)
#define EACH_14(F) EACH_13(F) F(13)
#define EACH_15(F) EACH_14(F) F(14)
#define EACH_16(F) EACH_15(F) F(15)
#define EACH_32(F)                                                             \
    EACH_16(F) F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25)     \
    F(26) F(27) F(28) F(29) F(30) F(31)
#define EACH(F) CAT(EACH_, VECTORS_PER_ITEM)(F)

/* Assigns a row to a work-item. Neighbouring work-items work on the same row
 * unless the parameter lanes_interleaved is true. */
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY ||                                   \
    ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define LANE_ASSIGNMENT(interleaved) lane_assign(LANES_LOG2, 0, 1, 0)
#else
#define LANE_ASSIGNMENT(interleaved)                                           \
    lane_assign(p.by.lanes_log2,                                               \
                ROW_ACCESS == ROW_ACCESS_VEC4 ? 0 : (interleaved), 1, 0)
#endif

/* ROW_COUNT is the length of a row. DECLARE_ROW declares the offsets of the
 * work-item's row in the input and the output. Work-items beyond the last row
 * read the last row. */
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
#define ROW_COUNT ROW_ELEMENTS
#define DECLARE_ROW bool inside = at.row < p.by.rows;
#else
#define ROW_COUNT (uint) p.by.count
#define DECLARE_ROW                                                            \
    long from = (long)p.in_offset, to = (long)p.out_offset;                    \
    bool inside = at.row < p.by.rows;                                          \
    index_t row = (index_t)(inside ? at.row : max(p.by.rows, (ulong)1) - 1);   \
    ADD_OFFSET(from, row, p.outer, p.outer_rank, p.in_strides);                \
    ADD_OFFSET(to, row, p.outer, p.outer_rank, p.out_strides);                 \
    DECLARE_SHIFT
#endif

/* For ROW_ACCESS_SECTOR_ALIGNED: `shift` is the number of elements from a
 * sector boundary to the row's start in the output, or in the input if a kernel
 * has no output. FIRST_ELEMENT is the index of a work-item's first element. */
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define DECLARE_SHIFT                                                          \
    uint shift = ((uint)to + p.by.misalignments) & (SECTOR_ELEMENTS - 1);
#define FIRST_ELEMENT ((int)at.lane - (int)shift)
#define DECLARE_INPUT_SHIFT uint shift = (uint)from & (SECTOR_ELEMENTS - 1);
#else
#define DECLARE_SHIFT
#define DECLARE_INPUT_SHIFT
#endif

/* Macros that declare a split (part of a row) from index `begin` to `end`. The
 * first element of a lane has index `j`. SPLIT_LANES is the number of lanes of
 * a split, a constant if all work-items share the split. */
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define SPLIT_BEGIN (long)(at.split * p.by.elements_per_split) - (long)shift
#define SPLIT_LANES (long)GROUP_SIZE
#else
#define SPLIT_BEGIN (long)(at.split * p.by.elements_per_split)
#define SPLIT_LANES (long)at.lanes
#endif
#define ELEMENTS_PER_LANE (ROW_ACCESS == ROW_ACCESS_VEC4 ? 4 : 1)
#define DECLARE_SPLIT                                                          \
    long begin = SPLIT_BEGIN;                                                  \
    long end =                                                                 \
        inside ? min(begin + (long)p.by.elements_per_split, (long)p.by.count)  \
               : begin;                                                        \
    long j = begin + (long)at.lane * ELEMENTS_PER_LANE;

#define LOAD_VEC4(buffer, i) (*(__global const float4 *)((buffer) + (i)))
#define VEC4_AT(buffer, i) (*(__global float4 *)((buffer) + (i)))
/* The vector of F's results for the elements j to j + 3, whose values are x. */
#define VEC4_OF(F, x, j)                                                       \
    (float4)(F(x.s0, (j)), F(x.s1, (j) + 1), F(x.s2, (j) + 2), F(x.s3, (j) + 3))
/* Element j of the work-item's row, in the input and in the output. */
#if ROW_ACCESS == ROW_ACCESS_STRIDED
#define IN_AT(j) in[from + (long)(j)*IN_STEP]
#define OUT_AT(j) out[to + (long)(j)*OUT_STEP]
#else
#define IN_AT(j) in[from + (j)]
#define OUT_AT(j) out[to + (j)]
#endif

/* Result of a reduction: one value for a row, or four values for four rows. */
#if ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
typedef float4 row_value_t;
#define VEC4_MAX(x) (x)
#define VEC4_SUM(x) (x)
#define ROW_VALUE_SHUFFLE shuffle_xor4
#else
typedef float row_value_t;
#define VEC4_MAX(x) max4(x)
#define VEC4_SUM(x) sum4(x)
#define ROW_VALUE_SHUFFLE shuffle_xor
#endif
INLINE row_value_t row_value_lanes_max(row_value_t own,
                                       __local row_value_t *partials,
                                       uint lanes, uint step)
    LANES_COMBINE_BODY(fmax, ROW_VALUE_SHUFFLE)
INLINE row_value_t row_value_lanes_sum(row_value_t own,
                                       __local row_value_t *partials,
                                       uint lanes, uint step)
    LANES_COMBINE_BODY(VALUE_ADD, ROW_VALUE_SHUFFLE)
#define ROW_MAX(x, partials)                                                   \
    row_value_lanes_max(VEC4_MAX(x), partials, at.lanes, at.step)
#define ROW_SUM(x, partials)                                                   \
    row_value_lanes_sum(VEC4_SUM(x), partials, at.lanes, at.step)

/* ---- loading and storing the elements in registers ---- */

/* Index, in the row, of element c (0 to 3) of a work-item's vector k. */
#if ROW_ACCESS == ROW_ACCESS_VEC4
#define ELEMENT_INDEX(k, c) (((k)*at.lanes + at.lane) * 4u + c)
#elif ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define ELEMENT_INDEX(k, c) (FIRST_ELEMENT + (int)((4 * (k) + c) << LANES_LOG2))
#elif ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
#define ELEMENT_INDEX(k, c) ((k)*at.lanes + at.lane)
#elif ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
/* Each lane has a contiguous part of the row. The parts of neighbouring lanes
 * start in different banks of local memory. */
#define ELEMENT_INDEX(k, c) (at.lane * LANE_ELEMENTS + (4u * (k) + c))
#define LANE_ELEMENTS ((ROW_ELEMENTS + (1u << LANES_LOG2) - 1) >> LANES_LOG2)
#else
#define ELEMENT_INDEX(k, c) ((4u * (k) + c) * at.lanes + at.lane)
#endif
/* True if element c of vector k is in the lane's part; known when compiling. */
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
#define IN_LANE(k, c) (4u * (k) + c < LANE_ELEMENTS)
#else
#define IN_LANE(k, c) true
#endif
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
/* Only a work-item's first element and its last five can be outside the row. */
#define ALWAYS_IN_RANGE(k, c)                                                  \
    (4 * (k) + c >= 1 && 4 * (k) + c + 6 <= 4 * VECTORS_PER_ITEM)
#define IN_RANGE(k, c)                                                         \
    (ALWAYS_IN_RANGE(k, c) || (uint)ELEMENT_INDEX(k, c) < count)
#else
#define IN_RANGE(k, c) (IN_LANE(k, c) && ELEMENT_INDEX(k, c) < count)
#endif
#define STORE_IF_IN_RANGE(k, c, target)                                        \
    if (inside && IN_RANGE(k, c))                                              \
        target = RESULT_SCALAR(CAT(x, k).s##c, ELEMENT_INDEX(k, c));
#define STORE_EACH(k, TARGET)                                                  \
    STORE_IF_IN_RANGE(k, 0, TARGET(ELEMENT_INDEX(k, 0)))                       \
    STORE_IF_IN_RANGE(k, 1, TARGET(ELEMENT_INDEX(k, 1)))                       \
    STORE_IF_IN_RANGE(k, 2, TARGET(ELEMENT_INDEX(k, 2)))                       \
    STORE_IF_IN_RANGE(k, 3, TARGET(ELEMENT_INDEX(k, 3)))

#define LOAD_ROW EACH(LOAD)
#if ROW_ACCESS == ROW_ACCESS_VEC4 || ROW_ACCESS == ROW_ACCESS_VEC4_COLUMNS
#if ROW_ACCESS == ROW_ACCESS_VEC4
#define IN_OFFSET(k) (from + ELEMENT_INDEX(k, 0))
#define OUT_OFFSET(k) (to + ELEMENT_INDEX(k, 0))
#else
#define IN_OFFSET(k) (from + (long)ELEMENT_INDEX(k, 0) * IN_STEP)
#define OUT_OFFSET(k) (to + (long)ELEMENT_INDEX(k, 0) * OUT_STEP)
#endif
#define LOAD(k)                                                                \
    float4 CAT(x, k) = (float4)(IDENTITY);                                     \
    if (IN_RANGE(k, 0))                                                        \
        CAT(x, k) = LOAD_VEC4(in, IN_OFFSET(k));
#define STORE(k)                                                               \
    if (inside && IN_RANGE(k, 0))                                              \
        VEC4_AT(out, OUT_OFFSET(k)) =                                          \
            RESULT_VEC4(CAT(x, k), ELEMENT_INDEX(k, 0));
#else
#define LOAD(k)                                                                \
    float4 CAT(x, k) =                                                         \
        (float4)(LOAD_OR_IDENTITY(k, 0), LOAD_OR_IDENTITY(k, 1),               \
                 LOAD_OR_IDENTITY(k, 2), LOAD_OR_IDENTITY(k, 3));
#define STORE(k) STORE_EACH(k, STORE_TO)
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
/* All elements of a work-item are at constant offsets from one base pointer. */
#define LOAD_FROM(j) (in + (from + FIRST_ELEMENT))[(j)-FIRST_ELEMENT]
#define STORE_TO(j) (out + (to + FIRST_ELEMENT))[(j)-FIRST_ELEMENT]
#define LOAD_OR_IDENTITY(k, c)                                                 \
    (IN_RANGE(k, c) ? LOAD_FROM(ELEMENT_INDEX(k, c)) : IDENTITY)
#else
/* Loads the row's last element in place of a missing element, so that no load
 * has to wait for a comparison. */
#define LOAD_OR_IDENTITY(k, c)                                                 \
    value_or_identity(LOAD_FROM(min(ELEMENT_INDEX(k, c), count - 1)),          \
                      IN_RANGE(k, c))
static inline float value_or_identity(float x, bool exists)
{
    return exists ? x : IDENTITY;
}
#if ROW_ACCESS == ROW_ACCESS_STRIDED
#define LOAD_FROM IN_AT
#define STORE_TO OUT_AT
#else
#define LOAD_FROM(j) own[j]
#define STORE_TO(j) own[j]
#endif
#endif
#endif

/* ---- rows in local memory ---- */

/* Local memory holds consecutive rows, copied as aligned vectors. `own` points
 * to this work-item's row. The first row starts at element in_shift. The first
 * and the last vector can cover elements outside these rows. The first four
 * work-items therefore copy these two vectors element by element. */
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
#define STAGE_DECLARE __local float4 staged[GROUP_SIZE * STAGES_PER_ITEM + 1];
#define EACH_STAGE(F) CAT(EACH_, STAGES_PER_ITEM)(F)
#define STAGE_LOAD(k)                                                          \
    uint CAT(v, k) = (k)*GROUP_SIZE + id;                                      \
    float4 CAT(y, k) = (float4)(0.0f);                                         \
    if (CAT(v, k) * 4 >= in_shift && CAT(v, k) * 4 + 4 <= in_end)              \
        CAT(y, k) = LOAD_VEC4(in, begin + CAT(v, k) * 4);
#define STAGE_PUT(k) staged[CAT(v, k)] = CAT(y, k);
#define STAGE_ROWS_IN                                                          \
    __local float *staged_elements = (__local float *)staged;                  \
    uint id = get_local_id(0), group_row = id >> LANES_LOG2;                   \
    ulong first = at.row - group_row;                                          \
    uint row_elements =                                                        \
        (uint)min((ulong)(GROUP_SIZE >> LANES_LOG2), p.by.rows - first) *      \
        count;                                                                 \
    long begin = (long)p.in_offset + (long)(first * count);                    \
    long target = (long)p.out_offset + (long)(first * count);                  \
    uint in_shift = ((uint)begin + p.by.misalignments) & 3,                    \
         in_end = in_shift + row_elements;                                     \
    uint out_shift = ((uint)target + (p.by.misalignments >> 2)) & 3;           \
    uint out_end = out_shift + row_elements;                                   \
    begin -= in_shift;                                                         \
    target -= out_shift;                                                       \
    EACH_STAGE(STAGE_LOAD)                                                     \
    EACH_STAGE(STAGE_PUT)                                                      \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    if (in_shift != 0 && id >= in_shift && id < 4 && id < in_end)              \
        staged_elements[id] = in[begin + id];                                  \
    uint in_tail = (in_end & ~3u) + id;                                        \
    if (id < 4 && in_tail >= in_shift && in_tail < in_end)                     \
        staged_elements[in_tail] = in[begin + in_tail];                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    __local float *own = staged_elements + in_shift + group_row * count;
#define STAGE_STORE(k)                                                         \
    if (CAT(v, k) * 4 >= out_shift && CAT(v, k) * 4 + 4 <= out_end) {          \
        __local float *vec4 =                                                  \
            staged_elements + CAT(v, k) * 4 + shift_distance;                  \
        VEC4_AT(out, target + CAT(v, k) * 4) =                                 \
            (float4)(vec4[0], vec4[1], vec4[2], vec4[3]);                      \
    }
#define STAGE_ROWS_OUT                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    int shift_distance = (int)in_shift - (int)out_shift;                       \
    EACH_STAGE(STAGE_STORE)                                                    \
    if (out_shift != 0 && id >= out_shift && id < 4 && id < out_end)           \
        out[target + id] = staged_elements[(int)id + shift_distance];          \
    uint tail = (out_end & ~3u) + id;                                          \
    if (id < 4 && tail >= out_shift && tail < out_end)                         \
        out[target + tail] = staged_elements[(int)tail + shift_distance];
#else
#define STAGE_DECLARE
#define STAGE_ROWS_IN
#define STAGE_ROWS_OUT
#endif

#endif
