/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the thread count of the CBLAS, and delays forks during CBLAS calls.
 * The host process can use the same library, so the thread count is lowered
 * only during a GEMM and then restored.  Callable from any thread. */
#ifndef TANDEM_CPU_GEMM_BLAS_GUARD_H
#define TANDEM_CPU_GEMM_BLAS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include <tandem/backend.h>

/* Limits the CBLAS to one thread until blas_release is called.  Returns false
 * if the CBLAS already uses one thread; do not call blas_release in that case.
 * Call blas_ready before blas_limit. */
bool blas_limit(void);
void blas_release(void);

/* Returns TANDEM_OK if OpenBLAS can restart its threads, else
 * TANDEM_OUT_OF_MEMORY with a message.  OpenBLAS ends its threads before a
 * fork, and restarts them at its next call in the parent and in the child.  If
 * the system refuses a thread in that call, OpenBLAS prints to stderr and
 * raises SIGINT. */
enum tandem_status blas_ready(void);

/* blas_enter and blas_leave enclose every call of the CBLAS.  A fork waits, up
 * to a timeout, until no call is in progress. blas_enter waits until no fork is
 * in progress.  Without these waits, the child process could inherit a CBLAS
 * lock that another thread held, and deadlock in a CBLAS call or at exit. */
void blas_enter(void);
void blas_leave(void);
/* Installs the fork handlers that blas_enter and blas_ready depend on.  Returns
 * false if memory is exhausted. */
bool blas_fork_guard_install(void);

/* Returns true if this processor supports instruction set `level`, but OpenBLAS
 * selected kernels for an older instruction set.  In that case, writes a
 * warning to `out`. */
bool blas_complain(const char *level, char *out, size_t bytes);
/* Writes " openblas:" and the name of the processor type whose kernels OpenBLAS
 * runs.  Writes an empty string if the CBLAS is not OpenBLAS. */
void blas_name(char *out, size_t bytes);

#endif
