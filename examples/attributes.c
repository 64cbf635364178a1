/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes - operators with attributes: the softmax of each row, and the two
 * largest elements of each row with their positions.
 */
#include <stdio.h>
#include <stdlib.h>

#include <tandem/host.h>

#define ROWS 2
#define COLUMNS 4
#define K 2

static struct tandem_context *tandem;

/* Ends the program if a call failed. */
static void need(enum tandem_status status)
{
    if (status == TANDEM_OK)
        return;
    fprintf(stderr, "%s\n", tandem_last_error());
    tandem_context_destroy(tandem);
    exit(1);
}

static struct tandem_tensor *matrix_wrap(void *memory, uint32_t dtype,
                                         int64_t columns)
{
    const int64_t shape[2] = {ROWS, columns};
    struct tandem_tensor *tensor;

    need(tandem_tensor_wrap(tandem, memory, dtype, 2, shape, NULL, 0, &tensor));
    return tensor;
}

/* The table of operators in tandem/backend.h names the attributes in their
 * order. Integers are in ints, and numbers such as alpha are in floats. */
int main(void)
{
    float x[ROWS * COLUMNS] = {1, 2, 3, 4, 0, -1, 0, 5};
    float y[ROWS * COLUMNS], largest[ROWS * K];
    int64_t positions[ROWS * K];
    /* softmax: "axis" */
    const int64_t softmax_ints[] = {1};
    const struct tandem_op softmax = {.struct_size = sizeof(softmax),
                                      .id = TANDEM_OP_SOFTMAX,
                                      .int_count = 1,
                                      .ints = softmax_ints};
    /* topk: "axis,k,largest,sorted" */
    const int64_t topk_ints[] = {1, K, 1, 1};
    const struct tandem_op topk = {.struct_size = sizeof(topk),
                                   .id = TANDEM_OP_TOPK,
                                   .int_count = 4,
                                   .ints = topk_ints};
    struct tandem_tensor *in, *out, *found[2];

    need(tandem_context_create(NULL, &tandem));
    in = matrix_wrap(x, TANDEM_F32, COLUMNS);
    out = matrix_wrap(y, TANDEM_F32, COLUMNS);
    found[0] = matrix_wrap(largest, TANDEM_F32, K);
    found[1] = matrix_wrap(positions, TANDEM_I64, K);
    need(tandem_run(tandem, &softmax, &in, 1, &out, 1, NULL));
    need(tandem_run(tandem, &topk, &in, 1, found, 2, NULL));
    need(tandem_tensor_sync(out, TANDEM_TIMEOUT_INFINITE));
    need(tandem_tensor_sync(found[0], TANDEM_TIMEOUT_INFINITE));
    need(tandem_tensor_sync(found[1], TANDEM_TIMEOUT_INFINITE));
    for (int row = 0; row < ROWS; row++) {
        const float *p = y + row * COLUMNS, *best = largest + row * K;
        const int64_t *at = positions + row * K;

        printf("row %d: softmax %.3f %.3f %.3f %.3f, largest %g at %d, "
               "%g at %d\n",
               row, (double)p[0], (double)p[1], (double)p[2], (double)p[3],
               (double)best[0], (int)at[0], (double)best[1], (int)at[1]);
    }
    tandem_context_destroy(tandem); /* frees the tensors, too */
    if (fclose(stdout) != 0)
        return perror("standard output"), 1;
    return 0;
}
