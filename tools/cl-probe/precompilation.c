/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the kernels of a calibration before the measurement begins.  The
 * plugin compiles several at once, if the driver does not.  CLBlast compiles
 * its kernels in this process, so another process starts to do so earlier: the
 * driver caches what it compiles on disk.  Kernels that are missing are
 * compiled at their first launch.
 */
#include <config.h>

#include "kernel_list.h"
#include "calibration_timing.h"
#include "representative_op.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* GEMMs in the order of compile times, longest first, so that the last ones do
 * not keep one process busy while the others have nothing to do.  Kernels of
 * add and of the smallest GEMM are missing, because the calibration measures
 * with them how long a compilation takes. */
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

/* Opens the job's device in this process.  Returns false if the device compiles
 * no kernels or cannot be opened: the measurement will report the error. */
static bool session_open(const struct device_job_request *request, bool clblast,
                         struct tandem_context **out_context,
                         struct device_session *out_session)
{
    struct probe_options options = *request->options;

    memset(out_session, 0, sizeof *out_session);
    options.verbose = false;
    options.clblast = clblast;
    if (probe_context(&options, request->backend, out_context) != TANDEM_OK)
        return false;
    if (device_session_open(out_session, *out_context, request->device) ==
            TANDEM_OK &&
        (out_session->info.caps & TANDEM_CAP_JIT_COMPILATION) != 0)
        return true;
    device_session_close(out_session);
    tandem_context_destroy(*out_context);
    return false;
}

/* Lets CLBlast compile its kernels. */
_Noreturn static void clblast_main(const struct device_job_request *request)
{
    struct tandem_context *context;
    struct device_session session;
    struct kernel_list list;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (session_open(request, true, &context, &session)) {
        kernels_start(&list, &session);
        kernels_add(&list, "gemm", "256x256x256", KERNEL_PLAIN);
        kernels_await(&list, NULL, NULL);
        kernels_finish(&list);
        device_session_close(&session);
    }
    _exit(0);
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

/* Compiles all kernels except CLBlast's. */
static void kernels_build(struct device_session *session)
{
    struct kernel_list list;

    kernels_start(&list, session);
    for (size_t i = 0; i < GEMMS; i++)
        kernels_add(&list, "gemm", gemms[i].shape, gemms[i].form);
    for (size_t i = 0; i < SIZES * TANDEM_COST_CLASS_COUNT; i++)
        representative_add(&list, i);
    kernels_await(&list, NULL, NULL);
    kernels_finish(&list);
}

bool kernels_precompile(const struct device_job_request *request,
                        struct child_link *link)
{
    struct tandem_context *context;
    struct device_session session;
    bool compiled;
    pid_t clblast;

    /* CPU devices compile with several threads already. */
    if (request->processor)
        return false;
    clblast = fork();
    if (clblast == 0)
        clblast_main(request);
    child_progress(link, 0, "opening");
    compiled = session_open(request, false, &context, &session);
    child_progress(link, 0, "compiling");
    if (compiled) {
        kernels_build(&session);
        device_session_close(&session);
        tandem_context_destroy(context);
    }
    if (clblast > 0)
        waitpid(clblast, NULL, 0);
    return compiled;
}
