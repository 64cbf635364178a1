/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that other processes compile (option test.compile_processes), also
 * if these processes are killed, stopped, or cannot be started.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CL/cl.h>

#include "single_fault.h"

static const uint32_t ops[] = {TANDEM_OP_NEG,  TANDEM_OP_ABS,  TANDEM_OP_FLOOR,
                               TANDEM_OP_CEIL, TANDEM_OP_SQRT, TANDEM_OP_EXP,
                               TANDEM_OP_TANH, TANDEM_OP_RELU};
#define OPS (sizeof ops / sizeof ops[0])

/* Returns true if the process runs the program tandem-compile.  Before a new
 * process runs it, it already has this name: that of the thread which starts
 * it, and which would hang if the process were stopped. */
static bool has_program(int pid)
{
    char path[32], program[PATH_MAX];
    const char *name;
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    length = readlink(path, program, sizeof program - 1);
    if (length < 0)
        return false;
    program[length] = '\0';
    name = strrchr(program, '/');
    return name && strcmp(name + 1, "tandem-compile") == 0;
}

/* Returns the number of processes tandem-compile that this process has started
 * and that have not ended, and sends them the signal if it is not 0. */
static int compile_processes(int signal_number)
{
    DIR *stream = opendir("/proc");
    const struct dirent *entry;
    int count = 0;

    ck_assert_ptr_nonnull(stream);
    while ((entry = readdir(stream))) {
        char path[300];
        int pid, parent;
        FILE *file;

        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        if (!(file = fopen(path, "r")))
            continue;
        if (fscanf(file, "%d (%*[^)]) %*c %d", &pid, &parent) == 2 &&
            parent == getpid() && has_program(pid)) {
            count++;
            if (signal_number != 0)
                kill(pid, signal_number);
        }
        fclose(file);
    }
    closedir(stream);
    return count;
}

static const struct timespec moment = {0, 2000000};

/* Opens a device and prepares all operators.  The first build hangs until a
 * compile process exists.  Sends this process the signal if it is not 0. */
static void operators_prepare(int signal_number)
{
    device_new("test.compile_processes", "3");
    script_nth(LAYER_FAULT_HANG, "clBuildProgram", 1, 1, 0);
    for (size_t i = 0; i < OPS; i++)
        OK(prepare(ops[i]));
    while (compile_processes(signal_number) == 0)
        nanosleep(&moment, NULL);
    plug.release();
}

/* Waits until all operators are compiled.  Sends the signal to the compile
 * processes meanwhile, if it is not 0. */
static void operators_await(int signal_number)
{
    for (size_t i = 0; i < OPS; i++) {
        enum tandem_status status;

        while ((status = poll_ready(ops[i])) == TANDEM_NOT_READY) {
            compile_processes(signal_number);
            nanosleep(&moment, NULL);
        }
        OK(status);
    }
}

/* Runs an operator on the device, and checks that no process is left when the
 * device is closed. */
static void device_check_and_end(void)
{
    struct tandem_buffer *buffer = ramp_new();
    float got[N];

    OK(unary(TANDEM_OP_NEG, buffer));
    OK(plug.api->download(work.stream, buffer, 0, got, sizeof got, 0,
                          TANDEM_TIMEOUT_INFINITE));
    OK(synchronize());
    for (int i = 0; i < N; i++)
        ck_assert(got[i] == -(float)(i + 1));
    plug.api->free(buffer);
    plug.api->stream_destroy(work.stream);
    device_end();
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

TEST(processes_compile)
{
    operators_prepare(0);
    operators_await(0);
    ck_assert_uint_gt(calls_of("clCreateProgramWithBinary"), 0);
    ck_assert_uint_eq(calls_of("clCreateProgramWithBinary") +
                          calls_of("clCreateProgramWithSource"),
                      OPS);
    device_check_and_end();
}

TEST(idle_processes_end)
{
    operators_prepare(0);
    operators_await(0);
    while (compile_processes(0) != 0)
        nanosleep(&moment, NULL);
    device_check_and_end();
}

TEST(the_programs_of_killed_processes_are_compiled_here)
{
    operators_prepare(SIGKILL);
    operators_await(SIGKILL);
    ck_assert_uint_gt(calls_of("clCreateProgramWithSource"), 1);
    device_check_and_end();
}

/* Closing the device does not wait for a process that does not react. */
TEST(stopped_processes_do_not_delay_the_end)
{
    operators_prepare(SIGSTOP);
    plug.api->stream_destroy(work.stream);
    device_end();
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(processes_that_do_not_start_are_not_needed)
{
    device_new("test.compile_processes", "3");
    script(LAYER_FAULT_CALL, "clGetPlatformIDs", NULL, CL_OUT_OF_HOST_MEMORY);
    for (size_t i = 0; i < OPS; i++)
        OK(prepare(ops[i]));
    operators_await(0);
    ck_assert_int_eq(compile_processes(0), 0);
    ck_assert_uint_eq(calls_of("clCreateProgramWithSource"), OPS);
    device_check_and_end();
}

TEST(drivers_with_parallel_compilers_need_no_processes)
{
    device_new("compile_processes", "3");
    script_nth(LAYER_FAULT_CALL, "clBuildProgram", UINT64_MAX, 1, 0);
    for (size_t i = 0; i < OPS; i++)
        OK(prepare(ops[i]));
    operators_await(0);
    ck_assert_uint_eq(calls_of("clCreateProgramWithSource"), OPS);
    device_check_and_end();
}

int main(void)
{
    return single_run("compile processes", NULL);
}
