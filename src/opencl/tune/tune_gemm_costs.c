/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the costs of Tandem's GEMM kernels; see tune.h. Each kernel is timed
 * with few and with many work-groups, in both cases at two depths (lengths of
 * k). The difference between the times at both depths gives the cost per unit
 * of k. The part of the time that does not depend on k is the start time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/decimal.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/tune/tune.h"

/* Depths (lengths of k) at which a kernel is timed. */
#define SHALLOW 256
#define DEEP 1024
#define CPU_SHALLOW 64
#define CPU_DEEP 256
/* Number of waves of work-groups in a measurement with many work-groups. */
#define FULL_ROUNDS 2u
/* A GEMM must take at least this many times as long as the host needs to
 * enqueue it. Otherwise the host's time would be measured. */
#define MIN_HOST_FACTOR 1.5
/* A GEMM with the larger depth, which is at least three times the smaller one,
 * must take longer by at least this fraction of the time at the smaller depth.
 * Otherwise both depths are doubled. */
#define MIN_GROWTH 0.1
/* GEMV is limited by memory bandwidth and needs larger matrices. With many
 * work-groups, there are GEMV_ROWS rows of GEMV_SHALLOW or GEMV_DEEP elements
 * per compute unit. With few work-groups, each work-group has
 * GEMV_GROUP_SHALLOW or GEMV_GROUP_DEEP elements of the matrix. */
#define GEMV_ROWS 192u
#define GEMV_SHALLOW 512
#define GEMV_DEEP 1536
#define GEMV_GROUP_SHALLOW 65536u
#define GEMV_GROUP_DEEP 262144u
#define COPY_BYTES (UINT64_C(64) << 20)
/* Smallest cost per unit of k that a tuning profile may contain. */
#define MIN_STEP_NS 1e-3
/* Smallest time of a launch that a tuning profile may contain. */
#define MIN_LAUNCH_NS 1

/* ---- a GEMM in the timer's memory ---- */

static uint64_t matrix_bytes(int64_t rows, int64_t columns, int64_t batch)
{
    uint64_t bytes = (uint64_t)(rows * columns * batch) * sizeof(float);
    return (bytes + 255) / 256 * 256;
}

/* Places the result c at the end of the scratch memory, where it rarely
 * overwrites operands of other measurements. Scales the result so that no
 * element of c is larger than the operands. Otherwise, later GEMMs could
 * overflow, and some kernels recompute tiles that overflow. */
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
    struct launch_memory memory;
    struct tandem_gemm planned = *gemm;
    enum tandem_status status;
    gemm_memory_to_slots(&planned, &memory);
    do {
        plan_gemm(&plan, &planned, kernel, NO_SPLIT, NULL,
                  timer->device->programs.group_log2);
        status = launch_plan(timer->stream, &plan, &memory);
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
        return memory_error("tune: a GEMM needs %llu bytes; the scratch "
                            "memory has %llu",
                            (unsigned long long)timed->bytes,
                            (unsigned long long)timer->bytes);
    return kernel_timer_measure(timer, timed_gemm_launch, timed, out_ns);
}

/* ---- costs of all kernels ---- */

struct tuner {
    struct kernel_timer *timer;
    const struct tuning_results_sink *sink;
    uint32_t units; /* compute units */
    bool cpu;
    /* Costs that are measured first, because the times of GEMMs include
     * launch_ns and packing. host_ns is the host's time to enqueue a kernel. */
    double launch_ns, bytes_per_ns, host_ns;
};

/* Reports `values` as gemm.<prefix><name>, unless a value is too large. */
static void costs_report(const struct tuner *tuner, const char *prefix,
                         const char *name, const double *values, uint32_t count)
{
    char key[64], text[128] = "";
    snprintf(key, sizeof(key), "gemm.%s%s", prefix, name);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            strcat(text, " ");
        if (!decimal_append_double(text, sizeof(text) - 1, values[i]))
            return;
    }
    tuner->sink->callback(tuner->sink->user, key, text);
}

/* Initializes a GEMM for kernel `id`, which is not a GEMV kernel. The result is
 * a nearly square grid of at most `groups` tiles, one per work-group. There are
 * exactly `groups` tiles if a grid with a side ratio below four allows it. */
