/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures GEMM over a grid of m, n and k, the smallest sizes first, until the
 * time is used up.  Child process only.
 */
#include <config.h>

#include "../common/clock.h"
#include "calibration_timing.h"

#include <stdlib.h>

#define SIDES 9
#define MAX_SIZES (SIDES * SIDES * SIDES)
/* Each size gets little time, because there are many and neighbouring sizes
 * have similar times. */
#define BATCH_NS NS_PER_MS
#define BATCHES 5
/* Large sizes may need further kernels.  After compile_deadline_ns only sizes
 * up to SMALL_SIDE are measured, for at most LATE_NS. */
#define SMALL_SIDE 256.0
#define LATE_NS NS_PER_S

struct gemm_size {
    int64_t m, n, k;
};

/* Returns the cost of a size for sorting.  One byte counts as ten
 * floating-point operations. */
static double gemm_case_operations(const struct gemm_size *p)
{
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;

    return 2 * m * n * k + 40 * (m * k + k * n + m * n);
}

static int compare_products(const void *a, const void *b)
{
    double x = gemm_case_operations(a), y = gemm_case_operations(b);

    return (x > y) - (x < y);
}

/* Lists a complete grid, because the host library interpolates between its
 * points.
 */
static size_t list_sizes(bool quick, struct gemm_size *out)
{
    static const int64_t coarse[] = {8, 32, 128, 512, 2048};
    static const int64_t fine[SIDES] = {4,   16,   64,   128, 256,
                                        512, 1024, 2048, 4096};
    const int64_t *sides = quick ? coarse : fine;
    size_t side_count = quick ? 5 : SIDES, count = 0;

    for (size_t m = 0; m < side_count; m++)
        for (size_t n = 0; n < side_count; n++)
            for (size_t k = 0; k < side_count; k++)
                out[count++] = (struct gemm_size){sides[m], sides[n], sides[k]};
    qsort(out, count, sizeof *out, compare_products);
    return count;
}

/* *expected_ns is the expected time of one launch, 0 if unknown; the function
 * sets it to the measured time. */
static enum tandem_status measure_product(struct calibration_run *calibration,
                                          const struct gemm_size *p, bool first,
                                          double *expected_ns)
{
    const int64_t shape[] = {p->m, p->n, p->k};
    struct resident_op work;
    struct timing timing;
    enum tandem_status status =
        resident_op_create(&work, &calibration->session, "gemm", 3, shape);

    if (status != TANDEM_OK)
        return status;
    status = calibration_time(calibration, &work, false, *expected_ns, &timing);
    resident_op_destroy(&work);
    if (status != TANDEM_OK)
        return status;
    calibration_add_gemm_point(calibration, p->m, p->n, p->k, timing.ns);
    *expected_ns = timing.ns;
    if (first &&
        (calibration->session.info.caps & TANDEM_CAP_JIT_COMPILATION) != 0)
        calibration_add_scalar(
            calibration, "gemm_compile",
            timing.first_ns > timing.second_ns
                ? (double)(timing.first_ns - timing.second_ns)
                : 0);
    return TANDEM_OK;
}

static bool gemm_case_is_small(const struct gemm_size *p)
{
    return (double)p->m * (double)p->n * (double)p->k <=
           SMALL_SIDE * SMALL_SIDE * SMALL_SIDE;
}

enum tandem_status measure_products(struct calibration_run *calibration)
{
    struct gemm_size sizes[MAX_SIZES];
    size_t count = list_sizes(calibration->quick, sizes);
    enum tandem_status status = TANDEM_OK;
    double ns = 0, done = 0;
    bool late = false;

    calibration->plan.batch_ns = BATCH_NS;
    calibration->plan.batches = BATCHES;
    step_begin(calibration, WEIGHT_PRODUCTS, PART_GEMM);
    for (size_t i = 0; i < count; i++) {
        double next = gemm_case_operations(&sizes[i]), expected_ns = 0;

        if (done > 0)
            expected_ns = ns * next / done;
        if (expected_ns * 4 > (double)step_left_ns(calibration))
            break;
        if (late && !gemm_case_is_small(&sizes[i]))
            continue;
        status =
            measure_product(calibration, &sizes[i], done == 0, &expected_ns);
        if (status == TANDEM_UNSUPPORTED)
            continue; /* the device may support other sizes */
        if (status != TANDEM_OK)
            break;
        ns = expected_ns;
        done = next;
        if (!late && calibration_is_late(calibration)) {
            late = true;
            calibration->deadline_ns = clock_now_ns() + LATE_NS;
        }
    }
    if (status != TANDEM_OK && status != TANDEM_UNSUPPORTED)
        status = calibration_op_failed(calibration, "gemm", status);
    else
        status = TANDEM_OK;
    if (status == TANDEM_OK)
        calibration_set_operator(calibration, "gemm", done > 0 ? "gemm" : NULL);
    step_end(calibration, status);
    return status;
}
