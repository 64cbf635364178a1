/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of which every element is needed twice: what softmax.cl and norm.cl
 * share.  A row has lanes work-items of one group, neighbours or across
 * (lane_reduce.cl), which read it once and keep it: HELD vectors of four each, x0,
 * x1, ...
 *
 * The including file defines IN_STEP and OUT_STEP, the strides along a row;
 * NOTHING, what stands where no element is; RESULT_ONE(x, j), the result of
 * element j, and RESULT_FOUR(x, j), those of four from j on (COLUMNS: of
 * element j of four rows), x being what was kept.
 */
#ifndef TANDEM_ROW_ACCESS_CL
#define TANDEM_ROW_ACCESS_CL

#include "common/lane_reduce.cl"

/* How rows lie in memory. */
#define STRIDED 0 /* anyhow */
#define VECTORS 1 /* in aligned vectors of four */
#define STAGED 2  /* one after the other, at any alignment */
#define COLUMNS 3 /* side by side, four of them in aligned vectors */
#define LINED 4   /* in elements, from where sectors of the output begin */
#ifndef ACCESS
#define ACCESS VECTORS
#endif
/* LINED: elements of a sector; no more than a row's lanes. */
#ifndef LINE
#define LINE 8
#endif
/* Vectors that a work-item keeps, <= 32; of LINED, fours of elements. */
#ifndef HELD
#define HELD 1
#endif
/* STAGED: the elements of a row, its work-items, and how many vectors of local
 * memory each of these fills. */
#ifndef COUNT
#define COUNT 4
#endif
#ifndef LANES_LOG2
#define LANES_LOG2 0
#endif
#ifndef STAGES
#define STAGES 2
#endif

/* F(0) to F(HELD - 1). */
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
#define EACH(F) CAT(EACH_, HELD)(F)

/* The head of the parameters.  COLUMNS counts rows by fours.  skews: elements
 * from an aligned vector to place 0 of the input and the output, two bits each;
 * of LINED, from a sector to that of the output. */
#define ROWS_HEAD                                                              \
    ulong rows, count, chunk; /* elements of a row; of a split */              \
    ulong row_groups;                                                          \
    uint lanes_log2, across, splits, skews

/* Which row a work-item keeps.  Rows of neighbours never lie side by side. */
#if ACCESS == STAGED
#define PLACE_FIND(across) place_of(LANES_LOG2, 0, 1, 0)
#define ROW_COUNT COUNT
#elif ACCESS == LINED
#define PLACE_FIND(across) place_of(LANES_LOG2, 0, 1, 0)
#define ROW_COUNT (uint)p.count
#elif ACCESS == STRIDED || ACCESS == COLUMNS
#define PLACE_FIND(across) place_of(p.lanes_log2, across, 1, 0)
#define ROW_COUNT (uint)p.count
#else
#define PLACE_FIND(across) place_of(p.lanes_log2, 0, 1, 0)
#define ROW_COUNT (uint)p.count
#endif

/* Where the row of at lies; one past the last reads the last. */
#if ACCESS == STAGED
#define ROW_FIND bool inside = at.row < p.rows;
#else
#define ROW_FIND                                                               \
    long from = (long)p.in_offset, to = (long)p.out_offset;                    \
    bool inside = at.row < p.rows;                                             \
    index_t row = (index_t)(inside ? at.row : max(p.rows, (ulong)1) - 1);      \
    WALK(from, row, p.kept, p.kept_rank, p.in_strides);                        \
    WALK(to, row, p.kept, p.kept_rank, p.out_strides);                         \
    SHIFT_FIND
#endif

/* LINED: how far before the row the output's sector begins, or where nothing of
 * it is written, the input's; and the place of a work-item's first element. */
#if ACCESS == LINED
#define SHIFT_FIND uint shift = ((uint)to + p.skews) & (LINE - 1);
#define FIRST_PLACE ((int)at.lane - (int)shift)
#define PART_SHIFT_FIND uint shift = (uint)from & (LINE - 1);
#else
#define SHIFT_FIND
#define PART_SHIFT_FIND
#endif

/* The first element of a lane in its split, and the split's end. */
#if ACCESS == LINED
#define SPLIT_BEGIN (long)(at.split * p.chunk) - (long)shift
#else
#define SPLIT_BEGIN (long)(at.split * p.chunk)
#endif
#if ACCESS == VECTORS
#define SPLIT_LANE 4
#else
#define SPLIT_LANE 1
#endif
/* Where the compiler should know, a split's lanes are the whole group. */
#if ACCESS == LINED
#define SPLIT_LANES (long)GROUP
#else
#define SPLIT_LANES (long)at.lanes
#endif
#define SPLIT_FIND                                                             \
    long begin = SPLIT_BEGIN;                                                  \
    long end = inside ? min(begin + (long)p.chunk, (long)p.count) : begin;     \
    long j = begin + (long)at.lane * SPLIT_LANE;

