/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the error messages that explain why there is no OpenCL device. */
#include <config.h>

#include "opencl/device/no_device_diagnosis.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/environment.h"
#include "common/icd_list.h"
#include "common/last_error.h"
#include "common/pocl_diagnosis.h"

/* Returns the number of OpenCL drivers that .icd files register.  Does not
 * count libraries that are named by an environment variable. */
static uint32_t registered_driver_count(void)
{
    struct icd_list drivers;
    uint32_t count = 0;

    if (!icd_list_find(&drivers))
        return 0;
    for (uint32_t i = 0; i < drivers.count; i++)
        count += strcmp(drivers.icds[i].file, drivers.icds[i].library) != 0;
    icd_list_finish(&drivers);
    return count;
}

/* Writes the reason why the ICD loader found no driver in `place`.  `place` is
 * a directory, a file or a library. */
static void location_explain(const char *place, char *out_why, size_t bytes)
{
    struct icd_list invalid;
    struct stat status;

    if (icd_list_find_useless(&invalid) && invalid.count > 0)
        snprintf(out_why, bytes, "%.160s: %.80s", invalid.icds[0].file,
                 invalid.icds[0].library);
    else if (stat(place, &status) != 0)
        snprintf(out_why, bytes, "%s", strerror(errno));
    else if (S_ISDIR(status.st_mode))
        snprintf(out_why, bytes, "there is no .icd file in it");
    else
        snprintf(out_why, bytes,
                 "it is neither a directory nor a .icd file, "
                 "and as a library it provides no platform");
    icd_list_finish(&invalid);
}

enum tandem_status no_platform_report(void)
{
    const char *variable, *place = icd_place(&variable);
    const uint32_t count = registered_driver_count();
    char why[300], named[ICD_TEXT_MAX] = "";

    if (variable != NULL)
        snprintf(named, sizeof(named), " (%s=%.200s)", variable, place);
    if (count > 0)
        return last_error_set(
            TANDEM_NO_DEVICE,
            "none of the registered OpenCL drivers (%u .icd files) provides a "
            "platform%s: cl-probe --doctor says why",
            count, named);
    location_explain(place, why, sizeof(why));
    if (variable != NULL)
        return last_error_set(
            TANDEM_NO_DEVICE,
            "no OpenCL driver is found, because %s is set to \"%.160s\" (%s): "
            "unset it, or set it to a directory of .icd files",
            variable, place, why);
    return last_error_set(
        TANDEM_NO_DEVICE,
        "no OpenCL driver is installed (%s: %s): install your GPU's, on "
        "Debian nvidia-opencl-icd, intel-opencl-icd or mesa-opencl-icd, or "
        "pocl-opencl-icd for the CPU",
        place, why);
}

void no_device_diagnosis_add_platform(struct no_device_diagnosis *diagnosis,
                                      const char *platform)
{
    const size_t length = strlen(diagnosis->names);

    snprintf(diagnosis->names + length, sizeof(diagnosis->names) - length,
             "%s%s", length > 0 ? ", " : "", platform);
    diagnosis->pocl |= strstr(platform, "Portable Computing") != NULL;
    diagnosis->rusticl |= strstr(platform, "rusticl") != NULL;
}

enum tandem_status no_device_report(const struct no_device_diagnosis *diagnosis)
{
    const bool disabled =
        diagnosis->rusticl && environment_get("RUSTICL_ENABLE") == NULL;
    char why[POCL_WHY_BYTES] = "";

    if (diagnosis->unusable_count > 0)
        return last_error_set(
            TANDEM_NO_DEVICE,
            "the OpenCL drivers (%s) list no usable device: %u that they list "
            "are not available, have no compiler, are big-endian or older "
            "than OpenCL 1.2",
            diagnosis->names, diagnosis->unusable_count);
    if (diagnosis->pocl)
        pocl_explain_absence(why, sizeof(why));
    if (diagnosis->pocl || disabled)
        return last_error_set(
            TANDEM_NO_DEVICE, "%s%s%s%s",
            diagnosis->pocl ? "PoCL lists no device: " : "", why,
            diagnosis->pocl && disabled ? "; " : "",
            disabled ? "rusticl lists no device: RUSTICL_ENABLE is not set to "
                       "a driver of Mesa, such as radeonsi or llvmpipe"
                     : "");
    return last_error_set(
        TANDEM_NO_DEVICE,
        "the OpenCL drivers (%s) list no device: check that /dev/dri/renderD* "
        "or /dev/nvidia* can be read (groups render and video), or install "
        "pocl-opencl-icd for the CPU",
        diagnosis->names);
}
