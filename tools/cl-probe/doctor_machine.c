/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of device files, containers, CPUs and directories; see doctor.h. */
#include <config.h>

#include "doctor.h"
#include "missing_device_diagnosis.h"
#include "profile_directory.h"

#include "common/cpu_count.h"
#include "common/environment.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Finds the files that match the pattern in the root directory.  Returns their
 * number.  The caller calls globfree. */
static size_t files_find(const struct doctor_facts *facts, const char *pattern,
                         glob_t *out)
{
    char path[PATH_MAX];

    *out = (glob_t){.gl_pathc = 0};
    snprintf(path, sizeof path, "%s%s", facts->root, pattern);
    return glob(path, 0, NULL, out) == 0 ? out->gl_pathc : 0;
}

static bool has_file(const struct doctor_facts *facts, const char *pattern)
{
    glob_t files;
    const size_t count = files_find(facts, pattern, &files);

    globfree(&files);
    return count > 0;
}

/* ---- device files ---- */

/* Reports a device file that this user may not open, or that cannot be opened
 * for another reason. */
static void check_device_file(const struct doctor_facts *facts, json_t *result,
                              const char *path)
{
    const json_t *unopened = json_object_get(facts->kernel, "unopened");
    const char *error = device_text(unopened, path);
    struct diagnosis diagnosis;

    if (device_file_diagnose(path, &diagnosis))
        result_problem(result, diagnosis.advice, "%s", diagnosis.text);
    else if (strcmp(error, strerror(EPERM)) == 0)
        result_problem(result,
                       "in a container, pass the file with \"--device\", not "
                       "as a volume, which does not permit the access",
                       "%.300s: %s, although the mode of the file allows it",
                       path, error);
    else if (error[0] != '\0')
        result_problem(result,
                       "load the GPU's kernel module, or look for errors in "
                       "the output of dmesg",
                       "%.300s: %s", path, error);
}

void check_device_files(const struct doctor_facts *facts, json_t *result)
{
    const char *error = device_text(facts->kernel, "error");
    size_t count = 0;

    for (size_t i = 0; doctor_device_files[i] != NULL; i++) {
        glob_t files;
        const size_t found = files_find(facts, doctor_device_files[i], &files);

        for (size_t k = 0; k < found; k++)
            check_device_file(facts, result, files.gl_pathv[k]);
        count += found;
        globfree(&files);
    }
    if (error[0] != '\0')
        result_problem(result,
                       "look for errors of the GPU's driver in the output of "
                       "dmesg; restart the machine if the driver hangs",
                       "the device files of GPUs cannot be tested: %.300s",
                       error);
    if (count == 0)
        result_not_applicable(result, "there are no device files of GPUs "
                                      "(/dev/dri/renderD*, /dev/kfd, "
                                      "/dev/nvidia*)");
    else
        result_ok(result, "this user may open the %zu device file%s of GPUs",
                  count, count == 1 ? "" : "s");
}

/* ---- containers ---- */

/* Returns true if a control group of the first process has a name that
 * container engines give. */
static bool has_container_group(const struct doctor_facts *facts)
{
    static const char *const names[] = {"docker", "libpod", "kubepods",
                                        "containerd", "lxc"};
    char path[PATH_MAX], line[1024];
    bool found = false;
    FILE *file;

    snprintf(path, sizeof path, "%s/proc/1/cgroup", facts->root);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            found |= strstr(line, names[i]) != NULL;
    if (file != NULL)
        fclose(file);
    return found;
}

static const char *container_name(const struct doctor_facts *facts)
{
    return has_file(facts, "/.dockerenv")          ? "a Docker container"
           : has_file(facts, "/run/.containerenv") ? "a Podman container"
           : has_container_group(facts)            ? "a container"
                                                   : NULL;
}

/* Reports a GPU of the vendor whose device files the container lacks. */
static void check_container_gpu(const struct doctor_facts *facts,
                                json_t *result, const char *container,
                                const char *vendor)
{
    const bool nvidia = strcmp(vendor, "NVIDIA") == 0;
    const bool amd = strcmp(vendor, "AMD") == 0;
    const bool render = has_file(facts, "/dev/dri/renderD*");

    if (nvidia && !has_file(facts, "/dev/nvidia[0-9]*"))
        result_problem(result,
                       "start it with \"docker run --gpus all\" or \"podman "
                       "run --device nvidia.com/gpu=all\", with NVIDIA's "
                       "container toolkit on the host",
                       "this is %s: the machine has an NVIDIA GPU, but there "
                       "is no /dev/nvidia0",
                       container);
    else if (amd && (!render || !has_file(facts, "/dev/kfd")))
        result_problem(result,
                       "start it with \"docker run --device /dev/kfd --device "
                       "/dev/dri\" (the same for podman), and with "
                       "\"--group-add GROUP\" for the group of these files",
                       "this is %s: the machine has an AMD GPU, but there is "
                       "no %s",
                       container, render ? "/dev/kfd" : "/dev/dri/renderD*");
    else if (!nvidia && !amd && !render)
        result_problem(result,
                       "start it with \"docker run --device /dev/dri\" (the "
                       "same for podman), and with \"--group-add GROUP\" for "
                       "the group of these files",
                       "this is %s: the machine has an Intel GPU, but there "
                       "is no /dev/dri/renderD*",
                       container);
}

