/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of a tensor as the operand `b` of a GEMM. With the weight of a
 * convolution as `a`, the product is the convolution, and the patches are never
 * stored (implicit GEMM). Column n of `b` is the window at element n of the
 * output. A row is one tap, that is, one element of the window, in one channel;
 * the taps of a channel are neighbouring rows.
 *
 * Arrays of three elements describe the spatial axes x, y and z. */
#ifndef TANDEM_GEMM_PATCHES_CL
#define TANDEM_GEMM_PATCHES_CL

#include "gemm/gemm_params.cl"

/* Maximum number of taps along an axis. */
#define MAX_PATCH_TAPS 32u

struct patches_params {
    struct fast_divmod column_space; /* axes of the output */
    struct fast_divmod tap_space;    /* axes of the window, and channels */
    /* Steps of an offset in the tensor: to the next tap along x, and the
     * further steps at the ends of a window's row, its plane and the window. */
    int32_t next_tap[4];
    int32_t channel, tap[3]; /* strides of channels and of taps */
    int32_t axis[3];         /* strides of the tensor */
    int32_t lengths[3];      /* of the tensor */
    int32_t kernel_size[3], stride[3], dilation[3], begin[3];
};
PARAMS_SIZE(patches_params, 360);

/* The parameters of a GEMM kernel whose operand `b` are patches. */
struct patches_gemm_params {
    struct gemm_params gemm;
    struct patches_params patches;
};
PARAMS_SIZE(patches_gemm_params, 584);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

/* The window of a column. Bit i of inside[axis] is set if tap i along the axis
 * is inside the tensor. */
struct window {
    int offset; /* of tap 0, which may be outside */
    uint inside[3];
};

/* Returns the window of a column, or one that is outside if the column does not
 * exist. */
INLINE struct window window_of(uint column, bool exists,
                               const struct patches_params *p)
{
    struct window at = {0, {0, 0, 0}};
    index_t left = exists ? column : 0;
    REPEAT (axis, 3) {
        int position;
        DIVMOD(left, p->column_space, axis, position);
        position = position * p->stride[axis] - p->begin[axis];
        at.offset += position * p->axis[axis];
#pragma unroll 1
        for (int i = 0; i < p->kernel_size[axis]; ++i) {
            if (exists && (uint)position < (uint)p->lengths[axis])
                at.inside[axis] |= 1u << i;
            position += p->dilation[axis];
        }
    }
    return at;
}

/* A row of the patches: the position of its tap in the window, and its offset
 * from tap 0 of channel 0. */
struct patch_row {
    int offset;
    uint tap[3];
};

INLINE struct patch_row patch_row_of(uint row, const struct patches_params *p)
{
    struct patch_row at;
    index_t left = row;
    at.offset = 0;
    REPEAT (axis, 3) {
        DIVMOD(left, p->tap_space, axis, at.tap[axis]);
        at.offset += (int)at.tap[axis] * p->tap[axis];
    }
    at.offset += (int)left * p->channel;
    return at;
}

INLINE void patch_row_next(struct patch_row *at, const struct patches_params *p)
{
    at->offset += p->next_tap[0];
    if (++at->tap[0] < (uint)p->kernel_size[0])
        return;
    at->tap[0] = 0;
    at->offset += p->next_tap[1];
    if (++at->tap[1] < (uint)p->kernel_size[1])
        return;
    at->tap[1] = 0;
    at->offset += p->next_tap[2];
    if (++at->tap[2] < (uint)p->kernel_size[2])
        return;
    at->tap[2] = 0;
    at->offset += p->next_tap[3];
}

INLINE bool patch_is_inside(const struct window *window,
                            const struct patch_row *row)
{
    return (window->inside[0] >> row->tap[0] &
            window->inside[1] >> row->tap[1] &
            window->inside[2] >> row->tap[2] & 1u) != 0;
}

#endif

#endif