static void grid_gemm_init(struct timed_gemm *out,
                           const struct kernel_timer *timer,
                           enum gemm_kernel_id id, uint32_t groups,
                           int64_t depth)
{
    const struct gemm_kernel_config *config = &gemm_configs[id];
    uint32_t rows = (uint32_t)sqrt((double)groups), columns = groups / rows;
    for (uint32_t r = rows; r * r * 4 > groups && r > 0; r--)
        if (groups % r == 0) {
            rows = r;
            columns = groups / r;
            break;
        }
    timed_gemm_init(out, timer, (int64_t)rows * config->tile_m,
                    (int64_t)columns * config->tile_n, depth, 1);
    out->kernel = id;
}

static enum tandem_status pair_launch(struct kernel_timer *timer,
                                      void *argument)
{
    struct timed_gemm *pair = argument;
    enum tandem_status status = timed_gemm_launch(timer, &pair[0]);
    return status == TANDEM_OK ? timed_gemm_launch(timer, &pair[1]) : status;
}

/* Measures host_ns, the host's time to enqueue a kernel, and launch_ns, the
 * time that a small kernel adds after a longer kernel, which hides host_ns. */
static enum tandem_status tune_launch(struct tuner *tuner)
{
    struct timed_gemm pair[2];
    double alone_ns, both_ns;
    grid_gemm_init(&pair[0], tuner->timer, GEMM_SIMT_32X64, tuner->units,
                   tuner->cpu ? CPU_DEEP : DEEP);
    timed_gemm_init(&pair[1], tuner->timer, 16, 16, 16, 1);
    pair[1].kernel = GEMM_SIMT_32X64;
    enum tandem_status status =
        timed_gemm_measure(tuner->timer, &pair[0], &alone_ns);
    if (status == TANDEM_OK)
        status =
            kernel_timer_measure(tuner->timer, pair_launch, pair, &both_ns);
    if (status == TANDEM_OK)
        status = timed_gemm_measure(tuner->timer, &pair[1], &tuner->host_ns);
    if (status != TANDEM_OK)
        return status;
    /* If the pair was not slower, other work distorted the times, and the
     * built-in time of a launch stays in use. */
    tuner->launch_ns = fmax(both_ns - alone_ns, 0);
    if (tuner->launch_ns >= MIN_LAUNCH_NS)
        costs_report(tuner, "launch_ns", "", &tuner->launch_ns, 1);
    return TANDEM_OK;
}

static enum tandem_status copy_launch(struct kernel_timer *timer, void *bytes)
{
    uint64_t half = *(const uint64_t *)bytes;
    return buffer_copy(timer->stream, timer->memory, half, timer->memory, 0,
                       half);
}

static enum tandem_status tune_copy(struct tuner *tuner)
{
    uint64_t half = tuner->timer->bytes / 2;
    double ns;
    if (half > COPY_BYTES)
        half = COPY_BYTES;
    enum tandem_status status =
        kernel_timer_measure(tuner->timer, copy_launch, &half, &ns);
    if (status != TANDEM_OK)
        return status;
    tuner->bytes_per_ns = 2.0 * (double)half / ns;
    costs_report(tuner, "copy_bytes_per_ns", "", &tuner->bytes_per_ns, 1);
    return TANDEM_OK;
}

/* ---- costs of one kernel ---- */

/* A GEMM kernel to measure, and the matrix layout if the kernel is a GEMV. */
struct kernel_case {
    enum gemm_kernel_id id;
    bool gemv, mn_major;
    uint32_t rows_per_group; /* 1 if the kernel is not a GEMV */
};

static struct kernel_case kernel_case_make(enum gemm_kernel_id id,
                                           bool mn_major)
{
    const struct tandem_gemm gemm = {
        .m = 1,
        .n = 2,
        .k = 1,
        .batch = 1,
        .flags = mn_major ? 0 : TANDEM_GEMM_TRANSPOSE_B};
    return (struct kernel_case){.id = id,
                                .gemv = gemm_configs[id].gemv_vectors != 0,
                                .mn_major = mn_major,
                                .rows_per_group =
                                    gemm_kernel_tiling(&gemm, id).cost_units};
}

