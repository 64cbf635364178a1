/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local variables that exist as soon as their thread does. The loader
 * allocates other thread-local variables of a library that was loaded with
 * dlopen when a thread first uses them, and ends the process if memory has run
 * out. A process has about 1 KiB for variables of this kind in all such
 * libraries together, so declare pointers, not buffers. */
#ifndef TANDEM_COMMON_THREAD_LOCAL_H
#define TANDEM_COMMON_THREAD_LOCAL_H

#include <limits.h> /* defines __GLIBC__ */

/* musl refuses to load such libraries with dlopen. */
#ifdef __GLIBC__
#define THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local
#else
#define THREAD_LOCAL _Thread_local
#endif

#endif
