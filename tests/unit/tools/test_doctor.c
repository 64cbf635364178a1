/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of cl-probe --doctor, with facts about machines that do not exist:
 * directories that look like a machine's, and devices, drivers and loaders as
 * JSON.
 */
#include <config.h>

#include "../../../tools/cl-probe/doctor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/scratch_directory.h"
#include "../../support/test_list.h"

static struct doctor_facts facts;
static json_t *result;

static void setup(void)
{
    scratch_create();
    ck_assert_int_eq(chmod(scratch, 0755), 0);
    facts = (struct doctor_facts){.root = scratch,
                                  .driver_count = 1,
                                  .driver_place = "/vendors",
                                  .online_cpus = 8,
                                  .affinity_cpus = 8};
    result = NULL;
    ck_assert_int_eq(mkdir(scratch_path("empty"), 0755), 0);
}

static void teardown(void)
{
    json_decref(result);
    json_decref((json_t *)facts.found);
    json_decref((json_t *)facts.loader);
    json_decref((json_t *)facts.opened);
    json_decref((json_t *)facts.kernel);
    scratch_remove();
}

/* Writes a file in the scratch directory and creates its parent directories. */
static void put(const char *path, const char *text)
{
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
        mkdir(scratch_path("%.*s", (int)(at - path), path), 0755);
    file_write(scratch_path("%s", path), text);
}

/* Parses JSON in which ' stands for ". */
static json_t *json(const char *text)
{
    char copy[4096];
    json_error_t error;
    json_t *value;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *c = copy; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    value = json_loads(copy, 0, &error);
    ck_assert_msg(value != NULL, "%s: %s", error.text, copy);
    return value;
}

/* Sets the object of device_list.h. */
static void find(const char *devices, const char *drivers)
{
    json_decref((json_t *)facts.found);
    facts.found = json_pack("{s:o, s:o, s:[]}", "devices", json(devices),
                            "drivers", json(drivers), "load_errors");
}

/* Opens the files in dev and reads those in sys again. */
static void ask_kernel(void)
{
    const struct probe_options options = {.json = false};

    json_decref((json_t *)facts.kernel);
    facts.kernel = doctor_kernel_ask(&options, scratch);
}

static void check_again(doctor_check_fn check)
{
    json_decref(result);
    result = json("{'state': '', 'text': '', 'problems': []}");
    check(&facts, result);
}

/* Runs the check and expects a state and a part of its text. */
static void expect(doctor_check_fn check, const char *state, const char *text)
{
    check_again(check);
    ck_assert_str_eq(device_text(result, "state"), state);
    ck_assert_msg(strstr(device_text(result, "text"), text) != NULL,
                  "\"%s\" does not contain \"%s\"", device_text(result, "text"),
                  text);
    ck_assert_int_eq(json_array_size(json_object_get(result, "problems")) > 0,
                     strcmp(state, "problem") == 0);
}

/* Runs the check and expects exactly one problem, with parts of its text and of
 * its advice. */
static void expect_problem(doctor_check_fn check, const char *text,
                           const char *advice)
{
    const json_t *problems;
    const char *given;

    expect(check, "problem", text);
    problems = json_object_get(result, "problems");
    ck_assert_uint_eq(json_array_size(problems), 1);
    given = device_text(json_array_get(problems, 0), "advice");
    ck_assert_msg(strstr(given, advice) != NULL,
                  "\"%s\" does not contain \"%s\"", given, advice);
}

static size_t problem_count(void)
{
    return json_array_size(json_object_get(result, "problems"));
}

static void gpu_put(const char *address, const char *vendor)
{
    char path[128];

    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/class", address);
    put(path, "0x030000\n");
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/vendor", address);
    put(path, vendor);
}

/* ---- drivers ---- */

TEST(registered_drivers)
{
    find("[]", "[]");
    facts.driver_count = 0;
    expect_problem(check_registered_drivers, "no .icd file in /vendors names",
                   "pocl-opencl-icd");
    facts.driver_variable = "OCL_ICD_VENDORS";
    expect_problem(check_registered_drivers,
                   "OCL_ICD_VENDORS is set to /vendors", "unset the variable");
    facts.driver_count = 1;
    expect(check_registered_drivers, "ok",
           "1 driver in /vendors, from OCL_ICD_VENDORS");
}