/* Returns true if a second launch recomputes tiles with non-finite results. */
static bool has_recompute_launch(enum gemm_kernel_id id)
{
    return gemm_configs[id].is_3xtf32 ||
           gemm_configs[id].mma_format == MMA_FP16X3;
}

static double packing_ns(const struct tuner *tuner,
                         const struct timed_gemm *timed, uint32_t *out_launches)
{
    struct launch_memory memory;
    struct tandem_gemm gemm = timed->gemm;
    gemm_memory_to_slots(&gemm, &memory);
    double bytes = (double)packing_bytes(
        &gemm, timed->kernel, gemm_packed_operands(&gemm, timed->kernel),
        out_launches);
    return *out_launches * tuner->launch_ns + bytes / tuner->bytes_per_ns;
}

/* Initializes a GEMM that the kernel computes with `groups` work-groups. */
static void case_gemm_init(struct timed_gemm *out, const struct tuner *tuner,
                           const struct kernel_case *kernel, uint32_t groups,
                           int64_t depth)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel->id];
    uint64_t memory_bytes = tuner->timer->bytes;
    if (kernel->gemv)
        timed_gemm_init(out, tuner->timer, config->gemv_vectors,
                        (int64_t)groups * kernel->rows_per_group, depth, 1);
    else
        grid_gemm_init(out, tuner->timer, kernel->id, groups, depth);
    out->kernel = kernel->id;
    out->gemm.flags |=
        TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    if (config->mma_format == MMA_16BIT)
        out->gemm.dtype = TANDEM_F16;
    if (kernel->mn_major)
        use_mn_major_b(out);
    /* Copies make GEMV read operand b from memory, not from a cache. */
    if (kernel->gemv && !tuner->cpu && out->bytes < memory_bytes)
        out->copies += (uint32_t)((memory_bytes - out->bytes) / out->b_bytes);
}

static bool case_fits(const struct tuner *tuner,
                      const struct kernel_case *kernel, uint32_t groups,
                      int64_t depth)
{
    struct timed_gemm timed;
    case_gemm_init(&timed, tuner, kernel, groups, depth);
    return timed.bytes <= tuner->timer->bytes;
}

/* Doubles both depths until the GEMM takes longer than the host needs to
 * enqueue it, or until the memory is full. Returns TANDEM_FAILED if the time
 * budget ends before that, because the measured time would be the host's. */
static enum tandem_status depths_raise(const struct tuner *tuner,
                                       const struct kernel_case *kernel,
                                       uint32_t groups, int64_t depths[2])
{
    for (;;) {
        struct timed_gemm timed;
        uint32_t launches;
        double ns;
        case_gemm_init(&timed, tuner, kernel, groups, depths[0]);
        packing_ns(tuner, &timed, &launches);
        launches += 1 + has_recompute_launch(kernel->id);
        enum tandem_status status =
            timed_gemm_measure(tuner->timer, &timed, &ns);
        if (status != TANDEM_OK ||
            ns >= MIN_HOST_FACTOR * launches * tuner->host_ns)
            return status;
        if (kernel_timer_remaining_ns(tuner->timer) == 0)
            return last_error_set(TANDEM_FAILED,
                                  "tune: the time budget is used up");
        /* Stop if memory is too small to pack a GEMM with twice the k. */
        case_gemm_init(&timed, tuner, kernel, groups, 2 * depths[1]);
        if (timed_gemm_measure(tuner->timer, &timed, &ns) != TANDEM_OK)
            return TANDEM_OK;
        depths[0] *= 2;
        depths[1] *= 2;
    }
}

/* Measures the times of GEMMs with k = depths[0] and k = depths[1], without the
 * time to pack operands. `out_growth` is the difference of both times, relative
 * to the first time with packing. */
static enum tandem_status depths_measure(const struct tuner *tuner,
                                         const struct kernel_case *kernel,
                                         uint32_t groups,
                                         const int64_t depths[2], double ns[2],
                                         double *out_growth)
{
    double measured_ns[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct timed_gemm timed;
        uint32_t launches;
        case_gemm_init(&timed, tuner, kernel, groups, depths[i]);
        enum tandem_status status =
            timed_gemm_measure(tuner->timer, &timed, &measured_ns[i]);
        if (status != TANDEM_OK)
            return status;
        ns[i] = measured_ns[i] - packing_ns(tuner, &timed, &launches);
    }
    *out_growth = (ns[1] - ns[0]) / measured_ns[0];
    return TANDEM_OK;
}

