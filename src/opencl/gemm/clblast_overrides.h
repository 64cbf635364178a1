/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLBlast's parameters that are not its own: those of the profile ("clblast."
 * and a family's name), given to CLBlast at open, for all of the process that
 * uses the device, proved before their first use, and taken back at the last
 * close.  Any thread.
 */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_OVERRIDES_H
#define TANDEM_OPENCL_GEMM_CLBLAST_OVERRIDES_H

#include "opencl/device/cl_api.h"
#include "opencl/gemm/clblast_parameter_space.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tandem_device;
struct platform_device;

/* A device's, from its profile. */
struct clblast_overrides {
    uint32_t given; /* bits of clblast_kernels */
    struct clblast_params sets[CLBLAST_KERNEL_COUNT];
};

/* Takes the parameters of the family `key`, without its prefix "clblast.".
 * Returns false if `value` is not a parameter set that fits the hardware.
 * Ignores clblast_kernels that this version does not know and returns true. */
bool clblast_overrides_parse(struct clblast_overrides *overrides,
                             const struct platform_device *hardware,
                             const char *key, const char *value);
struct clblast_device_limits
clblast_device_limits_get(const struct platform_device *hardware);
/* Gives them to CLBlast, what was there before is kept.  After CLBlast's first
 * call. */
void clblast_overrides_apply(struct tandem_device *device);
/* Gives CLBlast its own again.  No device of the hardware is open. */
void clblast_overrides_restore(const struct platform_device *hardware);
/* Before the first product of its kind: computes some by CLBlast, and where
 * they are wrong with parameters that are not its own, drops these, with a
 * warning.  Waits for the device. */
void clblast_overrides_self_test(struct tandem_device *device, bool batched);

/* How its operands have to be aligned: its kernels read and write vectors,
 * whose lengths are parameters.  After CLBlast's first call. */
uint32_t clblast_operand_alignment(const struct platform_device *hardware);

/* Those in use; false where CLBlast does not say. */
bool clblast_params_get(cl_device_id device, enum clblast_kernel_id id,
                        struct clblast_params *out);
/* CLBlast's code. */
int clblast_params_set(cl_device_id device, enum clblast_kernel_id id,
                       const struct clblast_params *set);

/* clblast_current_parameters.cc: the values by names of CLBlast's f32 kernel.
 */
bool clblast_params_query(cl_device_id device, const char *kernel,
                          uint32_t count, const char *const *names,
                          uint32_t *out_values);

#ifdef __cplusplus
}
#endif
#endif
