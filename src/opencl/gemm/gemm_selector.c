/* SPDX-License-Identifier: Apache-2.0 */
/* The predicted time of each way to compute a product, and the least. */
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

/* Sums of fewer terms are more accurate in plain f32. */
#define STRICT_K 256
/* The most terms that one group of a strict tile adds up.  Of 262144 terms with
 * a = 0.7, b = 1 the sum is off by 1.32 of the bound in backend.h. */
#define STRICT_MOST_K 65536

/* What plain tiles take where elements are read one by one: 1.2 to 1.4 on an
 * H200. */
#define SINGLE_SHARE 1.35

/* What one row takes by a wide operand of 16 bits: 0.3 to 0.55 there. */
#define HALF_ROW_SHARE 0.55

/* Rows and columns of a result for which CLBlast is faster on PoCL. */
#define TINY_SIDE 16

/* More partial results than this are never worth their memory. */
#define MOST_PARTIAL_BYTES ((double)(256u << 20))

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
        bool tensor =
            gemm_configs[i].is_3xtf32 || gemm_configs[i].mma_format != MMA_NONE;
        if (gemm_configs[i].uses_wgmma && hardware->wgmma)
            selector->sm90a_kernels |= 1u << i;
        if (gemm_configs[i].uses_wgmma || (tensor && !hardware->tensor_cores))
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

/* SPLITS or SPLITS:TILES. */
static bool division_parse(const char *text, struct split_k *out)
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
    struct split_k division = {1, ALL_GEMM_TILES};
    size_t length = strcspn(value, ":");
    if (value[length] == ':' && !division_parse(value + length + 1, &division))
        return false;
    selector->forced_selection = (struct gemm_selection){.division = division};
    selector->forced = true;
    selector->forced_selection.clblast = strcmp(value, "clblast") == 0;
    if (selector->forced_selection.clblast)
        return true;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++)
        if (strlen(gemm_configs[i].name) == length &&
            strncmp(gemm_configs[i].name, value, length) == 0) {
            selector->forced_selection.tile = (enum gemm_kernel_id)i;
            enable_sm90a_kernels(selector, 1u << i);
            return true;
        }
    return false;
}

static bool has_epilogue(const struct tandem_gemm *gemm)
{
    return gemm->bias_kind != TANDEM_BIAS_NONE ||
           gemm->activation != TANDEM_OP_INVALID;
}

/* What the operands add to a product of ns: packing, and, of strict ones, that
 * they do not lie along k. */
static double operands_cost(const struct gemm_selector *selector,
                            const struct tandem_gemm *gemm, double ns,
                            enum gemm_kernel_id tile)
{
    uint32_t launches;
    double bytes = (double)packing_bytes(
        gemm, tile, gemm_packed_operands(gemm, tile), &launches);
    double sum = launches * selector->cost_model.launch_ns +
                 bytes / selector->cost_model.bytes_per_ns;
    for (uint32_t i = 0; i < OPERAND_COUNT && gemm_configs[tile].is_3xtf32 &&
                         gemm_configs[tile].mma_format == MMA_NONE;
         i++)
        if (operand_is_mn_major(gemm, (enum operand_id)i))
            sum += ns * selector->cost_model.mn_major_overhead;
    return sum;
}

/* How long groups of which each compute unit has count take for depth of k:
 * slots at a time, and the last that are left. */
static double waves_ns(uint32_t slots, const struct gemm_kernel_cost *cost,
                       double count, double depth)
{
    double wave_ns = cost->step_ns * slots;
    double waves = floor(count / slots);
    double rest_ns = (count - waves * slots) * cost->step_ns;
    if (wave_ns < cost->latency_ns)
        wave_ns = cost->latency_ns;
    if (rest_ns > 0 && rest_ns < cost->latency_ns)
        rest_ns = cost->latency_ns;
    return (waves * wave_ns + rest_ns) * depth;
}

/* Of the tiles that are one group each, and of the chunks of the others, which
 * run beside the last of them. */
static double groups_ns(const struct gemm_selector *selector,
                        const struct tandem_gemm *gemm, double tiles_all,
                        const struct gemm_selection *selection)
{
    uint32_t slots = gemm_configs[selection->tile].groups_per_compute_unit;
    const struct gemm_kernel_cost *cost =
        &selector->cost_model.kernels[selection->tile];
    double units = selector->compute_units;
    double parted = selection->division.split_tiles,
           splits = selection->division.splits;
    double slice = gemm_kernel_k_tile(gemm, selection->tile);
    double slices = ceil((double)gemm->k / slice);
    double depth = slices * slice, chunk = ceil(slices / splits) * slice;
    double whole = ceil((tiles_all - parted) / units);
    double chunks = ceil(parted * splits / units);
    double beside = fmod(whole, slots);
    if (beside == 0 || chunks == 0)
        return waves_ns(slots, cost, whole, depth) +
               waves_ns(slots, cost, chunks, chunk);
    double busy_ns = (beside * depth + chunks * chunk) * cost->step_ns;
    if (busy_ns < cost->latency_ns * depth)
        busy_ns = cost->latency_ns * depth;
    return waves_ns(slots, cost, whole - beside, depth) + busy_ns;
}

