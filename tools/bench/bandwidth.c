/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench bandwidth: operators that are bound by memory against a copy
 * that moves the same bytes.
 */
#include <config.h>

#include "bench.h"
#include "copy.h"

#include <stdio.h>

/* Row operators, over the last axis: COLUMNS of as many elements as there
 * are. */
static const struct {
    const char *op;
    int64_t columns[4];
} row_ops[] = {
    {"softmax", {64, 1024, 4096, INT64_C(1) << 22}},
    {"log_softmax", {64, 1024, 4096, INT64_C(1) << 22}},
    {"layer_norm", {64, 1024, 4096, 0}},
    {"rms_norm", {64, 1024, 4096, 0}},
};
static const char *const flat_ops[] = {"add",  "copy", "relu", "gelu",
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

static void list_transposes(struct list *list, int64_t elements)
{
    int64_t side = 1;

    while (side * side < elements)
        side *= 2;
    list_add_shape(list, "transpose", 2, (int64_t[]){side, side}, "",
                   "stream");
    list_add_shape(list, "transpose", 2, (int64_t[]){side - 1, side - 3}, "",
                   "stream");
}

void bandwidth_list(struct list *list)
{
    int64_t elements = (int64_t)list_most_elements(list);

    for (size_t i = 0; i < COUNT(flat_ops); i++)
        list_add_shape(list, flat_ops[i], 1, &elements, "", "stream");
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
}

void bandwidth_run(struct bench *bench)
{
    struct contest contest = {.unit = "GB/s"};
    struct copier *copier;
    struct work work;

    if (!bench_work(bench, &work))
        return;
    contest.work = work.c.bytes;
    contest.limit = copier_name(bench);
    if (check_work(bench, &work)) {
        copier = copier_create(bench, (uint64_t)(work.c.bytes / 2));
        contest_add(&contest, "Tandem", work_run, &work);
        contest_add(&contest, contest.limit, copier_run, copier);
        if (copier != NULL)
            bench_contest(bench, &contest);
        copier_destroy(copier);
    }
    work_destroy(&work);
}
