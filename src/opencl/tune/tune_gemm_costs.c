/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost model of our GEMM kernels; see tune.h. Each kernel is timed
 * with one work-group per compute unit and with many, each at two depths of k.
 * The differences give the costs per unit of k; the rest is the start time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "opencl/device/device.h"
#include "common/decimal.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/tune/tune.h"

/* Depths of k at which a kernel is timed. */
#define SHALLOW 256
#define DEEP 1024
#define CPU_SHALLOW 64
#define CPU_DEEP 256
/* "Many" work-groups fill each compute unit this often. */
#define FULL_ROUNDS 2u
/* A GEMM must take this factor longer than the host needs to enqueue it;
 * otherwise the measured time is the host's. */
#define MIN_HOST_FACTOR 1.5
/* GEMV, which is bound by memory, needs more work: rows of the matrix per
 * compute unit, the depths for so many rows, and elements per work-group if
 * each compute unit has one work-group. */
#define GEMV_ROWS 192u
#define GEMV_SHALLOW 512
#define GEMV_DEEP 1536
#define GEMV_GROUP_SHALLOW 65536u
#define GEMV_GROUP_DEEP 262144u
#define COPY_BYTES (UINT64_C(64) << 20)
/* The smallest cost per unit of k that a profile may contain. */
#define MIN_STEP_NS 1e-3

/* ---- a GEMM in the timer's memory ---- */

static uint64_t matrix_bytes(int64_t rows, int64_t columns, int64_t batch)
{
    uint64_t bytes = (uint64_t)(rows * columns * batch) * sizeof(float);
    return (bytes + 255) / 256 * 256;
}

/* Places c at the end of the memory, where it overwrites hardly any operands of
 * other measurements. Scales the result so that no element of c is larger than
 * an operand's: otherwise, later GEMMs could overflow, which some kernels
 * handle by recomputing tiles. */
void timed_gemm_init(struct timed_gemm *out, const struct kernel_timer *timer,
                     int64_t m, int64_t n, int64_t k, int64_t batch)
{
    uint64_t a = matrix_bytes(m, k, batch), b = matrix_bytes(k, n, batch);
    uint64_t c = matrix_bytes(m, n, batch);
    memset(out, 0, sizeof(*out));
    out->bytes = a + b + c;
    out->a_bytes = a;
    out->b_bytes = b;
    out->copies = 1;
    out->gemm = (struct tandem_gemm){
        .struct_size = sizeof(out->gemm),
        .dtype = TANDEM_F32,
        .flags = TANDEM_GEMM_TRANSPOSE_B,
        .m = m,
        .n = n,
        .k = k,
        .batch = batch,
        .alpha = 1 / (float)k,
        .a = {timer->memory, 0, k, m * k},
        .b = {timer->memory, a, k, k * n},
        .c = {timer->memory, timer->bytes / 256 * 256 - c, n, m * n}};
}

static void use_mn_major_b(struct timed_gemm *timed)
{
    timed->gemm.flags &= ~(uint32_t)TANDEM_GEMM_TRANSPOSE_B;
    timed->gemm.b.ld = timed->gemm.n;
}

enum tandem_status gemm_kernel_launch(struct kernel_timer *timer,
                                      const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id kernel)
{
    struct launch_plan plan;
    enum tandem_status status;
    do {
        plan_gemm(&plan, gemm, kernel, NO_SPLIT, NULL,
                  timer->device->programs.group_log2);
        status = launch_plan(timer->stream, &plan);
    } while (status == TANDEM_NOT_READY &&
             kernel_timer_remaining_ns(timer) > 0);
    return status;
}

static enum tandem_status timed_gemm_launch(struct kernel_timer *timer,
                                            void *argument)
{
    struct timed_gemm *timed = argument;
    if (timed->copies > 1)
        timed->gemm.b.byte_offset =
            timed->a_bytes + timed->launches++ % timed->copies * timed->b_bytes;
    return gemm_kernel_launch(timer, &timed->gemm, timed->kernel);
}

