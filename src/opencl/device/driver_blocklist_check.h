/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that are known to take their process down.  This one is somebody
 * else's, and the ICD loader loads all drivers at the first OpenCL call, so
 * that call must not be made where one of them is on record.
 */
#ifndef TANDEM_OPENCL_DEVICE_DRIVER_BLOCKLIST_CHECK_H
#define TANDEM_OPENCL_DEVICE_DRIVER_BLOCKLIST_CHECK_H

#include <tandem/backend.h>

/* TANDEM_OK, or TANDEM_FAILED with a message that names the driver, what it
 * did, when, and what to do.  Before the first OpenCL call of the process. */
enum tandem_status driver_blocklist_check(void);

/* Why the record was not used, although there is one; or "".  After
 * driver_blocklist_check. */
const char *driver_warning(void);

#endif
