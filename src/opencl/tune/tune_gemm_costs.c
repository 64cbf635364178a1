/* SPDX-License-Identifier: Apache-2.0 */
/* What matrix products cost: in our tiles, and by CLBlast. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "opencl/gemm/clblast.h"
#include "opencl/device/device.h"
#include "common/decimal.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/transfer/transfer.h"
#include "opencl/tune/tune.h"

/* Depths of k at which a tile is timed, and how often all its slots are full
 * where it is timed in many groups. */
#define SHALLOW 256
#define DEEP 1024
#define CPU_SHALLOW 64
#define CPU_DEEP 256
#define FILLS 2u
/* A product is timed where it takes so many times as long as the host takes for
 * its launches. */
#define HOST_HIDDEN 1.5
/* What is bound by memory is timed where it takes longer than the host takes
 * to enqueue it: rows of a compute unit, and depths for so many; rows by k of
 * one group of each. */
#define SKINNY_ROWS 192u
#define SKINNY_SHALLOW 512
#define SKINNY_DEEP 1536
#define GROUP_SHALLOW 65536u
#define GROUP_DEEP 262144u
#define COPIED_BYTES (UINT64_C(64) << 20)

/* A product of what the meter's memory holds, by a tile or by CLBlast. */
struct work {
    struct tandem_gemm gemm;
    enum gemm_kernel_id tile;
    bool clblast;
    uint64_t bytes; /* that a, b and c take */
    /* Each launch has the next of so many b's, one after the other, after a. */
    uint64_t a_bytes, b_bytes;
    uint32_t copies, launches;
};

/* c is at the end of the memory, where the operands of most others do not
 * reach, and no larger than they are: kernels that look for what is not finite
 * would find it in products of products. */
static void work_make(struct work *out, const struct meter *meter, int64_t m,
                      int64_t n, int64_t k, int64_t batch)
{
    uint64_t a = (uint64_t)(m * k * batch) * sizeof(float);
    uint64_t b = (uint64_t)(k * n * batch) * sizeof(float);
    uint64_t c = (uint64_t)(m * n * batch) * sizeof(float);
    uint64_t end = meter->bytes / 256 * 256;
    memset(out, 0, sizeof(*out));
    a = (a + 255) / 256 * 256;
    b = (b + 255) / 256 * 256;
    c = (c + 255) / 256 * 256;
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
        .a = {meter->memory, 0, k, m * k},
        .b = {meter->memory, a, k, k * n},
        .c = {meter->memory, end - c, n, m * n}};
}

/* As many b's as the meter has memory for: what is bound by memory has to come
 * from there, not from a cache. */
static void work_copies(struct work *work, const struct meter *meter)
{
    if (work->bytes < meter->bytes)
        work->copies +=
            (uint32_t)((meter->bytes - work->bytes) / work->b_bytes);
}

/* A product that the tile takes. */
static void work_tile(struct work *work, enum gemm_kernel_id tile)
{
    work->tile = tile;
    work->gemm.flags |=
        TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    if (gemm_configs[tile].mma_format == MMA_16BIT)
        work->gemm.dtype = TANDEM_F16;
}

static enum tandem_status work_launch(struct meter *meter, void *argument)
{
    struct work *work = argument;
    struct launch_plan plan;
    if (work->clblast)
        return clblast_gemm_launch(meter->stream, &work->gemm);
    enum tandem_status status;
    if (work->copies > 1) {
        uint32_t nth = work->launches++ % work->copies;
        work->gemm.b.byte_offset = work->a_bytes + nth * work->b_bytes;
    }
    do {
        plan_gemm(&plan, &work->gemm, work->tile, NO_SPLIT, NULL,
                  meter->device->programs.group_log2);
        status = launch_plan(meter->stream, &plan);
    } while (status == TANDEM_NOT_READY && meter_left_ns(meter) > 0);
    return status;
}

static enum tandem_status resident_op_time(struct meter *meter,
                                           struct work *work, double *out_ns)
{
    if (work->bytes > meter->bytes)
        return last_error_set(TANDEM_OUT_OF_MEMORY,
                           "tune: no memory for a product");
    return kernel_timer_measure(meter, work_launch, work, out_ns);
}