static enum tandem_status timed_gemm_measure(struct kernel_timer *timer,
                                             struct timed_gemm *timed,
                                             double *out_ns)
{
    if (timed->bytes > timer->bytes)
        return last_error_set(TANDEM_OUT_OF_MEMORY,
                              "tune: a GEMM needs %llu bytes; the scratch "
                              "memory has %llu",
                              (unsigned long long)timed->bytes,
                              (unsigned long long)timer->bytes);
    return kernel_timer_measure(timer, timed_gemm_launch, timed, out_ns);
}

/* Reports gemm.PREFIX NAME as a list of numbers, unless one is too large. */
static void costs_report(const struct tuning_results_sink *sink,
                         const char *prefix, const char *name,
                         const double *values, uint32_t count)
{
    char key[64], text[128] = "";
    snprintf(key, sizeof(key), "gemm.%s%s", prefix, name);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            strcat(text, " ");
        if (!decimal_append_double(text, sizeof(text) - 1, values[i]))
            return;
    }
    sink->callback(sink->user, key, text);
}

/* ---- launches, copies ---- */

/* Finds a grid of at most `groups` work-groups, as square as possible. Prefers
 * exactly `groups` if no side is more than four times the other. */
static void grid_make(uint32_t groups, uint32_t *out_rows,
                      uint32_t *out_columns)
{
    uint32_t rows = (uint32_t)sqrt((double)groups);
    *out_rows = rows;
    *out_columns = groups / rows;
    for (; rows * rows * 4 > groups && rows > 0; rows--)
        if (groups % rows == 0) {
            *out_rows = rows;
            *out_columns = groups / rows;
            return;
        }
}

static enum tandem_status pair_launch(struct kernel_timer *timer,
                                      void *argument)
{
    struct timed_gemm *pair = argument;
    enum tandem_status status = timed_gemm_launch(timer, &pair[0]);
    return status == TANDEM_OK ? timed_gemm_launch(timer, &pair[1]) : status;
}

/* Costs that are subtracted from the time of a GEMM, and the time that the host
 * needs to enqueue a kernel. */
struct common_costs {
    double launch_ns, bytes_per_ns, host_ns;
};

/* Measures what a small kernel adds after a longer one, which hides the host's
 * part, and the host's part alone. */
static enum tandem_status tune_launch(struct kernel_timer *timer,
                                      const struct tuning_results_sink *sink,
                                      struct common_costs *out)
{
    struct timed_gemm pair[2];
    uint32_t rows, columns;
    double alone_ns, both_ns;
    bool cpu = timer->device->hardware->info.kind == TANDEM_DEVICE_CPU;
    grid_make(timer->device->gemm_selector.compute_units, &rows, &columns);
    timed_gemm_init(&pair[0], timer,
                    (int64_t)rows * gemm_configs[GEMM_SIMT_32X64].tile_m,
                    (int64_t)columns * gemm_configs[GEMM_SIMT_32X64].tile_n,
                    cpu ? CPU_DEEP : DEEP, 1);
    timed_gemm_init(&pair[1], timer, 16, 16, 16, 1);
    pair[0].kernel = pair[1].kernel = GEMM_SIMT_32X64;
    enum tandem_status status = timed_gemm_measure(timer, &pair[0], &alone_ns);
    if (status == TANDEM_OK)
        status = kernel_timer_measure(timer, pair_launch, pair, &both_ns);
    if (status == TANDEM_OK)
        status = timed_gemm_measure(timer, &pair[1], &out->host_ns);
    if (status != TANDEM_OK)
        return status;
    out->launch_ns = fmax(both_ns - alone_ns, 1);
    costs_report(sink, "launch_ns", "", &out->launch_ns, 1);
    return TANDEM_OK;
}

static enum tandem_status copy_launch(struct kernel_timer *timer, void *bytes)
{
    uint64_t half = *(const uint64_t *)bytes;
    return buffer_copy(timer->stream, timer->memory, half, timer->memory, 0,
                       half);
}

static enum tandem_status tune_bytes(struct kernel_timer *timer,
                                     const struct tuning_results_sink *sink,
                                     double *out_bytes_per_ns)
{
    uint64_t half =
        timer->bytes / 2 < COPY_BYTES ? timer->bytes / 2 : COPY_BYTES;
    double ns;
    enum tandem_status status =
        kernel_timer_measure(timer, copy_launch, &half, &ns);
    if (status != TANDEM_OK)
        return status;
    *out_bytes_per_ns = 2.0 * (double)half / ns;
    costs_report(sink, "copy_bytes_per_ns", "", out_bytes_per_ns, 1);
    return TANDEM_OK;
}

