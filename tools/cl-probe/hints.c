/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints about missing OpenCL devices; see hints.h.
 */
#include <config.h>

#include "hints.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(json_t *sentences, const char *text)
{
    json_array_append_new(sentences, json_string(text));
}

static void hint_drivers(json_t *sentences)
{
    const char *vendors = secure_getenv("OCL_ICD_VENDORS");
    char text[512];
    glob_t found;
    size_t count = 0;

    if (vendors != NULL) {
        snprintf(text, sizeof text,
                 "OCL_ICD_VENDORS is set to %.200s: only the driver named "
                 "there is looked for", vendors);
        add(sentences, text);
        return;
    }
    if (glob("/etc/OpenCL/vendors/*.icd", 0, NULL, &found) == 0) {
        count = found.gl_pathc;
        globfree(&found);
    }
    if (count > 0)
        return;
    add(sentences,
        "no OpenCL driver is registered: there is no .icd file in "
        "/etc/OpenCL/vendors; install the driver of your GPU (Debian: "
        "nvidia-opencl-icd, intel-opencl-icd, mesa-opencl-icd) or "
        "pocl-opencl-icd, which runs on any CPU");
}

static void hint_file(json_t *sentences, const char *path)
{
    struct stat status;
    struct group *group;
    char text[512];

    if (access(path, R_OK | W_OK) == 0 || errno == ENOENT ||
        stat(path, &status) != 0)
        return;
    group = getgrgid(status.st_gid);
    snprintf(text, sizeof text,
             "%.200s: %s; it belongs to the group %.60s: join it by "
             "\"sudo usermod -aG %.60s $USER\" and log in again",
             path, strerror(EACCES), group ? group->gr_name : "?",
             group ? group->gr_name : "GROUP");
    add(sentences, text);
}

static void hint_files(json_t *sentences, const char *pattern)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        hint_file(sentences, found.gl_pathv[i]);
    globfree(&found);
}

void hints_opencl(json_t *sentences)
{
    hint_drivers(sentences);
    hint_files(sentences, "/dev/dri/renderD*");
    hint_files(sentences, "/dev/kfd");
    hint_files(sentences, "/dev/nvidia[0-9]*");
    hint_files(sentences, "/dev/nvidiactl");
}
