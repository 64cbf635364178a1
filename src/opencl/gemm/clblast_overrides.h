/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides for CLBlast's kernel parameters: tuning results with the keys
 * "clblast.KERNEL". They apply to all GEMMs of the process on the device, are
 * tested before their first use, and are removed when the last open handle of
 * the device is closed. Thread-safe. */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_OVERRIDES_H
#define TANDEM_OPENCL_GEMM_CLBLAST_OVERRIDES_H

#include "opencl/gemm/clblast_params.h"

struct tandem_device;
struct platform_device;

/* Parameters of CLBlast's kernels from the tuning results of a device. */
struct clblast_overrides {
    uint32_t given; /* bit i is set if sets[i] has parameters for kernel i */
    struct clblast_params sets[CLBLAST_KERNEL_COUNT];
};

/* Parses and stores the parameters of the CLBlast kernel `key`. Returns false
 * if `value` is malformed or if the hardware does not support the parameters.
 * If the kernel is unknown, stores nothing and returns true. */
bool clblast_overrides_parse(struct clblast_overrides *overrides,
                             const struct platform_device *hardware,
                             const char *key, const char *value);
/* Makes CLBlast use the overrides of `device`. */
void clblast_overrides_apply(struct tandem_device *device);
/* Restores CLBlast's own parameters. No open device may use the hardware. */
void clblast_overrides_restore(const struct platform_device *hardware);
/* Runs the self-test of single or batched CLBlast GEMMs if the overrides are
 * still untested. If a result is wrong, restores CLBlast's own parameters and
 * logs a warning. Waits for the device. */
void clblast_overrides_self_test(struct tandem_device *device, bool batched);

/* Returns the operand alignment in bytes that CLBlast's vector loads need with
 * the current parameters. The caller must call clblast_init_once() first. */
uint32_t clblast_operand_alignment(const struct platform_device *hardware);

#endif
