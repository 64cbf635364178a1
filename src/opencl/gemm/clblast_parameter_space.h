/* SPDX-License-Identifier: Apache-2.0 */
/* Tunable parameters of the f32 kernels that CLBlast's GEMM runs, their allowed
 * values (those of CLBlast's tuners), and the conditions that the values must
 * meet together. The second Xgemm kernel (GEMMK 1) is not listed, because it
 * needs square tiles for strided batches. Pure, thread-safe functions. */
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
/* Buffer size that is sufficient for clblast_params_format(). */
#define CLBLAST_PARAMS_TEXT_BYTES 256u

/* Values of a kernel's parameters, in the order of clblast_kernel.params. */
struct clblast_params {
    uint32_t values[CLBLAST_MAX_PARAMS];
};

struct clblast_param {
    const char *name;
    /* Number of allowed values. 0 allows all from values[0] to values[1]. */
    uint32_t count;
    uint32_t values[CLBLAST_MAX_PARAM_VALUES];
};

struct clblast_device_limits {
    uint64_t max_work_group_size;
    uint64_t local_bytes;
};

struct clblast_kernel {
    const char *name; /* name of the kernel in CLBlast's API */
    /* Returns true if the combination of values is valid. NULL means that all
     * combinations are valid. */
    bool (*fits)(const uint32_t *values,
                 const struct clblast_device_limits *limits);
    uint32_t count;
    struct clblast_param params[CLBLAST_MAX_PARAMS];
};

extern const struct clblast_kernel clblast_kernels[CLBLAST_KERNEL_COUNT];

/* Returns the kernel called `name`, or CLBLAST_KERNEL_COUNT if unknown. */
enum clblast_kernel_id clblast_kernel_find(const char *name);
/* Returns true if each value is allowed, and a device with these limits can run
 * the kernel with the values. */
bool clblast_params_valid(enum clblast_kernel_id id,
                          const struct clblast_params *set,
                          const struct clblast_device_limits *limits);
/* Parses "NAME=1 OTHER=2", a text that must contain each parameter once. */
bool clblast_params_parse(enum clblast_kernel_id id, const char *text,
                          struct clblast_params *out);
void clblast_params_format(enum clblast_kernel_id id,
                           const struct clblast_params *set,
                           char out_text[CLBLAST_PARAMS_TEXT_BYTES]);
bool clblast_params_equal(enum clblast_kernel_id id,
                          const struct clblast_params *a,
                          const struct clblast_params *b);

#endif
