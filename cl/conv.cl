/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions. conv_direct computes one element of the output per work-item.
 * conv_depthwise, for groups of one input channel, computes a few elements of a
 * column of the output. Many other convolutions are GEMMs; see gemm/patches.cl.
 * conv_tiled multiplies matrices: a work-group computes a tile of TILE_M output
 * channels of a group (rows) and TILE_N elements of the other axes (columns). A
 * k_tile is the part of the weight and of the input for K_TILE steps along the
 * sum, which runs over the channels of the group and the taps of the window.
 * The input of a k_tile is gathered from the tensor (implicit GEMM). While one
 * k_tile is multiplied in local memory, the next one is loaded into registers.
 *
 * Arrays of three elements describe the spatial axes x, y and z. */
#include "common/params.cl"

struct conv_params {
    uint64_t columns; /* elements of the output's batch and spatial axes */
    uint64_t items;   /* elements of the output */
    uint64_t out_offset, x_offset, weight_offset, bias_offset, residual_offset;
    struct fast_divmod column_space; /* x, y, z and batch */
    struct fast_divmod tap_space;    /* x, y, z and channels of a group */
    struct fast_divmod item_space;   /* x, y, z, output channel and batch */
    /* Strides of x, y, z, channels and batch. */
    int64_t out_strides[5], x_strides[5], residual_strides[5];
    int64_t weight_tap[3], weight_channel, weight_row, weight_group;
    int64_t bias_stride;
    int64_t lengths[3];
    int32_t kernel_size[3], stride[3], dilation[3], begin[3];
    uint32_t rows, channels, depth; /* per group; depth: channels * taps */
    uint32_t tiles_m, tiles_n;
    uint32_t has_bias, has_residual;
    uint32_t out_lines; /* length of the output's y axis */
    float activation[2];
};
PARAMS_SIZE(conv_params, 728);

/* Lines of the output that a work-item of conv_depthwise computes. */
#define OUT_LINES 4

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"
#include "common/operators.cl"

#ifndef ACTIVATION
#define ACTIVATION op_none
#endif
/* 1 for the transposed convolution. */
#ifndef TRANSPOSED
#define TRANSPOSED 0
#endif

/* Maximum number of terms of a partial sum; see gemm_params.cl. */
#define PARTIAL_TERMS 256

/* Returns the position in the input that a tap reads along an axis, or -1 if
 * that is padding. `start` is the position of tap 0, and `shift` the distance
 * of the tap from tap 0. For the transposed convolution, both are multiplied by
 * the stride. */
static inline offset_t input_position(offset_t start, offset_t shift,
                                      offset_t stride, offset_t length)
{
#if TRANSPOSED
    offset_t at = start - shift, position = at / max(stride, (offset_t)1);
    bool inside = at >= 0 && position * stride == at && position < length;
#else
    offset_t position = start + shift;
    bool inside = (index_t)position < (index_t)length;
#endif
    return inside ? position : -1;
}

/* Position of tap 0 for element `at` of the output; see input_position. */
#if TRANSPOSED
#define WINDOW_START(axis, at) ((offset_t)(at) + p.begin[axis])
#else
#define WINDOW_START(axis, at) ((offset_t)(at)*p.stride[axis] - p.begin[axis])
#endif
/* Returns the position that tap `tap` reads along an axis. */
#define TAP_POSITION(axis, tap)                                                \
    input_position(start[axis], (offset_t)(tap)*p.dilation[axis],              \
                   p.stride[axis], (offset_t)p.lengths[axis])

