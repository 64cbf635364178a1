/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and times a candidate: a set of CLBlast parameters for one kernel. The
 * caller first sets the parameters in CLBlast, where they apply to the whole
 * process. A candidate belongs to one thread. */
#ifndef TANDEM_OPENCL_TUNE_TUNING_CANDIDATE_H
#define TANDEM_OPENCL_TUNE_TUNING_CANDIDATE_H

#include "opencl/gemm/clblast_params.h"
#include "opencl/tune/kernel_timer.h"

struct tuning_candidate {
    struct kernel_timer *timer;
    enum clblast_kernel_id kernel;
    struct tandem_buffer *buffers[3]; /* two inputs and the result */
    float *host[3];                   /* contents of the buffers, for checks */
    int64_t side; /* each buffer holds a matrix of side x side */
    /* Sizes of the current call. The result has m rows and n columns. All
     * matrices are column-major. */
    int64_t m, n, k;
};

/* Allocates buffers for square matrices of size `side`. If memory is short,
 * allocates buffers for a smaller size. */
enum tandem_status tuning_candidate_init(struct tuning_candidate *candidate,
                                         struct kernel_timer *timer,
                                         int64_t side);
void tuning_candidate_finish(struct tuning_candidate *candidate);
/* Runs candidate->kernel on small matrices and compares the result with a
 * double-precision result. Returns TANDEM_FAILED if the result is wrong. */
enum tandem_status tuning_candidate_check(struct tuning_candidate *candidate);
/* Times candidate->kernel on square matrices of size `side`. If `side` is 0,
 * chooses the size that suits the kernel. */
enum tandem_status tuning_candidate_time(struct tuning_candidate *candidate,
                                         int64_t side, double *out_ns);

#endif
