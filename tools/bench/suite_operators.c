/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "operators": the example (op_class.h) of each operator except GEMM,
 * compared with a copy of as many bytes.  A new operator has a row without a
 * change here.  The conformance suite checks the results, this suite does not.
 */
#include <config.h>

#include "bench.h"

#include "common/op_class.h"

#define ROW 1024
#define SHORT_ROW 64

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void operators_list(struct list *list)
{
    const int64_t elements =
        minimum((int64_t)list_fitting_elements(list), INT64_C(1) << 24);
    uint32_t previous_class = 0;

    for (uint32_t id = 1; id < TANDEM_OP_ID_END; id++) {
        const struct tandem_op_info *info = tandem_op_by_id(id);
        uint32_t example;
        int64_t shape[2];

        /* Tests need only one operator of each class. */
        if (info == NULL ||
            (list->scale == SCALE_TINY && info->op_class == previous_class))
            continue;
        previous_class = info->op_class;
        example = op_class_get(info->op_class)->example_shape;
        if (example == OP_EXAMPLE_CUBE)
            continue;
        shape[1] = example == OP_EXAMPLE_SHORT_ROWS ? SHORT_ROW : ROW;
        shape[0] = example == OP_EXAMPLE_FLAT ? elements : elements / shape[1];
        list_add_shape(list, info->name, example == OP_EXAMPLE_FLAT ? 1 : 2,
                       shape, "", "stream");
    }
}

void operators_run(struct bench *bench)
{
    struct comparison comparison = {.unit = "GB/s"};
    struct resident_op work;

    if (!bench_resident_op(bench, &work))
        return;
    comparison.work_amount = work.c.bytes;
    comparison.upper_bound = copy_baseline_name(bench);
    comparison_add(&comparison, "Tandem", resident_op_run, &work);
    copy_baseline_comparison(bench, &comparison, work.c.bytes);
    resident_op_destroy(&work);
}