TEST(registered_driver_of_a_gpu)
{
    find("[]", "[]");
    setenv("OCL_ICD_VENDORS", scratch_path("empty"), 1);
    gpu_put("0000:01:00.0", "0x10de\n");
    expect_problem(check_registered_drivers, "a GPU of NVIDIA",
                   "nvidia-opencl-icd");
    find("[{'name': 'opencl', 'backend': 'opencl', 'kind': 'cpu'}]", "[]");
    expect_problem(check_registered_drivers, "a GPU of NVIDIA", "install");
    gpu_put("0000:01:00.0", "0x1002\n");
    expect_problem(check_registered_drivers, "a GPU of AMD",
                   "Arch: rocm-opencl-runtime; Debian from 13 on: "
                   "rocm-opencl-icd)");
    gpu_put("0000:01:00.0", "0x10de\n");
    /* The user seems to need no other GPU. */
    find("[{'name': 'opencl', 'backend': 'opencl', 'kind': 'gpu'}]", "[]");
    expect(check_registered_drivers, "ok", "1 driver in /vendors");
    find("[]", "[]");
    put("empty/nvidia.icd", "libnvidia-opencl.so.1\n");
    expect(check_registered_drivers, "ok", "1 driver in /vendors");
}

static const struct {
    const char *state, *advice;
} bad_states[] = {
    {"missing", "package that contains the library"},
    {"unloadable", "install what the message names"},
    {"unreadable", "first line of the file"},
    {"broken", "update or remove the driver"},
};

LOOP_TEST(bad_drivers, CASES_IN(bad_states))
{
    char drivers[300];

    snprintf(drivers, sizeof drivers,
             "[{'file': 'good.icd', 'state': 'ok', 'message': ''},"
             " {'file': 'bad.icd', 'state': '%s', 'message': 'it fails'}]",
             bad_states[_i].state);
    find("[]", drivers);
    expect_problem(check_driver_libraries, "bad.icd: it fails",
                   bad_states[_i].advice);
}

TEST(variable_of_no_directory)
{
    find("[]", "[{'file': '/none', 'library': '/none', 'state': 'missing',"
               "  'message': 'it fails'}]");
    expect_problem(check_driver_libraries, "/none: it fails",
                   "unset OCL_ICD_VENDORS");
}

TEST(drivers_without_devices)
{
    find("[]", "[{'file': 'a.icd', 'state': 'ok'},"
               " {'file': 'b.icd', 'state': 'empty', 'message': 'nothing'}]");
    expect(check_driver_libraries, "ok", "1 of 2 drivers work");
    find("[]", "[{'file': 'b.icd', 'state': 'empty', 'message': 'nothing'}]");
    expect_problem(check_driver_libraries, "b.icd: nothing", "device files");
    json_object_del((json_t *)facts.found, "drivers");
    unsetenv("TANDEM_BACKENDS");
    expect_problem(check_driver_libraries, "OpenCL plugin, tandem-opencl.so",
                   "tandem-plugin-opencl");
    setenv("TANDEM_BACKENDS", "cpu", 1);
    expect(check_driver_libraries, "not applicable", "TANDEM_BACKENDS");
    find("[]", "[{'file': 'c.icd', 'state': 'untested'}]");
    expect(check_driver_libraries, "not applicable", "tested");
    find("[]", "[]");
    expect(check_driver_libraries, "not applicable", "tested");
}

TEST(several_drivers_without_devices)
{
    const json_t *problems;

    find("[]", "[{'file': 'a.icd', 'state': 'empty', 'message': 'nothing'},"
               " {'file': 'pocl.icd', 'state': 'empty', 'message': 'x',"
               "  'problem': 'its cache; a cannot be written; set THIS'},"
               " {'file': 'b.icd', 'state': 'empty', 'message': 'nothing',"
               "  'problem': ''}]");
    check_again(check_driver_libraries);
    problems = json_object_get(result, "problems");
    ck_assert_uint_eq(problem_count(), 2);
    ck_assert_str_eq(device_text(json_array_get(problems, 0), "text"),
                     "pocl.icd: its cache; a cannot be written");
    ck_assert_str_eq(device_text(json_array_get(problems, 0), "advice"),
                     "set THIS");
    ck_assert_ptr_nonnull(
        strstr(device_text(json_array_get(problems, 1), "text"),
               "a.icd, b.icd: they offer no device"));
    ck_assert_ptr_nonnull(strstr(
        device_text(json_array_get(problems, 1), "advice"), "device files"));
}

