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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opencl/compile_process/compile_message.h"
#include "opencl/device/cl_api.h"

#define MAX_PLATFORMS 64u
#define MAX_DEVICES 64u
#define SOCKET STDIN_FILENO

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
           message_send(SOCKET, &greeting, sizeof(greeting));
}

static cl_int build(cl_context context, cl_device_id device,
                    enum compile_input input, const char *options,
                    const char *text, size_t bytes, cl_program *out_program)
{
    cl_int code = CL_SUCCESS;
    const unsigned char *binary = (const unsigned char *)text;
    *out_program =
        input == COMPILE_SOURCE
            ? clCreateProgramWithSource(context, 1, &text, &bytes, &code)
            : clCreateProgramWithBinary(context, 1, &device, &bytes, &binary,
                                        NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(*out_program, 1, &device, options, NULL, NULL);
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
    bool sent = message_send(SOCKET, &reply, sizeof(reply)) &&
                message_send(SOCKET, binary, (size_t)reply.binary_bytes);
    free(binary);
    return sent;
}

/* Receives a request, builds the program and answers.  Returns false if the
 * socket is closed or the request is invalid. */
static bool serve(cl_context context, cl_device_id device)
{
    struct compile_request request;
    cl_program program = NULL;
    if (!message_receive(SOCKET, &request, sizeof(request), 0) ||
        request.option_bytes == 0 ||
        request.option_bytes > MAX_COMPILE_OPTION_BYTES ||
        request.text_bytes > MAX_COMPILE_TEXT_BYTES)
        return false;
    size_t bytes = request.option_bytes + (size_t)request.text_bytes;
    char *data = malloc(bytes);
    bool served = data != NULL && message_receive(SOCKET, data, bytes, 0) &&
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
    /* The host's descriptors must not stay open because of this process. */
    syscall(SYS_close_range, 3u, ~0u, 0u);
    /* The process must not outlive the thread that waits for it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!start((unsigned)strtoul(argv[1], NULL, 10),
               (unsigned)strtoul(argv[2], NULL, 10), &device, &context))
        _exit(1);
    while (serve(context, device))
        continue;
    /* Drivers can crash in their destructors. */
    _exit(0);
}
