/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes of the suite cold-start; see cold_start_process.h.
 */
#include <config.h>

#include "cold_start_process.h"

#include "../common/clock.h"
#include "../common/resident_op.h"
#ifdef BENCH_OPENCL
#include "raw_opencl.h"

#include <clblast_c.h>
#endif

#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELEMENTS 1024
#define SIDE 128

/* ---- the process ---- */

struct first {
    uint64_t start_ns;
    double ns[FIRST_POINTS];
};

static void note(struct first *first, enum first_point point)
{
    first->ns[point] = (double)(clock_now_ns() - first->start_ns);
}

/* Creates the operator, launches it and reads an element of the result. */
static bool device_session_result(struct device_session *session,
                                  const char *op, uint32_t rank,
                                  const int64_t *shape)
{
    struct resident_op work;
    float value = 0;
    bool ok = resident_op_create(&work, session, op, rank, shape) == TANDEM_OK;

    if (!ok)
        return false;
    ok = resident_op_launch(&work) == TANDEM_OK &&
         session->backend->download(session->stream, work.c.out[0].buffer, 0,
                                    &value, sizeof value, 0,
                                    TANDEM_TIMEOUT_INFINITE) == TANDEM_OK &&
         value > 0;
    resident_op_destroy(&work);
    return ok;
}

static bool first_tandem(struct first *first,
                         const struct tandem_context_options *options,
                         const char *device)
{
    struct tandem_context *context;
    struct device_session session = {0};
    uint32_t index;
    bool ok;

    if (tandem_context_create(options, &context) != TANDEM_OK)
        return false;
    ok = tandem_device_find(context, device, &index) == TANDEM_OK &&
         device_session_open(&session, context, index) == TANDEM_OK;
    if (ok) {
        note(first, FIRST_OPENED);
        ok = device_session_result(&session, "add", 1, (int64_t[]){ELEMENTS});
        note(first, FIRST_RESULT);
        ok = ok && device_session_result(&session, "gemm", 3,
                                         (int64_t[]){SIDE, SIDE, SIDE});
        note(first, FIRST_PRODUCT);
        device_session_close(&session);
    }
    tandem_context_destroy(context);
    return ok;
}

/* Returns a tensor of SIDE x SIDE floats that wraps the memory. */
static struct tandem_tensor *square(struct tandem_context *context,
                                    float *memory)
{
    const int64_t shape[] = {SIDE, SIDE};
    struct tandem_tensor *tensor = NULL;

    for (size_t i = 0; i < SIDE * SIDE; i++)
        memory[i] = 1;
    tandem_tensor_wrap(context, memory, TANDEM_F32, 2, shape, NULL, 0, &tensor);
    return tensor;
}

/* Computes through the library, which chooses the device. */
static bool first_chosen(struct first *first,
                         const struct tandem_context_options *options)
{
    static float memory[3][SIDE * SIDE];
    struct tandem_tensor *t[3];
    struct tandem_context *context;
    bool ok;

    if (tandem_context_create(options, &context) != TANDEM_OK)
        return false;
    note(first, FIRST_OPENED);
    for (int i = 0; i < 3; i++)
        t[i] = square(context, memory[i]);
    ok = tandem_binary(context, TANDEM_OP_ADD, t[0], t[1], t[2]) == TANDEM_OK &&
         tandem_tensor_sync(t[2], TANDEM_TIMEOUT_INFINITE) == TANDEM_OK &&
         memory[2][0] == 2;
    note(first, FIRST_RESULT);
    ok = ok && tandem_matmul(context, NULL, t[0], t[1], t[2]) == TANDEM_OK &&
         tandem_tensor_sync(t[2], TANDEM_TIMEOUT_INFINITE) == TANDEM_OK &&
         memory[2][0] == SIDE;
    note(first, FIRST_PRODUCT);
    for (int i = 0; i < 3; i++)
        tandem_tensor_destroy(t[i]);
    tandem_context_destroy(context);
    return ok;
}

#ifdef BENCH_OPENCL
static bool raw_result(struct raw_opencl *raw_opencl, cl_mem buffer)
{
    float value = 0;

    return clEnqueueReadBuffer(raw_opencl->queue, buffer, CL_TRUE, 0,
                               sizeof value, &value, 0, NULL,
                               NULL) == CL_SUCCESS &&
           value > 0;
}