TEST(driver_that_cannot_compile)
{
    find("[]", "[{'file': 'pocl.icd', 'state': 'ok',"
               "  'problem': 'its cache cannot be written; set THIS'},"
               " {'file': 'rusticl.icd', 'state': 'empty',"
               "  'problem': 'RUSTICL_ENABLE is not set; set it'}]");
    expect_problem(check_driver_libraries,
                   "pocl.icd: its cache cannot be written", "set THIS");
}

/* The CPU's driver works, but not that of the GPU. */
TEST(gpu_driver_without_devices)
{
    static const char devices[] =
        "[{'name': 'opencl', 'backend': 'opencl', 'kind': 'cpu'}]";
    char drivers[PATH_MAX + 200];

    setenv("OCL_ICD_VENDORS", scratch_path("empty"), 1);
    put("empty/nvidia.icd", "libnvidia-opencl.so.1\n");
    snprintf(drivers, sizeof drivers,
             "[{'file': 'a.icd', 'state': 'ok'},"
             " {'file': '%s', 'state': 'empty', 'message': 'nothing'}]",
             scratch_path("empty/nvidia.icd"));
    find(devices, drivers);
    expect(check_driver_libraries, "ok", "1 of 2 drivers work");
    gpu_put("0000:01:00.0", "0x10de\n");
    expect_problem(check_driver_libraries, "nvidia.icd: nothing",
                   "install the driver of your GPU");
    find("[{'name': 'opencl', 'backend': 'opencl', 'kind': 'gpu'}]", drivers);
    expect(check_driver_libraries, "ok", "1 of 2 drivers work");
}

/* ---- two drivers for one GPU ---- */

#define GPU(name, platform, text)                                            \
    "{'name': '" name "', 'backend': 'opencl', 'kind': 'gpu', 'platform': '" \
    platform "', " text "}"

static const struct {
    const char *devices;
    const char *text; /* of the problem, or NULL */
} gpus[] = {
    {"[" GPU("opencl", "A", "'pci': '0000:01:00.0'") ","
         GPU("opencl:1", "B", "'pci': '0000:01:00.0'") "]",
     "opencl:1 (platform B) is the same GPU as opencl (platform A)"},
    {"[" GPU("opencl", "A", "'pci': '0000:01:00.0'") ","
         GPU("opencl:1", "B", "'pci': '0000:02:00.0'") "]", NULL},
    /* Parts of one card. */
    {"[" GPU("opencl", "A", "'pci': '0000:01:00.0'") ","
         GPU("opencl:1", "A", "'pci': '0000:01:00.0'") "]", NULL},
    {"[" GPU("opencl", "A", "'uuid': '01'") ","
         GPU("opencl:1", "B", "'uuid': '01', 'pci': '0000:01:00.0'") "]",
     "is the same GPU"},
    {"[" GPU("opencl", "A", "'uuid': '01'") ","
         GPU("opencl:1", "B", "'uuid': '02'") "]", NULL},
    {"[" GPU("opencl", "A", "'pci': ''") ","
         GPU("opencl:1", "B", "'duplicate_of': 'opencl'") "]",
     "is the same GPU"},
    /* Only names are known. */
    {"[" GPU("opencl", "A", "'description': 'Intel(R) UHD Graphics 770'") ","
         GPU("opencl:1", "B",
             "'description': 'Mesa Intel(R) UHD graphics 770 (ADL-S GT1)'") "]",
     "seems to be the same GPU"},
    {"[" GPU("opencl", "A", "'description': 'Intel(R) UHD Graphics 770'") ","
         GPU("opencl:1", "B",
             "'description': 'Intel(R) UHD Graphics 730'") "]", NULL},
    {"[" GPU("opencl", "A", "'description': ''") ","
         GPU("opencl:1", "B", "'description': ''") "]", NULL},
    /* Two equal GPUs: the names do not tell which is which. */
    {"[" GPU("opencl", "A", "'description': 'GPU 1'") ","
         GPU("opencl:1", "A", "'description': 'GPU 1'") ","
         GPU("opencl:2", "B", "'description': 'GPU 1'") "]", NULL},
    /* Two drivers of the CPU. */
    {"[{'name': 'opencl', 'backend': 'opencl', 'kind': 'cpu', 'platform': 'A',"
     "  'description': 'CPU 1'},"
     " {'name': 'opencl:1', 'backend': 'opencl', 'kind': 'cpu', 'platform':"
     "  'B', 'description': 'CPU 1', 'duplicate_of': 'opencl'}]", NULL},
};

