/* SPDX-License-Identifier: Apache-2.0 */
/* Tunable parameters of the f32 kernels that CLBlast's GEMM runs. The allowed
 * values are those of CLBlast's tuners. The second Xgemm kernel (GEMMK 1) is
 * not listed, because it needs square tiles for strided batches. The current
 * values apply to the whole process. Any thread may call these functions. */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_PARAMS_H
#define TANDEM_OPENCL_GEMM_CLBLAST_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Values of a kernel's parameters, in the order of clblast_kernel.params. The
 * values after the last parameter are 0. */
struct clblast_params {
    uint32_t values[CLBLAST_MAX_PARAMS];
};

struct clblast_param {
    const char *name;
    /* Number of allowed values. 0 means from values[0] to values[1]. */
    uint32_t count;
    uint32_t values[CLBLAST_MAX_PARAM_VALUES];
};

struct clblast_kernel {
    const char *name; /* name of the kernel in CLBlast's API */
    /* Returns true if the combination of values is valid. NULL means that all
     * combinations are valid. */
    bool (*fits)(const uint32_t *values,
                 const struct tandem_device_info *device);
    uint32_t count;
    struct clblast_param params[CLBLAST_MAX_PARAMS];
};

extern const struct clblast_kernel clblast_kernels[CLBLAST_KERNEL_COUNT];

/* Returns true if each value is allowed, and the device can run the kernel with
 * the values. */
bool clblast_params_valid(enum clblast_kernel_id id,
                          const struct clblast_params *set,
                          const struct tandem_device_info *device);
/* Parses a text such as "NAME=1 OTHER=2" that names each parameter once. */
bool clblast_params_parse(enum clblast_kernel_id id, const char *text,
                          struct clblast_params *out);
void clblast_params_format(enum clblast_kernel_id id,
                           const struct clblast_params *set,
                           char out_text[CLBLAST_PARAMS_TEXT_BYTES]);

/* Initializes CLBlast. Must be called before any other function of CLBlast. */
void clblast_init_once(cl_command_queue *queue);
/* Reads the parameters that a kernel uses now (clblast_current_parameters.cc).
 * Returns false if this build cannot read CLBlast's parameters, or if reading
 * fails. */
bool clblast_params_get(cl_device_id device, enum clblast_kernel_id id,
                        struct clblast_params *out);
/* Sets the parameters of a kernel. Returns CLBlast's status code. */
int clblast_params_set(cl_device_id device, enum clblast_kernel_id id,
                       const struct clblast_params *set);

#ifdef __cplusplus
}
#endif
#endif
