/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the GEMM kernel with the smallest predicted time. */
#include "opencl/gemm/gemm_selector.h"

#include <math.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/decimal.h"
#include "opencl/gemm/clblast.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemv_plan.h"
#include "opencl/plan/kernel_step.h"

/* Minimum k for 3xTF32 and fp16x3 kernels. SIMT kernels are more accurate if k
 * is smaller. */
#define MIN_SPLIT_FORMAT_K 256
/* Maximum k that one work-group of a 3xTF32 kernel sums. With k = 262144, a =
 * 0.7 and b = 1, the error would be 1.32 times the bound in backend.h. */
#define MAX_3XTF32_K 65536

/* Slowdown of SIMT kernels without vector loads; 1.2 to 1.4 on an H200. */
#define SCALAR_ACCESS_FACTOR 1.35
/* Time of a GEMV with a 16-bit matrix, relative to an f32 matrix. Measurements
 * on an H200 are 0.3 to 0.55. */
#define GEMV_16BIT_FACTOR 0.55

/* Largest number of rows and columns of a result for which CLBlast is faster
 * than the plugin's kernels on PoCL. */
#define TINY_SIDE 16

/* Maximum memory in bytes for the partial sums of split-K. */
#define MAX_SPLIT_K_BYTES ((double)(256u << 20))
/* Maximum number of work-groups per compute unit in a split-K launch. */
#define MAX_SPLIT_GROUPS_PER_UNIT 8

/* The predicted time of a kernel that cannot be used. */
#define UNUSABLE_NS 1e30

_Static_assert(GEMM_KERNEL_COUNT <= DISABLED_16BIT_SHIFT,
               "disabled_kernels has two bits for each kernel");

void gemm_selector_init(struct gemm_selector *selector,
                        const struct platform_device *hardware)
{
    gemm_cost_model_init(&selector->cost_model);
    selector->compute_units = hardware->info.compute_units;
    if (selector->compute_units == 0)
        selector->compute_units = 1;
    selector->prefer_clblast = !hardware->nvidia;
    uint32_t disabled = 1u << GEMM_SIMT_128X64;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        const struct gemm_kernel_config *config = &gemm_configs[i];
        bool tensor_cores = config->is_3xtf32 || config->mma_format != MMA_NONE;
        if (config->uses_wgmma && hardware->wgmma)
            selector->sm90a_kernels |= 1u << i;
        if (config->uses_wgmma || (tensor_cores && !hardware->tensor_cores))
            disabled |= 1u << i;
    }
    if (hardware->group_limit < GEMV_MN_MAJOR_GROUP)
        disabled |= 1u << GEMV_1_MN_MAJOR;
    atomic_store(&selector->disabled_kernels,
                 disabled | (uint64_t)disabled << DISABLED_16BIT_SHIFT);
}

static void enable_sm90a_kernels(struct gemm_selector *selector, uint32_t which)
{
    uint32_t bits = selector->sm90a_kernels & which;
    atomic_fetch_and(&selector->disabled_kernels,
                     ~(bits | (uint64_t)bits << DISABLED_16BIT_SHIFT));
}

void gemm_selector_enable_sm90a(struct gemm_selector *selector)
{
    enable_sm90a_kernels(selector, UINT32_MAX);
}

void gemm_selector_disable(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel)
{
    uint32_t first = gemm_is_all_f32(gemm) ? 0 : DISABLED_16BIT_SHIFT;
    atomic_fetch_or(&selector->disabled_kernels,
                    (uint64_t)1 << (first + kernel));
}

/* Returns a bit set of the kernels that must not compute this GEMM. */
static uint64_t disabled_for(struct gemm_selector *selector,
                             const struct tandem_gemm *gemm)
{
    uint64_t disabled =
        atomic_load_explicit(&selector->disabled_kernels, memory_order_relaxed);
    return gemm_is_all_f32(gemm) ? disabled
                                 : disabled | disabled >> DISABLED_16BIT_SHIFT;
}