static void tell(const struct findings *findings, const char *key,
                 const char *name, const double *values, uint32_t count)
{
    char full[64], text[128] = "";
    bool whole = true;
    snprintf(full, sizeof(full), "gemm.%s%s", key, name);
    for (uint32_t i = 0; i < count && whole; i++) {
        if (i > 0)
            strcat(text, " ");
        whole = decimal_append_double(text, sizeof(text) - 1, values[i]);
    }
    if (whole)
        findings->sink(findings->user, full, text);
}

/* ---- what is not a tile's ---- */

/* A grid of so many groups, or a few less, as square as it can be. */
static void grid_of(uint32_t groups, uint32_t *out_rows, uint32_t *out_columns)
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

/* One kernel after another. */
static enum tandem_status pair_launch(struct meter *meter, void *argument)
{
    struct work *pair = argument;
    enum tandem_status status = work_launch(meter, &pair[0]);
    return status == TANDEM_OK ? work_launch(meter, &pair[1]) : status;
}

/* What is counted apart of a product, and the host's part of a launch. */
struct other_costs {
    double launch_ns, bytes_per_ns, host_ns;
};

/* What a small kernel adds to a stream of longer ones, behind which the host's
 * part of it hides; and that part. */
static enum tandem_status tune_launch(struct meter *meter,
                                      const struct findings *findings,
                                      struct other_costs *out)
{
    struct work pair[2];
    uint32_t rows, columns;
    double alone_ns, both_ns;
    bool cpu = meter->device->hardware->info.kind == TANDEM_DEVICE_CPU;
    grid_of(meter->device->gemm_selector.compute_units, &rows, &columns);
    work_make(&pair[0], meter,
              (int64_t)rows * gemm_configs[GEMM_SIMT_32X64].tile_m,
              (int64_t)columns * gemm_configs[GEMM_SIMT_32X64].tile_n,
              cpu ? CPU_DEEP : DEEP, 1);
    work_make(&pair[1], meter, 16, 16, 16, 1);
    pair[0].tile = pair[1].tile = GEMM_SIMT_32X64;
    enum tandem_status status = resident_op_time(meter, &pair[0], &alone_ns);
    if (status == TANDEM_OK)
        status = kernel_timer_measure(meter, pair_launch, pair, &both_ns);
    if (status == TANDEM_OK)
        status = resident_op_time(meter, &pair[1], &out->host_ns);
    if (status != TANDEM_OK)
        return status;
    out->launch_ns = both_ns > alone_ns + 1 ? both_ns - alone_ns : 1;
    tell(findings, "launch", "", &out->launch_ns, 1);
    return TANDEM_OK;
}

static enum tandem_status copy_launch(struct meter *meter, void *bytes)
{
    uint64_t half = *(const uint64_t *)bytes;
    return buffer_copy(meter->stream, meter->memory, half, meter->memory, 0,
                       half);
}

static enum tandem_status tune_bytes(struct meter *meter,
                                     const struct findings *findings,
                                     double *out_rate)
{
    uint64_t half = meter->bytes / 2 < COPIED_BYTES ? meter->bytes / 2
                                                    : COPIED_BYTES;
    double ns;
    enum tandem_status status =
        kernel_timer_measure(meter, copy_launch, &half, &ns);
    if (status != TANDEM_OK)
        return status;
    *out_rate = 2.0 * (double)half / ns;
    tell(findings, "bytes", "", out_rate, 1);
    return TANDEM_OK;
}

/* ---- tiles ---- */

/* What is timed of a tile: of a skinny one, with its wide operand along or
 * across k. */
struct kind {
    enum gemm_kernel_id tile;
    bool skinny, across, cpu;
    uint32_t share; /* rows of the wide operand that a group has */
};

static struct kind kind_of(const struct meter *meter, enum gemm_kernel_id tile,
                           bool across)
{
    const struct tandem_gemm gemm = {
        .m = 1,
        .n = 2,
        .k = 1,
        .batch = 1,
        .flags = across ? 0 : TANDEM_GEMM_TRANSPOSE_B};
    return (struct kind){.tile = tile,
                         .skinny = gemm_configs[tile].gemv_vectors != 0,
                         .across = across,
                         .cpu = meter->device->hardware->info.kind ==
                                TANDEM_DEVICE_CPU,
                         .share = gemm_kernel_cost_units(&gemm, tile)};
}

static double packing_ns(const struct tandem_gemm *gemm,
                         enum gemm_kernel_id tile,
                         const struct other_costs *other,
                         uint32_t *out_launches)
{
    double bytes = (double)packing_bytes(
        gemm, tile, gemm_packed_operands(gemm, tile), out_launches);
    return *out_launches * other->launch_ns + bytes / other->bytes_per_ns;
}

