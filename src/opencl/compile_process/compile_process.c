/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "opencl/compile_process/compile_process.h"

#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"

/* Time in which a process must have opened its device. */
#define START_LIMIT_NS UINT64_C(30000000000)
#define MAX_PLATFORMS 64u
#define MAX_DEVICES 64u

extern char **environ;

/* Writes the path of tandem-compile, which is in the plugin's directory. */
static bool program_path(char out[PATH_MAX])
{
    Dl_info plugin;
    if (dladdr(&device_handles, &plugin) == 0 ||
        realpath(plugin.dli_fname, out) == NULL)
        return false;
    char *name = strrchr(out, '/') + 1;
    size_t space = PATH_MAX - (size_t)(name - out);
    return (size_t)snprintf(name, space, "tandem-compile") < space &&
           access(out, X_OK) == 0;
}

/* Writes the positions of the hardware in the lists of platforms and devices.
 * The lists of another process with the same environment are the same. */
static bool hardware_positions(const struct platform_device *hardware,
                               unsigned *out_platform, unsigned *out_device)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_device_id devices[MAX_DEVICES];
    cl_uint platform_count = 0, device_count = 0, i = 0, j = 0;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count) !=
            CL_SUCCESS ||
        clGetDeviceIDs(hardware->platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES,
                       devices, &device_count) != CL_SUCCESS)
        return false;
    while (i < platform_count && i < MAX_PLATFORMS &&
           platforms[i] != hardware->platform)
        i++;
    while (j < device_count && j < MAX_DEVICES && devices[j] != hardware->id)
        j++;
    *out_platform = i;
    *out_device = j;
    return i < platform_count && i < MAX_PLATFORMS && j < device_count &&
           j < MAX_DEVICES;
}

/* Starts the program with the socket as its standard input.  It has
 * no blocked signals, the default signal handlers, and its own process group,
 * so that the interrupt key ends the host only.  Returns an errno value. */
static int program_spawn(const char *path, char *const *arguments, int socket,
                         pid_t *out_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    error = posix_spawn(out_pid, path, &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Opens a pidfd of the process.  If that is not possible, kills it. */
static int pidfd_get(pid_t pid)
{
    int pidfd = -1;
#ifdef SYS_pidfd_open
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
#endif
    if (pidfd < 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    return pidfd;
}

bool compile_process_start(struct compile_process *process,
                           struct tandem_device *device)
{
    char path[PATH_MAX], platform_text[16], device_text[16];
    char *arguments[] = {path, platform_text, device_text, NULL};
    unsigned platform_index, device_index;
    int sockets[2];
    *process = (struct compile_process){.pid = 0, .pidfd = -1, .socket = -1};
    const char *cause = NULL;
    if (!program_path(path))
        cause = "there is no tandem-compile in the plugin's directory";
    else if (!hardware_positions(device->hardware, &platform_index,
                                 &device_index))
        cause = "the driver no longer lists the device";
    else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        cause = "no socket can be created";
    if (cause != NULL) {
        device_log(device, TANDEM_LOG_DEBUG, "no compile process: %s", cause);
        return false;
    }
    snprintf(platform_text, sizeof(platform_text), "%u", platform_index);
    snprintf(device_text, sizeof(device_text), "%u", device_index);
    int error = program_spawn(path, arguments, sockets[1], &process->pid);
    close(sockets[1]);
    if (error != 0)
        process->pid = 0;
    else if ((process->pidfd = pidfd_get(process->pid)) < 0)
        process->pid = 0;
    process->socket = sockets[0];
    if (process->pid == 0) {
        close(sockets[0]);
        device_log(device, TANDEM_LOG_DEBUG,
                   "no compile process: %s cannot be started (error %d)", path,
                   error);
    }
    return process->pid != 0;
}

bool compile_process_await(const struct compile_process *process,
                           struct tandem_device *device)
{
    const struct tandem_device_info *info = &device->hardware->info;
    const struct message_link link = {process->socket, process->pidfd,
                                      monotonic_ns() + START_LIMIT_NS};
    struct compile_greeting greeting;
    if (!message_receive(&link, &greeting, sizeof(greeting))) {
        device_log(device, TANDEM_LOG_DEBUG,
                   "no compile process: it does not open the device");
        return false;
    }
    greeting.version[sizeof(greeting.version) - 1] = '\0';
    greeting.device[sizeof(greeting.device) - 1] = '\0';
    greeting.driver[sizeof(greeting.driver) - 1] = '\0';
    if (strcmp(greeting.version, PACKAGE_VERSION) == 0 &&
        strcmp(greeting.device, info->name) == 0 &&
        strcmp(greeting.driver, info->driver_version) == 0)
        return true;
    device_log(device, TANDEM_LOG_DEBUG,
               "no compile process: tandem-compile %s finds %s, driver %s",
               greeting.version, greeting.device, greeting.driver);
    return false;
}

unsigned char *compile_process_build(const struct compile_process *process,
                                     struct tandem_device *device,
                                     enum compile_input input,
                                     const char *options, const void *text,
                                     size_t bytes, size_t *out_bytes,
                                     bool *out_lost)
{
    const struct compile_request request = {.input = (uint32_t)input,
                                            .option_bytes =
                                                (uint32_t)strlen(options) + 1u,
                                            .text_bytes = bytes};
    const struct message_link link = {process->socket, process->pidfd,
                                      device->blocking_timeout_ns != 0
                                          ? monotonic_ns() +
                                                device->blocking_timeout_ns
                                          : 0};
    struct compile_reply reply;
    unsigned char *binary = NULL;
    bool answered = message_send(&link, &request, sizeof(request)) &&
                    message_send(&link, options, request.option_bytes) &&
                    message_send(&link, text, bytes) &&
                    message_receive(&link, &reply, sizeof(reply)) &&
                    reply.binary_bytes <= MAX_COMPILE_TEXT_BYTES;
    if (answered && reply.binary_bytes > 0) {
        binary = malloc((size_t)reply.binary_bytes);
        answered = binary != NULL &&
                   message_receive(&link, binary, (size_t)reply.binary_bytes);
    }
    *out_lost = !answered;
    if (!answered) {
        device_log(device, TANDEM_LOG_DEBUG,
                   "compile process %d has ended or does not answer",
                   (int)process->pid);
        free(binary);
        return NULL;
    }
    if (reply.code != CL_SUCCESS)
        device_log(device, TANDEM_LOG_DEBUG,
                   "a build in compile process %d failed (%d)",
                   (int)process->pid, reply.code);
    *out_bytes = (size_t)reply.binary_bytes;
    return binary;
}

void compile_process_kill(const struct compile_process *process)
{
#ifdef SYS_pidfd_send_signal
    syscall(SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0u);
#endif
}

/* P_PIDFD of waitid(), which older headers lack. */
#define WAIT_PIDFD ((idtype_t)3)

bool compile_process_reap(struct compile_process *process, int limit_ms)
{
    struct pollfd entry = {.fd = process->pidfd, .events = POLLIN};
    siginfo_t info;
    if (poll(&entry, 1, limit_ms) != 1)
        return false;
    /* Fails if the host has already taken the status. */
    waitid(WAIT_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG);
    close(process->pidfd);
    close(process->socket);
    process->pid = 0;
    return true;
}