#ifdef BUILD_conv_direct
KERNEL void conv_direct(__global float *out, __global const float *x,
                        __global const float *weight,
                        __global const float *bias,
                        __global const float *residual,
                        const struct conv_params p)
{
    index_t left = (index_t)get_global_id(0);
    if (left >= p.items)
        return;
    long to = (long)p.out_offset, added = (long)p.residual_offset;
    long from = (long)p.x_offset, w = (long)p.weight_offset, channel = 0;
    offset_t start[3];
    REPEAT(axis, 5)
    {
        long at = (long)left;
        if (axis < 4)
            DIVMOD(left, p.item_space, axis, at);
        to += at * p.out_strides[axis];
        added += at * p.residual_strides[axis];
        if (axis < 3)
            start[axis] = WINDOW_START(axis, at);
        else if (axis == 3)
            channel = at;
        else
            from += at * p.x_strides[4];
    }
    long group = (long)((uint)channel / max(p.rows, 1u));
    from += group * (long)p.channels * p.x_strides[3];
    w += group * p.weight_group + (channel - group * p.rows) * p.weight_row;
    float total = 0.0f, sum = 0.0f;
    uint terms = 0;
    for (uint c = 0; c < p.channels; ++c) {
        for (int i = 0; i < p.kernel_size[2]; ++i) {
            offset_t in_z = TAP_POSITION(2, i);
            for (int j = 0; j < p.kernel_size[1]; ++j) {
                offset_t in_y = TAP_POSITION(1, j);
                if (in_z < 0 || in_y < 0)
                    continue;
                long line = from + (long)in_z * p.x_strides[2] +
                            (long)in_y * p.x_strides[1];
                long tap =
                    w + (long)i * p.weight_tap[2] + (long)j * p.weight_tap[1];
                for (int k = 0; k < p.kernel_size[0]; ++k) {
                    offset_t in_x = TAP_POSITION(0, k);
                    if (in_x >= 0)
                        sum = fma(x[line + (long)in_x * p.x_strides[0]],
                                  weight[tap + (long)k * p.weight_tap[0]], sum);
                }
            }
        }
        /* Limits the number of terms that are added up in one f32. */
        terms += (uint)(p.kernel_size[0] * p.kernel_size[1] * p.kernel_size[2]);
        if (terms >= PARTIAL_TERMS) {
            total += sum;
            sum = 0.0f;
            terms = 0;
        }
        from += p.x_strides[3];
        w += p.weight_channel;
    }
    total += sum;
    if (p.has_bias)
        total += bias[(long)p.bias_offset + channel * p.bias_stride];
    if (p.has_residual)
        total += residual[added];
    out[to] = ACTIVATION(total, p.activation[0], p.activation[1]);
}
#endif

#ifdef BUILD_conv_depthwise
/* Lengths of the window, and its stride along y. There is no z axis. */
#ifndef WINDOW_X
#define WINDOW_X 3
#define WINDOW_Y 3
#define STRIDE_Y 1
#endif
#define IN_LINES ((OUT_LINES - 1) * STRIDE_Y + WINDOW_Y)

/* Neighbouring work-items compute neighbouring columns, so that they read
 * neighbouring elements. A work-item reads each element once for all lines that
 * it computes. */
KERNEL void conv_depthwise(__global float *out, __global const float *x,
                           __global const float *weight,
                           __global const float *bias,
                           __global const float *residual,
                           const struct conv_params p)
{
    index_t left = (index_t)get_global_id(0);
    if (left >= p.items)
        return;
    int column, block, channel;
    DIVMOD(left, p.item_space, 0, column);
    DIVMOD(left, p.item_space, 1, block);
    DIVMOD(left, p.item_space, 3, channel); /* z has length 1 */
    const int first = block * OUT_LINES;
    const uint rows = max(p.rows, 1u), group = (uint)channel / rows;
    const int start_x = column * p.stride[0] - p.begin[0];
    const int start_y = first * STRIDE_Y - p.begin[1];
    x += (long)p.x_offset + (long)left * p.x_strides[4] +
         (long)group * p.x_strides[3] + (long)start_y * p.x_strides[1] +
         (long)start_x * p.x_strides[0];
    weight += (long)p.weight_offset + (long)group * p.weight_group +
              (long)((uint)channel - group * rows) * p.weight_row;
    float sum[OUT_LINES], own[WINDOW_Y][WINDOW_X];
    bool inside[WINDOW_X];
    REPEAT(i, OUT_LINES)
    sum[i] = 0.0f;
    REPEAT(k, WINDOW_X)
    {
        uint position = (uint)(start_x + (int)k * p.dilation[0]);
        inside[k] = position < (uint)p.lengths[0];
        REPEAT(j, WINDOW_Y)
        own[j][k] = weight[(long)j * p.weight_tap[1] +
                           (long)k * p.weight_tap[0]];
    }
    const long step = (long)p.dilation[0] * p.x_strides[0];
    REPEAT(line, IN_LINES)
    {
        const bool line_inside =
            (uint)(start_y + (int)line) < (uint)p.lengths[1];
        REPEAT(k, WINDOW_X)
        {
            float value = 0.0f;
            if (line_inside && inside[k])
                value = x[(long)line * p.x_strides[1] + (long)k * step];
            REPEAT(i, OUT_LINES)
            {
                const int j = (int)line - (int)(i * STRIDE_Y);
                if (j >= 0 && j < WINDOW_Y)
                    sum[i] = fma(value, own[j][k], sum[i]);
            }
        }
    }
    const long to = (long)left * p.out_strides[4] +
                    (long)channel * p.out_strides[3] +
                    (long)column * p.out_strides[0];
    const long added = (long)left * p.residual_strides[4] +
                       (long)channel * p.residual_strides[3] +
                       (long)column * p.residual_strides[0];
    const float shift =
        p.has_bias ? bias[(long)p.bias_offset + channel * p.bias_stride] : 0.0f;
    REPEAT(i, OUT_LINES)
    {
        const long line = first + (long)i;
        float total = sum[i] + shift;
        if (line >= (long)p.out_lines)
            break;
        if (p.has_residual)
            total += residual[(long)p.residual_offset + added +
                              line * p.residual_strides[1]];
        out[(long)p.out_offset + to + line * p.out_strides[1]] =
            ACTIVATION(total, p.activation[0], p.activation[1]);
    }
}
#endif

