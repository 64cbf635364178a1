/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast's table of kernel parameters; a process has only one. Thread-safe. */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_PARAMS_H
#define TANDEM_OPENCL_GEMM_CLBLAST_PARAMS_H

#include "opencl/device/cl_api.h"
#include "opencl/gemm/clblast_parameter_space.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Initializes CLBlast. Must be called before any other function of CLBlast. */
void clblast_init_once(cl_command_queue *queue);
/* Reads the parameters that a kernel uses now. Returns false if this build
 * cannot read CLBlast's parameters, or if reading fails. */
bool clblast_params_get(cl_device_id device, enum clblast_kernel_id id,
                        struct clblast_params *out);
/* Sets the parameters of a kernel. Returns CLBlast's status code. */
int clblast_params_set(cl_device_id device, enum clblast_kernel_id id,
                       const struct clblast_params *set);
/* Reads the current values of `count` named parameters of an f32 kernel
 * (clblast_current_parameters.cc). */
bool clblast_params_query(cl_device_id device, const char *kernel,
                          uint32_t count, const char *const *names,
                          uint32_t *out_values);

#ifdef __cplusplus
}
#endif
#endif
