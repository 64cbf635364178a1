/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers operators whose outputs depend on positions; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"

#include <inttypes.h>
#include <math.h>

/* Reads an input with one number, which is known now. */
static bool number_read(struct lowering *l, uint32_t index, double *out)
{
    struct operand *operand = lower_input_operand(l, index);
    const int64_t *integers = NULL;
    const float *reals = NULL;
    int64_t count;

    if (operand->dtype == TANDEM_F32)
        reals = lower_reals(l, operand, &count);
    else
        integers = lower_integers(l, operand, &count);
    if (reals == NULL && integers == NULL)
        return false;
    if (count != 1)
        return lower_fail(l, "input %" PRIu32 " has %" PRId64 " elements",
                          index, count);
    *out = reals != NULL ? (double)reals[0] : (double)integers[0];
    return true;
}

bool lower_one_hot(struct lowering *l)
{
    struct operand *indices = lower_input_operand(l, 0), integers, out;
    struct operand *values = lower_input_operand(l, 2);
    struct form_step step = step_make(l, TANDEM_OP_ONE_HOT);
    struct form_step cast = step_make(l, TANDEM_OP_CAST);
    int64_t shape[TANDEM_MAX_RANK + 1];
    const uint32_t rank = indices->view.rank + 1;
    double depth;
    uint32_t axis;

    if (!axis_normalize(l, graph_integer(l->node, "axis", -1), rank, &axis) ||
        !number_read(l, 1, &depth))
        return false;
    if (!(depth >= 1 && depth <= (double)INT32_MAX))
        return lower_fail(l, "the depth is %g", depth);
    if (indices->dtype == TANDEM_F32) {
        if (!lower_new(l, TANDEM_I64, rank - 1, indices->view.shape,
                       &integers) ||
            !step_add_input(l, &cast, indices) ||
            !lower_step(l, &cast, &integers))
            return false;
        indices = &integers;
    }
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = i < axis    ? indices->view.shape[i]
                   : i == axis ? (int64_t)depth
                               : indices->view.shape[i - 1];
    step.ints[0] = axis;
    step.ints[1] = (int64_t)depth;
    step.int_count = 2;
    return lower_new(l, values->dtype, rank, shape, &out) &&
           step_add_input(l, &step, indices) &&
           step_add_input(l, &step, values) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}

bool lower_trilu(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct operand *diagonal = lower_input_operand(l, 1);
    struct form_step step = step_make(l, TANDEM_OP_TRILU);
    int64_t count = 1;
    const int64_t *k = NULL;

    if (x->view.rank < 2)
        return lower_fail(l, "the input has rank %" PRIu32, x->view.rank);
    if (diagonal != NULL) {
        k = lower_integers(l, diagonal, &count);
        if (k == NULL)
            return false;
    }
    if (count != 1)
        return lower_fail(l, "k has %" PRId64 " elements", count);
    step.ints[0] = graph_integer(l->node, "upper", 1) != 0;
    step.ints[1] = k != NULL ? *k : 0;
    step.int_count = 2;
    return lower_new(l, x->dtype, x->view.rank, x->view.shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}

bool lower_range(struct lowering *l)
{
    struct form_step step = step_make(l, TANDEM_OP_RANGE);
    struct operand out;
    double start, limit, delta, count;
    int64_t length;

    if (lower_input_operand(l, 0)->dtype != TANDEM_F32)
        return shape_range(l);
    if (!number_read(l, 0, &start) || !number_read(l, 1, &limit) ||
        !number_read(l, 2, &delta))
        return false;
    count = ceil((limit - start) / delta);
    if (!(count <= (double)INT32_MAX))
        return lower_fail(l, "a range from %g to %g in steps of %g", start,
                          limit, delta);
    length = count > 0 ? (int64_t)count : 0;
    step.floats[0] = start;
    step.floats[1] = delta;
    step.int_count = step.float_count = 2;
    return lower_new(l, TANDEM_F32, 1, &length, &out) &&
           lower_step(l, &step, &out) && lower_output(l, 0, &out);
}