/* ---- forced selection ---- */

/* Parses SPLITS or SPLITS:TILES, where TILES is the number of split tiles. */
static bool split_parse(const char *text, struct split_k *out)
{
    char splits[16];
    uint64_t number;
    size_t length = strcspn(text, ":");
    if (length >= sizeof(splits))
        return false;
    memcpy(splits, text, length);
    splits[length] = '\0';
    if (!decimal_read(splits, &number) || number == 0 || number > MAX_SPLIT_K)
        return false;
    out->splits = (uint32_t)number;
    if (text[length] == '\0')
        return true;
    if (!decimal_read(text + length + 1, &number) || number >= ALL_GEMM_TILES)
        return false;
    out->split_tiles = (uint32_t)number;
    return true;
}

bool gemm_selector_force(struct gemm_selector *selector, const char *value)
{
    struct gemm_selection *forced = &selector->forced_selection;
    size_t length = strcspn(value, ":");
    *forced = (struct gemm_selection){.clblast = strcmp(value, "clblast") == 0,
                                      .split = {1, ALL_GEMM_TILES}};
    if (value[length] == ':' &&
        !split_parse(value + length + 1, &forced->split))
        return false;
    selector->forced = true;
    if (forced->clblast)
        return true;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++)
        if (strlen(gemm_configs[i].name) == length &&
            strncmp(gemm_configs[i].name, value, length) == 0) {
            forced->kernel = (enum gemm_kernel_id)i;
            enable_sm90a_kernels(selector, 1u << i);
            return true;
        }
    return false;
}

/* Selects the forced kernel, or another one if the forced one does not support
 * the GEMM. */
static void forced_select(const struct gemm_selector *selector,
                          const struct tandem_gemm *gemm, uint64_t disabled,
                          struct gemm_selection *out)
{
    *out = selector->forced_selection;
    if (out->clblast && !clblast_supports_gemm(gemm))
        *out = (struct gemm_selection){.kernel = GEMM_SIMT_64X64,
                                       .split = NO_SPLIT};
    if (gemm->dtype != TANDEM_F32 && gemm_configs[out->kernel].is_3xtf32)
        out->kernel = gemm_configs[out->kernel].simt_fallback;
    if (!gemm_kernel_supports(gemm, out->kernel))
        out->kernel = GEMM_SIMT_64X64;
    if ((disabled >> out->kernel & 1u) != 0)
        out->clblast = true;
}

/* ---- predicted times ---- */

bool gemm_has_epilogue(const struct tandem_gemm *gemm)
{
    return gemm->bias_kind != TANDEM_BIAS_NONE ||
           gemm->activation != TANDEM_OP_INVALID;
}

/* A kernel that can compute a GEMM, and the values that predict its time. */
struct candidate {
    const struct gemm_cost_model *model;
    const struct tandem_gemm *gemm;
    enum gemm_kernel_id kernel;
    const struct gemm_kernel_config *config;
    const struct gemm_kernel_cost *cost;
    double compute_units;
    double tiles; /* work-groups without split-K */
    double k_tile, k_tiles;
};

static void candidate_init(struct candidate *out,
                           const struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel)
{
    const struct gemm_cost_model *model = &selector->cost_model;
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    bool mn_major = config->gemv_vectors != 0 && gemv_matrix_is_mn_major(gemm);
    double k_tile = gemm_kernel_k_tile(gemm, kernel);
    *out =
        (struct candidate){.model = model,
                           .gemm = gemm,
                           .kernel = kernel,
                           .config = config,
                           .cost = mn_major ? &model->kernels_mn_major[kernel]
                                            : &model->kernels[kernel],
                           .compute_units = selector->compute_units,
                           .tiles = (double)gemm_kernel_groups(gemm, kernel),
                           .k_tile = k_tile,
                           .k_tiles = ceil((double)gemm->k / k_tile)};
}

/* Returns the extra time of a GEMM that otherwise takes `ns`: the time to pack
 * its operands, plus the penalty of 3xTF32 kernels for MN-major operands. */