/* ---- kernels ---- */

/* What is measured of a kernel. For GEMV, the matrix is K-major or MN-major. */
struct kernel_case {
    enum gemm_kernel_id id;
    bool gemv, mn_major, cpu;
    uint32_t rows_per_group; /* of the GEMV matrix; 1 for other kernels */
    const struct common_costs *common;
};

static struct kernel_case kernel_case_make(const struct kernel_timer *timer,
                                           enum gemm_kernel_id id,
                                           bool mn_major,
                                           const struct common_costs *common)
{
    const struct tandem_gemm gemm = {
        .m = 1,
        .n = 2,
        .k = 1,
        .batch = 1,
        .flags = mn_major ? 0 : TANDEM_GEMM_TRANSPOSE_B};
    return (struct kernel_case){
        .id = id,
        .gemv = gemm_configs[id].gemv_vectors != 0,
        .mn_major = mn_major,
        .cpu = timer->device->hardware->info.kind == TANDEM_DEVICE_CPU,
        .rows_per_group = gemm_kernel_cost_units(&gemm, id),
        .common = common};
}

static double packing_ns(const struct tandem_gemm *gemm,
                         const struct kernel_case *kernel,
                         uint32_t *out_launches)
{
    double bytes = (double)packing_bytes(
        gemm, kernel->id, gemm_packed_operands(gemm, kernel->id), out_launches);
    return *out_launches * kernel->common->launch_ns +
           bytes / kernel->common->bytes_per_ns;
}

/* Returns true if a second kernel recomputes tiles with non-finite results. */
static bool has_recompute_launch(enum gemm_kernel_id kernel)
{
    return gemm_configs[kernel].is_3xtf32 ||
           gemm_configs[kernel].mma_format == MMA_FP16X3;
}

/* Makes a GEMM that the kernel computes with `groups` work-groups. */
static void case_gemm_init(struct timed_gemm *out,
                           const struct kernel_timer *timer,
                           const struct kernel_case *kernel, uint32_t groups,
                           int64_t depth)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel->id];
    uint32_t rows, columns;
    grid_make(groups, &rows, &columns);
    if (kernel->gemv)
        timed_gemm_init(out, timer, config->gemv_vectors,
                        (int64_t)groups * kernel->rows_per_group, depth, 1);
    else
        timed_gemm_init(out, timer, (int64_t)rows * config->tile_m,
                        (int64_t)columns * config->tile_n, depth, 1);
    out->kernel = kernel->id;
    out->gemm.flags |=
        TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    if (config->mma_format == MMA_16BIT)
        out->gemm.dtype = TANDEM_F16;
    if (kernel->mn_major)
        use_mn_major_b(out);
    /* GEMV must read its matrix from memory, not from a cache. */
    if (kernel->gemv && !kernel->cpu && out->bytes < timer->bytes)
        out->copies += (uint32_t)((timer->bytes - out->bytes) / out->b_bytes);
}

static bool case_fits(const struct kernel_timer *timer,
                      const struct kernel_case *kernel, uint32_t groups,
                      int64_t depth)
{
    struct timed_gemm timed;
    case_gemm_init(&timed, timer, kernel, groups, depth);
    return timed.bytes <= timer->bytes;
}

/* Doubles both depths until the GEMM takes longer than the host needs to
 * enqueue it, or until the memory is full. Returns TANDEM_FAILED if the time
 * is used up before, because the result would be the host's time. */
static enum tandem_status depths_raise(struct kernel_timer *timer,
                                       const struct kernel_case *kernel,
                                       uint32_t groups, int64_t depths[2])
{
    for (;;) {
        struct timed_gemm timed;
        uint32_t launches;
        double ns;
        case_gemm_init(&timed, timer, kernel, groups, depths[0]);
        packing_ns(&timed.gemm, kernel, &launches);
        launches += 1 + has_recompute_launch(kernel->id);
        enum tandem_status status = timed_gemm_measure(timer, &timed, &ns);
        if (status != TANDEM_OK ||
            ns >= MIN_HOST_FACTOR * launches * kernel->common->host_ns)
            return status;
        if (kernel_timer_remaining_ns(timer) == 0)
            return last_error_set(TANDEM_FAILED,
                                  "tune: the time budget is used up");
        /* A trial launch, because packed operands take memory, too. */
        case_gemm_init(&timed, timer, kernel, groups, 2 * depths[1]);
        if (timed_gemm_measure(timer, &timed, &ns) != TANDEM_OK)
            return TANDEM_OK;
        depths[0] *= 2;
        depths[1] *= 2;
    }
}