static const struct gemm_kernel_cost *
skinny_cost(const struct gemm_selector *selector,
            const struct tandem_gemm *gemm, enum gemm_kernel_id tile)
{
    return gemv_matrix_is_mn_major(gemm)
               ? &selector->cost_model.kernels_mn_major[tile]
               : &selector->cost_model.kernels[tile];
}

/* Skinny groups, of which many run at a time, are bound by memory alone. */
static double skinny_ns(const struct gemm_selector *selector,
                        const struct tandem_gemm *gemm, double tiles_all,
                        const struct gemm_selection *selection)
{
    const struct gemm_kernel_cost *cost =
        skinny_cost(selector, gemm, selection->tile);
    double slice = gemm_kernel_k_tile(gemm, selection->tile);
    double slices = ceil((double)gemm->k / slice);
    double rounds =
        tiles_all * selection->division.splits / selector->compute_units;
    /* Fewer groups than units share the memory among them. */
    double row_ns = cost->step_ns * (rounds < 1 ? rounds : ceil(rounds));
    if (row_ns < cost->latency_ns)
        row_ns = cost->latency_ns;
    if (gemm_configs[selection->tile].gemv_vectors == 1 &&
        TANDEM_DTYPE_BYTES(gemm->dtype) == 2)
        row_ns *= HALF_ROW_SHARE;
    return row_ns * gemm_kernel_cost_units(gemm, selection->tile) * slice *
           ceil(slices / selection->division.splits);
}

/* What it costs to write parts, and to join them. */
static double parts_cost(const struct gemm_selector *selector,
                         const struct tandem_gemm *gemm, double tiles_all,
                         const struct gemm_selection *selection)
{
    const struct gemm_kernel_config *config = &gemm_configs[selection->tile];
    double parted = selection->division.split_tiles,
           splits = selection->division.splits;
    bool aside = config->is_3xtf32 && gemm->beta != 0;
    double sums = (double)gemm->m * (double)gemm->n * (double)gemm->batch;
    if (parted == 0 && !aside)
        return 0;
    /* Parts of some tiles have room for whole ones. */
    if (parted < tiles_all && !aside)
        sums = parted * config->tile_m * config->tile_n;
    double bytes = sums * sizeof(float);
    if (bytes * splits > MOST_PARTIAL_BYTES)
        return 1e30;
    return selector->cost_model.launch_ns +
           bytes * (splits + 1) / selector->cost_model.bytes_per_ns;
}

static double predict(const struct gemm_selector *selector,
                      const struct tandem_gemm *gemm, double tiles_all,
                      struct gemm_selection *selection)
{
    const struct gemm_kernel_config *config = &gemm_configs[selection->tile];
    double ns = selector->cost_model.kernels[selection->tile].start_ns;
    bool all = selection->division.split_tiles >= tiles_all;
    double group_k = (double)gemm->k / (all ? selection->division.splits : 1);
    if (config->is_3xtf32 && group_k > STRICT_MOST_K)
        return 1e30;
    if (config->gemv_vectors != 0)
        ns = skinny_cost(selector, gemm, selection->tile)->start_ns +
             skinny_ns(selector, gemm, tiles_all, selection);
    else if (gemm_kernel_reads_scalars(gemm, selection->tile))
        ns += SINGLE_SHARE * groups_ns(selector, gemm, tiles_all, selection);
    else
        ns += groups_ns(selector, gemm, tiles_all, selection);
    ns += operands_cost(selector, gemm, ns, selection->tile);
    /* What looks for marks. */
    if (config->is_3xtf32 || config->mma_format == MMA_FP16X3)
        ns += selector->cost_model.launch_ns;
    return ns + parts_cost(selector, gemm, tiles_all, selection);
}

/* The division with which a tile is fastest: of all tiles, or of those beyond
 * what fills the compute units, or all their slots. */