LOOP_TEST(drivers_per_gpu, CASES_IN(gpus))
{
    find(gpus[_i].devices,
         "[{'file': '/v/a.icd', 'platforms': ['A']},"
         " {'file': '/v/b.icd', 'platforms': ['X', 'B']}]");
    if (gpus[_i].text != NULL) {
        expect_problem(check_drivers_per_gpu, gpus[_i].text,
                       "OCL_ICD_VENDORS=/v/a.icd or OCL_ICD_VENDORS=/v/b.icd");
        return;
    }
    check_again(check_drivers_per_gpu);
    ck_assert_str_ne(device_text(result, "state"), "problem");
}

TEST(advice_for_the_loader)
{
    find(gpus[0].devices, "[]");
    facts.loader = json("{'name': 'Khronos OpenCL ICD Loader'}");
    expect_problem(check_drivers_per_gpu, "is the same GPU",
                   "to its .icd file; this OpenCL loader wants a directory");
}

/* ---- the loader ---- */

static const struct {
    const char *loader, *state, *text;
} loaders[] = {
    {"{'name': 'OpenCL ICD Loader', 'version': '2.3.1', 'library': 'L',"
     " 'has_opencl_1_2': true, 'has_opencl_3_0': true}", "ok",
     "L: OpenCL ICD Loader 2.3.1"},
    {"{'name': 'OpenCL ICD Loader', 'version': '2.2.9', 'library': 'L',"
     " 'has_opencl_1_2': true, 'has_opencl_3_0': false}", "ok", "2.2.9"},
    {"{'name': 'OpenCL ICD Loader', 'version': '2.2.8', 'library': 'L',"
     " 'has_opencl_1_2': true, 'has_opencl_3_0': false}", "problem",
     "ocl-icd 2.2.8"},
    {"{'name': 'OpenCL ICD Loader', 'version': '1.5', 'library': 'L',"
     " 'has_opencl_1_2': true, 'has_opencl_3_0': false}", "problem", "1.5"},
    {"{'name': 'Khronos OpenCL ICD Loader', 'version': '3.0.5', 'library':"
     " 'L', 'has_opencl_1_2': true, 'has_opencl_3_0': true}", "ok", "3.0.5"},
    {"{'name': '', 'version': '', 'library': 'L',"
     " 'has_opencl_1_2': true, 'has_opencl_3_0': true}", "ok",
     "L, of unknown origin"},
    {"{'name': '', 'version': '', 'library': 'L',"
     " 'has_opencl_1_2': true, 'has_opencl_3_0': false}", "problem",
     "no functions of OpenCL 3.0"},
    {"{'name': '', 'version': '', 'library': 'L',"
     " 'has_opencl_1_2': false, 'has_opencl_3_0': false}", "problem",
     "lacks functions of OpenCL 1.2"},
    {"{'error': 'libOpenCL.so.1: cannot open'}", "problem",
     "libOpenCL.so.1: cannot open"},
};

LOOP_TEST(loader_versions, CASES_IN(loaders))
{
    find("[]", "[]");
    facts.loader = json(loaders[_i].loader);
    if (strcmp(loaders[_i].state, "problem") == 0)
        expect_problem(check_loader, loaders[_i].text, "ocl-icd");
    else
        expect(check_loader, loaders[_i].state, loaders[_i].text);
}

TEST(loader_of_the_package)
{
    find("[{'name': 'opencl', 'backend': 'opencl', 'kind': 'gpu'}]", "[]");
    facts.loader = json("{'error': 'libOpenCL.so.1: cannot open'}");
    expect(check_loader, "ok", "comes with Tandem");
}

#define OPENCL_DEVICE(platform) \
    "[{'name': 'opencl', 'backend': 'opencl', 'platform': '" platform "'}]"