#ifdef BUILD_conv_tiled
#ifndef ITEM_M
#define ITEM_M 8
#endif
#define ITEM_N 4
#define K_TILE (2 * ITEM_M)
#define ITEM_ROWS_PER_GROUP 8
#define ITEM_COLUMNS_PER_GROUP 16
#define TILE_M (ITEM_ROWS_PER_GROUP * ITEM_M)
#define TILE_N (ITEM_COLUMNS_PER_GROUP * ITEM_N)
/* A padding of four elements avoids bank conflicts. */
#define A_PITCH (TILE_M + 4)
#define B_PITCH (TILE_N + 4)
#define ELEMENT(v, i)                                                          \
    ((i) == 0 ? (v).s0 : (i) == 1 ? (v).s1 : (i) == 2 ? (v).s2 : (v).s3)
#define A_READS (TILE_M * K_TILE / GROUP_SIZE)
#define B_READS (TILE_N * K_TILE / GROUP_SIZE)

/* For each step of a k_tile: the offset of its tap in the weight, the offset of
 * its channel in the input, and the distance of its tap from tap 0. */
struct tap_table {
    long weight[K_TILE], channel[K_TILE];
    int shift[3][K_TILE];
};

/* Fills the entry of step `k` of the sum. */
INLINE void tap_table_set(__local struct tap_table *table, uint entry, uint k,
                          const struct conv_params *p)
{
    index_t left = k;
    long weight = 0;
    REPEAT(axis, 3)
    {
        long tap;
        DIVMOD(left, p->tap_space, axis, tap);
        weight += tap * p->weight_tap[axis];
        table->shift[axis][entry] = (int)tap * p->dilation[axis];
    }
    table->weight[entry] = weight + (long)left * p->weight_channel;
    table->channel[entry] = (long)left * p->x_strides[3];
}

/* The elements that a work-item reads for a k_tile: rows at distances of
 * GROUP_SIZE / K_TILE of one step, and one column in every second step. */
struct next_tile {
    float a[A_READS], b[B_READS];
};

#define A_STEP (get_local_id(0) % K_TILE)
#define A_ROW(r) (get_local_id(0) / K_TILE + (r) * (GROUP_SIZE / K_TILE))
#define B_STEP(r) (get_local_id(0) / TILE_N + (r) * (GROUP_SIZE / TILE_N))
#define B_COLUMN (get_local_id(0) % TILE_N)

/* Loads a k_tile. `left` is the number of steps to the end of the sum. */
INLINE void next_tile_load(struct next_tile *next, __global const float *weight,
                           uint rows, __global const float *x, bool has_column,
                           const int *start,
                           __local const struct tap_table *table, uint left,
                           const struct conv_params *p)
{
    long step = table->weight[A_STEP];
    REPEAT(r, A_READS)
    {
        next->a[r] = 0.0f;
        if (A_STEP < left && A_ROW(r) < rows)
            next->a[r] = weight[step + (long)A_ROW(r) * p->weight_row];
    }
    REPEAT(r, B_READS)
    {
        uint k = B_STEP(r);
        long from = table->channel[k];
        bool inside = has_column && k < left;
        REPEAT(axis, 3)
        {
            int at = input_position(start[axis], table->shift[axis][k],
                                    p->stride[axis], p->lengths[axis]);
            inside = inside && at >= 0;
            from += (long)at * p->x_strides[axis];
        }
        next->b[r] = 0.0f;
        if (inside)
            next->b[r] = x[from];
    }
}

/* Adds the products of a k_tile to the sums of work-item (y, x). */
INLINE void k_tile_multiply(float (*sum)[ITEM_N],
                            __local const float (*a)[A_PITCH],
                            __local const float (*b)[B_PITCH], uint y, uint x)
{
#pragma unroll 4
    for (uint k = 0; k < K_TILE; ++k) {
        float4 a_own[ITEM_M / 4];
        float4 b_own = *(__local const float4 *)&b[k][x * ITEM_N];
        REPEAT(i, ITEM_M / 4)
        a_own[i] = *(__local const float4 *)&a[k][y * ITEM_M + i * 4];
        REPEAT(i, ITEM_M)
        REPEAT(j, ITEM_N)
        sum[i][j] =
            fma(ELEMENT(a_own[i / 4], i % 4), ELEMENT(b_own, j), sum[i][j]);
    }
}

