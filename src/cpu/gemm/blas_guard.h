/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the CBLAS.  Their number belongs to the process, which may
 * use the same library itself: it is lowered for the time of a product where
 * the device may use fewer, and never raised.  Any thread.
 */
#ifndef TANDEM_CPU_GEMM_BLAS_GUARD_H
#define TANDEM_CPU_GEMM_BLAS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/backend.h>

/* Lets products use at most threads until blas_release.  False where they do
 * so already: then there is nothing to release.  Call blas_ready first. */
bool blas_limit(uint32_t threads);
void blas_release(void);

/* OpenBLAS ends its threads before a fork, and the next call starts them again,
 * in the parent as in the child.  If the system refuses one, OpenBLAS prints to
 * stderr and raises SIGINT.  Returns TANDEM_OK if that cannot happen, else
 * TANDEM_OUT_OF_MEMORY with a message. */
enum tandem_status blas_ready(void);

/* Each call of the CBLAS is between these: a fork waits for those under way,
 * and they for it, for at most a while.  The child would find the locks that it
 * takes as other threads left them, and wait for ever, in exit too. */
void blas_enter(void);
void blas_leave(void);
/* Has forks wait so from now on, and blas_ready know of them; false: no
 * memory. */
bool blas_fork_guard_install(void);

/* Why products are slower than they need be: the CBLAS took kernels for less
 * than the instruction set level, which this processor has.  Writes it as a
 * sentence; false where there is nothing to say. */
bool blas_complain(const char *level, char *out, size_t bytes);
/* " openblas:", and whose kernels it runs; "" of another CBLAS. */
void blas_name(char *out, size_t bytes);

#endif
