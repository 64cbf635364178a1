/* SPDX-License-Identifier: Apache-2.0 */
/* Finds reasons for missing OpenCL devices; see missing_device_diagnosis.h. */
#include <config.h>

#include "missing_device_diagnosis.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void add(json_t *sentences,
                                                      const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(sentences, json_string(text));
}

void hints_drivers(json_t *sentences)
{
    const char *variable, *place = icd_place(&variable);
    struct icd_list list;
    uint32_t count;

    if (!icd_list_find(&list))
        return;
    count = list.count;
    icd_list_finish(&list);
    if (variable != NULL)
        add(sentences,
            "%s is set to %.200s: only the drivers named there are looked "
            "for%s",
            variable, place, count == 0 ? ", and there is none" : "");
    else if (count == 0)
        add(sentences,
            "no OpenCL driver is registered: there is no .icd file that names "
            "a library in " ICD_DIRECTORY "; install the driver of your GPU, "
            "or PoCL, which runs on any CPU (Debian, Ubuntu: pocl-opencl-icd; "
            "Fedora, Arch: pocl)");
}

/* ---- hardware ---- */

/* Returns the number in a sysfs file, such as "0x10de", or 0. */
static unsigned long file_number(const char *directory, const char *name)
{
    char path[4200], text[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    fclose(file);
    return strtoul(text, NULL, 16);
}

/* The vendors of GPUs, with parts of the names of their drivers' libraries. */
static const struct gpu_vendor {
    unsigned long number; /* of PCI */
    const char *name, *libraries[2], *driver;
} vendors[] = {
    {0x10de,
     "NVIDIA",
     {"nvidia-opencl"},
     "libnvidia-opencl.so.1, a part of NVIDIA's driver (Debian: "
     "nvidia-opencl-icd; Ubuntu: libnvidia-compute; Arch: opencl-nvidia)"},
    {0x1002,
     "AMD",
     {"amdocl", "RusticlOpenCL"},
     "libRusticlOpenCL.so.1 of Mesa, with RUSTICL_ENABLE=radeonsi (Debian, "
     "Ubuntu: mesa-opencl-icd; Fedora: mesa-libOpenCL), or libamdocl64.so of "
     "ROCm (AMD's repository, Arch: rocm-opencl-runtime; Debian from 13 on: "
     "rocm-opencl-icd)"},
    {0x8086,
     "Intel",
     {"igdrcl"},
     "libigdrcl.so, Intel's compute runtime (Debian, Ubuntu: "
     "intel-opencl-icd; Fedora: intel-opencl; Arch: intel-compute-runtime)"},
};

/* Finds the .icd file of a driver whose library name contains one of the names.
 */
static bool registered(const char *const names[2], char out_file[ICD_TEXT_MAX])
{
    struct icd_list list;
    bool found = false;

    if (!icd_list_find(&list))
        return false;
    for (uint32_t i = 0; i < list.count && !found; i++)
        for (int k = 0; k < 2 && names[k] != NULL && !found; k++) {
            found = strstr(list.icds[i].library, names[k]) != NULL;
            if (found)
                snprintf(out_file, ICD_TEXT_MAX, "%s", list.icds[i].file);
        }
    icd_list_finish(&list);
    return found;
}

/* Returns the row of the GPU's vendor, or NULL if the device is not a GPU or
 * its vendor is not known. */
static const struct gpu_vendor *gpu_vendor_find(const char *directory)
{
    const unsigned long number = file_number(directory, "vendor");

    /* PCI class 3 is display controllers. */
    if (file_number(directory, "class") >> 16 != 3)
        return NULL;
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (vendors[i].number == number)
            return &vendors[i];
    return NULL;
}

const char *gpu_vendor(const char *directory)
{
    const struct gpu_vendor *vendor = gpu_vendor_find(directory);

    return vendor != NULL ? vendor->name : NULL;
}

bool gpu_diagnose(const char *directory, struct diagnosis *out)
{
    const struct gpu_vendor *vendor = gpu_vendor_find(directory);
    const char *address = strrchr(directory, '/') + 1;

    if (vendor == NULL)
        return false;
    if (registered(vendor->libraries, out->driver_file)) {
        snprintf(out->text, sizeof out->text,
                 "there is a GPU of %s (PCI %.32s), and its OpenCL driver is "
                 "registered (%.200s)",
                 vendor->name, address, out->driver_file);
        snprintf(out->advice, sizeof out->advice, "see the list of drivers");
    } else {
        out->driver_file[0] = '\0';
        snprintf(out->text, sizeof out->text,
                 "there is a GPU of %s (PCI %.32s)", vendor->name, address);
        snprintf(out->advice, sizeof out->advice, "its OpenCL driver is %s",
                 vendor->driver);
    }
    return true;
}

void hints_gpus(json_t *sentences, const char *pattern)
{
    struct diagnosis diagnosis;
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (gpu_diagnose(found.gl_pathv[i], &diagnosis))
            add(sentences, "%s: %s", diagnosis.text, diagnosis.advice);
    globfree(&found);
}

/* ---- device files ---- */

bool device_file_diagnose(const char *path, struct diagnosis *out)
{
    struct stat status;
    struct group *group;

    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0 ||
        errno == ENOENT || stat(path, &status) != 0)
        return false;
    group = getgrgid(status.st_gid);
    if (status.st_gid == 0 || !(status.st_mode & S_IRGRP) ||
        !(status.st_mode & S_IWGRP)) {
        snprintf(out->text, sizeof out->text,
                 "%.200s: %s; its mode is %04o and its group %.60s, which does "
                 "not help users",
                 path, strerror(EACCES), (unsigned)status.st_mode & 07777,
                 group ? group->gr_name : "unknown");
        snprintf(out->advice, sizeof out->advice,
                 "see the driver's udev rules");
    } else if (group == NULL) {
        snprintf(out->text, sizeof out->text,
                 "%.200s: %s; it belongs to the group %lu, which has no name "
                 "here",
                 path, strerror(EACCES), (unsigned long)status.st_gid);
        snprintf(out->advice, sizeof out->advice,
                 "in a container, add the group, as by --group-add %lu",
                 (unsigned long)status.st_gid);
    } else {
        snprintf(out->text, sizeof out->text,
                 "%.200s: %s; it belongs to the group %.60s", path,
                 strerror(EACCES), group->gr_name);
        snprintf(out->advice, sizeof out->advice,
                 "join it by \"sudo usermod -aG %.60s $USER\" and log in again",
                 group->gr_name);
    }
    return true;
}

void hints_files(json_t *sentences, const char *pattern)
{
    struct diagnosis diagnosis;
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (device_file_diagnose(found.gl_pathv[i], &diagnosis))
            add(sentences, "%s: %s", diagnosis.text, diagnosis.advice);
    globfree(&found);
}

void missing_opencl_diagnose(json_t *sentences)
{
    hints_drivers(sentences);
    hints_gpus(sentences, "/sys/bus/pci/devices/*");
    hints_files(sentences, "/dev/dri/renderD*");
    hints_files(sentences, "/dev/kfd");
    hints_files(sentences, "/dev/nvidia[0-9]*");
    hints_files(sentences, "/dev/nvidiactl");
    hints_files(sentences, "/dev/nvidia-uvm");
}
