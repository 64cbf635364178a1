/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why PoCL, the OpenCL driver for CPUs, offers no device or compiles nothing.
 * Any thread; writes nothing.
 */
#ifndef TANDEM_COMMON_POCL_DIAGNOSIS_H
#define TANDEM_COMMON_POCL_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>

/* Enough for any out_why, which is cut where it is longer. */
#define POCL_WHY_BYTES 400u

/* Returns true if the environment makes PoCL abort the process when its devices
 * are listed.  out_why is then the reason and what to do. */
bool pocl_aborts(char *out_why, size_t bytes);

/* Returns true if the user may create files in PoCL's cache directory, or the
 * directory itself where it is missing.  If not, out_why names the directory,
 * the variable it comes from, the reason and what to do. */
bool pocl_cache_is_writable(char *out_why, size_t bytes);

/* Writes why PoCL lists no device, or how to find out. */
void pocl_explain_absence(char *out_why, size_t bytes);

#endif
