/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtandem with the OpenCL plugin and the CPU plugin while OpenCL fails: each
 * call of a program succeeds or says clearly why not, what is read is right,
 * operators that may run anywhere work at once where the device is lost, all
 * works afterwards, and nothing is left when the context is gone. fault_sweep.h
 * says how to call it.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tandem/host.h>

#include "../opencl-layer/heap_tracking.h"
#include "fault_sweep.h"

#define N 1000
#define SIDE 24
/* Above all of a stream's staging memory. */
#define LARGE (1200u << 10)
#define WAIT_NS UINT64_C(120000000000)
/* What the log says before the reason. */
#define LATE "earlier work failed: "

static struct tandem_context *context;
static uint32_t gpu; /* the OpenCL device, if found */
static bool found;
/* In this case a device was: tensors that it may still write to are kept. */
static bool lost;
/* The first failure of work after its call returned, by the log: the next
 * tandem_context_synchronize tells it, once, and fails for no other reason. */
static char untold[1024];
static char failed[1024], wrong[1024];
static const char *section;
static float in[LARGE], want[LARGE], got[LARGE];

static void details(void)
{
    if (failed[0])
        fprintf(stderr, "  the first failure: %s\n", failed);
    if (wrong[0])
        fprintf(stderr, "  wrong: %s\n", wrong);
}

static bool mistake(const char *what)
{
    if (!wrong[0])
        snprintf(wrong, sizeof wrong, "%s: %s (%s)", section, what,
                 tandem_last_error());
    return false;
}

/* Notes what a call said; true: it succeeded. */
static bool step(enum tandem_status status, const char *call)
{
    if (status == TANDEM_OK)
        return true;
    if (status > TANDEM_FAILED || tandem_last_error()[0] == '\0')
        return mistake(call);
    if (!failed[0])
        snprintf(failed, sizeof failed, "%s: %s: %s: %s", section, call,
                 tandem_status_name(status), tandem_last_error());
    return false;
}
#define STEP(call) step((call), #call)

static bool equal(const float *values, uint32_t count, const char *what)
{
    char text[128];

    for (uint32_t i = 0; i < count; i++)
        if (!(fabsf(values[i] - want[i]) <=
              1e-4f * fmaxf(1.0f, fabsf(want[i])))) {
            snprintf(text, sizeof text, "%s: element %u is %g, not %g", what,
                     i, (double)values[i], (double)want[i]);
            return mistake(text);
        }
    return true;
}

static bool reads(struct tandem_tensor *tensor, uint32_t count,
                  const char *what)
{
    memset(got, 0xff, count * sizeof(float));
    return STEP(tandem_tensor_read(tensor, got, count * sizeof(float),
                                   WAIT_NS)) &&
           equal(got, count, what);
}

static bool made(int64_t count, struct tandem_tensor **out_tensor)
{
    return STEP(tandem_tensor_create(context, TANDEM_F32, 1, &count,
                                     out_tensor));
}

static bool synchronized(void)
{
    const bool known = untold[0] != '\0';
    const enum tandem_status status =
        tandem_context_synchronize(context, WAIT_NS);

    if (status == TANDEM_OK)
        return !known || mistake("what failed late is not told");
    STEP(status);
    if (untold[0] == '\0' || !strstr(tandem_last_error(), untold))
        return mistake(
            "tandem_context_synchronize tells what did not fail late");
    untold[0] = '\0';
    return false;
}

/* On the OpenCL device, or (anywhere) where the library wants. */
static bool run(uint32_t id, bool anywhere, struct tandem_tensor *from,
                struct tandem_tensor *to)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return anywhere ? STEP(tandem_run(context, &op, &from, 1, &to, 1))
                    : STEP(tandem_run_on(context, gpu, &op, &from, 1, &to, 1));
}

/* ---- sections ---- */

static bool chain(bool anywhere, uint32_t count)
{
    struct tandem_tensor *x = NULL, *y = NULL;
    bool held;

    for (uint32_t i = 0; i < count; i++) {
        in[i] = (float)(i % 1000) * 0.5f - 100.0f;
        want[i] = in[i] > 0 ? -in[i] : 0;
    }
    held = made(count, &x) && made(count, &y) &&
           STEP(tandem_tensor_write(x, in, count * sizeof(float))) &&
           run(TANDEM_OP_RELU, anywhere, x, y) &&
           run(TANDEM_OP_NEG, anywhere, y, y) && reads(y, count, "a chain");
    memcpy(want, in, count * sizeof(float));
    held = held && reads(x, count, "the source of a chain");
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return held;
}

static bool small(bool anywhere)
{
    return chain(anywhere, N);
}

static bool large(bool anywhere)
{
    return chain(anywhere, LARGE);
}

/* The caller's memory, which he writes too. */
static bool wrapped(bool anywhere)
{
    static _Alignas(4096) float memory[N], result[N];
    const int64_t shape = N;
    struct tandem_tensor *x = NULL, *y = NULL;
    bool held;

    for (uint32_t i = 0; i < N; i++)
        memory[i] = (float)i;
    held = STEP(tandem_tensor_wrap(context, memory, TANDEM_F32, 1, &shape,
                                   NULL, 0, &x)) &&
           STEP(tandem_tensor_wrap(context, result, TANDEM_F32, 1, &shape,
                                   NULL, 0, &y)) &&
           (anywhere || STEP(tandem_tensor_prefetch(x, gpu))) &&
           run(TANDEM_OP_ABS, anywhere, x, y);
    held = held && (synchronized() || synchronized());
    for (uint32_t i = 0; i < N; i++) {
        memory[i] = -(float)i - 1.0f;
        want[i] = (float)i + 1.0f;
    }
    held = held && STEP(tandem_tensor_host_written(x)) &&
           run(TANDEM_OP_ABS, anywhere, x, y) &&
           STEP(tandem_tensor_sync(y, WAIT_NS)) &&
           equal(result, N, "wrapped memory");
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return held;
}