/* The loader offers no device of a driver that works when tested alone. */
TEST(loader_that_ignores_a_driver)
{
    static const char drivers[] =
        "[{'file': '/v/a.icd', 'library': '/lib/a.so.1', 'state': 'ok',"
        "  'platforms': ['A']},"
        " {'file': '/v/b.icd', 'library': 'b.so', 'state': 'ok',"
        "  'platforms': ['B', 'C']},"
        " {'file': '/v/c.icd', 'library': 'c.so', 'state': 'empty'}]";

    facts.loader = json(loaders[5].loader);
    find(OPENCL_DEVICE("C"), drivers);
    expect_problem(check_loader,
                   "L does not load the driver that /v/a.icd names",
                   "; or write only the name a.so.1 into /v/a.icd");
    find(OPENCL_DEVICE("A"), drivers);
    expect_problem(check_loader,
                   "L does not load the driver that /v/b.icd names",
                   "ocl-icd-libopencl1");
    ck_assert_ptr_null(strstr(
        device_text(json_array_get(json_object_get(result, "problems"), 0),
                    "advice"),
        "write only"));
    find("[]", drivers);
    check_again(check_loader);
    ck_assert_uint_eq(problem_count(), 2);
    json_object_set_new((json_t *)facts.found, "failed", json_true());
    expect(check_loader, "ok", "L, of unknown origin");
}

/* ---- device files ---- */

static void judge_device_files(void)
{
    const json_t *problems, *first;

    check_again(check_device_files);
    problems = json_object_get(result, "problems");
    first = json_array_get(problems, 0);
    if (problem_count() == 2 &&
        strstr(device_text(first, "text"), "renderD129") &&
        strstr(device_text(first, "advice"), "sudo usermod -aG ") &&
        strstr(device_text(json_array_get(problems, 1), "text"), "/dev/kfd"))
        _exit(0);
    json_dumpf(result, stderr, 0);
    _exit(1);
}

