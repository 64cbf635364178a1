/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of the f32 kernels that CLBlast's GEMM runs.  CLBlast groups
 * the parameters into clblast_kernels, one family per kernel.  This file lists
 * each family's parameters, their allowed values and the conditions between
 * them. The allowed values are those of CLBlast's tuners.  Only the first of
 * Xgemm's two kernels (GEMMK 0) is used, because the second one needs square
 * tiles for strided batches.  Pure functions; any thread may call them.
 */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_PARAMETER_SPACE_H
#define TANDEM_OPENCL_GEMM_CLBLAST_PARAMETER_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum clblast_kernel_id {
    CLBLAST_XGEMM,
    CLBLAST_XGEMM_DIRECT,
    CLBLAST_GEMM_ROUTINE,
    CLBLAST_COPY,
    CLBLAST_PAD,
    CLBLAST_TRANSPOSE,
    CLBLAST_PADTRANSPOSE,
    CLBLAST_KERNEL_COUNT
};

#define CLBLAST_MAX_PARAMS 16u
#define CLBLAST_MAX_PARAM_VALUES 5u
/* Text of a set, all of it. */
#define CLBLAST_PARAMS_TEXT_BYTES 256u

/* The values, in the order of the family's parameters. */
struct clblast_params {
    uint32_t values[CLBLAST_MAX_PARAMS];
};

struct clblast_param {
    const char *name;
    uint32_t count; /* 0: from values[0] to values[1] */
    uint32_t values[CLBLAST_MAX_PARAM_VALUES];
};

/* What a device's work-groups may have. */
struct clblast_device_limits {
    uint64_t group; /* work-items */
    uint64_t local_bytes;
};

struct clblast_kernel {
    const char *name; /* CLBlast's */
    uint32_t count;
    struct clblast_param params[CLBLAST_MAX_PARAMS];
    bool (*fits)(const uint32_t *values,
                 const struct clblast_device_limits *limits);
};

extern const struct clblast_kernel clblast_kernels[CLBLAST_KERNEL_COUNT];

/* CLBLAST_KERNEL_COUNT where there is none of that name. */
enum clblast_kernel_id clblast_kernel_find(const char *name);
/* Whether all values are among those that they may be, and fit together and
 * the device. */
bool clblast_params_valid(enum clblast_kernel_id id,
                          const struct clblast_params *set,
                          const struct clblast_device_limits *limits);
/* "NAME=1 OTHER=2": each parameter once, and nothing else. */
bool clblast_params_parse(enum clblast_kernel_id id, const char *text,
                          struct clblast_params *out);
void clblast_params_format(enum clblast_kernel_id id,
                           const struct clblast_params *set,
                           char out_text[CLBLAST_PARAMS_TEXT_BYTES]);
bool clblast_params_equal(enum clblast_kernel_id id,
                          const struct clblast_params *a,
                          const struct clblast_params *b);

#endif