/* Measures the time of a GEMM with k = depths[0], and its time per unit of k.
 * May increase the depths. */
static enum tandem_status groups_measure(const struct tuner *tuner,
                                         const struct kernel_case *kernel,
                                         uint32_t groups, int64_t depths[2],
                                         double *out_ns, double *out_ns_per_k)
{
    double ns[2], growth;
    enum tandem_status status = TANDEM_OK;
    if (!kernel->gemv)
        status = depths_raise(tuner, kernel, groups, depths);
    if (status == TANDEM_OK)
        status = depths_measure(tuner, kernel, groups, depths, ns, &growth);
    /* A smaller growth may be noise, and a cost near 0 would select the kernel
     * for every GEMM. */
    while (status == TANDEM_OK && growth < MIN_GROWTH) {
        if (kernel_timer_remaining_ns(tuner->timer) == 0 ||
            !case_fits(tuner, kernel, groups, 2 * depths[1]))
            return last_error_set(TANDEM_FAILED,
                                  "tune: %s took hardly longer with a larger k",
                                  gemm_configs[kernel->id].name);
        depths[0] *= 2;
        depths[1] *= 2;
        status = depths_measure(tuner, kernel, groups, depths, ns, &growth);
    }
    if (status != TANDEM_OK)
        return status;
    *out_ns = ns[0];
    *out_ns_per_k = (ns[1] - ns[0]) / (double)(depths[1] - depths[0]);
    return TANDEM_OK;
}

/* Chooses two depths, which for GEMV depend on the number of work-groups. */
static void depths_init(const struct tuner *tuner,
                        const struct kernel_case *kernel, bool many,
                        int64_t out[2])
{
    uint32_t rows = kernel->rows_per_group;
    out[0] = tuner->cpu ? CPU_SHALLOW : SHALLOW;
    out[1] = tuner->cpu ? CPU_DEEP : DEEP;
    if (!kernel->gemv || tuner->cpu)
        return;
    out[0] = many ? GEMV_SHALLOW : GEMV_GROUP_SHALLOW / rows;
    out[1] = many ? GEMV_DEEP : GEMV_GROUP_DEEP / rows;
    for (; !many && out[0] > SHALLOW &&
           !case_fits(tuner, kernel, tuner->units, out[1]);
         out[0] /= 2)
        out[1] /= 2;
}

static enum tandem_status tune_kernel(const struct tuner *tuner,
                                      enum gemm_kernel_id id, bool mn_major)
{
    const struct kernel_case kernel = kernel_case_make(id, mn_major);
    int64_t depths[2], many_depths[2];
    double first_ns, ns_per_k, many_ns, many_ns_per_k;
    uint32_t rows = kernel.rows_per_group, few = tuner->units;
    uint32_t rounds = FULL_ROUNDS * gemm_configs[id].groups_per_compute_unit;
    if (kernel.gemv && !tuner->cpu) {
        rounds = GEMV_ROWS / rows;
        /* Use half of the compute units, so that bandwidth is not the limit. */
        few = (few + 1) / 2;
    }
    depths_init(tuner, &kernel, false, depths);
    depths_init(tuner, &kernel, true, many_depths);
    while (rounds > 1 &&
           !case_fits(tuner, &kernel, tuner->units * rounds, many_depths[1]))
        rounds--;
    struct timed_gemm timed;
    case_gemm_init(&timed, tuner, &kernel, few, depths[0]);
    enum tandem_status status =
        timed.bytes > tuner->timer->bytes
            ? TANDEM_OK
            : kernel_timer_build(tuner->timer, timed_gemm_launch, &timed);
    if (status == TANDEM_OK)
        status =
            groups_measure(tuner, &kernel, few, depths, &first_ns, &ns_per_k);
    if (status == TANDEM_OK)
        status = groups_measure(tuner, &kernel, tuner->units * rounds,
                                many_depths, &many_ns, &many_ns_per_k);
    if (status != TANDEM_OK)
        return status;
    double start_ns = first_ns - ns_per_k * (double)depths[0];
    if (has_recompute_launch(id))
        start_ns -= tuner->launch_ns;
    /* The values are in the order of the fields of struct gemm_kernel_cost. */
    const double cost[3] = {fmax(start_ns, 0),
                            fmax(ns_per_k / rows, MIN_STEP_NS),
                            fmax(many_ns_per_k / (rounds * rows), MIN_STEP_NS)};
    costs_report(tuner,
                 mn_major && id != GEMV_1_MN_MAJOR ? "kernel_mn_major."
                                                   : "kernel.",
                 gemm_configs[id].name, cost, 3);
    return TANDEM_OK;
}

