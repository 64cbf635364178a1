/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the input elements that the windows of a block of outputs read,
 * for operators that slide windows over the two innermost spatial axes.  In a
 * tile, the element that a tap reads for output (i, j) of the block is
 * i * pitch + j elements after the one that it reads for output (0, 0).  A
 * kernel therefore treats the outputs as one row of contiguous elements, where
 * each row of the block is followed by unused elements.  Padding is stored as
 * elements, so that kernels do not test for the edges of the input.  Pure
 * functions, callable from any thread. */
#ifndef TANDEM_CPU_KERNELS_WINDOW_TILE_H
#define TANDEM_CPU_KERNELS_WINDOW_TILE_H

#include "common/op_window.h"
#include "cpu/kernels/kernel_table.h"

/* Maximum number of taps that read one tile. */
#define TILE_TAPS 64

/* An axis of a tile.  Phase p contains the input elements p, p + stride, p + 2
 * * stride and so on from the first tap of output 0. */
struct tile_axis {
    const struct window_axis *window;
    int64_t outputs; /* maximum outputs of a block */
    int64_t taps;    /* maximum taps that read one tile */
    int64_t phases;
    int64_t extent; /* elements of a phase */
};

/* Geometry of the tiles of an operator.  Phase q of the rows and p of the
 * columns is a matrix of rows.extent rows with `pitch` columns. */
struct window_tile {
    struct tile_axis rows, columns;
    int64_t row_blocks, column_blocks;
    int64_t pitch;
    int64_t floats; /* elements of a tile */
    /* For tap (i, j) of a tile, tap_offset[i * columns.taps + j] is the
     * position of the element that it reads for the first output. */
    int64_t tap_offset[TILE_TAPS];
};

/* First output of a block and first tap of a tile along both axes. */
struct tile_position {
    int64_t row, column, row_tap, column_tap;
};

/* Chooses blocks and taps so that tiles have at most max_floats elements, and
 * blocks at most max_outputs outputs, including the unused elements after rows,
 * unless a block has one row.  Both limits must be at least 64.  The number of
 * blocks along the axis that is divided is a multiple of `multiple`, except for
 * rows of several blocks.  A block has
 * either one row or all columns.  `axes` has the axis of the columns first, and
 * must outlive the tile. */
void window_tile_init(struct window_tile *out, const struct window_axis *axes,
                      int64_t max_floats, int64_t max_outputs,
                      int64_t multiple);

/* Writes the elements that blocks at `position` read, or `padding` for elements
 * outside of the input, to the tile `to`.  `strides` has those of the input in
 * elements, the innermost first. */
void window_tile_fill(const struct window_tile *tile,
                      const struct tile_position *position,
                      const struct kernels *kernels, const float *input,
                      const int64_t *strides, float padding, float *to);

#endif
