/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a variant key to a source file, kernel function and compiler
 * options.  Any thread may call this pure function. */
#ifndef TANDEM_OPENCL_PROGRAM_VARIANT_OPTIONS_H
#define TANDEM_OPENCL_PROGRAM_VARIANT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct platform_device;

#define VARIANT_OPTION_BYTES 512u

struct variant_source {
    const char *file;       /* name of the source file, such as "reduce.cl" */
    const char *source;     /* source text with its includes */
    const char *function;   /* name of the kernel */
    bool needs_ptx_rewrite; /* ptx_rewrite_sm90a must rewrite the PTX */
    char options[VARIANT_OPTION_BYTES];
};

void variant_source_make(struct variant_source *out, uint64_t key,
                         const struct platform_device *hardware);

#endif