/* Four elements of buffer from place on. */
#define FOUR(buffer, place) (*(__global const float4 *)((buffer) + (place)))
#define FOUR_AT(buffer, place) (*(__global float4 *)((buffer) + (place)))

/* What all of a row are joined to: of one row, or of four. */
#if ACCESS == COLUMNS
typedef float4 cell;
#define WITHIN_MAX(x) (x)
#define WITHIN_SUM(x) (x)
#define CELL_EXCHANGE from_lane4
#else
typedef float cell;
#define WITHIN_MAX(x) max4(x)
#define WITHIN_SUM(x) sum4(x)
#define CELL_EXCHANGE from_lane
#endif
static inline cell cell_max(cell a, cell b)
{
    return fmax(a, b);
}
static inline cell cell_plus(cell a, cell b)
{
    return a + b;
}
static inline cell cells_max(cell own, __local cell *parts, uint lanes,
                             uint step)
    LANES_BODY(cell_max, CELL_EXCHANGE)
static inline cell cells_sum(cell own, __local cell *parts, uint lanes,
                             uint step)
    LANES_BODY(cell_plus, CELL_EXCHANGE)
#define ROW_MAX(x, parts) cells_max(WITHIN_MAX(x), parts, at.lanes, at.step)
#define ROW_SUM(x, parts) cells_sum(WITHIN_SUM(x), parts, at.lanes, at.step)

/* ---- reading and writing what is kept ---- */

