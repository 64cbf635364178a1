/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtandem with the OpenCL plugin and the CPU plugin while OpenCL calls fail:
 * each call of a program succeeds or reports its failure, all data is correct,
 * operators that may run on any device succeed at once if the device is lost,
 * everything works afterwards, and nothing is left after the context is
 * destroyed. See fault_sweep.h for the arguments.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tandem/host.h>

#include "../opencl-layer/heap_tracking.h"
#include "fault_sweep.h"

#define N 1000
#define SIDE 24
/* Larger than uploads that need not wait for earlier work. */
#define LARGE (1200u << 10)
#define WAIT_NS UINT64_C(120000000000)
/* The prefix of an asynchronous error in the log. */
#define ASYNC_ERROR_PREFIX "earlier work failed: "

static struct tandem_context *context;
static uint32_t gpu; /* The OpenCL device, if there is one. */
static bool found;
/* A device was lost, so tensors that it may write to are not freed. */
static bool device_lost;
/*
 * The first asynchronous error in the log. The next tandem_context_synchronize
 * must return it once, and must not fail for another reason.
 */
static char pending_error[1024];
static char failed[1024], wrong[1024];
static const char *section;
static float in[LARGE], want[LARGE], got[LARGE];

static bool record_violation(const char *what)
{
    if (!wrong[0])
        snprintf(wrong, sizeof wrong, "%s: %s (%s)", section, what,
                 tandem_last_error());
    return false;
}

/* Records what a call returned. Returns true if the call succeeded. */
static bool record_status(enum tandem_status status, const char *call)
{
    if (status == TANDEM_OK)
        return true;
    if (status > TANDEM_FAILED || tandem_last_error()[0] == '\0')
        return record_violation(call);
    if (!failed[0])
        snprintf(failed, sizeof failed, "%s: %s: %s: %s", section, call,
                 tandem_status_name(status), tandem_last_error());
    return false;
}
#define SUCCEEDED(call) record_status((call), #call)

static bool values_match(const float *values, uint32_t count, const char *what)
{
    char text[128];

    for (uint32_t i = 0; i < count; i++)
        if (!(fabsf(values[i] - want[i]) <=
              1e-4f * fmaxf(1.0f, fabsf(want[i])))) {
            snprintf(text, sizeof text, "%s: element %u is %g, not %g", what, i,
                     (double)values[i], (double)want[i]);
            return record_violation(text);
        }
    return true;
}

static bool read_matches(struct tandem_tensor *tensor, uint32_t count,
                         const char *what)
{
    memset(got, 0xff, count * sizeof(float));
    return SUCCEEDED(tandem_tensor_read(tensor, got, count * sizeof(float),
                                        WAIT_NS)) &&
           values_match(got, count, what);
}

static bool tensor_create(int64_t count, struct tandem_tensor **out_tensor)
{
    return SUCCEEDED(
        tandem_tensor_create(context, TANDEM_F32, 1, &count, out_tensor));
}

static bool context_synchronize(void)
{
    const bool known = pending_error[0] != '\0';
    const enum tandem_status status =
        tandem_context_synchronize(context, WAIT_NS);

    if (status == TANDEM_OK)
        return !known ||
               record_violation("an asynchronous error was not reported");
    SUCCEEDED(status);
    if (pending_error[0] == '\0' || !strstr(tandem_last_error(), pending_error))
        return record_violation(
            "tandem_context_synchronize reports an error that did not occur");
    pending_error[0] = '\0';
    return false;
}

/*
 * Runs an operator on the OpenCL device, or on the device that the library
 * selects if anywhere is set.
 */
static bool run(uint32_t id, bool anywhere, struct tandem_tensor *from,
                struct tandem_tensor *to)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return anywhere
               ? SUCCEEDED(tandem_run(context, &op, &from, 1, &to, 1))
               : SUCCEEDED(tandem_run_on(context, gpu, &op, &from, 1, &to, 1));
}

/* ---- sections ---- */

static bool chain(bool anywhere, uint32_t count)
{
    struct tandem_tensor *x = NULL, *y = NULL;
    bool passed;

    for (uint32_t i = 0; i < count; i++) {
        in[i] = (float)(i % 1000) * 0.5f - 100.0f;
        want[i] = in[i] > 0 ? -in[i] : 0;
    }
    passed = tensor_create(count, &x) && tensor_create(count, &y) &&
             SUCCEEDED(tandem_tensor_write(x, in, count * sizeof(float))) &&
             run(TANDEM_OP_RELU, anywhere, x, y) &&
             run(TANDEM_OP_NEG, anywhere, y, y) &&
             read_matches(y, count, "a chain");
    memcpy(want, in, count * sizeof(float));
    passed = passed && read_matches(x, count, "the source of a chain");
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return passed;
}