static double tile_best(const struct gemm_selector *selector,
                        const struct tandem_gemm *gemm,
                        enum gemm_kernel_id tile, double tiles_all,
                        struct gemm_selection *out_selection)
{
    static const uint32_t splits[] = {2,  3,  4,  6,  8,  11,  16,  22,
                                      32, 48, 64, 96, 128, 192, 256};
    uint32_t slice = gemm_kernel_k_tile(gemm, tile);
    double units = selector->compute_units;
    const double parted[] = {
        tiles_all,
        fmod(tiles_all, units * gemm_configs[tile].groups_per_compute_unit),
        fmod(tiles_all, units)};
    uint32_t ways = gemm_configs[tile].gemv_vectors != 0 ? 1 : 3;
    *out_selection =
        (struct gemm_selection){.tile = tile, .division = NO_SPLIT};
    double best = predict(selector, gemm, tiles_all, out_selection);
    for (uint32_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
        /* Chunks of fewer slices gain nothing. */
        if (gemm->k < 2 * slice * splits[i])
            break;
        for (uint32_t j = 0; j < ways; j++) {
            struct gemm_selection selection = {
                .tile = tile, .division = {splits[i], (uint32_t)parted[j]}};
            /* Nor do more groups than fill the device several times; nor is
             * the same tried twice. */
            if (parted[j] == 0 || parted[j] * splits[i] > 8 * units ||
                (j > 0 && parted[j] == parted[j - 1]))
                continue;
            double ns = predict(selector, gemm, tiles_all, &selection);
            if (ns < best) {
                best = ns;
                *out_selection = selection;
            }
        }
    }
    return best;
}

/* Tiles whose costs count: those that were measured and, of what tensor cores
 * multiply, kinds of which none was, as a quick calibration leaves them out.
 * They have no others to stand in for them. */
static uint64_t comparable_kernels(const struct gemm_cost_model *costs)
{
    uint64_t known = costs->calibrated;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        bool any = false;
        for (uint32_t j = 0; j < GEMM_KERNEL_COUNT; j++)
            any = any ||
                  (gemm_configs[j].mma_format == gemm_configs[i].mma_format &&
                   gemm_configs[j].uses_wgmma == gemm_configs[i].uses_wgmma &&
                   (costs->calibrated >> j & 1u) != 0);
        if (gemm_configs[i].mma_format != MMA_NONE && !any)
            known |= (uint64_t)1 << i;
    }
    return known;
}

/* The time of the fastest of our kernels; 1e30: there is none. */
static double tiles_best(const struct gemm_selector *selector,
                         const struct tandem_gemm *gemm, uint64_t disabled,
                         struct gemm_selection *out_selection)
{
    double best = 1e30;
    if (selector->cost_model.calibrated != 0 && gemm_is_all_f32(gemm))
        disabled |= ~comparable_kernels(&selector->cost_model);
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        struct gemm_selection selection;
        double groups =
            (double)gemm_kernel_groups(gemm, (enum gemm_kernel_id)i);
        if ((disabled >> i & 1u) != 0 || groups * MAX_SPLIT_K > INT32_MAX ||
            ((gemm_configs[i].is_3xtf32 ||
              gemm_configs[i].mma_format == MMA_FP16X3) &&
             gemm->k < STRICT_K) ||
            !gemm_kernel_supports(gemm, (enum gemm_kernel_id)i))
            continue;
        double ns = tile_best(selector, gemm, (enum gemm_kernel_id)i, groups,
                              &selection);
        if (ns < best) {
            best = ns;
            *out_selection = selection;
        }
    }
    return best;
}

/* CLBlast's, with our epilogue after it. */
static double clblast_best(const struct gemm_selector *selector,
                           const struct tandem_gemm *gemm)
{
    if (selector->cost_model.clblast_time_count == 0)
        return selector->prefer_clblast ? 0 : 1e30;
    double ns = gemm_cost_model_clblast_ns(&selector->cost_model, gemm);
    if (has_epilogue(gemm))
        ns += selector->cost_model.launch_ns +
              2.0 * sizeof(float) * (double)gemm->m * (double)gemm->n *
                  (double)gemm->batch / selector->cost_model.bytes_per_ns;
    return ns;
}

