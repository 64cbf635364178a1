/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench bandwidth: operators that are bound by memory against a copy
 * that moves the same bytes, in turns.
 */
#include <config.h>

#include "copy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGE_ELEMENTS (INT64_C(1) << 28)
#define SMALL_ELEMENTS (INT64_C(1) << 22)
#define SAMPLE_NS 5e6
#define MAX_COUNT 200

static const struct bandwidth_row {
    const char *op;
    int64_t columns; /* 0: one row; -1: a square */
} rows[] = {
    {"add", 0},         {"relu", 0},         {"gelu", 0},
    {"exp", 0},         {"reduce_sum", 0},   {"reduce_sum", 32768},
    {"softmax", 4096},  {"softmax", 1024},   {"transpose", -1},
};

struct stream {
    struct work *work;
    uint64_t count;
};

static double stream_run(void *argument)
{
    struct stream *stream = argument;
    uint64_t ns;

    if (work_stream(stream->work, stream->count, &ns) != TANDEM_OK)
        return -1;
    return (double)ns / (double)stream->count;
}

static int64_t elements_of(const struct bench *bench)
{
    const struct tandem_device_info *info = &bench->lane.info;
    int64_t elements = bench_small(bench) ? SMALL_ELEMENTS : LARGE_ELEMENTS;

    while (elements > SMALL_ELEMENTS &&
           (24 * (uint64_t)elements > info->memory_bytes / 2 ||
            8 * (uint64_t)elements > info->max_alloc_bytes))
        elements /= 4;
    return elements;
}

static uint32_t shape_of(const struct bandwidth_row *row, int64_t elements,
                         int64_t shape[2])
{
    int64_t side = 1;

    shape[0] = elements;
    if (row->columns == 0)
        return 1;
    while (side * side < elements)
        side *= 2;
    shape[1] = row->columns < 0 ? side : row->columns;
    shape[0] = elements / shape[1];
    return 2;
}

static void compare_with_copy(struct bench *bench, struct work *work)
{
    const struct bench_unit unit = {"GB/s", work->c.bytes};
    struct stream stream = {work, 1};
    struct copier *copier =
        copier_create(bench, (uint64_t)(work->c.bytes / 2));
    char name[192], shape[160];
    struct bench_pair pair;
    double once;

    if (copier == NULL)
        return;
    stream_run(&stream);
    once = stream_run(&stream);
    stream.count = (uint64_t)fmin(fmax(SAMPLE_NS / fmax(once, 1), 1),
                                  MAX_COUNT);
    copier_count(copier, stream.count);
    pair = bench_compare(bench, stream_run, &stream, copier_run, copier);
    snprintf(name, sizeof name, "%s %s", work->c.info->name,
             shape_text(shape, work->c.in[0].rank, work->c.in[0].shape));
    bench_row(bench, name, copier_name(bench), &unit, &pair);
    copier_destroy(copier);
}

void suite_bandwidth(struct bench *bench)
{
    int64_t elements = elements_of(bench);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t shape[2] = {0, 0};
        uint32_t rank = shape_of(&rows[i], elements, shape);
        struct work work;

        if (work_create(&work, &bench->lane, rows[i].op, rank, shape) !=
            TANDEM_OK) {
            bench_fail(bench, "%s: %s", rows[i].op,
                       bench->lane.backend->last_error());
            continue;
        }
        if (check_work(bench, &work))
            compare_with_copy(bench, &work);
        work_destroy(&work);
    }
}