/* Measures the time at the first depth and the time per unit of k. May increase
 * the depths. */
static enum tandem_status groups_measure(struct kernel_timer *timer,
                                         const struct kernel_case *kernel,
                                         uint32_t groups, int64_t depths[2],
                                         double *out_ns, double *out_ns_per_k)
{
    struct timed_gemm timed;
    uint32_t launches;
    double ns[2] = {0, 0};
    enum tandem_status status = TANDEM_OK;
    if (!kernel->gemv)
        status = depths_raise(timer, kernel, groups, depths);
    for (uint32_t i = 0; i < 2 && status == TANDEM_OK; i++) {
        case_gemm_init(&timed, timer, kernel, groups, depths[i]);
        status = timed_gemm_measure(timer, &timed, &ns[i]);
        ns[i] -= packing_ns(&timed.gemm, kernel, &launches);
    }
    if (status != TANDEM_OK)
        return status;
    *out_ns = ns[0];
    *out_ns_per_k =
        fmax((ns[1] - ns[0]) / (double)(depths[1] - depths[0]), MIN_STEP_NS);
    return TANDEM_OK;
}

/* Chooses the depths of k for few or for many work-groups. */
static void depths_init(const struct kernel_timer *timer,
                        const struct kernel_case *kernel, bool many,
                        int64_t out[2])
{
    uint32_t units = timer->device->gemm_selector.compute_units;
    out[0] = kernel->cpu ? CPU_SHALLOW : SHALLOW;
    out[1] = kernel->cpu ? CPU_DEEP : DEEP;
    if (!kernel->gemv || kernel->cpu)
        return;
    out[0] = many ? GEMV_SHALLOW : GEMV_GROUP_SHALLOW / kernel->rows_per_group;
    out[1] = many ? GEMV_DEEP : GEMV_GROUP_DEEP / kernel->rows_per_group;
    for (;
         !many && out[0] > SHALLOW && !case_fits(timer, kernel, units, out[1]);
         out[0] /= 2)
        out[1] /= 2;
}

static enum tandem_status tune_kernel(struct kernel_timer *timer,
                                      enum gemm_kernel_id id, bool mn_major,
                                      const struct common_costs *common,
                                      const struct tuning_results_sink *sink)
{
    const struct kernel_case kernel =
        kernel_case_make(timer, id, mn_major, common);
    int64_t depths[2], many_depths[2];
    double first_ns, many_ns, many_ns_per_k;
    struct gemm_kernel_cost cost;
    uint32_t rows = kernel.rows_per_group;
    uint32_t units = timer->device->gemm_selector.compute_units, few = units;
    uint32_t rounds = FULL_ROUNDS * gemm_configs[id].groups_per_compute_unit;
    if (kernel.gemv && !kernel.cpu) {
        rounds = GEMV_ROWS / rows;
        /* Half of the compute units are not yet limited by memory. */
        few = (units + 1) / 2;
    }
    depths_init(timer, &kernel, false, depths);
    depths_init(timer, &kernel, true, many_depths);
    while (rounds > 1 &&
           !case_fits(timer, &kernel, units * rounds, many_depths[1]))
        rounds--;
    enum tandem_status status = groups_measure(timer, &kernel, few, depths,
                                               &first_ns, &cost.latency_ns);
    if (status == TANDEM_OK)
        status = groups_measure(timer, &kernel, units * rounds, many_depths,
                                &many_ns, &many_ns_per_k);
    if (status != TANDEM_OK)
        return status;
    cost.start_ns = first_ns - cost.latency_ns * (double)depths[0];
    if (has_recompute_launch(id))
        cost.start_ns -= common->launch_ns;
    const double values[3] = {
        fmax(cost.start_ns, 0), fmax(cost.latency_ns / rows, MIN_STEP_NS),
        fmax(many_ns_per_k / (rounds * rows), MIN_STEP_NS)};
    costs_report(sink,
                 mn_major && id != GEMV_1_MN_MAJOR ? "kernel_mn_major."
                                                   : "kernel.",
                 gemm_configs[id].name, values, 3);
    return TANDEM_OK;
}

