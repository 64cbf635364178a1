/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the installed OpenCL drivers against the blocklist of drivers that
 * crash or hang.  The ICD loader loads all drivers at the first OpenCL call, so
 * the plugin must not call OpenCL if one of them is on the blocklist. */
#ifndef TANDEM_OPENCL_DEVICE_DRIVER_BLOCKLIST_CHECK_H
#define TANDEM_OPENCL_DEVICE_DRIVER_BLOCKLIST_CHECK_H

#include <tandem/backend.h>

/* Returns TANDEM_OK if OpenCL may be used, OUT_OF_MEMORY, or TANDEM_FAILED with
 * a message that names the broken driver, its failure and the remedy.  Call it
 * before the first OpenCL call of the process. */
enum tandem_status driver_blocklist_check(void);

/* Returns why the blocklist file was rejected, or "" if it was not.  Call it
 * after driver_blocklist_check. */
const char *driver_blocklist_warning(void);

#endif
