/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the kernels of a calibration in several processes at once, since
 * most drivers compile one program at a time in a process.  The driver or the
 * plugin caches the programs on disk.  Kernels that are missing are compiled at
 * their first launch.
 */
#include <config.h>

#include "kernel_list.h"
#include "calibration_run.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPERS 8u

/* Kernels that take long to compile come first; the processes take them in
 * turn. Kernels of add and of the smallest GEMM are missing, because the
 * calibration measures with them how long a compilation takes. */
static const struct {
    const char *op, *shape;
    enum kernel_form form;
} kernels[] = {
    {"gemm", "2048x2048x2048", KERNEL_PLAIN},
    {"gemm", "2048x2048x2048", KERNEL_TRANSPOSED},
    {"gemm", "512x2048x512", KERNEL_PLAIN},
    {"gemm", "512x512x512", KERNEL_TRANSPOSED},
    {"gemm", "1024x1024x1024", KERNEL_TRANSPOSED},
    {"gemm", "16x2048x2048", KERNEL_TRANSPOSED},
    {"gemm", "8x2048x2048", KERNEL_TRANSPOSED},
    {"gemm", "4x2048x2048", KERNEL_TRANSPOSED},
    {"gemm", "1x2048x2048", KERNEL_TRANSPOSED},
    {"gemm", "16x2048x2048", KERNEL_PLAIN},
    {"gemm", "8x2048x2048", KERNEL_PLAIN},
    {"gemm", "4x2048x2048", KERNEL_PLAIN},
    {"gemm", "1x2048x2048", KERNEL_PLAIN},
    {"gemm", "1x512x2048", KERNEL_PLAIN},
    {"gemm", "2048x8x2048", KERNEL_PLAIN},
    {"gemm", "32x2048x2048", KERNEL_PLAIN},
    {"gemm", "2048x32x2048", KERNEL_PLAIN},
    {"gemm", "8x8x2048", KERNEL_PLAIN},
    {"gemm", "32x32x2048", KERNEL_PLAIN},
    {"gemm", "512x512x512", KERNEL_PLAIN},
    {"gemm", "128x512x512", KERNEL_PLAIN},
    {"gemm", "128x128x128", KERNEL_TRANSPOSED},
    {"softmax", "65536x1024", KERNEL_PLAIN},
    {"softmax", "16x64", KERNEL_PLAIN},
    {"layer_norm", "65536x1024", KERNEL_PLAIN},
    {"layer_norm", "16x64", KERNEL_PLAIN},
    {"reduce_sum", "65536x1024", KERNEL_PLAIN},
    {"gemm", "128x128x2048", KERNEL_PLAIN},
    {"adam", "65536", KERNEL_PLAIN},
    {"reduce_sum", "16x64", KERNEL_PLAIN},
    {"gelu", "65536", KERNEL_PLAIN},
    {"exp", "65536", KERNEL_PLAIN},
    {"transpose", "1024x1024", KERNEL_PLAIN},
    {"gather", "1024x64", KERNEL_PLAIN},
};
#define KERNELS (sizeof kernels / sizeof kernels[0])

static uint32_t helpers_wanted(void)
{
    cpu_set_t set;
    uint32_t count = 1;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        count = (uint32_t)CPU_COUNT(&set);
    return count < HELPERS ? count : HELPERS;
}

/* Compiles CLBlast's GEMM, in the last process. */
static void clblast_build(struct device_session *session)
{
    struct kernel_list list;

    kernels_start(&list, session);
    if (kernels_add(&list, "gemm", "256x256x256", KERNEL_PLAIN))
        kernels_await(&list, NULL, NULL);
    kernels_finish(&list);
}

/* Compiles every count-th kernel, beginning with kernel nth. */
static void share_build(struct device_session *session, uint32_t nth,
                        uint32_t count)
{
    struct kernel_list list;
    bool kept = true;

    kernels_start(&list, session);
    for (size_t i = nth; i < KERNELS && kept; i += count)
        kept = kernels_add(&list, kernels[i].op, kernels[i].shape,
                           kernels[i].form);
    if (kept)
        kernels_await(&list, NULL, NULL);
    kernels_finish(&list);
}

/* Ignores errors, because the measurement will meet and report them. */
_Noreturn static void helper_main(const struct device_job_request *request,
                                  uint32_t nth, uint32_t count)
{
    struct probe_options options = *request->options;
    struct tandem_context *context;
    struct device_session session = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.verbose = false;
    options.clblast = nth == count;
    if (probe_context(&options, request->backend, &context) == TANDEM_OK &&
        device_session_open(&session, context, request->device) == TANDEM_OK &&
        (session.info.caps & TANDEM_CAP_JIT_COMPILATION) != 0) {
        if (nth == count)
            clblast_build(&session);
        else
            share_build(&session, nth, count);
        device_session_close(&session);
    }
    _exit(0);
}

bool kernels_precompile(const struct device_job_request *request,
                        struct child_link *link)
{
    const uint32_t count = helpers_wanted();
    pid_t helpers[HELPERS + 1];

    /* CPU devices compile with several threads already. */
    if (count < 2 || request->processor)
        return false;
    child_progress(link, 0, "compiling");
    for (uint32_t i = 0; i <= count; i++) {
        helpers[i] = fork();
        if (helpers[i] == 0)
            helper_main(request, i, count);
    }
    for (uint32_t i = 0; i <= count; i++)
        if (helpers[i] > 0)
            waitpid(helpers[i], NULL, 0);
    return true;
}