static bool product(bool anywhere)
{
    static const int64_t shape[2] = {SIDE, SIDE};
    struct tandem_tensor *a = NULL, *c = NULL, *sum = NULL;
    struct tandem_matmul_options options = {
        .struct_size = sizeof options,
        .alpha = 1,
        .device = anywhere ? TANDEM_ANY_DEVICE : gpu};
    float total = -1;
    bool held;

    memset(in, 0, SIDE * SIDE * sizeof(float));
    for (uint32_t i = 0; i < SIDE; i++)
        in[i * SIDE + i] = (float)i;
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        want[i] = in[i] * in[i];
    held = STEP(tandem_tensor_create(context, TANDEM_F32, 2, shape, &a)) &&
           STEP(tandem_tensor_create(context, TANDEM_F32, 2, shape, &c)) &&
           STEP(tandem_tensor_create(context, TANDEM_F32, 0, NULL, &sum)) &&
           STEP(tandem_tensor_write(a, in, SIDE * SIDE * sizeof(float))) &&
           STEP(tandem_matmul(context, &options, a, a, c)) &&
           reads(c, SIDE * SIDE, "a product") &&
           STEP(tandem_reduce(context, TANDEM_OP_REDUCE_MAX, 3, c, sum));
    want[0] = (SIDE - 1) * (SIDE - 1);
    held = held &&
           STEP(tandem_tensor_read(sum, &total, sizeof total, WAIT_NS)) &&
           equal(&total, 1, "a maximum");
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(c);
    tandem_tensor_destroy(sum);
    return held;
}

/* All, on the device (if there is one) or anywhere; how many failed. */
static int work(bool anywhere)
{
    static const struct {
        const char *name;
        bool (*run)(bool anywhere);
    } sections[] = {{"small", small},
                    {"wrapped", wrapped},
                    {"product", product},
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
    const char *late = strstr(message, LATE);

    (void)user, (void)level;
    lost |= strstr(message, "is lost") != NULL;
    if (late && !untold[0])
        snprintf(untold, sizeof untold, "%s", late + strlen(LATE));
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
    untold[0] = '\0';
    context = NULL;
    found = false;
    if (!STEP(tandem_context_create(&options, &context)))
        return false;
    found = STEP(tandem_device_find(context, "opencl", &gpu));
    return true;
}

/* Everything takes ns nanoseconds on a device. */
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
    bool written = STEP(tandem_device_find(context, name, &device)) &&
                   STEP(tandem_profile_create(context, device, &profile));

    for (size_t i = 0; written && i < sizeof scalars / sizeof *scalars; i++)
        written = STEP(tandem_profile_set_scalar(profile, scalars[i], ns));
    for (size_t i = 0; written && i < sizeof curves / sizeof *curves; i++)
        written =
            STEP(tandem_profile_add_curve_point(profile, curves[i], 1, ns));
    written = written &&
              STEP(tandem_profile_add_gemm_point(profile, 1, 1, 1, ns)) &&
              STEP(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
    return written;
}

/* What may run anywhere belongs on the OpenCL device, while it works. */
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
    if (!begin() || !found || work(false) + work(true) != 0)
        sweep_report("a new context does not work afterwards");
    else if (!STEP(tandem_explain_last(context, &last)) || last.chosen != gpu)
        sweep_report("what may run anywhere was not run by OpenCL");
    tandem_context_destroy(context);
}

static void pass(void)
{
    begin();
    work(false);
    work(true);
    tandem_context_destroy(context);
}

static void one_case(const struct layer_script *script)
{
    struct sweep_state before;
    const struct timespec pause = {0, 5000000};

    failed[0] = wrong[0] = '\0';
    if (sweep_case() == 1)
        profiles_write();
    before = sweep_state_take();
    lost = false;
    plug.script_set(script);
    if (!begin())
        sweep_report("no context without OpenCL");
    if (work(false) + work(true) != 0 && script->nth == 0)
        sweep_report("the workload fails by itself");
    if (script->times > 1 && sweep_case() % 2 == 0) {
        tandem_context_destroy(context);
        context = NULL;
    }
    sweep_fault_ends();
    if (context && (work(true) != 0 || !(synchronized() || synchronized())))
        sweep_report("the context does not work afterwards");
    again();
    for (int i = 0; i < 12000 && sweep_queues_left(&before); i++) {
        nanosleep(&pause, NULL);
        pass();
    }
    /* What the library keeps for the next context is there by then. */
    if (script->nth != 0)
        sweep_state_check(&before, !lost);
    if (wrong[0])
        sweep_report("what must never be");
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "host-faults",
                                                 .one_case = one_case,
                                                 .pass = pass,
                                                 .details = details,
                                                 .once = 25,
                                                 .ever = 20,
                                                 .later = 12,
                                                 .lazy = 6};

    setenv("TANDEM_BACKENDS", "cpu,opencl", 1);
    heap_watch(dlsym(RTLD_DEFAULT, "tandem_version"));
    return sweep_main(argc, argv, &subject);
}