const char *doctor_gpu_vendor(const struct doctor_facts *facts)
{
    const char *vendor = NULL;
    glob_t devices;
    const size_t count = files_find(facts, "/sys/bus/pci/devices/*", &devices);

    for (size_t i = 0; i < count && vendor == NULL; i++)
        vendor = gpu_vendor(devices.gl_pathv[i]);
    globfree(&devices);
    return vendor;
}

void check_container(const struct doctor_facts *facts, json_t *result)
{
    const char *container = container_name(facts), *vendor;
    const char *checked[8];
    size_t count = 0;
    glob_t devices;

    if (container == NULL) {
        result_not_applicable(result, "this is not a container");
        return;
    }
    for (size_t i = 0,
                found = files_find(facts, "/sys/bus/pci/devices/*", &devices);
         i < found; i++) {
        bool known = false;

        vendor = gpu_vendor(devices.gl_pathv[i]);
        for (size_t k = 0; k < count; k++)
            known |= vendor == checked[k];
        if (vendor == NULL || known || count == 8)
            continue;
        checked[count++] = vendor;
        check_container_gpu(facts, result, container, vendor);
    }
    globfree(&devices);
    if (count == 0)
        result_ok(result,
                  "this is %s, and the machine shows no GPU of NVIDIA, AMD or "
                  "Intel on the PCI bus",
                  container);
    else
        result_ok(result, "this is %s, with the device files of the GPUs",
                  container);
}

/* ---- CPUs ---- */

void check_cpu_limits(const struct doctor_facts *facts, json_t *result)
{
    const uint32_t online = facts->online_cpus, affinity = facts->affinity_cpus;
    const uint32_t quota = quota_processors(facts->root, online);

    if (affinity < online)
        result_problem(result,
                       "if this is not intended, start the program without "
                       "taskset or numactl, or give the container or the batch "
                       "job more CPUs (docker, podman: --cpuset-cpus)",
                       "the affinity mask of this process has %u of %u CPUs, "
                       "and the CPU plugin starts no more threads",
                       (unsigned)affinity, (unsigned)online);
    if (quota < online)
        result_problem(result,
                       "if this is not intended, give the container or the "
                       "service more CPU time (docker, podman: --cpus; "
                       "systemd: CPUQuota=)",
                       "the CPU quota of the control group is that of %u of %u "
                       "CPUs, and the CPU plugin starts no more threads",
                       (unsigned)quota, (unsigned)online);
    result_ok(result, "this process may use all %u CPUs", (unsigned)online);
}

/* ---- directories ---- */

/* Reports a directory that cannot be written.  `note` follows its path. */
static void report_directory(json_t *result, const char *path, const char *note,
                             const char *why, const char *variable,
                             const char *consequence)
{
    const size_t length = strlen(path);
    /* Some reasons begin with the path of the directory or of a parent. */
    const bool own = strncmp(why, path, length) == 0 && why[length] == ' ';
    char advice[DIRECTORY_ADVICE_BYTES];

    directory_advise(why, variable, advice);
    result_problem(result, advice, "%.400s%s: %s; %s%s", path, note,
                   consequence, own ? "it" : "", own ? why + length : why);
}

void check_cache(const struct doctor_facts *facts, json_t *result)
{
    char cache[PATH_MAX], profiles[PATH_MAX], why[DIRECTORY_WHY_BYTES];

    (void)facts;
    if (!environment_cache(cache, sizeof cache)) {
        result_problem(result,
                       "set HOME or XDG_CACHE_HOME to the absolute path of a "
                       "directory",
                       "neither XDG_CACHE_HOME nor HOME names a directory, so "
                       "kernels are compiled again in every program");
        return;
    }
    if (!directory_is_writable(cache, why))
        report_directory(result, cache, "", why, "XDG_CACHE_HOME",
                         "kernels are compiled again in every program");
    if (profile_directory_find(profiles, sizeof profiles) &&
        strcmp(profiles, cache) != 0 && !directory_is_writable(profiles, why))
        report_directory(result, profiles, " (from TANDEM_PROFILE_DIR)", why,
                         "TANDEM_PROFILE_DIR", "no profile can be written");
    result_ok(result, "%.400s can be written", cache);
}