static bool is_enabled(uint64_t disabled, uint32_t kernel)
{
    return (disabled >> kernel & 1u) == 0;
}

/* Measures GEMV with an MN-major matrix. Runs last, because the cost model can
 * derive these costs from the K-major ones. */
static enum tandem_status
tune_gemv_mn_major(struct kernel_timer *timer, uint64_t disabled,
                   const struct common_costs *common,
                   const struct tuning_results_sink *sink)
{
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT && tuning_can_continue(status);
         i++)
        if (gemm_configs[i].gemv_vectors != 0 && i != GEMV_1_MN_MAJOR &&
            is_enabled(disabled, i) && kernel_timer_remaining_ns(timer) > 0)
            status =
                tune_kernel(timer, (enum gemm_kernel_id)i, true, common, sink);
    return status;
}

/* Measures how much an MN-major operand slows down the 3xTF32 kernel. */
static enum tandem_status tune_mn_major(struct kernel_timer *timer,
                                        const struct tuning_results_sink *sink)
{
    struct timed_gemm timed;
    uint32_t rows, columns;
    double k_major_ns, mn_major_ns;
    const struct gemm_kernel_config *config =
        &gemm_configs[GEMM_MMA_3XTF32_128X128];
    grid_make(timer->device->gemm_selector.compute_units * FULL_ROUNDS *
                  config->groups_per_compute_unit,
              &rows, &columns);
    timed_gemm_init(&timed, timer, (int64_t)rows * config->tile_m,
                    (int64_t)columns * config->tile_n, DEEP, 1);
    timed.kernel = GEMM_MMA_3XTF32_128X128;
    enum tandem_status status = timed_gemm_measure(timer, &timed, &k_major_ns);
    use_mn_major_b(&timed);
    if (status == TANDEM_OK)
        status = timed_gemm_measure(timer, &timed, &mn_major_ns);
    if (status != TANDEM_OK)
        return status;
    double overhead = fmax(mn_major_ns / k_major_ns - 1, 0);
    costs_report(sink, "mn_major_penalty", "", &overhead, 1);
    return TANDEM_OK;
}

enum tandem_status tune_gemm_costs(struct kernel_timer *timer,
                                   const struct tuning_results_sink *sink,
                                   bool all_kernels)
{
    uint64_t disabled =
        atomic_load(&timer->device->gemm_selector.disabled_kernels);
    struct common_costs common = {0, 1e9, 0};
    enum tandem_status status = tune_launch(timer, sink, &common);
    if (status == TANDEM_OK)
        status = tune_bytes(timer, sink, &common.bytes_per_ns);
    /* The costs of the kernels depend on these two. */
    if (status != TANDEM_OK)
        return tuning_can_continue(status) ? TANDEM_OK : status;
    /* The sm_90a kernels come first, in case the time is short. */
    for (uint32_t i = 0;
         i < 2 * GEMM_KERNEL_COUNT && tuning_can_continue(status); i++) {
        uint32_t id = i % GEMM_KERNEL_COUNT;
        const struct gemm_kernel_config *config = &gemm_configs[id];
        if (is_enabled(disabled, id) && kernel_timer_remaining_ns(timer) > 0 &&
            config->uses_wgmma == (i < GEMM_KERNEL_COUNT) &&
            (all_kernels || config->is_3xtf32 ||
             config->mma_format == MMA_NONE))
            status = tune_kernel(timer, (enum gemm_kernel_id)id,
                                 id == GEMV_1_MN_MAJOR, &common, sink);
    }
    if (tuning_can_continue(status) &&
        is_enabled(disabled, GEMM_MMA_3XTF32_128X128) &&
        kernel_timer_remaining_ns(timer) > 0)
        status = tune_mn_major(timer, sink);
    if (tuning_can_continue(status))
        status = tune_gemv_mn_major(timer, disabled, &common, sink);
    return tuning_can_continue(status) ? TANDEM_OK : status;
}
