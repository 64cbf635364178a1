/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a device computes in half precision, whatever its list of extensions
 * says: NVIDIA's drivers do and do not list it.  No kernel of the plugin's
 * depends on it (f16 is loaded as f32); it is told to who asks.
 */
#ifndef TANDEM_OPENCL_FP16_H
#define TANDEM_OPENCL_FP16_H

#include "opencl/tune.h"

/* Compiles a few operations, compares what they give with the same rounded
 * from f32, and tells "fp16": "1" or "0".  A device that does not compile them
 * is no failure.  Blocks. */
enum tandem_status fp16_tune(struct tandem_device *device,
                             const struct findings *findings);

#endif
