/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host process isolation of the OpenCL plugin with a real driver. Changes that
 * the driver makes to the process without the plugin are allowed; otherwise
 * nothing may change, the driver's threads must leave signals to the host, and
 * the host's floating-point environment must affect neither these threads nor
 * the results.
 *
 * OpenCL can be initialized once in a process, so each case runs this program
 * again with the name of the case.
 */
#include <config.h>

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "fp_environment.h"
#include "unit/host/support.h"
#include "process_state.h"
#include "process_workload.h"

static float results[WORK_RESULTS];
static char self[4096];

/* ---- the driver alone ---- */

static void driver_use(void)
{
    static const char *const source =
        "kernel void one(global float *x) { x[get_global_id(0)] += 1.0f; }";
    const size_t items = 64;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem memory;
    cl_int code = clGetPlatformIDs(1, &platform, NULL);

    if (code == CL_SUCCESS)
        code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    ck_assert_int_eq(code, CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    queue = clCreateCommandQueue(context, device, 0, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    program = clCreateProgramWithSource(context, 1, (const char **)&source,
                                        NULL, &code);
    code = clBuildProgram(program, 1, &device, "", NULL, NULL);
    ck_assert_int_eq(code, CL_SUCCESS);
    kernel = clCreateKernel(program, "one", &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * items, NULL, &code);
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
    code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL,
                                  NULL);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clFinish(queue), CL_SUCCESS);
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

/* ---- the cases ---- */

static struct tandem_context *opencl_new(uint32_t *out_device)
{
    struct tandem_context *context = context_new(NULL);

    *out_device = device_named(context, "opencl");
    return context;
}

/* FNV-1a hash of the bits, with the same value for all NaNs. */
static unsigned long long results_hash(void)
{
    unsigned long long hash = 0xcbf29ce484222325u;

    for (int64_t i = 0; i < WORK_RESULTS; i++) {
        uint32_t bits = 0x7fc00000;

        if (results[i] == results[i])
            memcpy(&bits, &results[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash;
}

static const char *case_name;

static void environment_set(void)
{
    if (strcmp(case_name, "traps") == 0)
        feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    if (strcmp(case_name, "down") == 0)
        fesetround(FE_DOWNWARD);
    if (strcmp(case_name, "flush") == 0)
        fp_environment_flush();
}

static struct process_thread threads[PROCESS_THREADS];
static struct process before, after;

static void changes_print(void)
{
    char changes[1024];

    process_changes(&before, &after, changes, sizeof changes);
    printf("changes%s\n", changes);
}

START_TEST(case_driver)
{
    process_read(&before);
    driver_use();
    process_read(&after);
    changes_print();
}
END_TEST

START_TEST(case_library)
{
    struct tandem_context *context;
    struct fp_environment control_before, control_after;
    uint32_t device;

    work_prepare();
    process_read(&before);
    environment_set();
    control_before = fp_environment_read();
    context = opencl_new(&device);
    work_run(context, device, results);
    control_after = fp_environment_read();
    fesetenv(FE_DFL_ENV);
    process_read(&after);
    process_compare(&before, &after);
    changes_print();
    threads_blocked(threads, process_threads(threads));
    fp_environment_compare(control_before, control_after);
    printf("results %016llx\n", results_hash());
    tandem_context_destroy(context);
}
END_TEST

/*
 * Opens and closes devices repeatedly. The driver may keep only the files that
 * it opened the first time.
 */
START_TEST(case_files)
{
    static struct process_files first, last;
    struct tandem_context *context;
    uint32_t device;

    for (int i = 0; i < 4; i++) {
        context = opencl_new(&device);
        work_run(context, device, results);
        tandem_context_destroy(context);
        process_files(i == 0 ? &first : &last);
    }
    for (uint32_t i = 0; i < last.count; i++)
        ck_assert_msg(last.count == first.count,
                      "%u files were open, now %u: %s", first.count,
                      last.count, last.names[i]);
}
END_TEST

/* ---- running them ---- */

/* Runs the program again and captures its output. */
static void run(const char *name, char *out, size_t bytes)
{
    int ends[2], status = 0;
    size_t used = 0;
    ssize_t got;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setenv("TANDEM_PLUGIN_PATH", build_path(""), 1);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(self, self, name, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (used < bytes - 1 &&
           (got = read(ends[0], out + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    out[used] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "%s: status %x, it said:\n%s", name, (unsigned)status, out);
}

/* Returns the line that starts with this text. */
static const char *line_of(const char *text, const char *start, char *out,
                           size_t bytes)
{
    const char *at = strstr(text, start);

    ck_assert_msg(at != NULL, "no \"%s\" in:\n%s", start, text);
    snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
    return out;
}

START_TEST(changes_are_the_drivers)
{
    static const char *const strange[] = {"traps", "down", "flush"};
    char out[8192], driver[256], plain[256], results_line[256], other[256];

    run("driver", out, sizeof out);
    line_of(out, "changes", driver, sizeof driver);
    run("plain", out, sizeof out);
    ck_assert_str_eq(driver, line_of(out, "changes", plain, sizeof plain));
    line_of(out, "results", results_line, sizeof results_line);
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        run(strange[i], out, sizeof out);
        line_of(out, "results", other, sizeof other);
        ck_assert_msg(strcmp(other, results_line) == 0,
                      "other results with the environment \"%s\"", strange[i]);
    }
}
END_TEST

START_TEST(files_closed)
{
    char out[8192];

    run("files", out, sizeof out);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = opencl_case_new("host-process-opencl");
    const char *vendors = getenv("OCL_ICD_VENDORS");
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (!vendors || access(vendors, R_OK) != 0 || length < 0) {
        fprintf(stderr, "skipped: no OpenCL driver\n");
        return 77;
    }
    if (argc < 2) {
        tcase_add_test(tests, changes_are_the_drivers);
        tcase_add_test(tests, files_closed);
        return runner_run_case("host-process-opencl", tests);
    }
    case_name = argv[1];
    setenv("CK_FORK", "no", 1);
    tcase_add_test(tests, strcmp(case_name, "driver") == 0  ? case_driver
                          : strcmp(case_name, "files") == 0 ? case_files
                                                            : case_library);
    return runner_run_case("host-process-opencl", tests);
}
