/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the installed OpenCL drivers with a blocklist of drivers that crash
 * or hang. The ICD loader loads all installed drivers at the first OpenCL call.
 * If any of them is on the blocklist, the plugin must not call OpenCL. */
#ifndef TANDEM_OPENCL_DEVICE_DRIVER_BLOCKLIST_CHECK_H
#define TANDEM_OPENCL_DEVICE_DRIVER_BLOCKLIST_CHECK_H

#include <tandem/backend.h>

/* Returns TANDEM_OK if OpenCL can be called safely.  If a driver is blocked,
 * returns TANDEM_FAILED; the error message names the driver, its failure and
 * the remedy.  Can also return OUT_OF_MEMORY.  Call this before the first
 * OpenCL call. */
enum tandem_status driver_blocklist_check(void);

/* Returns the reason why the blocklist file was rejected, or "" if it was not
 * rejected.  Call this after driver_blocklist_check. */
const char *driver_blocklist_warning(void);

#endif
