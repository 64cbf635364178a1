/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the patches of a tensor (patches.cl) as a matrix that is contiguous
 * along the rows of the patches: a line has the window of one element of the
 * output. A work-group stores a tile through local memory, so that it reads
 * neighbouring elements of the tensor. */
#include "gemm/patches.cl"

struct store_patches_params {
    struct patches_params patches;
    uint64_t out_offset, x_offset;
    int64_t x_batch;        /* stride of the tensor's batch */
    uint32_t columns, rows; /* of the patches of an image */
    uint32_t tiles_m, tiles_n; /* along rows and columns */
};
PARAMS_SIZE(store_patches_params, 400);

/* Side of a tile. */
#define PATCH_TILE 32u

#ifdef __OPENCL_C_VERSION__

#define LINES_PER_PASS (GROUP_SIZE / PATCH_TILE)

KERNEL void store_patches(__global float *out, __global const float *x,
                          const struct store_patches_params p)
{
    __local float tile[PATCH_TILE][PATCH_TILE + 1];
    const uint lane = get_local_id(0) % PATCH_TILE;
    const uint line = get_local_id(0) / PATCH_TILE;
    uint index = get_group_id(0);
    const uint first_row = index % max(p.tiles_m, 1u) * PATCH_TILE;
    index /= max(p.tiles_m, 1u);
    const uint first_column = index % max(p.tiles_n, 1u) * PATCH_TILE;
    const uint image = index / max(p.tiles_n, 1u);
    const struct window window =
        window_of(first_column + lane, first_column + lane < p.columns,
                  &p.patches);
    x += (long)p.x_offset + (long)image * p.x_batch;
    for (uint y = line; y < PATCH_TILE; y += LINES_PER_PASS) {
        const struct patch_row row = patch_row_of(first_row + y, &p.patches);
        float value = 0.0f;
        if (first_row + y < p.rows && patch_is_inside(&window, &row))
            value = x[window.offset + row.offset];
        tile[y][lane] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out += p.out_offset + ((ulong)image * p.columns + first_column) * p.rows +
           first_row + lane;
    for (uint y = line; y < PATCH_TILE; y += LINES_PER_PASS)
        if (first_column + y < p.columns && first_row + lane < p.rows)
            out[(ulong)y * p.rows] = tile[lane][y];
}

#endif
