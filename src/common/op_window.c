/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks windows; see op_window.h. */
#include "common/op_window.h"

#include "common/last_error.h"

/* So that no product of two attributes overflows. */
#define MAX_ATTRIBUTE INT32_MAX

void window_read(struct window *out, const int64_t *kernel,
                 const int64_t *lists, const struct tandem_tensor_desc *input,
                 const struct tandem_tensor_desc *output)
{
    uint32_t spatial = input->rank - 2;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        uint32_t axis = spatial - 1 - i;
        if (i >= spatial) {
            out->axis[i] = (struct window_axis){1, 1, 1, 1, 1, 0, 0};
            continue;
        }
        out->axis[i] = (struct window_axis){
            .in = input->shape[2 + axis],
            .out = output->shape[2 + axis],
            .kernel = kernel[axis],
            .stride = lists[WINDOW_STRIDES * spatial + axis],
            .dilation = lists[WINDOW_DILATIONS * spatial + axis],
            .begin = lists[WINDOW_BEGINS * spatial + axis],
            .end = lists[WINDOW_ENDS * spatial + axis]};
    }
}

enum tandem_status window_check_lists(const struct op_call *call,
                                      uint32_t first, uint32_t lists)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    if (input->rank < 3 || input->rank > 2 + MAX_SPATIAL_AXES)
        return operand_error(call, 0,
                             "has rank %u; expected 3 to 5: batch, channels "
                             "and one to three spatial axes",
                             input->rank);
    uint32_t count = first + lists * (input->rank - 2);
    if (call->op->int_count < count)
        return argument_error(
            "%s: the length of ints is %u; expected %u or more (with %u lists "
            "that have a number for each spatial axis)",
            call->info->name, call->op->int_count, count, lists);
    return TANDEM_OK;
}

static enum tandem_status check_value(const struct op_call *call,
                                      const char *name, uint32_t axis,
                                      int64_t value, int64_t least)
{
    if (value >= least && value <= MAX_ATTRIBUTE)
        return TANDEM_OK;
    return argument_error("%s: %s[%u] is %lld; expected %lld to %d",
                          call->info->name, name, axis, (long long)value,
                          (long long)least, MAX_ATTRIBUTE);
}

/* Returns the number of elements from the first to the last one of a window. */
static int64_t span_of(const int64_t *kernel, const int64_t *lists,
                       uint32_t spatial, uint32_t axis)
{
    return (kernel[axis] - 1) * lists[WINDOW_DILATIONS * spatial + axis] + 1;
}

enum tandem_status window_check(const struct op_call *call,
                                const int64_t *kernel, const int64_t *lists)
{
    static const char *const names[WINDOW_LISTS] = {"strides", "dilations",
                                                    "begins", "ends"};
    uint32_t spatial = call->inputs[0]->rank - 2;
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < spatial && status == TANDEM_OK; i++)
        status = check_value(call, "kernel", i, kernel[i], 1);
    for (uint32_t i = 0; i < WINDOW_LISTS * spatial && status == TANDEM_OK; i++)
        status = check_value(call, names[i / spatial], i % spatial, lists[i],
                             i < WINDOW_BEGINS * spatial ? 1 : 0);
    return status;
}

/* Computes the number of windows along a spatial axis. */
static enum tandem_status window_count(const struct op_call *call,
                                       const int64_t *kernel,
                                       const int64_t *lists, uint32_t axis,
                                       bool ceil_mode, int64_t *out)
{
    uint32_t spatial = call->inputs[0]->rank - 2;
    int64_t n = call->inputs[0]->shape[2 + axis], padded;
    int64_t stride = lists[WINDOW_STRIDES * spatial + axis];
    int64_t begin = lists[WINDOW_BEGINS * spatial + axis];
    int64_t end = lists[WINDOW_ENDS * spatial + axis];
    int64_t span = span_of(kernel, lists, spatial, axis);
    if (__builtin_add_overflow(n, begin + end, &padded))
        return argument_error("%s: axis %u has %lld elements, too many for a "
                              "padding of %lld and %lld",
                              call->info->name, 2 + axis, (long long)n,
                              (long long)begin, (long long)end);
    int64_t rest = padded - span;
    *out = rest < 0 ? 0 : rest / stride + 1;
    /* Another window must begin before the end of the input. */
    if (ceil_mode && rest > -stride && rest % stride != 0 &&
        *out * stride < n + begin)
        ++*out;
    return TANDEM_OK;
}

enum tandem_status window_infer(const struct op_call *call,
                                const int64_t *kernel, const int64_t *lists,
                                bool ceil_mode, struct tandem_tensor_desc *out)
{
    uint32_t spatial = call->inputs[0]->rank - 2;
    enum tandem_status status = window_check(call, kernel, lists);
    for (uint32_t i = 0; status == TANDEM_OK && i < spatial; i++)
        status =
            window_count(call, kernel, lists, i, ceil_mode, &out->shape[2 + i]);
    return status;
}

void window_example(int64_t *lists, uint32_t spatial, int64_t kernel,
                    int64_t stride)
{
    for (uint32_t i = 0; i < spatial; i++) {
        lists[WINDOW_STRIDES * spatial + i] = stride;
        lists[WINDOW_DILATIONS * spatial + i] = 1;
        lists[WINDOW_BEGINS * spatial + i] = kernel / 2;
        lists[WINDOW_ENDS * spatial + i] = kernel / 2;
    }
}
