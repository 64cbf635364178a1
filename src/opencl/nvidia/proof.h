/* SPDX-License-Identifier: Apache-2.0 */
/* Proves a kernel of cl/nvidia/tensor.cl or wgmma.cl before its first use; see
 * opencl/proof.h. */
#ifndef TANDEM_OPENCL_NVIDIA_PROOF_H
#define TANDEM_OPENCL_NVIDIA_PROOF_H

#include <tandem/backend.h>

#include "opencl/api.h"

struct tandem_device;

/* Packs known numbers on the device, where the kernel reads packed ones, runs
 * it, and compares with the same in double; FAILED, with a message, where they
 * differ.  Blocks; any thread. */
enum tandem_status tensor_proof(struct tandem_device *device, cl_kernel kernel,
                                uint64_t key);

#endif