static bool first_raw(struct first *first, const char *platform,
                      const char *name, uint32_t equals)
{
    size_t n = SIDE;
    struct raw_opencl raw_opencl;
    cl_mem x, y, z;
    bool ok =
        raw_opencl_open(&raw_opencl, platform, name, equals) == CL_SUCCESS;

    if (!ok) {
        raw_opencl_close(&raw_opencl);
        return false;
    }
    note(first, FIRST_OPENED);
    x = raw_opencl_buffer(&raw_opencl, 4 * n * n);
    y = raw_opencl_buffer(&raw_opencl, 4 * n * n);
    z = raw_opencl_buffer(&raw_opencl, 4 * n * n);
    ok = raw_opencl_build(&raw_opencl) == CL_SUCCESS &&
         raw_opencl_add(&raw_opencl, x, y, z, ELEMENTS) == CL_SUCCESS &&
         raw_result(&raw_opencl, z);
    note(first, FIRST_RESULT);
    ok = ok &&
         CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                      CLBlastTransposeNo, n, n, n, 1, x, 0, n, y, 0, n, 0, z, 0,
                      n, &raw_opencl.queue, NULL) == CLBlastSuccess &&
         raw_result(&raw_opencl, z);
    note(first, FIRST_PRODUCT);
    raw_opencl_free(x);
    raw_opencl_free(y);
    raw_opencl_free(z);
    CLBlastClearCache();
    raw_opencl_close(&raw_opencl);
    return ok;
}
#endif

int first_main(int argc, char **argv)
{
    struct first first = {.start_ns = 0};
    struct open_options open_options = {.count = 0};
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .open_keys = open_options.keys,
        .open_values = open_options.values,
        .open_count = argc < 8 ? 0 : (uint32_t)(argc - 8) / 2};
    bool ok = false;

    if (argc < 8 || (argc - 8) % 2 != 0 || argc - 8 > 2 * (int)MAX_OPEN_OPTIONS)
        return 2;
    for (int i = 8; i < argc; i += 2) {
        open_options.keys[open_options.count] = argv[i];
        open_options.values[open_options.count++] = argv[i + 1];
    }
    first.start_ns = strtoull(argv[3], NULL, 10);
    if (strcmp(argv[2], "tandem") == 0)
        ok = first_tandem(&first, &options, argv[4]);
    else if (strcmp(argv[2], "chosen") == 0)
        ok = first_chosen(&first, &options);
#ifdef BENCH_OPENCL
    else if (strcmp(argv[2], "raw") == 0)
        ok = first_raw(&first, argv[5], argv[6],
                       (uint32_t)strtoul(argv[7], NULL, 10));
#endif
    if (!ok)
        fprintf(stderr, "tandem-bench: a fresh process (%s): %s\n", argv[2],
                tandem_last_error());
    else
        printf("%.0f %.0f %.0f\n", first.ns[0], first.ns[1], first.ns[2]);
    return ok ? 0 : 1;
}

/* ---- its parent ---- */

extern char **environ;

/* Starts a child.  Returns 0 or -1.  fork would take long in a process that has
 * mapped GPU memory. */
static int spawn(pid_t *out_child, const int ends[2], char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    int error;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (error == 0)
        error = posix_spawn(out_child, "/proc/self/exe", &actions, NULL,
                            arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? 0 : -1;
}

int cold_start_process_spawn(const char *who, const struct first_device *device,
                             const struct open_options *open_options,
                             double out_ns[FIRST_POINTS], char error[256])
{
    char line[256] = "", start[32], equals[16];
    const char *arguments[9 + 2 * MAX_OPEN_OPTIONS] = {
        "tandem-bench", FIRST_OPTION,     who,          start,
        device->text,   device->platform, device->name, equals};
    int ends[2], status = 0, read_count = 0, spawned;
    pid_t child = -1;
    FILE *from;

    for (uint32_t i = 0; i < open_options->count; i++) {
        arguments[8 + 2 * i] = open_options->keys[i];
        arguments[9 + 2 * i] = open_options->values[i];
    }
    snprintf(error, 256, "a fresh process cannot be started");
    if (pipe(ends) != 0)
        return -1;
    snprintf(equals, sizeof equals, "%" PRIu32, device->equals);
    snprintf(start, sizeof start, "%" PRIu64, clock_now_ns());
    spawned = spawn(&child, ends, (char *const *)arguments);
    close(ends[1]);
    from = fdopen(ends[0], "r");
    if (from != NULL && fgets(line, sizeof line, from) != NULL)
        read_count =
            sscanf(line, "%lf %lf %lf", &out_ns[0], &out_ns[1], &out_ns[2]);
    if (from != NULL)
        fclose(from);
    else
        close(ends[0]);
    if (spawned != 0 || waitpid(child, &status, 0) != child)
        return -1;
    if (WIFSIGNALED(status))
        snprintf(error, 256, "a fresh process (%s) died of signal %d", who,
                 WTERMSIG(status));
    else
        snprintf(error, 256, "a fresh process (%s) failed with %d", who,
                 WEXITSTATUS(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && read_count == 3
               ? 0
               : -1;
}