static bool small(bool anywhere)
{
    return chain(anywhere, N);
}

static bool large(bool anywhere)
{
    return chain(anywhere, LARGE);
}

/* Uses tensors in memory of the caller, who also writes to them. */
static bool wrapped(bool anywhere)
{
    static _Alignas(4096) float memory[N], result[N];
    const int64_t shape = N;
    struct tandem_tensor *x = NULL, *y = NULL;
    bool passed;

    for (uint32_t i = 0; i < N; i++)
        memory[i] = (float)i;
    passed = SUCCEEDED(tandem_tensor_wrap(context, memory, TANDEM_F32, 1,
                                          &shape, NULL, 0, &x)) &&
             SUCCEEDED(tandem_tensor_wrap(context, result, TANDEM_F32, 1,
                                          &shape, NULL, 0, &y)) &&
             (anywhere || SUCCEEDED(tandem_tensor_prefetch(x, gpu))) &&
             run(TANDEM_OP_ABS, anywhere, x, y);
    passed = passed && (context_synchronize() || context_synchronize());
    for (uint32_t i = 0; i < N; i++) {
        memory[i] = -(float)i - 1.0f;
        want[i] = (float)i + 1.0f;
    }
    passed = passed && SUCCEEDED(tandem_tensor_host_written(x)) &&
             run(TANDEM_OP_ABS, anywhere, x, y) &&
             SUCCEEDED(tandem_tensor_sync(y, WAIT_NS)) &&
             values_match(result, N, "wrapped memory");
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return passed;
}

static bool gemm(bool anywhere)
{
    static const int64_t shape[2] = {SIDE, SIDE};
    struct tandem_tensor *a = NULL, *c = NULL, *sum = NULL;
    struct tandem_matmul_options options = {
        .struct_size = sizeof options,
        .alpha = 1,
        .device = anywhere ? TANDEM_ANY_DEVICE : gpu};
    float total = -1;
    bool passed;

    memset(in, 0, SIDE * SIDE * sizeof(float));
    for (uint32_t i = 0; i < SIDE; i++)
        in[i * SIDE + i] = (float)i;
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        want[i] = in[i] * in[i];
    passed =
        SUCCEEDED(tandem_tensor_create(context, TANDEM_F32, 2, shape, &a)) &&
        SUCCEEDED(tandem_tensor_create(context, TANDEM_F32, 2, shape, &c)) &&
        SUCCEEDED(tandem_tensor_create(context, TANDEM_F32, 0, NULL, &sum)) &&
        SUCCEEDED(tandem_tensor_write(a, in, SIDE * SIDE * sizeof(float))) &&
        SUCCEEDED(tandem_matmul(context, &options, a, a, c)) &&
        read_matches(c, SIDE * SIDE, "a product") &&
        SUCCEEDED(tandem_reduce(context, TANDEM_OP_REDUCE_MAX, 3, c, sum));
    want[0] = (SIDE - 1) * (SIDE - 1);
    passed =
        passed &&
        SUCCEEDED(tandem_tensor_read(sum, &total, sizeof total, WAIT_NS)) &&
        values_match(&total, 1, "a maximum");
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(c);
    tandem_tensor_destroy(sum);
    return passed;
}

/*
 * Runs all sections on the device (if there is one) or anywhere. Returns the
 * number of failed ones.
 */
static int sections_run(bool anywhere)
{
    static const struct {
        const char *name;
        bool (*run)(bool anywhere);
    } sections[] = {{"small", small},
                    {"wrapped", wrapped},
                    {"product", gemm},
                    {"large", large}};
    int failures = 0;

    if (!anywhere && !found)
        return 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        section = sections[i].name;
        failures += !sections[i].run(anywhere);
    }
    return failures;
}

/* ---- contexts ---- */

static const char *build_path(const char *name)
{
    static char paths[2][4096];
    static int at;
    char *here = getcwd(NULL, 0);

    at = !at;
    snprintf(paths[at], sizeof paths[at], "%s/%s", here ? here : "", name);
    free(here);
    return paths[at];
}

