/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of operators that slide over spatial axes, like pooling. The tensors
 * have the axes [batch, channels, spatial...] with one to three spatial axes. A
 * tensor in the order NHWC is passed as a view with permuted strides. */
#ifndef TANDEM_COMMON_OP_WINDOW_H
#define TANDEM_COMMON_OP_WINDOW_H

#include "common/op_call.h"

#define MAX_SPATIAL_AXES 3u

/* A spatial axis. Element i of the output is computed from the elements
 * i * stride - begin + k * dilation of the input, for k in [0, kernel), that
 * are in [0, in). */
struct window_axis {
    int64_t in, out; /* lengths of input and output */
    int64_t kernel, stride, dilation;
    int64_t begin, end; /* padding */
};

/* The spatial axes, the innermost first. Missing ones have length 1 and a
 * kernel of one element. */
struct window {
    struct window_axis axis[MAX_SPATIAL_AXES];
};

/* Integer attributes with one number per spatial axis. `lists` of the functions
 * below begins with the strides. */
enum window_list {
    WINDOW_STRIDES,
    WINDOW_DILATIONS,
    WINDOW_BEGINS,
    WINDOW_ENDS,
    WINDOW_LISTS
};

/* Reads the window of a checked call. `kernel` has the lengths of the window
 * along the spatial axes. */
void window_read(struct window *out, const int64_t *kernel,
                 const int64_t *lists, const struct tandem_tensor_desc *input,
                 const struct tandem_tensor_desc *output);

/* Checks the rank of input 0, and that there are `lists` lists after the first
 * `first` integer attributes. */
enum tandem_status window_check_lists(const struct op_call *call,
                                      uint32_t first, uint32_t lists);

/* Checks kernel and lists. */
enum tandem_status window_check(const struct op_call *call,
                                const int64_t *kernel, const int64_t *lists);

/* Checks kernel and lists, and sets the lengths of the spatial axes in *out to
 * the numbers of windows, 0 if the window is longer than the padded axis. With
 * ceil_mode, a last window that is only partly inside counts, too. */
enum tandem_status window_infer(const struct op_call *call,
                                const int64_t *kernel, const int64_t *lists,
                                bool ceil_mode, struct tandem_tensor_desc *out);

/* Sets the lists of an example: strides of `stride`, and half a kernel of
 * padding. */
void window_example(int64_t *lists, uint32_t spatial, int64_t kernel,
                    int64_t stride);

/* Returns the first k of the range in which position + k * dilation is not
 * negative, and the end of the range in which it is below `length`. */
static inline int64_t window_first(int64_t position, int64_t dilation)
{
    return position >= 0 ? 0 : (dilation - 1 - position) / dilation;
}
static inline int64_t window_end(int64_t position, int64_t dilation,
                                 int64_t kernel, int64_t length)
{
    int64_t end =
        position >= length ? 0 : (length - position + dilation - 1) / dilation;
    return end < kernel ? end : kernel;
}

#endif
