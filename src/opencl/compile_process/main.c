/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-compile: compiles OpenCL programs for the plugin, which starts it and
 * sends the programs through standard input, a socket (compile_message.h).  The
 * driver also stores what it compiles in its own cache, where the plugin's
 * process finds it.  Prints nothing, and ends when the socket is closed.
 *
 * Usage: tandem-compile PLATFORM DEVICE, the positions of the device in the
 * lists of clGetPlatformIDs and clGetDeviceIDs.
 */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opencl/compile_process/compile_message.h"
#include "opencl/device/cl_api.h"

#define MAX_PLATFORMS 64u
#define MAX_DEVICES 64u

/* A build that takes longer ends the process: the plugin gave up long before,
 * and may have ended with the host. */
#define BUILD_LIMIT_S 1200u

static const struct message_link host = {.socket = STDIN_FILENO, .process = -1};

static bool device_find(unsigned platform, unsigned index,
                        cl_device_id *out_device)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_device_id devices[MAX_DEVICES];
    cl_uint platform_count = 0, device_count = 0;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count) !=
            CL_SUCCESS ||
        platform >= platform_count || platform >= MAX_PLATFORMS ||
        clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, MAX_DEVICES,
                       devices, &device_count) != CL_SUCCESS ||
        index >= device_count || index >= MAX_DEVICES)
        return false;
    *out_device = devices[index];
    return true;
}

/* Opens the device and sends the greeting. */
static bool start(unsigned platform, unsigned index, cl_device_id *out_device,
                  cl_context *out_context)
{
    cl_int code = CL_SUCCESS;
    struct compile_greeting greeting = {.version = PACKAGE_VERSION};
    if (!device_find(platform, index, out_device) ||
        clGetDeviceInfo(*out_device, CL_DEVICE_NAME, sizeof(greeting.device),
                        greeting.device, NULL) != CL_SUCCESS ||
        clGetDeviceInfo(*out_device, CL_DRIVER_VERSION, sizeof(greeting.driver),
                        greeting.driver, NULL) != CL_SUCCESS)
        return false;
    *out_context = clCreateContext(NULL, 1, out_device, NULL, NULL, &code);
    return code == CL_SUCCESS &&
           message_send(&host, &greeting, sizeof(greeting));
}

static cl_int build(cl_context context, cl_device_id device,
                    enum compile_input input, const char *options,
                    const char *text, size_t bytes, cl_program *out_program)
{
    cl_int code = CL_SUCCESS;
    const unsigned char *binary = (const unsigned char *)text;
    alarm(BUILD_LIMIT_S);
    *out_program =
        input == COMPILE_SOURCE
            ? clCreateProgramWithSource(context, 1, &text, &bytes, &code)
            : clCreateProgramWithBinary(context, 1, &device, &bytes, &binary,
                                        NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(*out_program, 1, &device, options, NULL, NULL);
    alarm(0);
    return code;
}

/* Sends the result of a build.  Returns false if that is not possible. */
static bool answer(cl_program program, cl_int code)
{
    struct compile_reply reply = {.code = code};
    size_t bytes = 0;
    unsigned char *binary = NULL;
    if (code == CL_SUCCESS)
        reply.code = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES,
                                      sizeof(bytes), &bytes, NULL);
    if (reply.code == CL_SUCCESS && bytes <= MAX_COMPILE_TEXT_BYTES)
        binary = malloc(bytes + 1);
    if (binary != NULL) {
        reply.code = clGetProgramInfo(program, CL_PROGRAM_BINARIES,
                                      sizeof(binary), &binary, NULL);
        reply.binary_bytes = reply.code == CL_SUCCESS ? bytes : 0;
    }
    bool sent = message_send(&host, &reply, sizeof(reply)) &&
                message_send(&host, binary, (size_t)reply.binary_bytes);
    free(binary);
    return sent;
}

/* Receives a request, builds the program and answers.  Returns false if the
 * socket is closed or the request is invalid. */
static bool serve(cl_context context, cl_device_id device)
{
    struct compile_request request;
    cl_program program = NULL;
    if (!message_receive(&host, &request, sizeof(request)) ||
        request.option_bytes == 0 ||
        request.option_bytes > MAX_COMPILE_OPTION_BYTES ||
        request.text_bytes > MAX_COMPILE_TEXT_BYTES)
        return false;
    size_t bytes = request.option_bytes + (size_t)request.text_bytes;
    char *data = malloc(bytes);
    bool served = data != NULL && message_receive(&host, data, bytes) &&
                  data[request.option_bytes - 1] == '\0';
    if (served) {
        cl_int code = build(context, device, (enum compile_input)request.input,
                            data, data + request.option_bytes,
                            (size_t)request.text_bytes, &program);
        served = answer(program, code);
    }
    if (program != NULL)
        clReleaseProgram(program);
    free(data);
    return served;
}

/* Closes the descriptors that the host has not marked with O_CLOEXEC, which
 * must not stay open because of this process. */
static void descriptors_close(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    for (int i = (int)sysconf(_SC_OPEN_MAX) - 1; i > STDERR_FILENO; i--)
        close(i);
}

/* Lets the system end this process before the host if memory is exhausted. */
static void memory_victim_become(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    if (write(file, "1000", 4) < 0)
        fputs("tandem-compile: /proc/self/oom_score_adj is read-only\n",
              stderr);
    close(file);
}

int main(int argc, char **argv)
{
    cl_device_id device;
    cl_context context;
    if (argc != 3) {
        fprintf(stderr,
                "tandem-compile %s compiles programs for Tandem's OpenCL "
                "plugin, which starts it.\n",
                PACKAGE_VERSION);
        return 2;
    }
    descriptors_close();
    memory_victim_become();
    if (!start((unsigned)strtoul(argv[1], NULL, 10),
               (unsigned)strtoul(argv[2], NULL, 10), &device, &context))
        _exit(1);
    while (serve(context, device))
        continue;
    /* Drivers can crash in their destructors. */
    _exit(0);
}
