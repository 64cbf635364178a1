/* SPDX-License-Identifier: Apache-2.0 */
/* The operator topk. A heap holds the best k keys of a row; the rows are
 * divided among the threads of the pool. */
#include "config.h"

#include <stdlib.h>

#include "common/iteration_space.h"
#include "common/last_error.h"
#include "common/topk_key.h"
#include "cpu/objects.h"

struct topk {
    struct iteration_space rows; /* operands: values, indices, input */
    const float *in;
    float *values;
    int64_t *indices;
    int64_t n, k;
    int64_t in_step, value_step, index_step;
    bool largest;
    uint64_t *heaps; /* k keys for each row */
};

/* Moves the key at `at` down until no child is larger, in a heap of n keys
 * whose largest key is the first. */
static void heap_sift(uint64_t *heap, int64_t n, int64_t at)
{
    uint64_t key = heap[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= key)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

/* Sorts a heap, lowest key first. */
static void heap_sort(uint64_t *heap, int64_t n)
{
    while (n-- > 1) {
        uint64_t largest = heap[0];
        heap[0] = heap[n];
        heap[n] = largest;
        heap_sift(heap, n, 0);
    }
}

/* Sets heap to the k lowest keys of the row, sorted. */
static void row_select(const struct topk *topk, const float *x, uint64_t *heap)
{
    int64_t k = topk->k;
    for (int64_t i = 0; i < k; i++)
        heap[i] = topk_key(x[i * topk->in_step], topk->largest, (uint32_t)i);
    for (int64_t i = k / 2; i-- > 0;)
        heap_sift(heap, k, i);
    for (int64_t i = k; i < topk->n; i++) {
        uint64_t key =
            topk_key(x[i * topk->in_step], topk->largest, (uint32_t)i);
        if (key >= heap[0])
            continue;
        heap[0] = key;
        heap_sift(heap, k, 0);
    }
    heap_sort(heap, k);
}

static void row_run(const struct topk *topk, int64_t row)
{
    uint64_t *heap = topk->heaps + row * topk->k;
    int64_t offsets[3] = {0};
    for (uint32_t axis = topk->rows.rank; axis-- > 0;) {
        int64_t at = row % topk->rows.shape[axis];
        row /= topk->rows.shape[axis];
        for (uint32_t i = 0; i < 3; i++)
            offsets[i] += at * topk->rows.strides[i][axis];
    }
    const float *x = topk->in + offsets[2];
    row_select(topk, x, heap);
    for (int64_t i = 0; i < topk->k; i++) {
        uint32_t index = (uint32_t)heap[i];
        topk->values[offsets[0] + i * topk->value_step] =
            x[index * topk->in_step];
        topk->indices[offsets[1] + i * topk->index_step] = index;
    }
}

static void rows_run(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_run(context, row);
}

static enum tandem_status topk_run(const struct work *work)
{
    const struct tandem_tensor_desc *in = work->inputs[0];
    const struct tandem_tensor_desc *values = work->outputs[0];
    const struct tandem_tensor_desc *indices = work->outputs[1];
    uint32_t axis = topk_axis(work->op, in->rank);
    struct topk topk = {.in = tensor_data(in),
                        .values = tensor_data(values),
                        .indices = tensor_data(indices),
                        .n = in->shape[axis],
                        .k = values->shape[axis],
                        .in_step = in->strides[axis],
                        .value_step = values->strides[axis],
                        .index_step = indices->strides[axis],
                        .largest = work->op->ints[TOPK_LARGEST] != 0};
    space_topk(&topk.rows, in, values, indices, axis);
    if (topk.rows.elements == 0 || topk.k == 0)
        return TANDEM_OK;
    topk.heaps =
        calloc((size_t)(topk.rows.elements * topk.k), sizeof *topk.heaps);
    if (topk.heaps == NULL)
        return memory_error("topk: no memory for %lld keys",
                            (long long)(topk.rows.elements * topk.k));
    pool_run(work->device->pool, work->op->id, rows_run, &topk,
             topk.rows.elements, topk.n);
    free(topk.heaps);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_topk = {.run = topk_run};