/* Whether a kernel follows that does again what is marked. */
static bool marks_follow(enum gemm_kernel_id tile)
{
    return gemm_configs[tile].is_3xtf32 ||
           gemm_configs[tile].mma_format == MMA_FP16X3;
}

/* So many groups of the tile. */
static void work_groups(struct work *out, const struct meter *meter,
                        const struct kind *kind, uint32_t groups, int64_t depth)
{
    const struct gemm_kernel_config *config = &gemm_configs[kind->tile];
    uint32_t rows, columns;
    grid_of(groups, &rows, &columns);
    if (kind->skinny)
        work_make(out, meter, config->gemv_vectors,
                  (int64_t)groups * kind->share, depth, 1);
    else
        work_make(out, meter, (int64_t)rows * config->tile_m,
                  (int64_t)columns * config->tile_n, depth, 1);
    work_tile(out, kind->tile);
    if (kind->across) {
        out->gemm.flags &= ~(uint32_t)TANDEM_GEMM_TRANSPOSE_B;
        out->gemm.b.ld = out->gemm.n;
    }
    if (kind->skinny && !kind->cpu)
        work_copies(out, meter);
}

/* No more rounds than the meter has memory for: of many compute units each is
 * sooner full. */
static uint32_t rounds_fit(const struct meter *meter, const struct kind *kind,
                           uint32_t rounds, int64_t depth)
{
    struct work work;
    for (; rounds > 1; rounds--) {
        work_groups(&work, meter, kind,
                    meter->device->gemm_selector.compute_units * rounds, depth);
        if (work.bytes <= meter->bytes)
            break;
    }
    return rounds;
}

/* Makes depths as many times greater as it takes for the device, and not the
 * host, to be what is timed, or as memory lets them be.  TANDEM_FAILED where no
 * time is left, which a compile may have taken: what the host is timed at is no
 * cost. */
static enum tandem_status depths_raise(struct meter *meter,
                                       const struct kind *kind,
                                       uint32_t groups,
                                       const struct other_costs *other,
                                       int64_t depths[2])
{
    for (;;) {
        struct work work;
        uint32_t packing;
        double ns;
        work_groups(&work, meter, kind, groups, depths[0]);
        packing_ns(&work.gemm, kind->tile, other, &packing);
        uint32_t launches = packing + 1 + marks_follow(kind->tile);
        enum tandem_status status = resident_op_time(meter, &work, &ns);
        if (status != TANDEM_OK ||
            ns >= HOST_HIDDEN * launches * other->host_ns)
            return status;
        if (meter_left_ns(meter) == 0)
            return last_error_set(TANDEM_FAILED, "tune: the time is used up");
        /* Packed operands take memory, too. */
        work_groups(&work, meter, kind, groups, 2 * depths[1]);
        if (resident_op_time(meter, &work, &ns) != TANDEM_OK)
            return TANDEM_OK;
        depths[0] *= 2;
        depths[1] *= 2;
    }
}

/* The time of groups at the first depth, and, of one more of k.  May make the
 * depths greater. */
static enum tandem_status groups_time(struct meter *meter,
                                      const struct kind *kind,
                                      uint32_t groups, int64_t depths[2],
                                      const struct other_costs *other,
                                      double *out_ns, double *out_slope)
{
    struct work work;
    uint32_t packing;
    double ns[2] = {0, 0};
    enum tandem_status status = TANDEM_OK;
    if (!kind->skinny)
        status = depths_raise(meter, kind, groups, other, depths);
    for (uint32_t i = 0; i < 2 && status == TANDEM_OK; i++) {
        work_groups(&work, meter, kind, groups, depths[i]);
        status = resident_op_time(meter, &work, &ns[i]);
        ns[i] -= packing_ns(&work.gemm, kind->tile, other, &packing);
    }
    if (status != TANDEM_OK)
        return status;
    *out_ns = ns[0];
    *out_slope = (ns[1] - ns[0]) / (double)(depths[1] - depths[0]);
    /* Noise: time grows with k. */
    if (*out_slope < 1e-3)
        *out_slope = 1e-3;
    return TANDEM_OK;
}