void gemm_selector_compute(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           struct gemm_selection *out_selection)
{
    uint64_t disabled =
        atomic_load_explicit(&selector->disabled_kernels, memory_order_relaxed);
    bool either = clblast_supports_gemm(gemm); /* way */
    *out_selection =
        (struct gemm_selection){.clblast = true, .division = NO_SPLIT};
    if (!gemm_is_all_f32(gemm))
        disabled |= disabled >> DISABLED_16BIT_SHIFT;
    if (!gemm_fits_32bit_index(gemm))
        return;
    if (selector->forced) {
        *out_selection = selector->forced_selection;
        if (!either && out_selection->clblast)
            *out_selection = (struct gemm_selection){.tile = GEMM_SIMT_64X64,
                                                     .division = NO_SPLIT};
        if (gemm->dtype != TANDEM_F32 &&
            gemm_configs[out_selection->tile].is_3xtf32)
            out_selection->tile =
                gemm_configs[out_selection->tile].simt_fallback;
        if (!gemm_kernel_supports(gemm, out_selection->tile))
            out_selection->tile = GEMM_SIMT_64X64;
        if ((disabled >> out_selection->tile & 1u) != 0)
            out_selection->clblast = true;
        return;
    }
    /* Built-in costs cannot be compared with measured ones, so CLBlast serves.
     * But it takes a long k in slabs, where these tiles are faster on PoCL,
     * except for results that are much smaller than a tile. */
    if (either && selector->cost_model.calibrated == 0 &&
        selector->prefer_clblast) {
        bool tiny = gemm->m <= TINY_SIDE && gemm->n <= TINY_SIDE &&
                    gemm->m > 1 && gemm->n > 1;
        if (gemm->k <= CLBLAST_MAX_UNSPLIT_K || tiny)
            return;
        disabled |= ~(uint64_t)(1u << GEMM_SIMT_32X64 | 1u << GEMM_SIMT_64X64 |
                                1u << GEMV_1);
    }
    struct gemm_selection ours = *out_selection; /* where there is none */
    double limit = either && selector->cost_model.calibrated != 0
                       ? clblast_best(selector, gemm)
                       : 1e30;
    if (tiles_best(selector, gemm, disabled, &ours) < limit)
        *out_selection = ours;
}

void gemm_selector_choose_without_clblast(struct gemm_selector *selector,
                                          const struct tandem_gemm *gemm,
                                          struct gemm_selection *out_selection)
{
    *out_selection =
        (struct gemm_selection){.clblast = true, .division = NO_SPLIT};
    if (gemm_fits_32bit_index(gemm))
        tiles_best(selector, gemm,
                   atomic_load_explicit(&selector->disabled_kernels,
                                        memory_order_relaxed),
                   out_selection);
}

_Static_assert(GEMM_KERNEL_COUNT <= DISABLED_16BIT_SHIFT,
               "a bit for each tile, twice");

void gemm_selector_disable(struct gemm_selector *selector,
                           const struct tandem_gemm *gemm,
                           const struct gemm_selection *selection)
{
    uint32_t first = gemm_is_all_f32(gemm) ? 0 : DISABLED_16BIT_SHIFT;
    atomic_fetch_or(&selector->disabled_kernels,
                    (uint64_t)1 << (first + selection->tile));
}

/* ---- what was chosen before ---- */

/* What a choice depends on beside the extents. */
static uint32_t selection_traits(const struct tandem_gemm *gemm)
{
    return (gemm->flags & (TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B)) |
           (gemm->beta != 0 ? 4u : 0) |
           (operand_is_aligned(gemm, OPERAND_A) ? 8u : 0) |
           (operand_is_aligned(gemm, OPERAND_B) ? 16u : 0) |
           (gemm_fits_32bit_index(gemm) ? 32u : 0) |
           (has_epilogue(gemm) ? 64u : 0) |
           (gemm->a.batch_stride == 0 ? 128u : 0) |
           (gemm->b.batch_stride == 0 ? 256u : 0) |
           kernel_type_of(gemm->dtype) << 9 |
           kernel_type_of(gemm_c_dtype(gemm)) << 13 |
           tensor_core_key_flags(gemm) << 17 |
           (gemm_kernel_supports(gemm, GEMV_16) ? 1u << 23 : 0) |
           (clblast_supports_gemm(gemm) ? 1u << 24 : 0);
}

/* Acquire and release keep each read and write of a word between those of
 * turn around it. */
static bool selection_cache_read(struct selection_cache_entry *entry,
                                 const uint64_t *key,
                                 struct gemm_selection *out_selection)
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
    memcpy(out_selection, words + SELECTION_KEY_WORDS, sizeof(*out_selection));
    return true;
}

/* Where another thread writes, the memo is left to it. */
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
                          struct gemm_selection *out_selection)
{
    uint64_t disabled =
        atomic_load_explicit(&selector->disabled_kernels, memory_order_relaxed);
    const uint64_t key[SELECTION_KEY_WORDS] = {
        (uint64_t)gemm->m,     (uint64_t)gemm->n, (uint64_t)gemm->k,
        (uint64_t)gemm->batch, disabled,          selection_traits(gemm)};
    uint64_t mix = 0;
    for (uint32_t i = 0; i < SELECTION_KEY_WORDS; i++)
        mix = (mix ^ key[i]) * 0x9e3779b97f4a7c15u;
    struct selection_cache_entry *entry =
        &selector->cache[mix >> (64 - SELECTION_CACHE_LOG2)];
    if (selection_cache_read(entry, key, out_selection))
        return;
    gemm_selector_compute(selector, gemm, out_selection);
    selection_cache_write(entry, key, out_selection);
}
