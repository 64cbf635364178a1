/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLBlast parameters that replace CLBlast's own ones: tuning results with the
 * keys "clblast.KERNEL". They apply to all GEMMs of the process on the device,
 * are tested before the first use, and are removed at the last close. Any
 * thread.
 */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_OVERRIDES_H
#define TANDEM_OPENCL_GEMM_CLBLAST_OVERRIDES_H

#include "opencl/gemm/clblast_parameter_space.h"

struct tandem_device;
struct platform_device;

/* The tuning results of a device. */
struct clblast_overrides {
    uint32_t given; /* bit i is set if sets[i] is given */
    struct clblast_params sets[CLBLAST_KERNEL_COUNT];
};

/* Takes the parameters of the CLBlast kernel `key`. Returns false if `value` is
 * malformed or does not fit the hardware. Ignores unknown kernels and returns
 * true. */
bool clblast_overrides_parse(struct clblast_overrides *overrides,
                             const struct platform_device *hardware,
                             const char *key, const char *value);
/* Sets the overrides of `device` in CLBlast. */
void clblast_overrides_apply(struct tandem_device *device);
/* Restores CLBlast's own parameters. The hardware must not be open. */
void clblast_overrides_restore(const struct platform_device *hardware);
/* Runs CLBlast's self-test before the first GEMM, single or batched, with
 * overrides. If a result is wrong, restores CLBlast's own parameters and logs a
 * warning. Waits for the device. */
void clblast_overrides_self_test(struct tandem_device *device, bool batched);

/* Returns the alignment in bytes that CLBlast's vector loads need, which
 * depends on the parameters. Call clblast_init_once() first. */
uint32_t clblast_operand_alignment(const struct platform_device *hardware);
struct clblast_device_limits
clblast_device_limits_get(const struct platform_device *hardware);

#endif
