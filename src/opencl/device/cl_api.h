/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the OpenCL headers for OpenCL 1.2, the version that the plugin uses,
 * and defines constants that older headers lack. */
#ifndef TANDEM_OPENCL_DEVICE_CL_API_H
#define TANDEM_OPENCL_DEVICE_CL_API_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_ext.h>

/* Constants of OpenCL extensions: an error code and clGetDeviceInfo queries. */
#ifndef CL_PLATFORM_NOT_FOUND_KHR
#define CL_PLATFORM_NOT_FOUND_KHR -1001
#endif
#define DEVICE_UUID_KHR 0x106A
#define DEVICE_PCI_BUS_INFO_KHR 0x410F
#define DEVICE_PCI_BUS_ID_NV 0x4008
#define DEVICE_PCI_SLOT_ID_NV 0x4009
#define DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000
#define DEVICE_COMPUTE_CAPABILITY_MINOR_NV 0x4001
#define DEVICE_PCI_DOMAIN_ID_NV 0x400A
#define DEVICE_TOPOLOGY_AMD 0x4037
#define DEVICE_GLOBAL_FREE_MEMORY_AMD 0x4039

#endif