/* Measures how much an MN-major operand slows down the 3xTF32 kernel. */
static enum tandem_status tune_mn_major(const struct tuner *tuner)
{
    const enum gemm_kernel_id id = GEMM_MMA_3XTF32_128X128;
    uint32_t groups =
        tuner->units * FULL_ROUNDS * gemm_configs[id].groups_per_compute_unit;
    struct timed_gemm timed;
    double k_major_ns, mn_major_ns;
    grid_gemm_init(&timed, tuner->timer, id, groups, DEEP);
    enum tandem_status status =
        timed_gemm_measure(tuner->timer, &timed, &k_major_ns);
    use_mn_major_b(&timed);
    if (status == TANDEM_OK)
        status = timed_gemm_measure(tuner->timer, &timed, &mn_major_ns);
    if (status != TANDEM_OK)
        return status;
    double penalty = fmax(mn_major_ns / k_major_ns - 1, 0);
    costs_report(tuner, "mn_major_penalty", "", &penalty, 1);
    return TANDEM_OK;
}

/* ---- all kernels ---- */

/* Returns true if the kernel is enabled and there is time to measure it. */
static bool can_tune(const struct tuner *tuner, uint32_t id)
{
    const struct kernel_timer *timer = tuner->timer;
    uint64_t disabled =
        atomic_load(&timer->device->gemm_selector.disabled_kernels);
    return (disabled >> id & 1u) == 0 && kernel_timer_remaining_ns(timer) > 0;
}

static enum tandem_status tune_kernels(const struct tuner *tuner,
                                       bool all_kernels)
{
    enum tandem_status status = TANDEM_OK;
    /* Measure the sm_90a kernels first, in case time runs out. */
    for (uint32_t i = 0; i < 2 * GEMM_KERNEL_COUNT; i++) {
        uint32_t id = i % GEMM_KERNEL_COUNT;
        const struct gemm_kernel_config *config = &gemm_configs[id];
        if (tuning_can_continue(status) && can_tune(tuner, id) &&
            config->uses_wgmma == (i < GEMM_KERNEL_COUNT) &&
            (all_kernels || config->is_3xtf32 ||
             config->mma_format == MMA_NONE))
            status = tune_kernel(tuner, (enum gemm_kernel_id)id,
                                 id == GEMV_1_MN_MAJOR);
    }
    if (tuning_can_continue(status) && can_tune(tuner, GEMM_MMA_3XTF32_128X128))
        status = tune_mn_major(tuner);
    /* Measure GEMV with an MN-major matrix last. If the time is too short for
     * it, the cost model uses the costs of GEMV with a K-major matrix. */
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++)
        if (tuning_can_continue(status) && gemm_configs[i].gemv_vectors != 0 &&
            i != GEMV_1_MN_MAJOR && can_tune(tuner, i))
            status = tune_kernel(tuner, (enum gemm_kernel_id)i, true);
    return status;
}

enum tandem_status tune_gemm_costs(struct kernel_timer *timer,
                                   const struct tuning_results_sink *sink,
                                   bool all_kernels)
{
    const struct tandem_device *device = timer->device;
    struct tuner tuner = {.timer = timer,
                          .sink = sink,
                          .units = device->gemm_selector.compute_units,
                          .cpu =
                              device->hardware->info.kind == TANDEM_DEVICE_CPU};
    enum tandem_status status = tune_launch(&tuner);
    if (status == TANDEM_OK)
        status = tune_copy(&tuner);
    if (status == TANDEM_OK)
        status = tune_kernels(&tuner, all_kernels);
    return tuning_can_continue(status) ? TANDEM_OK : status;
}
