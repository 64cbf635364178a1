/* SPDX-License-Identifier: Apache-2.0 */
/* Forbids OpenCL if an installed driver is on the blocklist of broken drivers.
 * Callers hold the mutex of device_enumeration.c. */
#include <config.h>

#include "opencl/device/driver_blocklist_check.h"

#include <installed_directories.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/driver_blocklist.h"
#include "common/environment.h"
#include "common/last_error.h"
#include "common/pocl_diagnosis.h"
#include "common/secure_file.h"

static char warning[SECURE_WHY_BYTES + 64];

const char *driver_blocklist_warning(void)
{
    return warning;
}

static enum tandem_status
report_blocked_driver(const struct driver_record *record)
{
    const struct icd *icd = &record->drivers.icds[0];
    char others[64] = "";

    if (record->drivers.count > 1)
        snprintf(others, sizeof(others), " together with %u other%s",
                 record->drivers.count - 1,
                 record->drivers.count > 2 ? "s" : "");
    return last_error_set(
        TANDEM_FAILED,
        "OpenCL is not used: cl-probe reported on %.24s that its driver %.120s "
        "(%.60s)%s %.100s: remove or repair the driver, or set "
        "OCL_ICD_VENDORS to a working .icd file, then run cl-probe again",
        record->when, icd->file, icd->library, others, record->what);
}

static enum tandem_status out_of_memory(void)
{
    return memory_error("no memory to list the OpenCL drivers");
}

/* Forbids OpenCL if PoCL is installed and the environment would make PoCL abort
 * the process as soon as the ICD loader starts. */
static enum tandem_status pocl_check(void)
{
    char why[POCL_WHY_BYTES];
    struct icd_list drivers;
    bool found = false;

    if (!pocl_aborts(why, sizeof(why)))
        return TANDEM_OK;
    if (!icd_list_find(&drivers))
        return out_of_memory();
    for (uint32_t i = 0; i < drivers.count; i++)
        found |= strstr(drivers.icds[i].library, "pocl") != NULL;
    icd_list_finish(&drivers);
    return found ? last_error_set(TANDEM_FAILED, "OpenCL is not used: %s", why)
                 : TANDEM_OK;
}

enum tandem_status driver_blocklist_check(void)
{
    char cache[PATH_MAX], why[SECURE_WHY_BYTES];
    const char *setting = environment_get_valid("TANDEM_OPENCL_BLOCKLIST");
    const bool has_cache = environment_cache(cache, sizeof(cache));
    struct driver_records records;
    struct icd_list drivers;
    enum tandem_status status = pocl_check();

    if (status != TANDEM_OK)
        return status;
    if (setting != NULL) /* "ignore" */
        return TANDEM_OK;
    if (driver_records_find(has_cache ? cache : NULL, STATEDIR, &records,
                            why) == DRIVER_RECORD_REFUSED)
        snprintf(warning, sizeof(warning),
                 "the driver blocklist is not used: %s", why);
    if (records.count != 0 && !icd_list_find(&drivers)) {
        status = out_of_memory();
    } else if (records.count != 0) {
        const struct driver_record *match =
            driver_records_match(&records, &drivers);
        if (match != NULL)
            status = report_blocked_driver(match);
        icd_list_finish(&drivers);
    }
    driver_records_finish(&records);
    return status;
}