static double operands_ns(const struct candidate *c, double ns)
{
    uint32_t launches;
    double bytes = (double)packing_bytes(
        c->gemm, c->kernel, gemm_packed_operands(c->gemm, c->kernel),
        &launches);
    double sum =
        launches * c->model->launch_ns + bytes / c->model->bytes_per_ns;
    for (uint32_t i = 0; i < OPERAND_COUNT && c->config->is_3xtf32 &&
                         c->config->mma_format == MMA_NONE;
         i++)
        if (operand_is_mn_major(c->gemm, (enum operand_id)i))
            sum += ns * c->model->mn_major_penalty;
    return sum;
}

/* Returns the time of a compute unit for `count` work-groups, of which
 * groups_per_compute_unit run at a time. A group sums `depth` products per
 * element. */
static double waves_ns(const struct candidate *c, double count, double depth)
{
    uint32_t occupancy = c->config->groups_per_compute_unit;
    double waves = floor(count / occupancy);
    double wave_ns = fmax(c->cost->step_ns * occupancy, c->cost->latency_ns);
    double rest_ns = (count - waves * occupancy) * c->cost->step_ns;
    if (rest_ns > 0 && rest_ns < c->cost->latency_ns)
        rest_ns = c->cost->latency_ns;
    return (waves * wave_ns + rest_ns) * depth;
}

/* Returns the time of the unsplit and the split tiles of a GEMM. The splits run
 * together with the last, incomplete wave of unsplit tiles. */
static double tiles_ns(const struct candidate *c, const struct split_k *split)
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
static double gemv_ns(const struct candidate *c, const struct split_k *split)
{
    double rounds = c->tiles * split->splits / c->compute_units;
    /* If there are fewer groups than units, each group has more bandwidth. */
    double row_ns =
        fmax(c->cost->step_ns * (rounds < 1 ? rounds : ceil(rounds)),
             c->cost->latency_ns);
    if (c->config->gemv_vectors == 1 && TANDEM_DTYPE_BYTES(c->gemm->dtype) == 2)
        row_ns *= GEMV_16BIT_FACTOR;
    return row_ns * gemm_kernel_cost_units(c->gemm, c->kernel) * c->k_tile *
           ceil(c->k_tiles / split->splits);
}

/* Returns the time to write the partial sums of split-K and to add them. */
static double fixup_ns(const struct candidate *c, const struct split_k *split)
{
    double split_tiles = split->split_tiles, splits = split->splits;
    /* A 3xTF32 tile may be computed twice, so only the fixup adds beta * c. */
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

static double predict_ns(const struct candidate *c, const struct split_k *split)
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
    /* A second launch recomputes tiles with non-finite results. */
    if (c->config->is_3xtf32 || c->config->mma_format == MMA_FP16X3)
        ns += c->model->launch_ns;
    return ns + fixup_ns(c, split);
}

/* Finds the fastest split-K and returns its time. The candidates are to split
 * all tiles, the tiles left after full waves, or the tiles left after all
 * compute units got the same number of tiles. */
static double best_split_ns(const struct candidate *c, struct split_k *out)
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
        /* Each split must sum over at least two tiles of k. */
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

/* Returns a bit set of the kernels whose predicted times can be compared. These
 * are the calibrated kernels and, because a quick calibration skips some MMA
 * formats, the kernels of formats without any calibrated kernel. */
static uint64_t comparable_kernels(const struct gemm_cost_model *model)
{
    uint64_t known = model->calibrated;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        const struct gemm_kernel_config *config = &gemm_configs[i];
        bool any = false;
        for (uint32_t j = 0; j < GEMM_KERNEL_COUNT; j++)
            any = any || (gemm_configs[j].mma_format == config->mma_format &&
                          gemm_configs[j].uses_wgmma == config->uses_wgmma &&
                          (model->calibrated >> j & 1u) != 0);
        if (config->mma_format != MMA_NONE && !any)
            known |= (uint64_t)1 << i;
    }
    return known;
}

