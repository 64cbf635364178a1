/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of the input of operators with windows; see window_tile.h. */
#include "config.h"

#include "cpu/kernels/window_tile.h"

#include <string.h>

#include "cpu/kernels/elementwise.h"

/* Blocks have at least this many columns, or all, if the taps of the window
 * have to be divided otherwise. */
#define MIN_COLUMNS 64

static void tile_axis_set(struct tile_axis *axis, int64_t outputs, int64_t taps)
{
    int64_t span = (taps - 1) * axis->window->dilation;
    axis->outputs = outputs;
    axis->taps = taps;
    axis->phases = min64(axis->window->stride, span + 1);
    axis->extent = outputs + span / axis->window->stride;
}

/* Chooses the columns of a block and the taps that read a tile, for blocks of
 * one row. */
static void columns_choose(struct window_tile *tile, int64_t max_floats,
                           int64_t max_outputs)
{
    struct tile_axis *rows = &tile->rows, *columns = &tile->columns;
    int64_t width = min64(columns->window->out, max_outputs);
    int64_t column_taps = min64(columns->window->kernel, TILE_TAPS);
    int64_t row_taps = min64(rows->window->kernel, TILE_TAPS / column_taps);
    for (;;) {
        tile_axis_set(rows, 1, row_taps);
        tile_axis_set(columns, width, column_taps);
        double floats = (double)rows->phases * (double)rows->extent *
                        (double)columns->phases * (double)columns->extent;
        if (floats <= (double)max_floats)
            return;
        if (width > MIN_COLUMNS)
            width = ceil_div(width, 2);
        else if (row_taps > 1)
            row_taps = ceil_div(row_taps, 2);
        else
            column_taps = ceil_div(column_taps, 2);
    }
}

/* Divides an axis of the output into blocks of equal length and at most `max`
 * elements, and a multiple of `multiple` blocks.  Returns the length. */
static int64_t block_length(int64_t length, int64_t max, int64_t multiple)
{
    int64_t blocks = ceil_div(length, max);
    return ceil_div(length, ceil_div(blocks, multiple) * multiple);
}

void window_tile_init(struct window_tile *out, const struct window_axis *axes,
                      int64_t max_floats, int64_t max_outputs, int64_t multiple)
{
    struct tile_axis *rows = &out->rows, *columns = &out->columns;
    rows->window = &axes[1];
    columns->window = &axes[0];
    columns_choose(out, max_floats, max_outputs);
    int64_t width = block_length(axes[0].out, columns->outputs,
                                 axes[1].out == 1 ? multiple : 1);
    tile_axis_set(columns, width, columns->taps);
    out->pitch = columns->extent;
    out->column_blocks = ceil_div(axes[0].out, columns->outputs);
    if (out->column_blocks == 1) {
        int64_t extent =
            max_floats / (rows->phases * columns->phases * columns->extent);
        int64_t height = min64(extent - rows->extent + 1, axes[1].out);
        height = max64(min64(height, max_outputs / out->pitch), 1);
        tile_axis_set(rows, block_length(axes[1].out, height, multiple),
                      rows->taps);
    }
    out->floats = rows->phases * rows->extent * columns->phases * out->pitch;
    out->row_blocks = ceil_div(axes[1].out, rows->outputs);
    for (int64_t tap = 0; tap < rows->taps * columns->taps; tap++) {
        int64_t y = tap / columns->taps * axes[1].dilation;
        int64_t x = tap % columns->taps * axes[0].dilation;
        int64_t phase =
            y % axes[1].stride * columns->phases + x % axes[0].stride;
        out->tap_offset[tap] =
            (phase * rows->extent + y / axes[1].stride) * out->pitch +
            x / axes[0].stride;
    }
}

/* Copies the elements of an input row, which are contiguous, to the two phases
 * of columns with stride 2.  The first column of phase 0 is at `position`. */
static void row_deinterleave(const struct window_tile *tile,
                             const struct kernels *kernels, const float *row,
                             int64_t position, float *to)
{
    const struct window_axis *axis = tile->columns.window;
    int64_t first = max64(position, 0);
    int64_t end = min64(axis->in, position + 2 * tile->columns.extent);
    int64_t skipped = first - position;
    int64_t phase_floats = tile->rows.extent * tile->pitch;
    float *even = to + skipped % 2 * phase_floats + skipped / 2;
    float *odd = to + (skipped + 1) % 2 * phase_floats + (skipped + 1) / 2;
    int64_t pairs = (end - first) / 2;
    if (end <= first)
        return;
    kernels->deinterleave(even, odd, row + first, pairs);
    if ((end - first) % 2 != 0)
        even[pairs] = row[end - 1];
}

/* Fills a phase of the rows.  The first row and the first column of the tile
 * are at `y` and `x` in the input. */
static void phase_fill(const struct window_tile *tile,
                       const struct kernels *kernels, int64_t y, int64_t x,
                       const float *input, const int64_t *strides, float *to)
{
    const struct tile_axis *rows = &tile->rows, *columns = &tile->columns;
    int64_t stride_y = rows->window->stride, stride_x = columns->window->stride;
    int64_t first = window_first(y, stride_y);
    int64_t end = window_end(y, stride_y, rows->extent, rows->window->in);
    if (columns->phases == 2 && stride_x == 2 && strides[0] == 1) {
        for (int64_t i = first; i < end; i++)
            row_deinterleave(tile, kernels,
                             input + (y + i * stride_y) * strides[1], x,
                             to + i * tile->pitch);
        return;
    }
    for (int64_t phase = 0; phase < columns->phases; phase++, x++) {
        int64_t left = window_first(x, stride_x);
        int64_t right =
            window_end(x, stride_x, columns->extent, columns->window->in);
        if (stride_x == 1 && strides[0] == 1 && first < end && left < right)
            kernels->copy_rows(
                to + first * tile->pitch + left, tile->pitch,
                input + (y + first * stride_y) * strides[1] + x + left,
                stride_y * strides[1], end - first, right - left);
        else
            for (int64_t i = first; i < end && left < right; i++)
                elements_copy(to + i * tile->pitch + left, 1,
                              input + (y + i * stride_y) * strides[1] +
                                  (x + left * stride_x) * strides[0],
                              stride_x * strides[0], right - left, sizeof *to);
        to += rows->extent * tile->pitch;
    }
}

void window_tile_fill(const struct window_tile *tile,
                      const struct tile_position *position,
                      const struct kernels *kernels, const float *input,
                      const int64_t *strides, float padding, float *to)
{
    const struct tile_axis *rows = &tile->rows, *columns = &tile->columns;
    const struct window_axis *row_axis = rows->window;
    const struct window_axis *column_axis = columns->window;
    int64_t y = position->row * row_axis->stride +
                position->row_tap * row_axis->dilation - row_axis->begin;
    int64_t x = position->column * column_axis->stride +
                position->column_tap * column_axis->dilation -
                column_axis->begin;
    int64_t phase_floats = columns->phases * rows->extent * tile->pitch;
    if (padding == 0)
        memset(to, 0, (size_t)tile->floats * sizeof *to);
    else
        for (int64_t i = 0; i < tile->floats; i++)
            to[i] = padding;
    for (int64_t phase = 0; phase < rows->phases; phase++)
        phase_fill(tile, kernels, y + phase, x, input, strides,
                   to + phase * phase_floats);
}
