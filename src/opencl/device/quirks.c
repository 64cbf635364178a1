/* SPDX-License-Identifier: Apache-2.0 */
/* The table of known driver quirks; see quirks.h. */
#include "opencl/device/quirks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA "NVIDIA"
#define POCL "Portable Computing"
#define RUSTICL "rusticl"
#define OCLGRIND "Oclgrind"

/* A driver quirk and its conditions.  Devices that meet all conditions have the
 * quirk.  A condition is always met if its value is 0 or NULL. */
struct quirk_row {
    enum quirk quirk;
    const char *platform;            /* Text in the platform's name. */
    unsigned long min_driver;        /* Minimum major version of the driver. */
    uint32_t min_compute_capability; /* 53 means compute capability 5.3. */
    const char *missing_extension;   /* Extension that must be missing. */
    const char *behaviour;           /* Description; must not contain "; ". */
    const char *source; /* Public issue, project document or "observed". */
};

static const struct quirk_row rows[] = {
    /* The compiler needs "#pragma OPENCL EXTENSION cl_khr_fp16 : enable".  It
     * supports neither vectors of halves nor math functions for half.  The
     * project OpenCL-Wrapper documents the minimum driver version, and NVIDIA's
     * CUDA programming guide the minimum compute capability (arithmetic
     * table). */
    {.quirk = QUIRK_F16_UNLISTED,
     .platform = NVIDIA,
     .min_driver = 520,
     .min_compute_capability = 53,
     .missing_extension = "cl_khr_fp16",
     .behaviour = "computes with scalars of type half without listing "
                  "cl_khr_fp16",
     .source = "CLBlast#570"},
    {.quirk = QUIRK_LOCAL_MEMORY_UNDERREPORTED,
     .platform = NVIDIA,
     .behaviour = "runs kernels that use more local memory than "
                  "CL_DEVICE_LOCAL_MEM_SIZE",
     .source = "observed"},
    {.quirk = QUIRK_GROUP_SIZE_UNDERREPORTED,
     .platform = NVIDIA,
     .behaviour = "reports a CL_KERNEL_WORK_GROUP_SIZE of 256 for kernels that "
                  "it compiled for larger groups",
     .source = "observed"},
    {.quirk = QUIRK_FINISH_REPORTS_ERRORS,
     .platform = NVIDIA,
     .behaviour = "clFinish reports failed commands, and is the fastest wait "
                  "for short work",
     .source = "observed"},
    {.quirk = QUIRK_SERIAL_COMPILER,
     .platform = NVIDIA,
     .behaviour = "compiles one program at a time in a process",
     .source = "observed"},
    {.quirk = QUIRK_BINARY_SLOW,
     .platform = POCL,
     .behaviour = "takes longer to return a program's binary than to compile "
                  "the program",
     .source = "pyopencl#738"},
    {.quirk = QUIRK_BINARY_RACE,
     .platform = POCL,
     .behaviour = "can crash when it returns a program's binary while another "
                  "process compiles",
     .source = "observed"},
    {.quirk = QUIRK_CACHE_REQUIRED,
     .platform = POCL,
     .behaviour = "compiles nothing if it cannot write to its cache directory",
     .source = "observed"},
    {.quirk = QUIRK_BINARY_FATAL,
     .platform = RUSTICL,
     .behaviour = "ends the process when it loads a program binary that it "
                  "does not know",
     .source = "observed"},
    {.quirk = QUIRK_COMPILER_RACE,
     .platform = OCLGRIND,
     .behaviour = "crashes if two threads compile at the same time",
     .source = "observed"},
};

static bool row_matches(const struct quirk_row *row,
                        const struct tandem_device_info *info,
                        uint32_t compute_capability)
{
    return strstr(info->platform, row->platform) != NULL &&
           strtoul(info->driver_version, NULL, 10) >= row->min_driver &&
           compute_capability >= row->min_compute_capability &&
           (row->missing_extension == NULL ||
            strstr(info->extensions, row->missing_extension) == NULL);
}

uint32_t quirks_find(struct tandem_device_info *info,
                     uint32_t compute_capability)
{
    uint32_t found = 0;
    size_t used = 0;
    info->quirks[0] = '\0';
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct quirk_row *row = &rows[i];
        const char *separator = found != 0 ? "; " : "";
        if (!row_matches(row, info, compute_capability))
            continue;
        found |= (uint32_t)row->quirk;
        if (used < sizeof(info->quirks))
            used += (size_t)snprintf(info->quirks + used,
                                     sizeof(info->quirks) - used, "%s%s (%s)",
                                     separator, row->behaviour, row->source);
    }
    return found;
}
