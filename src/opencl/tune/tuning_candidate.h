/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a set of CLBlast's parameters does: one call of CLBlast a family, small
 * and compared with the same in double, or large and timed.  One thread; the
 * process's CLBlast is told other parameters meanwhile.
 */
#ifndef TANDEM_OPENCL_TUNE_TUNING_CANDIDATE_H
#define TANDEM_OPENCL_TUNE_TUNING_CANDIDATE_H

#include "opencl/gemm/clblast_parameter_space.h"
#include "opencl/tune/kernel_timer.h"

struct trial {
    struct meter *meter;
    enum clblast_kernel_id family;
    struct tandem_buffer *x, *y, *z; /* z is written */
    float *host[3];                  /* the small ones */
    int64_t side; /* of the large ones: a matrix of side squared fits each */
};

/* side or, where memory is short, a smaller one.  Ended by trial_end. */
enum tandem_status trial_start(struct trial *trial, struct meter *meter,
                               int64_t side);
void trial_end(struct trial *trial);
/* Computes a small case; FAILED, with a message, where it is wrong. */
enum tandem_status trial_check(struct trial *trial);
/* Times a large one. */
enum tandem_status tuning_candidate_time(struct trial *trial, double *out_ns);
/* The same for a square matrix product. */
enum tandem_status trial_time_product(struct trial *trial, int64_t side,
                                      double *out_ns);

#endif
