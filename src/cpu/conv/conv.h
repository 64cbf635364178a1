/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions.  There are two algorithms: conv_direct.c sums up the windows,
 * and conv_gemm.c multiplies matrices with the CBLAS.  conv_init selects one,
 * and launch.c allocates the workspace.  Callable from any thread. */
#ifndef TANDEM_CPU_CONV_CONV_H
#define TANDEM_CPU_CONV_CONV_H

#include <stdatomic.h>

#include "common/op_conv.h"
#include "cpu/kernels/window_tile.h"
#include "cpu/objects.h"

struct conv {
    struct conv_problem problem;
    uint32_t op;    /* enum tandem_op_id */
    bool uses_gemm; /* false: conv_direct_run */
    const struct kernels *kernels;
    struct pool *pool;
    struct params params; /* attributes of the activation */
    const float *x, *weight, *bias, *residual;
    float *out;
    int64_t out_lengths[MAX_SPATIAL_AXES]; /* the innermost first */
};

/* Describes a checked call.  Returns false if the output is empty. */
bool conv_init(struct conv *out, const struct work *work);

/* Returns true if every window is one element at the position of the output. */
bool conv_windows_are_elements(const struct conv_problem *problem);

/* Copies n elements of a channel, from element `first` of the spatial axes on,
 * between `block`, which is contiguous, and the tensor. */
enum conv_copy { CONV_GATHER, CONV_SCATTER };
void conv_copy(const struct conv *conv, enum conv_copy direction, float *block,
               float *channel, const struct conv_strides *strides,
               int64_t first, int64_t n);

/* Adds the bias, if any, to n elements of an output channel. */
void conv_bias_add(const struct conv *conv, float *y, int64_t channel,
                   int64_t n);

/* Adds the residual to n elements of an output channel, from element `first` of
 * the spatial axes on, and applies the activation.  `space` has n
 * floats. */
void conv_epilogue(const struct conv *conv, float *y, int64_t image,
                   int64_t channel, int64_t first, int64_t n, float *space);

/* A convolution as weighted sums of shifted input planes, divided into blocks
 * of the output.  The workspace has a slot for each thread; sizes are in
 * floats. */
struct direct_job {
    const struct conv *conv;
    struct window_axis axes[MAX_SPATIAL_AXES]; /* merged if possible */
    struct window_tile tile;
    int64_t rows; /* maximum output channels of a block */
    int64_t row_blocks;
    int64_t channels;    /* maximum input channels per call of weighted_sums */
    bool writes_out;     /* the outputs of a plane are contiguous */
    bool reads_x;        /* the sums read the input, not tiles */
    bool sums_in_out;    /* the sums are computed in the output */
    bool reads_weight;   /* the sums read the weight, not copies of its rows */
    int64_t sums_stride; /* between the sums of two output channels */
    int64_t tile_stride; /* between the tiles of two input channels */
    int64_t sums_floats, tiles_floats, slot_floats, threads;
    float *slots;
    atomic_uchar *slot_taken; /* for each slot, 1 if it is in use */
};

/* Divides the convolution into blocks.  `conv` must outlive the job.  Returns
 * the size of the workspace in bytes; the caller owns the workspace. */
uint64_t conv_direct_prepare(struct direct_job *job, const struct conv *conv);
void conv_direct_run(struct direct_job *job, void *workspace);

/* A convolution as a product of matrices (op_conv.h), divided into blocks of
 * the output.  The workspace holds a copy of the weight, if any, and a slot for
 * each thread; sizes are in floats. */
struct conv_job {
    const struct conv *conv;
    int64_t rows, columns; /* maximum size of a block */
    int64_t row_blocks, column_blocks;
    const float *weight; /* rows are contiguous */
    int64_t weight_ld, weight_group;
    bool reads_x;         /* patches are read from the input */
    bool x_is_transposed; /* its channels are contiguous */
    bool writes_out;      /* rows of the block are contiguous in the output */
    int64_t patch_floats, block_floats, slot_floats, threads;
    int64_t weight_floats; /* size of a copy of the weight; 0: no copy */
    float *slots;
    atomic_uchar *slot_taken; /* for each slot, 1 if it is in use */
};

/* Divides the convolution into blocks.  `conv` must outlive the job.  Returns
 * the size of the workspace in bytes; the caller owns the workspace. */
uint64_t conv_gemm_prepare(struct conv_job *job, const struct conv *conv);
void conv_gemm_run(struct conv_job *job, void *workspace);

#endif
