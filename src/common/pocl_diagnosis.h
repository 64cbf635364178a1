/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnoses why PoCL, the OpenCL driver for CPUs, offers no device or cannot
 * compile. Creates and changes no file. May be called from any thread. A reason
 * is followed by "; " and what the user can do. */
#ifndef TANDEM_COMMON_POCL_DIAGNOSIS_H
#define TANDEM_COMMON_POCL_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>

/* Buffer size, in bytes, that suffices for the text in every out_why. */
#define POCL_WHY_BYTES 400u

/* Returns true if the environment makes PoCL abort the process when its devices
 * are listed. out_why then holds the reason and what the user can do. */
bool pocl_aborts(char *out_why, size_t bytes);

/* Returns true if the user may create files in PoCL's cache directory or, if it
 * is missing, may create the directory. Otherwise out_why names the directory,
 * the variable that sets it, the reason and what the user can do. If the
 * directory exists, PoCL lists its devices nevertheless, but compiles nothing.
 */
bool pocl_cache_is_writable(char *out_why, size_t bytes);

/* Explains in out_why why PoCL lists no device, or how to find the reason. */
void pocl_explain_absence(char *out_why, size_t bytes);

#endif
