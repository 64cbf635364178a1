/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted times of GEMM kernels with split-K; see gemm_cost_model.h. */
#include "opencl/plan/gemm_cost_model.h"

#include <math.h>

#include "opencl/plan/gemm_params.h"
#include "opencl/plan/operand_packing.h"

/* Maximum k over which a 3xTF32 work-group sums. With k = 262144, a = 0.7 and b
 * = 1, the error would be 1.32 times the bound in backend.h. */
#define MAX_3XTF32_K 65536
/* Slowdown of SIMT kernels without vector loads: 1.2 to 1.4 on an H200. */
#define SCALAR_ACCESS_FACTOR 1.35
/* Time of a GEMV with a 16-bit matrix, relative to a GEMV with an f32 matrix.
 * It is 0.3 to 0.55 on an H200. */
#define GEMV_16BIT_FACTOR 0.55
/* Maximum memory in bytes for the partial sums of split-K. */
#define MAX_SPLIT_K_BYTES ((double)(256u << 20))
/* Maximum number of work-groups per compute unit in a split-K launch. */
#define MAX_SPLIT_GROUPS_PER_UNIT 8

/* A kernel that can compute a GEMM, and the values that predict its time. */
struct gemm_candidate {
    const struct gemm_cost_model *model;
    const struct tandem_gemm *gemm;
    enum gemm_kernel_id kernel;
    const struct gemm_kernel_config *config;
    const struct gemm_kernel_cost *cost;
    double compute_units;
    double tiles; /* work-groups without split-K */
    double k_tile, k_tiles, cost_units;
};

/* Returns the extra time of a GEMM that otherwise takes `ns`: the time to pack
 * its operands, plus the penalty of 3xTF32 kernels for MN-major operands. */
static double operands_ns(const struct gemm_candidate *c, double ns)
{
    uint32_t launches;
    double bytes = (double)packing_bytes(
        c->gemm, c->kernel, gemm_packed_operands(c->gemm, c->kernel),
        &launches);
    double sum =
        launches * c->model->launch_ns + bytes / c->model->bytes_per_ns;
    if (!c->config->is_3xtf32 || c->config->mma_format != MMA_NONE)
        return sum;
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++)
        if (operand_of(c->gemm, id).is_mn_major)
            sum += ns * c->model->mn_major_penalty;
    return sum;
}

/* Returns the time that a compute unit takes for `count` work-groups, of which
 * groups_per_compute_unit run at a time. Each work-group sums `depth` products
 * per element of its tile. */
static double waves_ns(const struct gemm_candidate *c, double count,
                       double depth)
{
    uint32_t occupancy = c->config->groups_per_compute_unit;
    double waves = floor(count / occupancy);
    double wave_ns = fmax(c->cost->step_ns * occupancy, c->cost->latency_ns);
    double rest_ns = (count - waves * occupancy) * c->cost->step_ns;
    if (rest_ns > 0 && rest_ns < c->cost->latency_ns)
        rest_ns = c->cost->latency_ns;
    return (waves * wave_ns + rest_ns) * depth;
}

/* Returns the time to compute all tiles of a GEMM. The split tiles run together
 * with the last, incomplete wave of unsplit tiles. */
static double tiles_ns(const struct gemm_candidate *c,
                       const struct split_k *split)
{
    double depth = c->k_tiles * c->k_tile;
    double split_depth = ceil(c->k_tiles / split->splits) * c->k_tile;
    double split_tiles = split->split_tiles;
    double unsplit = ceil((c->tiles - split_tiles) / c->compute_units);
    double splits = ceil(split_tiles * split->splits / c->compute_units);
    double last = fmod(unsplit, c->config->groups_per_compute_unit);
    if (last == 0 || splits == 0)
        return waves_ns(c, unsplit, depth) + waves_ns(c, splits, split_depth);
    double last_ns = (last * depth + splits * split_depth) * c->cost->step_ns;
    return waves_ns(c, unsplit - last, depth) +
           fmax(last_ns, c->cost->latency_ns * depth);
}

/* Returns the time of a GEMV. Only memory bandwidth limits a GEMV, because a
 * compute unit runs many of its small work-groups at a time. */
static double gemv_ns(const struct gemm_candidate *c,
                      const struct split_k *split)
{
    double rounds = c->tiles * split->splits / c->compute_units;
    /* With fewer groups than compute units, each group has more bandwidth. */
    double row_ns =
        fmax(c->cost->step_ns * (rounds < 1 ? rounds : ceil(rounds)),
             c->cost->latency_ns);
    if (c->config->gemv_vectors == 1 && TANDEM_DTYPE_BYTES(c->gemm->dtype) == 2)
        row_ns *= GEMV_16BIT_FACTOR;
    return row_ns * c->cost_units * c->k_tile *
           ceil(c->k_tiles / split->splits);
}

