/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtandem with the OpenCL plugin and the CPU plugin while OpenCL calls fail:
 * each call of a program succeeds or reports its failure, all data is correct,
 * operators that may run on any device succeed at once if the device is lost,
 * everything works afterwards, and nothing is left after the context is
 * destroyed. See fault_sweep.h for the arguments.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_sweep.h"
#include "heap_tracking.h"
#include "host_workload.h"

#define WAIT_NS UINT64_C(120000000000)
/* The prefix of an asynchronous error in the log. */
#define ASYNC_ERROR_PREFIX "earlier work failed: "

static struct host_workload work;
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

/* ---- what calls return ---- */

void host_violation(const char *what)
{
    if (!wrong[0])
        snprintf(wrong, sizeof wrong, "%s (%s)", what, tandem_last_error());
}

bool host_call_succeeded(enum tandem_status status, const char *call,
                         int attempt, bool *out_again)
{
    (void)attempt;
    *out_again = false;
    if (status == TANDEM_OK)
        return true;
    if (status > TANDEM_FAILED || tandem_last_error()[0] == '\0')
        host_violation(call);
    if (!failed[0])
        snprintf(failed, sizeof failed, "%s: %s: %s", call,
                 tandem_status_name(status), tandem_last_error());
    return false;
}

void host_call_begin(void)
{
}

void host_call_end(void)
{
}

bool host_synchronize(struct host_workload *of)
{
    const bool known = pending_error[0] != '\0';
    const enum tandem_status status =
        tandem_context_synchronize(of->context, WAIT_NS);

    if (status == TANDEM_OK) {
        if (known)
            host_violation("an asynchronous error was not reported");
        return !known;
    }
    /* The wait itself may have logged the error. */
    if (!pending_error[0] || !strstr(tandem_last_error(), pending_error))
        host_violation(
            "tandem_context_synchronize reports an error that did not occur");
    pending_error[0] = '\0';
    return false;
}

/*
 * Runs all sections on the device (if there is one) or anywhere. Returns the
 * number of failed ones.
 */
static uint32_t sections_run(bool anywhere)
{
    work.device = anywhere ? TANDEM_ANY_DEVICE : gpu;
    return anywhere || found ? host_sections_run(&work, LARGE_ELEMENTS) : 0;
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

    pending_error[0] = '\0';
    work.context = NULL;
    found = false;
    if (!HOST_TRY(tandem_context_create(&options, &work.context)))
        return false;
    found = HOST_TRY(tandem_device_find(work.context, "opencl", &gpu));
    return HOST_TRY(tandem_device_find(work.context, "cpu", &work.cpu));
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
    bool written =
        HOST_TRY(tandem_device_find(work.context, name, &device)) &&
        HOST_TRY(tandem_profile_create(work.context, device, &profile));

    for (size_t i = 0; written && i < sizeof scalars / sizeof *scalars; i++)
        written = HOST_TRY(tandem_profile_set_scalar(profile, scalars[i], ns));
    for (size_t i = 0; written && i < sizeof curves / sizeof *curves; i++)
        written =
            HOST_TRY(tandem_profile_add_curve_point(profile, curves[i], 1, ns));
    written = written &&
              HOST_TRY(tandem_profile_add_gemm_point(profile, 1, 1, 1, ns)) &&
              HOST_TRY(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
    return written;
}

/* With these profiles the library selects the OpenCL device while it works. */
static void profiles_write(void)
{
    if (!begin() || !profile_write("opencl", 1) || !profile_write("cpu", 1e9))
        sweep_report("no profiles");
    tandem_context_destroy(work.context);
}

static void again(void)
{
    struct tandem_explanation last = {.struct_size = sizeof last};

    tandem_context_destroy(work.context);
    failed[0] = '\0';
    if (!begin() || !found || sections_run(false) + sections_run(true) != 0)
        sweep_report("a new context does not work afterwards");
    else if (!HOST_TRY(tandem_explain_last(work.context, &last)) ||
             last.chosen != gpu)
        sweep_report("what may run anywhere was not run by OpenCL");
    tandem_context_destroy(work.context);
}

static const char *part_select(uint64_t part, uint64_t *out_group)
{
    *out_group = part;
    return part == 0 ? "program" : NULL;
}

static void pass(const struct layer_script *script)
{
    if (script)
        plug.script_set(script);
    begin();
    sections_run(false);
    sections_run(true);
    tandem_context_destroy(work.context);
}

static void device_open(void)
{
    pass(NULL);
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
        tandem_context_destroy(work.context);
        work.context = NULL;
    }
    sweep_fault_ends();
    if (work.context && (sections_run(true) != 0 ||
                         !(host_synchronize(&work) || host_synchronize(&work))))
        sweep_report("the context does not work afterwards");
    again();
    sweep_queues_wait(&before, device_open);
    /* By then, the library has created what it caches for later contexts. */
    if (script->nth != 0)
        sweep_state_check(&before, !device_lost);
    if (wrong[0])
        sweep_report("what must never be");
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "host-faults",
                                                 .part_select = part_select,
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