/* Selects the fastest of the plugin's kernels and returns its time. Returns
 * UNUSABLE_NS and leaves *out unchanged if no kernel supports the GEMM. */
static double best_kernel_ns(const struct gemm_selector *selector,
                             const struct tandem_gemm *gemm, uint64_t disabled,
                             struct gemm_selection *out)
{
    double best_ns = UNUSABLE_NS;
    if (selector->cost_model.calibrated != 0 && gemm_is_all_f32(gemm))
        disabled |= ~comparable_kernels(&selector->cost_model);
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        struct candidate c;
        struct split_k split;
        enum gemm_kernel_id kernel = (enum gemm_kernel_id)i;
        const struct gemm_kernel_config *config = &gemm_configs[i];
        if ((disabled >> i & 1u) != 0 ||
            ((config->is_3xtf32 || config->mma_format == MMA_FP16X3) &&
             gemm->k < MIN_SPLIT_FORMAT_K) ||
            !gemm_kernel_supports(gemm, kernel))
            continue;
        candidate_init(&c, selector, gemm, kernel);
        if (c.tiles * MAX_SPLIT_K > INT32_MAX)
            continue;
        double ns = best_split_ns(&c, &split);
        if (ns < best_ns) {
            best_ns = ns;
            *out = (struct gemm_selection){.kernel = kernel, .split = split};
        }
    }
    return best_ns;
}

/* Returns the time of CLBlast's GEMM plus the epilogue kernel after it. */
static double clblast_ns(const struct gemm_selector *selector,
                         const struct tandem_gemm *gemm)
{
    const struct gemm_cost_model *model = &selector->cost_model;
    if (model->clblast_time_count == 0)
        return selector->prefer_clblast ? 0 : UNUSABLE_NS;
    double ns = gemm_cost_model_clblast_ns(model, gemm);
    if (gemm_has_epilogue(gemm))
        ns += model->launch_ns + 2.0 * sizeof(float) * (double)gemm->m *
                                     (double)gemm->n * (double)gemm->batch /
                                     model->bytes_per_ns;
    return ns;
}

/* ---- selection ---- */

void gemm_selector_compute(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           struct gemm_selection *out)
{
    uint64_t disabled = disabled_for(selector, gemm);
    bool calibrated = selector->cost_model.calibrated != 0;
    bool clblast = clblast_supports_gemm(gemm);
    *out = (struct gemm_selection){.clblast = true, .split = NO_SPLIT};
    if (!gemm_fits_32bit_index(gemm))
        return;
    if (selector->forced) {
        forced_select(selector, gemm, disabled, out);
        return;
    }
    /* The built-in kernel costs do not apply to this device, so CLBlast is
     * used. If k is so large that CLBlast needs several calls, the SIMT kernels
     * below are faster on PoCL unless the result is tiny. */
    if (clblast && !calibrated && selector->prefer_clblast) {
        bool tiny = gemm->m <= TINY_SIDE && gemm->n <= TINY_SIDE &&
                    gemm->m > 1 && gemm->n > 1;
        if (gemm->k <= CLBLAST_MAX_UNSPLIT_K || tiny)
            return;
        disabled |= ~(uint64_t)(1u << GEMM_SIMT_32X64 | 1u << GEMM_SIMT_64X64 |
                                1u << GEMV_1);
    }
    struct gemm_selection own = *out;
    double limit_ns =
        clblast && calibrated ? clblast_ns(selector, gemm) : UNUSABLE_NS;
    if (best_kernel_ns(selector, gemm, disabled, &own) < limit_ns)
        *out = own;
}

void gemm_selector_choose_without_clblast(struct gemm_selector *selector,
                                          const struct tandem_gemm *gemm,
                                          struct gemm_selection *out)
{
    *out = (struct gemm_selection){.clblast = true, .split = NO_SPLIT};
    if (gemm_fits_32bit_index(gemm))
        best_kernel_ns(selector, gemm, disabled_for(selector, gemm), out);
}

