/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "bandwidth": operators that are limited by memory, compared with a copy
 * of as many bytes.
 */
#include <config.h>

#include "bench.h"

/* Shapes that are not a matrix with a given number of columns: a vector, a
 * vector of half as many elements, and a square matrix. */
enum { VECTOR = 0, HALF = -1, SQUARE = -2, ODD_SQUARE = -3 };
#define WIDE (INT64_C(1) << 22)

static const struct {
    const char *op, *detail;
    int64_t columns; /* or one of the values above */
} rows[] = {
    {"add", "", VECTOR},
    {"copy", "", VECTOR},
    {"relu", "", VECTOR},
    {"gelu", "", VECTOR},
    {"tanh", "", VECTOR},
    {"exp", "", VECTOR},
    {"sigmoid", "", VECTOR},
    /* The operands are views; see views_make. */
    {"add", "unaligned", 4096},
    {"add", "broadcast", 4096},
    {"add", "pitched", 4096},
    {"reduce_sum", "all", VECTOR},
    {"reduce_sum", "axis=1", 32768},
    {"reduce_sum", "axis=0", 32768},
    {"reduce_sum", "axis=1", 64},
    {"reduce_max", "all", VECTOR},
    {"reduce_max", "axis=1", 32768},
    {"reduce_max", "axis=0", 32768},
    {"reduce_max", "axis=1", 64},
    {"argmax", "all", VECTOR},
    {"argmax", "axis=1", 32768},
    {"argmax", "axis=0", 32768},
    {"argmax", "axis=1", 64},
    {"softmax", "", 64},
    {"softmax", "", 1024},
    {"softmax", "", 4096},
    {"softmax", "", WIDE},
    {"log_softmax", "", 64},
    {"log_softmax", "", 1024},
    {"log_softmax", "", 4096},
    {"log_softmax", "", WIDE},
    {"layer_norm", "", 64},
    {"layer_norm", "", 1024},
    {"layer_norm", "", 4096},
    {"rms_norm", "", 64},
    {"rms_norm", "", 1024},
    {"rms_norm", "", 4096},
    /* Each row of the data is read once. */
    {"gather", "", 64},
    {"gather", "", 1024},
    {"softmax_cross_entropy", "", 1024},
    {"softmax_cross_entropy", "", 32768},
    {"softmax_cross_entropy_grad", "", 1024},
    {"softmax_cross_entropy_grad", "", 32768},
    {"transpose", "", SQUARE},
    {"transpose", "", ODD_SQUARE},
    /* Optimizers read or write five or seven operands, in place. */
    {"sgd", "", HALF},
    {"adam", "", HALF},
};

void bandwidth_list(struct list *list)
{
    int64_t elements = (int64_t)list_fitting_elements(list), side = 1;

    while (side * side < elements)
        side *= 2;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t columns = rows[i].columns, shape[2] = {elements, 0};
        uint32_t rank = columns == VECTOR || columns == HALF ? 1 : 2;

        /* Tests have shorter rows, except where these are rows of their own. */
        if (list->scale == SCALE_TINY && columns > 1024 &&
            rows[i].detail[0] != '\0')
            columns = 1024;
        if (columns > elements)
            continue;
        if (columns == HALF) {
            shape[0] = elements / 2;
        } else if (columns == SQUARE || columns == ODD_SQUARE) {
            shape[0] = columns == SQUARE ? side : side - 1;
            shape[1] = columns == SQUARE ? side : side - 3;
        } else if (columns > 0) {
            shape[0] = elements / columns;
            shape[1] = columns;
        }
        list_add_shape(list, rows[i].op, rank, shape, rows[i].detail, "stream");
    }
}

#define PADDING 32 /* columns that a pitched row leaves out */

/* Makes the operands views of their buffers if the row says so.  "unaligned":
 * inputs begin at the second element.  "broadcast": the second input is one
 * row.  "pitched": the views leave out the last columns of each row. */
static void views_make(const struct row *row, struct op_case *c)
{
    bool unaligned = row_has(row, "unaligned");

    if (unaligned || row_has(row, "pitched")) {
        int64_t columns = row->shape[1] - (unaligned ? 1 : PADDING);

        for (uint32_t i = 0; i < c->inputs; i++) {
            c->in[i].shape[1] = columns;
            c->in[i].byte_offset = unaligned ? sizeof(float) : 0;
        }
        c->out[0].shape[1] = columns;
        c->bytes = (c->inputs + 1) * desc_bytes(&c->out[0]);
    } else if (row_has(row, "broadcast")) {
        c->in[1].strides[0] = 0;
        c->bytes = 2 * desc_bytes(&c->out[0]);
    }
}

void bandwidth_run(struct bench *bench)
{
    struct comparison comparison = {.unit = "GB/s"};
    struct resident_op work;

    if (!bench_resident_op(bench, &work))
        return;
    views_make(bench->row, &work.c);
    resident_op_update(&work);
    comparison.work_amount = work.c.bytes;
    comparison.upper_bound = copy_baseline_name(bench);
    if (check_resident_op(bench, &work)) {
        comparison_add(&comparison, "Tandem", resident_op_run, &work);
        copy_baseline_comparison(bench, &comparison, work.c.bytes);
    }
    resident_op_destroy(&work);
}
