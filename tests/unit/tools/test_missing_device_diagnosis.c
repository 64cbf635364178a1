/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis of cl-probe on machines without OpenCL devices, simulated by
 * files.
 */
#include <config.h>

#include "../../../tools/cl-probe/missing_device_diagnosis.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/scratch_directory.h"
#include "../../support/test_list.h"

static void setup(void)
{
    scratch_create();
    ck_assert_int_eq(chmod(scratch, 0755), 0);
}

static void put(const char *name, const char *text, mode_t mode)
{
    file_write(scratch_path("%s", name), text);
    ck_assert_int_eq(chmod(scratch_path("%s", name), mode), 0);
}

/* Returns true if a sentence contains both texts. */
static bool has_sentence(const json_t *sentences, const char *one,
                         const char *other)
{
    for (size_t i = 0; i < json_array_size(sentences); i++) {
        const char *text = json_string_value(json_array_get(sentences, i));

        if (strstr(text, one) != NULL && strstr(text, other) != NULL)
            return true;
    }
    return false;
}

static void pci(const char *address, const char *device_class,
                const char *vendor)
{
    char name[64];

    ck_assert_int_eq(mkdir(scratch_path("%s", address), 0755), 0);
    snprintf(name, sizeof name, "%s/class", address);
    put(name, device_class, 0644);
    snprintf(name, sizeof name, "%s/vendor", address);
    put(name, vendor, 0644);
}

TEST(gpus_and_their_drivers_are_reported)
{
    json_t *sentences = json_array();

    pci("0000:01:00.0", "0x030200\n", "0x10de\n");
    pci("0000:02:00.0", "0x030000\n", "0x1002\n");
    pci("0000:03:00.0", "0x038000\n", "0x8086\n");
    pci("0000:04:00.0", "0x020000\n", "0x8086\n"); /* A network card. */
    pci("0000:05:00.0", "0x030000\n", "0x1234\n"); /* An emulated GPU. */
    pci("0000:06:00.0", "", "nonsense");
    ck_assert_int_eq(mkdir(scratch_path("empty"), 0755), 0);
    setenv("OCL_ICD_VENDORS", scratch_path("empty"), 1);
    hints_gpus(sentences, scratch_path("*"));
    ck_assert_uint_eq(json_array_size(sentences), 3);
    ck_assert(has_sentence(sentences, "NVIDIA (PCI 0000:01:00.0)",
                           "nvidia-opencl-icd"));
    ck_assert(
        has_sentence(sentences, "AMD (PCI 0000:02:00.0)", "mesa-opencl-icd"));
    ck_assert(has_sentence(sentences, "Intel (PCI 0000:03:00.0)",
                           "intel-opencl-icd"));
    json_decref(sentences);
    /* A registered driver may not be installed. */
    put("amd.icd", "/opt/rocm/lib/libamdocl64.so\n", 0644);
    setenv("OCL_ICD_VENDORS", scratch_path("amd.icd"), 1);
    sentences = json_array();
    hints_gpus(sentences, scratch_path("*"));
    ck_assert(has_sentence(sentences, "NVIDIA (PCI 0000:01:00.0)",
                           "nvidia-opencl-icd"));
    ck_assert(has_sentence(sentences, "AMD (PCI 0000:02:00.0)", "amd.icd)"));
    ck_assert(
        !has_sentence(sentences, "AMD (PCI 0000:02:00.0)", "mesa-opencl-icd"));
    json_decref(sentences);
    unsetenv("OCL_ICD_VENDORS");
}

static void judge_files(void)
{
    json_t *sentences = json_array();

    hints_files(sentences, scratch_path("*"));
    if (json_array_size(sentences) != 2 ||
        !has_sentence(sentences, "closed: Permission denied", "its mode is") ||
        !has_sentence(sentences, "render: Permission denied",
                      "belongs to the group"))
        json_dumpf(sentences, stderr, 0);
    else
        _exit(0);
    _exit(1);
}

/* Runs as nobody, because root can open all files. */
TEST(file_permissions_are_reported)
{
    const bool root = geteuid() == 0;
    int state = -1;
    pid_t child;

    put("open", "", 0666);
    put("closed", "", root ? 0600 : 0000);
    put("render", "", root ? 0660 : 0060);
    if (root)
        ck_assert_int_eq(chown(scratch_path("render"), 0, 4), 0);
    child = fork();
    if (child == 0) {
        if (root && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        judge_files();
    }
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_int_eq(state, 0);
}

TEST(driver_directories_are_reported)
{
    json_t *sentences = json_array();

    setenv("OCL_ICD_VENDORS", scratch, 1);
    hints_drivers(sentences);
    ck_assert(has_sentence(sentences, scratch, ", and there is none"));
    put("some.icd", "libsome.so\n", 0644);
    json_array_clear(sentences);
    hints_drivers(sentences);
    ck_assert(has_sentence(sentences, scratch, "only the drivers named there"));
    ck_assert(!has_sentence(sentences, scratch, ", and there is none"));
    unsetenv("OCL_ICD_VENDORS");
    setenv("OPENCL_VENDOR_PATH", scratch_path("none"), 1);
    json_array_clear(sentences);
    hints_drivers(sentences);
    ck_assert(has_sentence(sentences, "OPENCL_VENDOR_PATH is set to",
                           ", and there is none"));
    setenv("OPENCL_VENDOR_PATH", scratch, 1);
    json_array_clear(sentences);
    hints_drivers(sentences);
    ck_assert(has_sentence(sentences, "OPENCL_VENDOR_PATH is set to", scratch));
    ck_assert(!has_sentence(sentences, scratch, ", and there is none"));
    ck_assert_uint_eq(json_array_size(sentences), 1);
    json_decref(sentences);
}

TEST_MAIN(tests_run_with("hints", setup, scratch_remove))
