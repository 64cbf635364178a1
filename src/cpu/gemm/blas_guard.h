/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the thread count of the CBLAS, and delays forks during CBLAS calls.
 * The host process can use the same library, so the thread count is lowered
 * only during a GEMM and then restored.  Callable from any thread. */
#ifndef TANDEM_CPU_GEMM_BLAS_GUARD_H
#define TANDEM_CPU_GEMM_BLAS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include <tandem/backend.h>

/* Limits the CBLAS to one thread until blas_release.  Returns false if the
 * CBLAS already uses one thread; the caller must not call blas_release in that
 * case. Call blas_ready before blas_limit. */
bool blas_limit(void);
void blas_release(void);

/* Checks that OpenBLAS can restart its threads.  OpenBLAS ends them before a
 * fork, and its next call starts them again in the parent and in the child.  If
 * the system refuses a thread, OpenBLAS prints to stderr and raises SIGINT.
 * Returns TANDEM_OUT_OF_MEMORY with a message if a thread would be refused. */
enum tandem_status blas_ready(void);

/* blas_enter and blas_leave enclose every call of the CBLAS.  A fork waits, up
 * to a timeout, until no call is in progress. blas_enter waits until no fork is
 * in progress.  Without these waits, the child process could inherit a CBLAS
 * lock that another thread held, and deadlock in a CBLAS call or at exit. */
void blas_enter(void);
void blas_leave(void);
/* Installs the fork handlers for blas_enter and blas_ready.  Returns false if
 * memory is exhausted. */
bool blas_fork_guard_install(void);

/* Returns true if this processor supports instruction set `level`, but OpenBLAS
 * selected kernels for an older instruction set.  In that case, writes a
 * warning to `out`. */
bool blas_complain(const char *level, char *out, size_t bytes);
/* Writes " openblas:" and the name of the processor type whose kernels OpenBLAS
 * runs.  Writes an empty string if the CBLAS is not OpenBLAS. */
void blas_name(char *out, size_t bytes);

#endif
