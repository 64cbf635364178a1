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
#include "representative_op.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPERS 8u

/* GEMMs in the order of compile times, longest first; the processes take them
 * in turn, and then the representative operators. Kernels of add and of the
 * smallest GEMM are missing, because the calibration measures with them how
 * long a compilation takes. */
static const struct {
    const char *shape;
    enum kernel_form form;
} gemms[] = {
    {"2048x2048x2048", KERNEL_PLAIN},
    {"2048x2048x2048", KERNEL_TRANSPOSED},
    {"512x2048x512", KERNEL_PLAIN},
    {"512x512x512", KERNEL_TRANSPOSED},
    {"1024x1024x1024", KERNEL_TRANSPOSED},
    {"16x2048x2048", KERNEL_TRANSPOSED},
    {"8x2048x2048", KERNEL_TRANSPOSED},
    {"4x2048x2048", KERNEL_TRANSPOSED},
    {"1x2048x2048", KERNEL_TRANSPOSED},
    {"16x2048x2048", KERNEL_PLAIN},
    {"8x2048x2048", KERNEL_PLAIN},
    {"4x2048x2048", KERNEL_PLAIN},
    {"1x2048x2048", KERNEL_PLAIN},
    {"1x512x2048", KERNEL_PLAIN},
    {"2048x8x2048", KERNEL_PLAIN},
    {"32x2048x2048", KERNEL_PLAIN},
    {"2048x32x2048", KERNEL_PLAIN},
    {"8x8x2048", KERNEL_PLAIN},
    {"32x32x2048", KERNEL_PLAIN},
    {"512x512x512", KERNEL_PLAIN},
    {"128x512x512", KERNEL_PLAIN},
    {"128x128x128", KERNEL_TRANSPOSED},
    {"128x128x2048", KERNEL_PLAIN},
};
#define GEMMS (sizeof gemms / sizeof gemms[0])

/* Sizes, in elements, of the representative operators. */
static const int64_t sizes[] = {SAMPLE_LAST, 1 << 10};
#define SIZES (sizeof sizes / sizeof sizes[0])

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
    kernels_add(&list, "gemm", "256x256x256", KERNEL_PLAIN);
    kernels_await(&list, NULL, NULL);
    kernels_finish(&list);
}

/* Adds representative operator number `i`. */
static void representative_add(struct kernel_list *list, size_t i)
{
    struct representative_op representative = {.cost_class =
                                                   (uint32_t)(i / SIZES)};
    int64_t shape[3];
    uint32_t rank;
    char text[SHAPE_TEXT_BYTES];

    representative_op_next(&representative);
    if (representative.cost_class == TANDEM_COST_ELEMENTWISE ||
        representative.cost_class == TANDEM_COST_GEMM)
        return;
    rank = representative_op_shape(&representative, sizes[i % SIZES], shape);
    kernels_add(list, representative.info->name, shape_text(text, rank, shape),
                KERNEL_PLAIN);
}

/* Compiles every count-th kernel, beginning with kernel nth. */
static void share_build(struct device_session *session, uint32_t nth,
                        uint32_t count)
{
    struct kernel_list list;

    kernels_start(&list, session);
    for (size_t i = nth; i < GEMMS + SIZES * TANDEM_COST_CLASS_COUNT;
         i += count)
        if (i < GEMMS)
            kernels_add(&list, "gemm", gemms[i].shape, gemms[i].form);
        else
            representative_add(&list, i - GEMMS);
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
