/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast's table of kernel parameters, one per process. Any thread. */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_PARAMS_H
#define TANDEM_OPENCL_GEMM_CLBLAST_PARAMS_H

#include "opencl/device/cl_api.h"
#include "opencl/gemm/clblast_parameter_space.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Must be called before any other function of CLBlast. */
void clblast_init_once(cl_command_queue *queue);
/* Returns the parameters in use, or false if CLBlast does not tell them. */
bool clblast_params_get(cl_device_id device, enum clblast_kernel_id id,
                        struct clblast_params *out);
/* Returns CLBlast's status code. */
int clblast_params_set(cl_device_id device, enum clblast_kernel_id id,
                       const struct clblast_params *set);
/* Returns the values in use of `count` named parameters of an f32 kernel
 * (clblast_current_parameters.cc). */
bool clblast_params_query(cl_device_id device, const char *kernel,
                          uint32_t count, const char *const *names,
                          uint32_t *out_values);

#ifdef __cplusplus
}
#endif
#endif