static void log_line(void *user, enum tandem_log_level level,
                     const char *message)
{
    const char *async_error = strstr(message, ASYNC_ERROR_PREFIX);

    (void)user, (void)level;
    device_lost |= strstr(message, "is lost") != NULL;
    if (async_error && !pending_error[0])
        snprintf(pending_error, sizeof pending_error, "%s",
                 async_error + strlen(ASYNC_ERROR_PREFIX));
}

static bool begin(void)
{
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .plugin_path = build_path(".libs"),
        .profile_path = sweep_cache,
        .log = log_line,
        .hang_timeout_ms = UINT32_MAX};

    section = "context";
    pending_error[0] = '\0';
    context = NULL;
    found = false;
    if (!SUCCEEDED(tandem_context_create(&options, &context)))
        return false;
    found = SUCCEEDED(tandem_device_find(context, "opencl", &gpu));
    return true;
}

/* Writes a profile in which each operator takes ns nanoseconds on a device. */
static bool profile_write(const char *name, double ns)
{
    static const char *const scalars[] = {"launch", "sync", "alloc", "compile",
                                          "gemm_compile"};
    static const char *const curves[] = {
        "elementwise",    "transcendental", "multi_transcendental",
        "reduce",         "softmax",        "strided",
        "gather",         "optimizer",      "norm",
        "upload",         "download",       "upload_pinned",
        "download_pinned"};
    struct tandem_profile *profile = NULL;
    uint32_t device;
    bool written = SUCCEEDED(tandem_device_find(context, name, &device)) &&
                   SUCCEEDED(tandem_profile_create(context, device, &profile));

    for (size_t i = 0; written && i < sizeof scalars / sizeof *scalars; i++)
        written = SUCCEEDED(tandem_profile_set_scalar(profile, scalars[i], ns));
    for (size_t i = 0; written && i < sizeof curves / sizeof *curves; i++)
        written = SUCCEEDED(
            tandem_profile_add_curve_point(profile, curves[i], 1, ns));
    written = written &&
              SUCCEEDED(tandem_profile_add_gemm_point(profile, 1, 1, 1, ns)) &&
              SUCCEEDED(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
    return written;
}

/* With these profiles the library selects the OpenCL device while it works. */
static void profiles_write(void)
{
    if (!begin() || !profile_write("opencl", 1) || !profile_write("cpu", 1e9))
        sweep_report("no profiles");
    tandem_context_destroy(context);
}

static void again(void)
{
    struct tandem_explanation last = {.struct_size = sizeof last};

    tandem_context_destroy(context);
    failed[0] = '\0';
    if (!begin() || !found || sections_run(false) + sections_run(true) != 0)
        sweep_report("a new context does not work afterwards");
    else if (!SUCCEEDED(tandem_explain_last(context, &last)) ||
             last.chosen != gpu)
        sweep_report("what may run anywhere was not run by OpenCL");
    tandem_context_destroy(context);
}

static void pass(void)
{
    begin();
    sections_run(false);
    sections_run(true);
    tandem_context_destroy(context);
}

static void one_case(const struct layer_script *script)
{
    struct sweep_state before;

    failed[0] = wrong[0] = '\0';
    if (sweep_case() == 1)
        profiles_write();
    before = sweep_state_take();
    device_lost = false;
    plug.script_set(script);
    if (!begin())
        sweep_report("no context without OpenCL");
    if (sections_run(false) + sections_run(true) != 0 && script->nth == 0)
        sweep_report("the workload fails by itself");
    if (script->times > 1 && sweep_case() % 2 == 0) {
        tandem_context_destroy(context);
        context = NULL;
    }
    sweep_fault_ends();
    if (context && (sections_run(true) != 0 ||
                    !(context_synchronize() || context_synchronize())))
        sweep_report("the context does not work afterwards");
    again();
    sweep_queues_wait(&before, pass);
    /* By then, the library has created what it caches for later contexts. */
    if (script->nth != 0)
        sweep_state_check(&before, !device_lost);
    if (wrong[0])
        sweep_report("what must never be");
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "host-faults",
                                                 .one_case = one_case,
                                                 .pass = pass,
                                                 .failed = failed,
                                                 .wrong = wrong,
                                                 .once = 25,
                                                 .ever = 20,
                                                 .later = 12,
                                                 .lazy = 6};

    setenv("TANDEM_BACKENDS", "cpu,opencl", 1);
    /* The library keeps the memory of this thread's messages. */
    tandem_context_create(NULL, NULL);
    heap_watch(dlsym(RTLD_DEFAULT, "tandem_version"));
    return sweep_main(argc, argv, &subject);
}
