/* SPDX-License-Identifier: Apache-2.0 */
/* Programs built from rewritten PTX (ptx_rewrite.h).  Thread-safe. */
#ifndef TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_PROGRAM_H
#define TANDEM_OPENCL_PROGRAM_NVIDIA_SM90A_PROGRAM_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"
#include "opencl/program/variant_options.h"

struct tandem_device;

/* Replaces the built *program by a program from its rewritten PTX.  Blocks.
 * Always releases the old program.  Returns FAILED and sets *program to NULL if
 * the PTX is not as expected or the driver rejects the rewritten PTX. */
enum tandem_status sm90a_program_build(struct tandem_device *device,
                                       const struct variant_source *text,
                                       cl_program *program);

#endif