/* The place in the row of element c of vector k. */
#if ACCESS == VECTORS
#define PLACE(k, c) (((k)*at.lanes + at.lane) * 4u + c)
#elif ACCESS == LINED
#define PLACE(k, c) (FIRST_PLACE + (int)((4 * (k) + c) << LANES_LOG2))
#elif ACCESS == COLUMNS
#define PLACE(k, c) ((k)*at.lanes + at.lane)
#elif ACCESS == STAGED
/* Pieces of a row are in different banks. */
#define PLACE(k, c) (at.lane * PIECE + (4u * (k) + c))
#define PIECE ((COUNT + (1u << LANES_LOG2) - 1) >> LANES_LOG2)
#else
#define PLACE(k, c) ((4u * (k) + c) * at.lanes + at.lane)
#endif
/* SOME: whether work-items have that element, as the compiler knows. */
#if ACCESS == STAGED
#define SOME(k, c) (4u * (k) + c < PIECE)
#else
#define SOME(k, c) true
#endif
#if ACCESS == LINED
/* Only a row's first elements, and its last, may be others. */
#define SURE(k, c) (4 * (k) + c >= 1 && 4 * (k) + c + 6 <= 4 * HELD)
#define THERE(k, c) (SURE(k, c) || (uint)PLACE(k, c) < count)
#else
#define THERE(k, c) (SOME(k, c) && PLACE(k, c) < count)
#endif
#define PUT_IF(k, c, target)                                                   \
    if (inside && THERE(k, c))                                                 \
        target = RESULT_ONE(CAT(x, k).s##c, PLACE(k, c));
#define PUT_EACH(k, TARGET)                                                    \
    PUT_IF(k, 0, TARGET(PLACE(k, 0)))                                          \
    PUT_IF(k, 1, TARGET(PLACE(k, 1)))                                          \
    PUT_IF(k, 2, TARGET(PLACE(k, 2)))                                          \
    PUT_IF(k, 3, TARGET(PLACE(k, 3)))

#if ACCESS == VECTORS || ACCESS == COLUMNS
#if ACCESS == VECTORS
#define IN_PLACE(k) (from + PLACE(k, 0))
#define OUT_PLACE(k) (to + PLACE(k, 0))
#else
#define IN_PLACE(k) (from + (long)PLACE(k, 0) * IN_STEP)
#define OUT_PLACE(k) (to + (long)PLACE(k, 0) * OUT_STEP)
#endif
#define HOLD_ALL EACH(HOLD)
#define HOLD(k)                                                                \
    float4 CAT(x, k) = (float4)(NOTHING);                                      \
    if (THERE(k, 0))                                                           \
        CAT(x, k) = FOUR(in, IN_PLACE(k));
#define WRITE(k)                                                               \
    if (inside && THERE(k, 0))                                                 \
        FOUR_AT(out, OUT_PLACE(k)) = RESULT_FOUR(CAT(x, k), PLACE(k, 0));
#elif ACCESS == LINED
/* From pointers of its own a work-item's elements are at fixed distances. */
#define HOLD_FROM(j) (in + (from + FIRST_PLACE))[(j)-FIRST_PLACE]
#define WRITE_TO(j) (out + (to + FIRST_PLACE))[(j)-FIRST_PLACE]
#define TAKE(k, c) (THERE(k, c) ? HOLD_FROM(PLACE(k, c)) : NOTHING)
#define HOLD_ALL EACH(HOLD)
#define HOLD(k)                                                                \
    float4 CAT(x, k) =                                                         \
        (float4)(TAKE(k, 0), TAKE(k, 1), TAKE(k, 2), TAKE(k, 3));
#define WRITE(k) PUT_EACH(k, WRITE_TO)
#else
/* Every load is made, so that none waits for a comparison. */
#define TAKE(k, c) take(HOLD_FROM(min(PLACE(k, c), count - 1)), THERE(k, c))
static inline float take(float x, bool there)
{
    return there ? x : NOTHING;
}
#define HOLD_ALL EACH(HOLD)
#define HOLD(k)                                                                \
    float4 CAT(x, k) =                                                         \
        (float4)(TAKE(k, 0), TAKE(k, 1), TAKE(k, 2), TAKE(k, 3));
#if ACCESS == STRIDED
#define HOLD_FROM(j) in[from + (long)(j)*IN_STEP]
#define WRITE_TO(j) out[to + (long)(j)*OUT_STEP]
#else
#define HOLD_FROM(j) own[j]
#define WRITE_TO(j) own[j]
#endif
#define WRITE(k) PUT_EACH(k, WRITE_TO)
#endif

/* ---- rows by way of local memory ---- */

/* Local memory has the vectors of the group's rows, one after the other: their
 * elements are those of stage from in_skew to its end; own is this work-item's
 * row.  Of vectors that are not whole, the first four work-items move what
 * belongs to the rows. */
#if ACCESS == STAGED
#define STAGE_DECLARE __local float4 staged[GROUP * STAGES + 1];
#define EACH_STAGE(F) CAT(EACH_, STAGES)(F)
#define STAGE_READ(k)                                                          \
    uint CAT(v, k) = (k)*GROUP + id;                                           \
    float4 CAT(y, k) = (float4)(0.0f);                                         \
    if (CAT(v, k) * 4 >= in_skew && CAT(v, k) * 4 + 4 <= in_end)               \
        CAT(y, k) = FOUR(in, begin + CAT(v, k) * 4);
#define STAGE_KEEP(k) staged[CAT(v, k)] = CAT(y, k);
#define STAGE_FILL                                                             \
    __local float *stage = (__local float *)staged;                            \
    uint id = get_local_id(0), nth = id >> LANES_LOG2;                       \
    ulong first = at.row - nth;                                                \
    uint filled = (uint)min((ulong)(GROUP >> LANES_LOG2), p.rows - first) *    \
                  count;                                                       \
    long begin = (long)p.in_offset + (long)(first * count);                    \
    long target = (long)p.out_offset + (long)(first * count);                  \
    uint in_skew = ((uint)begin + p.skews) & 3, in_end = in_skew + filled;     \
    uint out_skew = ((uint)target + (p.skews >> 2)) & 3;                       \
    uint out_end = out_skew + filled;                                          \
    begin -= in_skew;                                                          \
    target -= out_skew;                                                        \
    EACH_STAGE(STAGE_READ)                                                     \
    EACH_STAGE(STAGE_KEEP)                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    if (in_skew != 0 && id >= in_skew && id < 4 && id < in_end)                \
        stage[id] = in[begin + id];                                            \
    uint in_tail = (in_end & ~3u) + id;                                        \
    if (id < 4 && in_tail >= in_skew && in_tail < in_end)                      \
        stage[in_tail] = in[begin + in_tail];                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    __local float *own = stage + in_skew + nth * count;
#define STAGE_WRITE(k)                                                         \
    if (CAT(v, k) * 4 >= out_skew && CAT(v, k) * 4 + 4 <= out_end) {           \
        __local float *four = stage + CAT(v, k) * 4 + apart;                   \
        FOUR_AT(out, target + CAT(v, k) * 4) =                                 \
            (float4)(four[0], four[1], four[2], four[3]);                      \
    }
#define STAGE_EMPTY                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    int apart = (int)in_skew - (int)out_skew;                                  \
    EACH_STAGE(STAGE_WRITE)                                                    \
    if (out_skew != 0 && id >= out_skew && id < 4 && id < out_end)             \
        out[target + id] = stage[(int)id + apart];                             \
    uint tail = (out_end & ~3u) + id;                                          \
    if (id < 4 && tail >= out_skew && tail < out_end)                          \
        out[target + tail] = stage[(int)tail + apart];
#else
#define STAGE_DECLARE
#define STAGE_FILL
#define STAGE_EMPTY
#endif

#endif
