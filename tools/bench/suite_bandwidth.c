/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "bandwidth": operators that are limited by memory, compared with a copy
 * of as many bytes.
 */
#include <config.h>

#include "bench.h"
#include "copy_baseline.h"

#include <math.h>
#include <string.h>

/* Operators along the last axis, with their numbers of columns. */
static const struct {
    const char *op;
    int64_t columns[4];
} row_ops[] = {
    {"softmax", {64, 1024, 4096, INT64_C(1) << 22}},
    {"log_softmax", {64, 1024, 4096, INT64_C(1) << 22}},
    {"layer_norm", {64, 1024, 4096, 0}},
    {"rms_norm", {64, 1024, 4096, 0}},
    /* Each row of an embedding table once; one element of each row of logits.
     */
    {"gather", {64, 1024, 0, 0}},
    {"softmax_cross_entropy", {1024, 32768, 0, 0}},
    {"softmax_cross_entropy_grad", {1024, 32768, 0, 0}},
};
/* Optimizers update all states in place.  They have half as many elements,
 * since they read or write five or seven operands. */
static const char *const optimizers[] = {"sgd", "adam"};
static const char *const flat_ops[] = {"add",  "copy", "relu",   "gelu",
                                       "tanh", "exp",  "sigmoid"};
static const char *const reductions[] = {"reduce_sum", "reduce_max", "argmax"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void list_reductions(struct list *list, int64_t elements)
{
    int64_t columns = list->scale == SCALE_TINY ? 1024 : 32768;

    for (size_t i = 0; i < COUNT(reductions); i++) {
        const int64_t shape[] = {elements / columns, columns};
        const int64_t narrow[] = {elements / 64, 64};

        list_add_shape(list, reductions[i], 1, &elements, "all", "stream");
        list_add_shape(list, reductions[i], 2, shape, "axis=1", "stream");
        list_add_shape(list, reductions[i], 2, shape, "axis=0", "stream");
        list_add_shape(list, reductions[i], 2, narrow, "axis=1", "stream");
    }
}

/* Additions whose operands are views; see view_take. */
static const char *const views[] = {"unaligned", "broadcast", "pitched"};

static void list_views(struct list *list, int64_t elements)
{
    int64_t columns = list->scale == SCALE_TINY ? 1024 : 4096;
    const int64_t shape[] = {elements / columns, columns};

    for (size_t i = 0; i < COUNT(views); i++)
        list_add_shape(list, "add", 2, shape, views[i], "stream");
}

static void list_transposes(struct list *list, int64_t elements)
{
    int64_t implementation = 1;

    while (implementation * implementation < elements)
        implementation *= 2;
    list_add_shape(list, "transpose", 2,
                   (int64_t[]){implementation, implementation}, "", "stream");
    list_add_shape(list, "transpose", 2,
                   (int64_t[]){implementation - 1, implementation - 3}, "",
                   "stream");
}

void bandwidth_list(struct list *list)
{
    int64_t elements = (int64_t)list_fitting_elements(list);

    for (size_t i = 0; i < COUNT(flat_ops); i++)
        list_add_shape(list, flat_ops[i], 1, &elements, "", "stream");
    list_views(list, elements);
    list_reductions(list, elements);
    for (size_t i = 0; i < COUNT(row_ops); i++)
        for (size_t j = 0; j < COUNT(row_ops[i].columns); j++) {
            int64_t columns = row_ops[i].columns[j];

            if (columns > 0 && columns <= elements)
                list_add_shape(list, row_ops[i].op, 2,
                               (int64_t[]){elements / columns, columns}, "",
                               "stream");
        }
    list_transposes(list, elements);
    elements /= 2;
    for (size_t i = 0; i < COUNT(optimizers); i++)
        list_add_shape(list, optimizers[i], 1, &elements, "", "stream");
}

#define VIEW_SPOTS 256
#define PADDING 32 /* columns that a pitched row leaves out */

static void narrow(struct tandem_tensor_desc *desc, int64_t columns)
{
    desc->shape[desc->rank - 1] -= columns;
}

/* Makes the operands views of their buffers.  "unaligned": inputs begin at the
 * second element.  "broadcast": the second input is one row.  "pitched": the
 * views leave out the last columns of each row. */
static void view_take(const struct row *row, struct op_case *c)
{
    bool unaligned = row_has(row, "unaligned");

    if (unaligned || row_has(row, "pitched")) {
        for (uint32_t i = 0; i < c->inputs; i++) {
            narrow(&c->in[i], unaligned ? 1 : PADDING);
            c->in[i].byte_offset = unaligned ? sizeof(float) : 0;
        }
        narrow(&c->out[0], unaligned ? 1 : PADDING);
        c->bytes = (c->inputs + 1) * desc_bytes(&c->out[0]);
    } else if (row_has(row, "broadcast")) {
        c->in[1].strides[0] = 0;
        c->bytes = 2 * desc_bytes(&c->out[0]);
    }
}

/* Checks the first elements of the second row. */
static bool check_view(struct bench *bench, struct resident_op *work)
{
    struct device_session *session = &bench->session;
    const struct tandem_tensor_desc *a = &work->c.in[0], *b = &work->c.in[1];
    uint64_t start = (uint64_t)work->c.out[0].strides[0];
    float got[VIEW_SPOTS];
    uint64_t ns;

    if (resident_op_stream(work, 1, &ns) != TANDEM_OK ||
        session->backend->download(session->stream, work->c.out[0].buffer,
                                   start * sizeof(float), got, sizeof got, 0,
                                   TANDEM_TIMEOUT_INFINITE) != TANDEM_OK) {
        bench_fail(bench, "%s", session->backend->last_error());
        return false;
    }
    for (uint64_t i = 0; i < VIEW_SPOTS; i++) {
        uint64_t first = a->byte_offset / sizeof(float) + i;
        float x = seed_value(first + (uint64_t)a->strides[0]);
        float y = seed_value(first + (uint64_t)b->strides[0]);

        if (fabsf(got[i] - (x + y)) > 1e-6f * (x + y)) {
            bench_fail(bench, "wrong: element %llu is %g, not %g",
                       (unsigned long long)(start + i), (double)got[i],
                       (double)(x + y));
            return false;
        }
    }
    return true;
}

static bool is_view(const struct row *row)
{
    for (size_t i = 0; i < COUNT(views); i++)
        if (strcmp(row->detail, views[i]) == 0)
            return true;
    return false;
}

void bandwidth_run(struct bench *bench)
{
    struct comparison comparison = {.unit = "GB/s"};
    bool view = is_view(bench->row);
    struct resident_op work;

    if (!bench_resident_op(bench, &work))
        return;
    if (view)
        view_take(bench->row, &work.c);
    comparison.work_amount = work.c.bytes;
    comparison.upper_bound = copy_baseline_name(bench);
    if (view ? check_view(bench, &work) : check_resident_op(bench, &work)) {
        comparison_add(&comparison, "Tandem", resident_op_run, &work);
        copy_baseline_comparison(bench, &comparison, work.c.bytes);
    }
    resident_op_destroy(&work);
}