/* Depths of k at which one round of groups, or many, are timed. */
static void depths_of(const struct meter *meter, const struct kind *kind,
                      bool many, int64_t out[2])
{
    out[0] = kind->cpu ? CPU_SHALLOW : SHALLOW;
    out[1] = kind->cpu ? CPU_DEEP : DEEP;
    if (!kind->skinny || kind->cpu)
        return;
    out[0] = many ? SKINNY_SHALLOW : GROUP_SHALLOW / kind->share;
    out[1] = many ? SKINNY_DEEP : GROUP_DEEP / kind->share;
    if (many)
        return;
    for (struct work work; out[0] > SHALLOW; out[0] /= 2, out[1] /= 2) {
        work_groups(&work, meter, kind,
                    meter->device->gemm_selector.compute_units, out[1]);
        if (work.bytes <= meter->bytes)
            break;
    }
}

static enum tandem_status tune_tile(struct meter *meter,
                                    enum gemm_kernel_id tile, bool across,
                                    const struct other_costs *other,
                                    const struct findings *findings)
{
    const struct kind kind = kind_of(meter, tile, across);
    int64_t depths[2], many_depths[2];
    double first, many, slope;
    double cost[3]; /* struct gemm_kernel_cost */
    uint32_t share = kind.share,
             units = meter->device->gemm_selector.compute_units;
    uint32_t rounds = FILLS * gemm_configs[tile].groups_per_compute_unit,
             few = units;
    if (kind.skinny && !kind.cpu) {
        rounds = SKINNY_ROWS / share;
        /* So that memory does not bind them. */
        few = (units + 1) / 2;
    }
    depths_of(meter, &kind, false, depths);
    depths_of(meter, &kind, true, many_depths);
    rounds = rounds_fit(meter, &kind, rounds, many_depths[1]);
    enum tandem_status status =
        groups_time(meter, &kind, few, depths, other, &first, &cost[1]);
    if (status == TANDEM_OK)
        status = groups_time(meter, &kind, units * rounds, many_depths, other,
                             &many, &slope);
    if (status != TANDEM_OK)
        return status;
    cost[0] = first - cost[1] * (double)depths[0];
    /* That is counted apart. */
    if (marks_follow(tile))
        cost[0] -= other->launch_ns;
    cost[0] = cost[0] > 0 ? cost[0] : 0;
    /* No less than a profile may say. */
    cost[1] = fmax(cost[1] / share, 1e-3);
    cost[2] = fmax(slope / (rounds * share), 1e-3);
    tell(findings, across && tile != GEMV_1_MN_MAJOR ? "across." : "tile.",
         gemm_configs[tile].name, cost, 3);
    return TANDEM_OK;
}

/* Last, as it matters least: unmeasured, they follow those along k. */
static enum tandem_status tune_across(struct meter *meter, uint64_t disabled,
                                      const struct other_costs *other,
                                      const struct findings *findings)
{
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT && meter_goes_on(status); i++)
        if (gemm_configs[i].gemv_vectors != 0 && i != GEMV_1_MN_MAJOR &&
            (disabled >> i & 1u) == 0 && meter_left_ns(meter) > 0)
            status =
                tune_tile(meter, (enum gemm_kernel_id)i, true, other, findings);
    return status;
}

/* What an operand across k costs a strict product. */
static enum tandem_status tune_outer(struct meter *meter,
                                     const struct findings *findings)
{
    struct work work;
    uint32_t rows, columns;
    double along, across, share;
    const struct gemm_kernel_config *config =
        &gemm_configs[GEMM_MMA_3XTF32_128X128];
    grid_of(meter->device->gemm_selector.compute_units * FILLS *
                config->groups_per_compute_unit,
            &rows, &columns);
    work_make(&work, meter, (int64_t)rows * config->tile_m,
              (int64_t)columns * config->tile_n, DEEP, 1);
    work.tile = GEMM_MMA_3XTF32_128X128;
    enum tandem_status status = resident_op_time(meter, &work, &along);
    work.gemm.flags = 0;
    work.gemm.b.ld = work.gemm.n;
    if (status == TANDEM_OK)
        status = resident_op_time(meter, &work, &across);
    if (status != TANDEM_OK)
        return status;
    share = across > along ? across / along - 1 : 0;
    tell(findings, "outer", "", &share, 1);
    return TANDEM_OK;
}

