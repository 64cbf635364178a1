/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose PTX is patched (ptx_rewrite.h).  Any thread. */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_PROGRAM_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_PROGRAM_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"
#include "opencl/program/variant_options.h"

struct tandem_device;

/* [blocks]  Puts in the place of *program, which is built, and released, one
 * made of its patched binary; NULL, and FAILED with a message, where the binary
 * is not what was expected or the driver refuses the other one. */
enum tandem_status sm90a_program_build(struct tandem_device *device,
                                       const struct variant_text *text,
                                       cl_program *program);

#endif