/* Returns the time to write the partial sums of split-K and to add them up. */
static double fixup_ns(const struct gemm_candidate *c,
                       const struct split_k *split)
{
    double split_tiles = split->split_tiles, splits = split->splits;
    /* The fixup adds beta * c, because 3xTF32 tiles may be computed twice. */
    bool adds_c = c->config->is_3xtf32 && c->gemm->beta != 0;
    double sums =
        (double)c->gemm->m * (double)c->gemm->n * (double)c->gemm->batch;
    if (split_tiles == 0 && !adds_c)
        return 0;
    /* If only some tiles are split, partial sums are stored for whole tiles. */
    if (split_tiles < c->tiles && !adds_c)
        sums = split_tiles * c->config->tile_m * c->config->tile_n;
    double bytes = sums * sizeof(float);
    if (bytes * splits > MAX_SPLIT_K_BYTES)
        return UNUSABLE_NS;
    return c->model->launch_ns + bytes * (splits + 1) / c->model->bytes_per_ns;
}

static double predict_ns(const struct gemm_candidate *c,
                         const struct split_k *split)
{
    double ns = c->cost->start_ns;
    bool all_split = split->split_tiles >= c->tiles;
    double group_k = (double)c->gemm->k / (all_split ? split->splits : 1);
    if (c->config->is_3xtf32 && group_k > MAX_3XTF32_K)
        return UNUSABLE_NS;
    if (c->config->gemv_vectors != 0)
        ns += gemv_ns(c, split);
    else if (gemm_kernel_reads_scalars(c->gemm, c->kernel))
        ns += SCALAR_ACCESS_FACTOR * tiles_ns(c, split);
    else
        ns += tiles_ns(c, split);
    ns += operands_ns(c, ns);
    /* A second launch recomputes tiles that have non-finite results. */
    if (c->config->is_3xtf32 || c->config->mma_format == MMA_FP16X3)
        ns += c->model->launch_ns;
    return ns + fixup_ns(c, split);
}

/* Finds the fastest split-K of the candidate; see split_k_choose(). */
static double choose(const struct gemm_candidate *c, struct split_k *out)
{
    static const uint32_t splits[] = {2,  3,  4,  6,  8,   11,  16, 22,
                                      32, 48, 64, 96, 128, 192, 256};
    const double split_tiles[] = {
        c->tiles,
        fmod(c->tiles, c->compute_units * c->config->groups_per_compute_unit),
        fmod(c->tiles, c->compute_units)};
    uint32_t choices = c->config->gemv_vectors != 0 ? 1 : 3;
    *out = NO_SPLIT;
    double best_ns = predict_ns(c, out);
    for (uint32_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
        /* Each split must sum over at least two k_tiles. */
        if ((double)c->gemm->k < 2 * c->k_tile * splits[i])
            break;
        for (uint32_t j = 0; j < choices; j++) {
            const struct split_k split = {splits[i], (uint32_t)split_tiles[j]};
            if (split_tiles[j] == 0 ||
                split_tiles[j] * splits[i] >
                    MAX_SPLIT_GROUPS_PER_UNIT * c->compute_units ||
                (j > 0 && split_tiles[j] == split_tiles[j - 1]))
                continue;
            double ns = predict_ns(c, &split);
            if (ns < best_ns) {
                best_ns = ns;
                *out = split;
            }
        }
    }
    return best_ns;
}

double split_k_choose(const struct gemm_cost_model *model,
                      uint32_t compute_units, const struct tandem_gemm *gemm,
                      enum gemm_kernel_id kernel, struct split_k *out)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    struct gemm_tiling tiling = gemm_kernel_tiling(gemm, kernel);
    const struct gemm_candidate candidate = {
        .model = model,
        .gemm = gemm,
        .kernel = kernel,
        .config = config,
        .cost = tiling.matrix_is_mn_major ? &model->kernels_mn_major[kernel]
                                          : &model->kernels[kernel],
        .compute_units = compute_units,
        .tiles = (double)tiling.groups,
        .k_tile = tiling.k_tile,
        .k_tiles = ceil((double)gemm->k / tiling.k_tile),
        .cost_units = tiling.cost_units};
    return candidate.tiles * MAX_SPLIT_K > INT32_MAX ? UNUSABLE_NS
                                                     : choose(&candidate, out);
}