/* Runs as nobody, because root can open all files. */
TEST(device_files)
{
    const bool root = geteuid() == 0;
    int state = -1;
    pid_t child;

    expect(check_device_files, "not applicable", "no device files");
    put("dev/dri/renderD128", "");
    put("dev/dri/card0", "");
    put("dev/nvidiactl", "");
    ck_assert_int_eq(chmod(scratch_path("dev/dri/card0"), 0000), 0);
    ck_assert_int_eq(chmod(scratch_path("dev/dri/renderD128"), 0666), 0);
    ck_assert_int_eq(chmod(scratch_path("dev/nvidiactl"), 0666), 0);
    expect(check_device_files, "ok", "the 2 device files");
    put("dev/dri/renderD129", "");
    put("dev/kfd", "");
    ck_assert_int_eq(
        chmod(scratch_path("dev/dri/renderD129"), root ? 0660 : 0060), 0);
    ck_assert_int_eq(chmod(scratch_path("dev/kfd"), root ? 0600 : 0000), 0);
    if (root)
        ck_assert_int_eq(chown(scratch_path("dev/dri/renderD129"), 0, 4), 0);
    child = fork();
    if (child == 0) {
        if (root && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        judge_device_files();
    }
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_int_eq(state, 0);
}

TEST(device_files_that_cannot_be_opened)
{
    put("dev/kfd", "");
    ask_kernel();
    expect(check_device_files, "ok", "the 1 device file ");
    json_decref((json_t *)facts.kernel);
    facts.kernel = json_pack("{s:{s:s}}", "unopened", scratch_path("dev/kfd"),
                             "Operation not permitted");
    expect_problem(check_device_files, "dev/kfd: Operation not permitted",
                   "--device");
    /* Opening a directory for writing fails for root, too. */
    put("dev/nvidia0/file", "");
    ask_kernel();
    expect_problem(check_device_files, "dev/nvidia0: Is a directory", "dmesg");
    json_decref((json_t *)facts.kernel);
    facts.kernel = json("{'error': 'did not end within 10 s'}");
    expect_problem(check_device_files, "did not end within 10 s", "dmesg");
}

/* ---- containers ---- */

TEST(no_container)
{
    gpu_put("0000:01:00.0", "0x10de\n");
    put("proc/1/cgroup", "0::/init.scope\n");
    expect(check_container, "not applicable", "not a container");
}

static const struct {
    const char *file, *text, *name;
} containers[] = {
    {".dockerenv", "", "a Docker container"},
    {"run/.containerenv", "", "a Podman container"},
    {"proc/1/cgroup", "1:cpu:/docker/123\n", "a container"},
    {"proc/1/cgroup", "0::/\n1:cpu:/kubepods/pod1\n", "a container"},
};

LOOP_TEST(containers_are_found, CASES_IN(containers))
{
    put(containers[_i].file, containers[_i].text);
    expect(check_container, "ok", containers[_i].name);
    gpu_put("0000:01:00.0", "0x10de\n");
    expect_problem(check_container, containers[_i].name, "--gpus all");
}

static const struct {
    const char *vendor, *advice;
    const char *files[2];
} container_gpus[] = {
    {"0x10de\n", "--gpus all", {"dev/nvidia0"}},
    {"0x1002\n", "--device /dev/kfd", {"dev/kfd", "dev/dri/renderD128"}},
    {"0x8086\n", "--device /dev/dri", {"dev/dri/renderD128"}},
};

LOOP_TEST(container_without_device_files, CASES_IN(container_gpus))
{
    put(".dockerenv", "");
    gpu_put("0000:01:00.0", container_gpus[_i].vendor);
    gpu_put("0000:02:00.0", container_gpus[_i].vendor);
    for (int i = 0; i < 2 && container_gpus[_i].files[i] != NULL; i++) {
        expect_problem(check_container, "the machine has an ",
                       container_gpus[_i].advice);
        put(container_gpus[_i].files[i], "");
    }
    expect(check_container, "ok", "with the device files");
}

/* ---- CPUs ---- */

TEST(cpu_limits)
{
    expect(check_cpu_limits, "ok", "all 8 CPUs");
    facts.affinity_cpus = 3;
    expect_problem(check_cpu_limits, "has 3 of 8 CPUs", "taskset");
    facts.affinity_cpus = 8;
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/cpu.max", "200000 100000\n");
    expect_problem(check_cpu_limits, "2 of 8 CPUs", "--cpus");
    put("sys/fs/cgroup/cpu.max", "max 100000\n");
    expect(check_cpu_limits, "ok", "all 8 CPUs");
    put("proc/self/cgroup", "3:cpu,cpuacct:/\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    expect_problem(check_cpu_limits, "4 of 8 CPUs", "CPUQuota");
}

/* ---- directories ---- */

TEST(cache_directory)
{
    put("file", "");
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    unsetenv("TANDEM_PROFILE_DIR");
    expect(check_cache, "ok", scratch_path("cache/tandem"));
    setenv("TANDEM_PROFILE_DIR", scratch_path("file/profiles"), 1);
    expect_problem(check_cache, "no profile can be written",
                   "TANDEM_PROFILE_DIR");
    unsetenv("TANDEM_PROFILE_DIR");
    setenv("XDG_CACHE_HOME", scratch_path("file"), 1);
    expect_problem(check_cache, "compiled again", "XDG_CACHE_HOME");
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    ck_assert_int_eq(chmod(scratch_path("cache/tandem"), 0777), 0);
    expect_problem(check_cache,
                   "/cache/tandem: kernels are compiled again in every "
                   "program; it can be written by others; run \"chmod go-w /",
                   "or set XDG_CACHE_HOME to a directory that only you");
    /* The mode of a directory such as /tmp must not change. */
    ck_assert_int_eq(chmod(scratch_path("cache/tandem"), 01777), 0);
    expect_problem(check_cache, "can be written by others",
                   "set XDG_CACHE_HOME to a directory that only you can write");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    expect_problem(check_cache, "neither XDG_CACHE_HOME nor HOME", "set HOME");
}

/* ---- devices ---- */

TEST(devices_and_plugins)
{
    find("[]", "[]");
    expect_problem(check_devices, "no plugin offers a device",
                   "TANDEM_PLUGIN_PATH");
    find("[{'name': 'cpu', 'description': 'Some CPU'}]", "[]");
    expect(check_devices, "ok", "cpu (Some CPU)");
    json_array_append_new(json_object_get(facts.found, "load_errors"),
                          json_string("opencl: no devices: there is none"));
    expect(check_devices, "ok", "cpu (Some CPU)");
    json_array_append_new(json_object_get(facts.found, "load_errors"),
                          json_string("x.so: libclblast.so.1 is missing"));
    expect_problem(check_devices, "libclblast.so.1 is missing", "install");
    find("[]", "[]");
    json_array_append_new(json_object_get(facts.found, "load_errors"),
                          json_string("cpu: it crashed"));
    expect_problem(check_devices, "cpu: it crashed", "install");
    find("[{'name': 'cpu', 'description': 'Some CPU'}]", "[]");
    facts.opened = json("{'cpu': {'error': 'crashed: Segmentation fault'}}");
    expect_problem(check_devices, "cpu cannot be used: crashed", "driver");
}

TEST(variable_that_names_no_device)
{
    find("[{'name': 'cpu'}, {'name': 'opencl'}]", "[]");
    facts.forced = "gpu";
    expect_problem(check_devices, "TANDEM_DEVICE names no device: \"gpu\"",
                   "unset it, or set it to one of: cpu, opencl");
    facts.forced = "opencl:1";
    expect_problem(check_devices, "TANDEM_DEVICE names no device", "unset it");
    facts.forced = "opencl:0";
    expect(check_devices, "ok", "cpu");
    facts.forced = "";
    expect(check_devices, "ok", "cpu");
}

TEST(profiles)
{
    unsetenv("TANDEM_PROFILE_DIR");
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    find("[]", "[]");
    expect(check_profiles, "not applicable", "no device");
    find("[{'name': 'cpu', 'calibrated': true},"
         " {'name': 'opencl', 'calibrated': false, 'duplicate_of': 'x'}]",
         "[]");
    expect(check_profiles, "ok", "each device");
    find("[{'name': 'cpu', 'calibrated': true},"
         " {'name': 'opencl', 'calibrated': false}]",
         "[]");
    expect(check_profiles, "ok", "no profile yet of opencl");
    find("[{'name': 'opencl', 'calibrated': false, 'ignored_profiles':"
         " '/p: it was measured with another driver'}]",
         "[]");
    expect_problem(check_profiles, "opencl: profile not used: /p: it was",
                   "--calibrate --device=opencl");
    find("[{'name': 'opencl', 'calibrated': true,"
         " 'missing': ['gemm', 'tuning']}]",
         "[]");
    expect_problem(check_profiles,
                   "opencl: partly calibrated (missing: gemm, tuning)",
                   "repeat the calibration: \"cl-probe --calibrate "
                   "--device=opencl\"");
    find("[{'name': 'cpu', 'calibrated': true, 'profile_notes':"
         " ['quiet: they differ by 2%']},"
         " {'name': 'opencl', 'calibrated': true, 'profile_notes':"
         " ['busy: they differ by 40%']}]",
         "[]");
    expect_problem(check_profiles,
                   "opencl: calibrated on a busy machine: they differ by 40%",
                   "calibrate again when the machine is idle: \"cl-probe "
                   "--calibrate --device=opencl\"");
}

/* A calibration fails as long as its directory cannot be written. */
TEST(profiles_in_an_insecure_directory)
{
    unsetenv("TANDEM_PROFILE_DIR");
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    ck_assert_int_eq(mkdir(scratch_path("cache"), 0755), 0);
    ck_assert_int_eq(mkdir(scratch_path("cache/tandem"), 0755), 0);
    ck_assert_int_eq(chmod(scratch_path("cache/tandem"), 0777), 0);
    find("[{'name': 'cpu', 'ignored_profiles': '/c can be written by others'},"
         " {'name': 'opencl', 'ignored_profiles': '/c can be written by"
         " others'}]",
         "[]");
    expect_problem(check_profiles,
                   "cpu, opencl: profile not used: /c can be written by others",
                   "do what the line on the cache directory says, then run "
                   "\"cl-probe --calibrate\", which");
    find("[{'name': 'opencl', 'calibrated': true, 'missing': ['gemm']}]", "[]");
    expect_problem(check_profiles, "opencl: partly calibrated",
                   "do what the line on the cache directory says, then repeat");
}

#define BUSY "sys/class/drm/card1/device/gpu_busy_percent"

TEST(busy_gpu)
{
    put("profile", "{\"scalars\": {\"launch\": 6000, \"sync\": 4000}}");
    find("[{'name': 'cpu', 'kind': 'cpu'}]", "[]");
    expect(check_gpu_load, "not applicable", "no GPU");
    find("[{'name': 'opencl', 'kind': 'gpu'}]", "[]");
    facts.opened = json("{'opencl': {'latency_ns': 60000.0}}");
    expect(check_gpu_load, "not applicable", "no GPU has a profile");
    json_object_set_new(json_array_get(json_object_get(facts.found, "devices"),
                                       0),
                        "profile", json_string(scratch_path("profile")));
    expect_problem(check_gpu_load, "takes 60 us, but took 10 us", "nvidia-smi");
    json_decref((json_t *)facts.opened);
    facts.opened = json("{'opencl': {'latency_ns': 30000.0}}");
    expect(check_gpu_load, "ok", "no longer than usual");
    put(BUSY, "10\n");
    ask_kernel();
    expect(check_gpu_load, "ok", "no longer than usual");
    put(BUSY, "97\n");
    ask_kernel();
    expect_problem(check_gpu_load, "busy for 97%", "nvidia-smi");
    put(BUSY, "nonsense\n");
    ask_kernel();
    expect(check_gpu_load, "ok", "no longer than usual");
}

TEST(openblas)
{
    find("[{'name': 'cpu', 'backend': 'cpu', 'driver': '1.0'}]", "[]");
    expect(check_blas, "not applicable", "OpenBLAS");
    find("[{'name': 'cpu', 'backend': 'cpu',"
         "  'driver': '1.0 openblas:Prescott'}]",
         "[]");
    expect(check_blas, "ok", "kernels for Prescott");
    facts.opened = json("{'cpu': {'warnings': ['a; b', 'GEMM is slow: OpenBLAS"
                        " runs old kernels; set OPENBLAS_CORETYPE=X']}}");
    expect_problem(check_blas, "GEMM is slow: OpenBLAS runs old kernels",
                   "set OPENBLAS_CORETYPE=X");
}

/* ---- the whole report ---- */

static void report_is(const char *devices, double problems, const char *note,
                      const char *next, const char *summary)
{
    json_decref(result);
    find(devices, "[{'file': 'a.icd', 'state': 'ok'}]");
    result = doctor_report(&facts);
    if (device_number(result, "problems") != problems)
        json_dumpf(result, stderr, JSON_INDENT(2));
    ck_assert_double_eq(device_number(result, "problems"), problems);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "checks")), 12);
    ck_assert_msg(strstr(device_text(result, "note"), note) != NULL, "%s",
                  device_text(result, "note"));
    ck_assert_int_eq(device_text(result, "note")[0] == '\0', note[0] == '\0');
    ck_assert_msg(strstr(device_text(result, "next"), next) != NULL, "%s",
                  device_text(result, "next"));
    ck_assert_str_eq(device_text(result, "summary"), summary);
}

