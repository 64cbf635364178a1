/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks windows; see op_window.h. */
#include "common/op_window.h"

#include "common/last_error.h"

/* So that no product of two attributes overflows. */
#define MAX_ATTRIBUTE INT32_MAX

enum list { KERNEL, STRIDES, DILATIONS, BEGINS, ENDS, LISTS };

void window_read(struct window *out, const int64_t *lists,
                 const struct tandem_tensor_desc *input,
                 const struct tandem_tensor_desc *output)
{
    uint32_t spatial = input->rank - 2;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        uint32_t axis = spatial - 1 - i;
        if (i >= spatial) {
            out->axis[i] = (struct window_axis){1, 1, 1, 1, 1, 0, 0};
            continue;
        }
        out->axis[i] =
            (struct window_axis){.in = input->shape[2 + axis],
                                 .out = output->shape[2 + axis],
                                 .kernel = lists[KERNEL * spatial + axis],
                                 .stride = lists[STRIDES * spatial + axis],
                                 .dilation = lists[DILATIONS * spatial + axis],
                                 .begin = lists[BEGINS * spatial + axis],
                                 .end = lists[ENDS * spatial + axis]};
    }
}

static enum tandem_status check_attributes(const struct op_call *call,
                                           const int64_t *lists,
                                           uint32_t spatial)
{
    static const char *const names[LISTS] = {"kernel", "strides", "dilations",
                                             "begins", "ends"};
    for (uint32_t i = 0; i < LISTS * spatial; i++) {
        int64_t least = i < BEGINS * spatial ? 1 : 0;
        if (lists[i] < least || lists[i] > MAX_ATTRIBUTE)
            return argument_error(
                "%s: %s[%u] is %lld; expected %lld to %d", call->info->name,
                names[i / spatial], i % spatial, (long long)lists[i],
                (long long)least, MAX_ATTRIBUTE);
    }
    return TANDEM_OK;
}

/* Computes the length of a spatial axis of the output. */
static enum tandem_status window_length(const struct op_call *call,
                                        const int64_t *lists, uint32_t spatial,
                                        uint32_t axis, bool ceil_mode,
                                        int64_t *out)
{
    const char *name = call->info->name;
    int64_t n = call->inputs[0]->shape[2 + axis];
    int64_t stride = lists[STRIDES * spatial + axis];
    int64_t begin = lists[BEGINS * spatial + axis];
    int64_t end = lists[ENDS * spatial + axis];
    int64_t span = (lists[KERNEL * spatial + axis] - 1) *
                       lists[DILATIONS * spatial + axis] +
                   1;
    int64_t padded;
    if (begin >= span || end >= span)
        return argument_error("%s: axis %u is padded by %lld and %lld "
                              "elements, but the window spans only %lld",
                              name, 2 + axis, (long long)begin, (long long)end,
                              (long long)span);
    if (__builtin_add_overflow(n, begin + end, &padded) || padded < span)
        return argument_error("%s: the window spans %lld elements, but axis %u "
                              "has %lld and a padding of %lld and %lld",
                              name, (long long)span, 2 + axis, (long long)n,
                              (long long)begin, (long long)end);
    *out = (padded - span) / stride + 1;
    /* Another window must begin before the end of the input. */
    if (ceil_mode && (padded - span) % stride != 0 &&
        *out * stride < n + begin)
        ++*out;
    return TANDEM_OK;
}

enum tandem_status window_infer(const struct op_call *call, uint32_t first,
                                bool ceil_mode, struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    if (input->rank < 3 || input->rank > 2 + MAX_SPATIAL_AXES)
        return operand_error(call, 0,
                             "has rank %u; expected 3 to 5: batch, channels "
                             "and one to three spatial axes",
                             input->rank);
    uint32_t spatial = input->rank - 2;
    if (call->op->int_count < first + LISTS * spatial)
        return argument_error(
            "%s: needs %u integer attributes (with kernel, strides, dilations, "
            "begins and ends), got %u",
            call->info->name, first + LISTS * spatial, call->op->int_count);
    const int64_t *lists = call->op->ints + first;
    enum tandem_status status = check_attributes(call, lists, spatial);
    shape_copy(out, input);
    for (uint32_t i = 0; status == TANDEM_OK && i < spatial; i++)
        status = window_length(call, lists, spatial, i, ceil_mode,
                               &out->shape[2 + i]);
    return status;
}

void window_example(struct op_example *out, uint32_t first, uint32_t spatial,
                    int64_t kernel, int64_t stride)
{
    int64_t *lists = out->ints + first;
    out->int_count = first + LISTS * spatial;
    for (uint32_t i = 0; i < spatial; i++) {
        lists[KERNEL * spatial + i] = kernel;
        lists[STRIDES * spatial + i] = stride;
        lists[DILATIONS * spatial + i] = 1;
        lists[BEGINS * spatial + i] = lists[ENDS * spatial + i] = kernel / 2;
    }
}
