/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of the suite cold-start; see cold_start_process.h. */
#include <config.h>

#include "cold_start_process.h"

#ifdef BENCH_OPENCL
#include "opencl_device_match.h"
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

struct child {
    uint64_t start_ns;
    double ns[COLD_START_POINTS];
};

static void record(struct child *child, enum cold_start_point point)
{
    child->ns[point] = (double)(clock_now_ns() - child->start_ns);
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

static bool run_tandem(struct child *child,
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
        record(child, POINT_OPENED);
        ok = device_session_result(&session, "add", 1, (int64_t[]){ELEMENTS});
        record(child, POINT_RESULT);
        ok = ok && device_session_result(&session, "gemm", 3,
                                         (int64_t[]){SIDE, SIDE, SIDE});
        record(child, POINT_GEMM);
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
static bool run_chosen(struct child *child,
                       const struct tandem_context_options *options)
{
    static float memory[3][SIDE * SIDE];
    struct tandem_tensor *t[3];
    struct tandem_context *context;
    bool ok;

    if (tandem_context_create(options, &context) != TANDEM_OK)
        return false;
    record(child, POINT_OPENED);
    for (int i = 0; i < 3; i++)
        t[i] = square(context, memory[i]);
    ok = tandem_binary(context, TANDEM_OP_ADD, t[0], t[1], t[2]) == TANDEM_OK &&
         tandem_tensor_sync(t[2], TANDEM_TIMEOUT_INFINITE) == TANDEM_OK &&
         memory[2][0] == 2;
    record(child, POINT_RESULT);
    ok = ok && tandem_matmul(context, NULL, t[0], t[1], t[2]) == TANDEM_OK &&
         tandem_tensor_sync(t[2], TANDEM_TIMEOUT_INFINITE) == TANDEM_OK &&
         memory[2][0] == SIDE;
    record(child, POINT_GEMM);
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

static bool run_raw(struct child *child, const char *platform, const char *name,
                    uint32_t equals)
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
    record(child, POINT_OPENED);
    x = raw_opencl_buffer(&raw_opencl, 4 * n * n);
    y = raw_opencl_buffer(&raw_opencl, 4 * n * n);
    z = raw_opencl_buffer(&raw_opencl, 4 * n * n);
    ok = raw_opencl_build(&raw_opencl) == CL_SUCCESS &&
         raw_opencl_add(&raw_opencl, x, y, z, ELEMENTS) == CL_SUCCESS &&
         raw_result(&raw_opencl, z);
    record(child, POINT_RESULT);
    ok = ok &&
         CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                      CLBlastTransposeNo, n, n, n, 1, x, 0, n, y, 0, n, 0, z, 0,
                      n, &raw_opencl.queue, NULL) == CLBlastSuccess &&
         raw_result(&raw_opencl, z);
    record(child, POINT_GEMM);
    raw_opencl_free(x);
    raw_opencl_free(y);
    raw_opencl_free(z);
    CLBlastClearCache();
    raw_opencl_close(&raw_opencl);
    return ok;
}
#endif

/* Makes drivers and Tandem keep their caches in the directory.  The profile in
 * use stays, because it is not a cache of compiled programs. */
static void caches_set(const char *directory)
{
    static const char *const variables[] = {"XDG_CACHE_HOME", "POCL_CACHE_DIR",
                                            "CUDA_CACHE_PATH", "HOME"};
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char profiles[512];

    if (cache != NULL && cache[0] == '/')
        snprintf(profiles, sizeof profiles, "%s/tandem", cache);
    else
        snprintf(profiles, sizeof profiles, "%s/.cache/tandem",
                 home == NULL ? "" : home);
    if (access(profiles, R_OK) == 0)
        setenv("TANDEM_PROFILE_DIR", profiles, 0);
    for (size_t i = 0; i < COUNT(variables); i++)
        setenv(variables[i], directory, 1);
}

enum { WHO = 2, START, CACHES, DEVICE, PLATFORM, NAME, EQUALS, PAIRS };

int cold_start_main(int argc, char **argv)
{
    struct child child = {.start_ns = 0};
    struct open_options open_options = {.count = 0};
    struct tandem_context_options options = {.struct_size = sizeof options,
                                             .open_keys = open_options.keys,
                                             .open_values =
                                                 open_options.values};
    bool ok = false;

    if (argc < PAIRS || (argc - PAIRS) % 2 != 0 ||
        argc - PAIRS > 2 * (int)MAX_OPEN_OPTIONS)
        return 2;
    for (int i = PAIRS; i < argc; i += 2) {
        open_options.keys[options.open_count] = argv[i];
        open_options.values[options.open_count++] = argv[i + 1];
    }
    child.start_ns = strtoull(argv[START], NULL, 10);
    caches_set(argv[CACHES]);
    if (strcmp(argv[WHO], "tandem") == 0)
        ok = run_tandem(&child, &options, argv[DEVICE]);
    else if (strcmp(argv[WHO], "chosen") == 0)
        ok = run_chosen(&child, &options);
#ifdef BENCH_OPENCL
    else if (strcmp(argv[WHO], "raw") == 0)
        ok = run_raw(&child, argv[PLATFORM], argv[NAME],
                     (uint32_t)strtoul(argv[EQUALS], NULL, 10));
#endif
    if (!ok)
        fprintf(stderr, "tandem-bench: a new process (%s): %s\n", argv[WHO],
                tandem_last_error());
    else
        printf("%.0f %.0f %.0f\n", child.ns[0], child.ns[1], child.ns[2]);
    return ok ? 0 : 1;
}

/* ---- its parent ---- */

extern char **environ;

/* Starts a child whose standard output is ends[1].  Returns false on failure.
 * fork would take long in a process that has mapped GPU memory. */
static bool spawn(pid_t *out_child, const int ends[2], char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    int error;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (error == 0)
        error = posix_spawn(out_child, "/proc/self/exe", &actions, NULL,
                            arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0;
}

/* Reads the points from the pipe and closes it. */
static bool points_read(int end, double out_ns[COLD_START_POINTS])
{
    FILE *from = fdopen(end, "r");
    char line[256] = "";

    if (from == NULL) {
        close(end);
        return false;
    }
    if (fgets(line, sizeof line, from) == NULL)
        line[0] = '\0';
    fclose(from);
    return sscanf(line, "%lf %lf %lf", &out_ns[0], &out_ns[1], &out_ns[2]) == 3;
}

bool cold_start_process_spawn(const struct bench *bench, const char *who,
                              const char *caches,
                              double out_ns[COLD_START_POINTS], char error[256])
{
    const struct open_options *given = &bench->open_options;
    char start[32], equals[16] = "0";
    const char *arguments[PAIRS + 2 * MAX_OPEN_OPTIONS + 1] = {
        "tandem-bench",
        COLD_START_OPTION,
        who,
        start,
        caches,
        bench->device_text,
        bench->session.info.platform,
        bench->session.info.name,
        equals};
    int ends[2], status = 0;
    pid_t child = -1;
    bool spawned, has_points;

    for (uint32_t i = 0; i < given->count; i++) {
        arguments[PAIRS + 2 * i] = given->keys[i];
        arguments[PAIRS + 2 * i + 1] = given->values[i];
    }
#ifdef BENCH_OPENCL
    snprintf(equals, sizeof equals, "%" PRIu32,
             reference_equals(bench->context, bench->session.index));
#endif
    snprintf(error, 256, "a new process cannot be started");
    if (pipe(ends) != 0)
        return false;
    snprintf(start, sizeof start, "%" PRIu64, clock_now_ns());
    spawned = spawn(&child, ends, (char *const *)arguments);
    close(ends[1]);
    has_points = points_read(ends[0], out_ns);
    if (!spawned || waitpid(child, &status, 0) != child)
        return false;
    if (WIFSIGNALED(status))
        snprintf(error, 256, "a new process (%s) died of signal %d", who,
                 WTERMSIG(status));
    else
        snprintf(error, 256, "a new process (%s) failed with %d", who,
                 WEXITSTATUS(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && has_points;
}