/* Adds the sums of a work-item to its totals and clears the sums. */
INLINE void accumulate(float (*total)[ITEM_N], float (*sum)[ITEM_N])
{
    REPEAT(i, ITEM_M)
    REPEAT(j, ITEM_N)
    {
        total[i][j] += sum[i][j];
        sum[i][j] = 0.0f;
    }
}

/* Applies the epilogue to the totals of a work-item and stores them. The
 * pointers are those of its first channel, and `rows` is the number of channels
 * from there to the end of the group. */
INLINE void totals_store(__global float *out, __global const float *bias,
                         __global const float *residual, float (*total)[ITEM_N],
                         int rows, uint first_column,
                         const struct conv_params *p)
{
    REPEAT(j, ITEM_N)
    {
        uint column = first_column + j;
        const bool inside = column < p->columns;
        long to = 0, added = 0;
        column = inside ? column : 0;
        REPEAT(axis, 4)
        {
            const uint stride = axis < 3 ? axis : 4;
            long at = (long)column;
            if (axis < 3)
                DIVMOD(column, p->column_space, axis, at);
            to += at * p->out_strides[stride];
            added += at * p->residual_strides[stride];
        }
        REPEAT(i, ITEM_M)
        {
            float value = total[i][j];
            if (!inside || (int)i >= rows)
                continue;
            if (p->has_bias)
                value += bias[(long)i * p->bias_stride];
            if (p->has_residual)
                value += residual[added + (long)i * p->residual_strides[3]];
            out[to + (long)i * p->out_strides[3]] =
                ACTIVATION(value, p->activation[0], p->activation[1]);
        }
    }
}

KERNEL void conv_tiled(__global float *out, __global const float *x,
                       __global const float *weight, __global const float *bias,
                       __global const float *residual,
                       const struct conv_params p)
{
    __local float a_tile[K_TILE][A_PITCH] __attribute__((aligned(16)));
    __local float b_tile[K_TILE][B_PITCH] __attribute__((aligned(16)));
    __local struct tap_table table;
    const uint id = get_local_id(0), group_tiles = p.tiles_m * p.tiles_n;
    const uint item_y = id / ITEM_COLUMNS_PER_GROUP;
    const uint item_x = id % ITEM_COLUMNS_PER_GROUP;
    uint tile = (uint)get_group_id(0);
    const uint group = tile / max(group_tiles, 1u);
    tile -= group * group_tiles;
    const uint first_column = tile / max(p.tiles_m, 1u) * TILE_N;
    const uint first_row = tile % max(p.tiles_m, 1u) * TILE_M;
    const uint rows = p.rows - first_row;

    /* The column that this work-item reads. */
    int start[3];
    uint left = first_column + B_COLUMN;
    const bool has_column = left < p.columns;
    left = has_column ? left : 0;
    x += (long)p.x_offset + (long)group * (long)p.channels * p.x_strides[3];
    REPEAT(axis, 3)
    {
        long at;
        DIVMOD(left, p.column_space, axis, at);
        start[axis] = WINDOW_START(axis, at);
    }
    x += (long)left * p.x_strides[4];
    weight += (long)p.weight_offset + (long)group * p.weight_group +
              (long)first_row * p.weight_row;

    float sum[ITEM_M][ITEM_N], total[ITEM_M][ITEM_N];
    REPEAT(i, ITEM_M)
    REPEAT(j, ITEM_N)
    sum[i][j] = total[i][j] = 0.0f;
    struct next_tile next;
    if (id < K_TILE)
        tap_table_set(&table, id, min(id, p.depth - 1), &p);
    barrier(CLK_LOCAL_MEM_FENCE);
    next_tile_load(&next, weight, rows, x, has_column, start, &table, p.depth,
                   &p);
    for (uint k = 0; k < p.depth; k += K_TILE) {
        const uint after = k + K_TILE;
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT(r, A_READS)
        a_tile[A_STEP][A_ROW(r)] = next.a[r];
        REPEAT(r, B_READS)
        b_tile[B_STEP(r)][B_COLUMN] = next.b[r];
        if (id < K_TILE)
            tap_table_set(&table, id, min(after + id, p.depth - 1), &p);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (after < p.depth)
            next_tile_load(&next, weight, rows, x, has_column, start, &table,
                           p.depth - after, &p);
        k_tile_multiply(sum, a_tile, b_tile, item_y, item_x);
        if (after % PARTIAL_TERMS == 0 || after >= p.depth)
            accumulate(total, sum);
    }

    const uint row = first_row + item_y * ITEM_M;
    const long channel = (long)group * p.rows + row;
    totals_store(
        out + (long)p.out_offset + channel * p.out_strides[3],
        bias + (long)p.bias_offset + channel * p.bias_stride,
        residual + (long)p.residual_offset + channel * p.residual_strides[3],
        total, (int)(p.rows - row), first_column + item_x * ITEM_N, &p);
}
#endif

#endif