/* ---- selection cache ---- */

/* Returns the properties of a GEMM, except sizes, that affect the selection. */
static uint32_t selection_traits(const struct tandem_gemm *gemm)
{
    return (gemm->flags & (TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B)) |
           (gemm->beta != 0 ? 4u : 0) |
           (operand_is_aligned(gemm, OPERAND_A) ? 8u : 0) |
           (operand_is_aligned(gemm, OPERAND_B) ? 16u : 0) |
           (gemm_fits_32bit_index(gemm) ? 32u : 0) |
           (gemm_has_epilogue(gemm) ? 64u : 0) |
           (gemm->a.batch_stride == 0 ? 128u : 0) |
           (gemm->b.batch_stride == 0 ? 256u : 0) |
           kernel_type_of(gemm->dtype) << 9 |
           kernel_type_of(gemm_c_dtype(gemm)) << 13 |
           tensor_core_key_flags(gemm) << 17 |
           (gemm_kernel_supports(gemm, GEMV_16) ? 1u << 23 : 0) |
           (clblast_supports_gemm(gemm) ? 1u << 24 : 0);
}

/* Reads an entry under its seqlock. Acquire order keeps the reads of the words
 * between the two reads of `sequence`. */
static bool selection_cache_read(struct selection_cache_entry *entry,
                                 const uint64_t *key,
                                 struct gemm_selection *out)
{
    uint64_t words[SELECTION_WORDS];
    uint32_t sequence =
        atomic_load_explicit(&entry->sequence, memory_order_acquire);
    for (uint32_t i = 0; i < SELECTION_WORDS; i++)
        words[i] = atomic_load_explicit(&entry->words[i], memory_order_acquire);
    if (sequence % 2 != 0 ||
        atomic_load_explicit(&entry->sequence, memory_order_relaxed) !=
            sequence ||
        memcmp(words, key, SELECTION_KEY_WORDS * sizeof(words[0])) != 0)
        return false;
    memcpy(out, words + SELECTION_KEY_WORDS, sizeof(*out));
    return true;
}

/* Stores a selection. Does nothing if another thread is writing the entry. */
static void selection_cache_write(struct selection_cache_entry *entry,
                                  const uint64_t *key,
                                  const struct gemm_selection *selection)
{
    uint64_t words[SELECTION_WORDS] = {0};
    uint32_t sequence =
        atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    memcpy(words, key, SELECTION_KEY_WORDS * sizeof(words[0]));
    memcpy(words + SELECTION_KEY_WORDS, selection, sizeof(*selection));
    if (sequence % 2 != 0 || !atomic_compare_exchange_strong(
                                 &entry->sequence, &sequence, sequence + 1))
        return;
    for (uint32_t i = 0; i < SELECTION_WORDS; i++)
        atomic_store_explicit(&entry->words[i], words[i], memory_order_release);
    atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
}

void gemm_selector_choose(struct gemm_selector *selector,
                          const struct tandem_gemm *gemm,
                          struct gemm_selection *out)
{
    uint64_t disabled =
        atomic_load_explicit(&selector->disabled_kernels, memory_order_relaxed);
    const uint64_t key[SELECTION_KEY_WORDS] = {
        (uint64_t)gemm->m,     (uint64_t)gemm->n, (uint64_t)gemm->k,
        (uint64_t)gemm->batch, disabled,          selection_traits(gemm)};
    uint64_t hash = 0;
    for (uint32_t i = 0; i < SELECTION_KEY_WORDS; i++)
        hash = (hash ^ key[i]) * 0x9e3779b97f4a7c15u;
    struct selection_cache_entry *entry =
        &selector->cache[hash >> (64 - SELECTION_CACHE_LOG2)];
    if (selection_cache_read(entry, key, out))
        return;
    gemm_selector_compute(selector, gemm, out);
    selection_cache_write(entry, key, out);
}