#define CPU \
    "{'name': 'cpu', 'backend': 'cpu', 'kind': 'cpu', 'calibrated': true"

#define NO_GPU                                                              \
    "No problem was found, and no GPU: this machine shows none of NVIDIA, " \
    "AMD or Intel on its PCI bus."

TEST(reports)
{
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    unsetenv("TANDEM_PROFILE_DIR");
    facts.loader = json(loaders[0].loader);
    report_is("[" CPU "}]", 0, "", "--explain", NO_GPU);
    report_is("[" CPU "}, {'name': 'opencl', 'backend': 'opencl', 'kind':"
              " 'cpu', 'duplicate_of': null}]",
              0, "not how fast it is", "--calibrate", NO_GPU);
    report_is("[" CPU "}, {'name': 'opencl', 'backend': 'opencl', 'kind':"
              " 'cpu', 'duplicate_of': 'cpu'},"
              " {'name': 'opencl:1', 'backend': 'opencl', 'kind':"
              " 'gpu', 'calibrated': true}]",
              0, "", "--explain", "No problem was found.");
    gpu_put("0000:01:00.0", "0x10de\n");
    put("empty/nvidia.icd", "libnvidia-opencl.so.1\n");
    setenv("OCL_ICD_VENDORS", scratch_path("empty"), 1);
    report_is("[" CPU "}]", 0, "", "--explain",
              "No problem was found, and no GPU, although this machine shows a "
              "GPU of NVIDIA on its PCI bus.");
    facts.affinity_cpus = 1;
    facts.driver_count = 0;
    report_is("[" CPU "}]", 2, "", "--doctor", "2 checks found a problem.");
}

TEST_MAIN(tests_run_with("doctor", setup, teardown))
