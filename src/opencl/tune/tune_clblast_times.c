/* SPDX-License-Identifier: Apache-2.0 */
/* Times CLBlast GEMMs for the cost model; see tune.h. */
#include <string.h>

#include "common/decimal.h"
#include "opencl/launch/clblast.h"
#include "opencl/tune/tune.h"

struct shape {
    int64_t m, n, k;
};

/* Square and other GEMMs. Each of these groups is sorted by cost. */
static const struct shape shapes[] = {
    {64, 64, 64},       {128, 128, 128},    {256, 256, 256},
    {512, 512, 512},    {1024, 1024, 1024}, {2048, 2048, 2048},
    {4096, 4096, 4096}, {1, 1024, 1024},    {1024, 1, 1024},
    {64, 64, 4096},     {16, 4096, 1024},   {1024, 1024, 16},
    {16, 4096, 4096},   {4096, 16, 4096},   {256, 256, 4096},
    {4096, 4096, 64},   {1024, 4096, 1024},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static double shape_work(const struct shape *shape)
{
    return (double)shape->m * (double)shape->n * (double)shape->k;
}

/* Appends the time of one shape to `text`, in the format of gemm_cost_model.h.
 * Appends nothing if `text` is too small. */
static void time_append(char *text, size_t bytes, const struct shape *shape,
                        double ns)
{
    const double values[4] = {(double)shape->m, (double)shape->n,
                              (double)shape->k, ns};
    size_t before = strlen(text);
    for (uint32_t i = 0; i < 4; i++) {
        if (strlen(text) + 3 > bytes)
            return;
        if (i > 0 || before > 0)
            strcat(text, i > 0 ? " " : "; ");
        if (!decimal_append_double(text, bytes, values[i])) {
            text[before] = '\0';
            return;
        }
    }
}

static enum tandem_status clblast_launch(struct kernel_timer *timer, void *gemm)
{
    return clblast_gemm_launch(timer->stream, gemm);
}

enum tandem_status tune_clblast_times(struct kernel_timer *timer,
                                      const struct tuning_results_sink *sink)
{
    char text[2048] = "";
    /* Time per multiply-add of the last timed shape, which predicts the time of
     * the next shape. Each shape is launched at least five times, so a shape is
     * skipped if one launch would take an eighth of the remaining time. */
    double ns_per_work = 0;
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < SHAPES && tuning_can_continue(status); i++) {
        const struct shape *shape = &shapes[i];
        double remaining_ns = (double)kernel_timer_remaining_ns(timer);
        struct timed_gemm timed;
        double ns;
        timed_gemm_init(&timed, timer, shape->m, shape->n, shape->k, 1);
        timed.gemm.flags = 0;
        timed.gemm.b.ld = shape->n;
        if (timed.bytes > timer->bytes || remaining_ns == 0 ||
            ns_per_work * shape_work(shape) > remaining_ns / 8)
            continue;
        status = kernel_timer_measure(timer, clblast_launch, &timed.gemm, &ns);
        if (status != TANDEM_OK)
            continue;
        ns_per_work = ns / shape_work(shape);
        time_append(text, sizeof(text), shape, ns);
    }
    if (text[0] != '\0')
        sink->callback(sink->user, "gemm.clblast", text);
    return tuning_can_continue(status) ? TANDEM_OK : status;
}