enum tandem_status tune_tiles(struct meter *meter,
                              const struct findings *findings, bool all)
{
    uint64_t disabled =
        atomic_load(&meter->device->gemm_selector.disabled_kernels);
    struct other_costs other = {0, 1e9, 0};
    enum tandem_status status = tune_launch(meter, findings, &other);
    if (status == TANDEM_OK)
        status = tune_bytes(meter, findings, &other.bytes_per_ns);
    /* They are part of what a tile is found to cost. */
    if (status != TANDEM_OK)
        return meter_goes_on(status) ? TANDEM_OK : status;
    /* First those that a process of its own tried, should time be short. */
    for (uint32_t i = 0; i < 2 * GEMM_KERNEL_COUNT && meter_goes_on(status);
         i++) {
        const struct gemm_kernel_config *config =
            &gemm_configs[i % GEMM_KERNEL_COUNT];
        if ((disabled >> i % GEMM_KERNEL_COUNT & 1u) == 0 &&
            meter_left_ns(meter) > 0 &&
            config->uses_wgmma == (i < GEMM_KERNEL_COUNT) &&
            (all || config->is_3xtf32 || config->mma_format == MMA_NONE))
            status = tune_tile(
                meter, (enum gemm_kernel_id)(i % GEMM_KERNEL_COUNT),
                i % GEMM_KERNEL_COUNT == GEMV_1_MN_MAJOR, &other, findings);
    }
    if (meter_goes_on(status) &&
        (disabled >> GEMM_MMA_3XTF32_128X128 & 1u) == 0 &&
        meter_left_ns(meter) > 0)
        status = tune_outer(meter, findings);
    if (meter_goes_on(status))
        status = tune_across(meter, disabled, &other, findings);
    return meter_goes_on(status) ? TANDEM_OK : status;
}

/* ---- CLBlast ---- */

struct shape {
    int64_t m, n, k, batch;
};

/* By what they cost, within each kind. */
static const struct shape shapes[] = {
    {64, 64, 64, 1},       {128, 128, 128, 1},    {256, 256, 256, 1},
    {512, 512, 512, 1},    {1024, 1024, 1024, 1}, {2048, 2048, 2048, 1},
    {4096, 4096, 4096, 1}, {1, 1024, 1024, 1},    {1024, 1, 1024, 1},
    {64, 64, 4096, 1},     {16, 4096, 1024, 1},   {1024, 1024, 16, 1},
    {16, 4096, 4096, 1},   {4096, 16, 4096, 1},   {256, 256, 4096, 1},
    {4096, 4096, 64, 1},   {1024, 4096, 1024, 1}, {32, 32, 32, 256},
    {64, 64, 64, 64},      {128, 128, 128, 32},   {512, 512, 512, 8},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static double shape_work(const struct shape *shape)
{
    return (double)shape->m * (double)shape->n * (double)shape->k *
           (double)shape->batch;
}

/* Appends one entry of the list that gemm_cost_model.h describes. */
static bool time_write(char *text, size_t bytes, const struct shape *shape,
                       double ns)
{
    const double values[5] = {(double)shape->m, (double)shape->n,
                              (double)shape->k, (double)shape->batch, ns};
    size_t before = strlen(text);
    for (uint32_t i = 0; i < 5; i++) {
        if (strlen(text) + 3 > bytes)
            return false;
        if (i > 0 || before > 0)
            strcat(text, i > 0 ? " " : "; ");
        if (!decimal_append_double(text, bytes, values[i])) {
            text[before] = '\0';
            return false;
        }
    }
    return true;
}

enum tandem_status tune_clblast_times(struct meter *meter,
                                      const struct findings *findings,
                                      uint32_t *times)
{
    char text[2048] = "";
    uint32_t count = 0;
    /* By m n k batch, of the last one: the next is left out where it would
     * take an eighth of the time that is left, each of five times or more. */
    double rate = 0;
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < SHAPES && meter_goes_on(status); i++) {
        const struct shape *shape = &shapes[i];
        struct work work;
        double ns;
        if (meter_left_ns(meter) == 0 ||
            rate * shape_work(shape) > (double)meter_left_ns(meter) / 8)
            continue;
        work_make(&work, meter, shape->m, shape->n, shape->k, shape->batch);
        work.gemm.flags = 0;
        work.gemm.b.ld = shape->n;
        work.clblast = true;
        status = resident_op_time(meter, &work, &ns);
        if (status != TANDEM_OK)
            continue;
        rate = ns / shape_work(shape);
        count += time_write(text, sizeof(text), shape, ns);
    }
    if (count > 0 && count >= *times) {
        findings->sink(findings->user, "gemm.clblast", text);
        *times = count;
    }
    return meter_goes_on(status) ? TANDEM_OK : status;
}
