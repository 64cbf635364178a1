/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the GEMM kernel with the smallest predicted time. */
#include "opencl/plan/gemm_selector.h"

#include <string.h>

#include "common/argument_check.h"
#include "common/decimal.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemv_plan.h"
#include "opencl/plan/kernel_step.h"

/* Minimum k for 3xTF32 and fp16x3 kernels. SIMT kernels are more accurate if k
 * is smaller. */
#define MIN_SPLIT_FORMAT_K 256
/* The same for convolutions, which are allowed the tolerance of a GEMM. */
#define MIN_CONV_SPLIT_FORMAT_K 64

/* If a result has at most this number of rows and of columns, CLBlast is faster
 * than the plugin's kernels on PoCL. */
#define TINY_SIDE 16

_Static_assert(GEMM_KERNEL_COUNT <= DISABLED_16BIT_SHIFT,
               "disabled_kernels has two bits for each kernel");

void gemm_selector_init(struct gemm_selector *selector,
                        const struct platform_device *hardware)
{
    gemm_cost_model_init(&selector->cost_model);
    selector->compute_units = max_u32(hardware->info.compute_units, 1);
    selector->prefer_clblast = !hardware->nvidia;
    uint32_t disabled = 1u << GEMM_RECOMPUTE;
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

/* Parses SPLITS or SPLITS:TILES. TILES is the number of tiles to split. */
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

/* Selects the forced kernel, or another kernel if the forced kernel does not
 * support the GEMM. */
static void forced_select(const struct gemm_selector *selector,
                          const struct tandem_gemm *gemm, uint64_t disabled,
                          struct gemm_selection *out)
{
    *out = selector->forced_selection;
    if (out->clblast && !clblast_supports_gemm(gemm))
        *out = (struct gemm_selection){.kernel = GEMM_SIMT_64X64,
                                       .split = NO_SPLIT};
    if (gemm->dtype != TANDEM_F32 && gemm_configs[out->kernel].is_3xtf32)
        out->kernel = GEMM_SIMT_64X64;
    if (!gemm_kernel_supports(gemm, out->kernel))
        out->kernel = GEMM_SIMT_64X64;
    if ((disabled >> out->kernel & 1u) != 0)
        out->clblast = true;
}

/* ---- predicted times ---- */

static bool has_epilogue(const struct tandem_gemm *gemm)
{
    return gemm->bias_kind != TANDEM_BIAS_NONE ||
           gemm->activation != TANDEM_OP_INVALID;
}

/* Returns a bit set of the kernels whose predicted times can be compared: the
 * calibrated kernels and the kernels of each MMA format without any calibrated
 * kernel, because a quick calibration skips some formats. */
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

/* Selects the fastest kernel that is not disabled and returns its time. Returns
 * UNUSABLE_NS and leaves *out unchanged if no kernel supports the GEMM. */
static double best_allowed_ns(const struct gemm_selector *selector,
                              const struct gemm_cost_model *model,
                              const struct tandem_gemm *gemm, uint64_t disabled,
                              int64_t min_split_format_k,
                              struct gemm_selection *out)
{
    double best_ns = UNUSABLE_NS;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        struct split_k split;
        enum gemm_kernel_id kernel = (enum gemm_kernel_id)i;
        const struct gemm_kernel_config *config = &gemm_configs[i];
        if ((disabled >> i & 1u) != 0 ||
            ((config->is_3xtf32 || config->mma_format == MMA_FP16X3) &&
             gemm->k < min_split_format_k) ||
            !gemm_kernel_supports(gemm, kernel))
            continue;
        double ns = split_k_choose(model, selector->compute_units, gemm, kernel,
                                   &split);
        if (ns < best_ns) {
            best_ns = ns;
            *out = (struct gemm_selection){
                .kernel = kernel, .split = split, .ns = ns};
        }
    }
    return best_ns;
}

/* Selects the fastest of the plugin's kernels like best_allowed_ns. A kernel
 * whose cost was not measured is selected only if no calibrated kernel can
 * compute the GEMM. CLBlast replaces such kernels if it supports the GEMM. */
static double best_kernel_ns(const struct gemm_selector *selector,
                             const struct gemm_cost_model *model,
                             const struct tandem_gemm *gemm, uint64_t disabled,
                             int64_t min_split_format_k,
                             struct gemm_selection *out)
{
    if (model->calibrated != 0) {
        double ns = best_allowed_ns(selector, model, gemm,
                                    disabled | ~comparable_kernels(model),
                                    min_split_format_k, out);
        if (ns < UNUSABLE_NS || clblast_supports_gemm(gemm))
            return ns;
    }
    return best_allowed_ns(selector, model, gemm, disabled, min_split_format_k,
                           out);
}

/* Returns the predicted time of CLBlast and the epilogue kernel after it, or
 * UNUSABLE_NS if CLBlast was not measured. */
static double clblast_ns(const struct gemm_selector *selector,
                         const struct tandem_gemm *gemm)
{
    const struct gemm_cost_model *model = &selector->cost_model;
    if (model->clblast_time_count == 0)
        return UNUSABLE_NS;
    double ns = gemm_cost_model_clblast_ns(model, gemm);
    if (has_epilogue(gemm))
        ns += model->launch_ns + 2.0 * sizeof(float) * (double)gemm->m *
                                     (double)gemm->n / model->bytes_per_ns;
    return ns;
}

/* Kernels for devices that the built-in kernel costs do not fit. */
#define PORTABLE_KERNELS                                                       \
    ((uint64_t)(1u << GEMM_SIMT_32X64 | 1u << GEMM_SIMT_64X64 | 1u << GEMV_1))

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
    /* The built-in kernel costs only fit NVIDIA's devices. Until the kernels
     * are calibrated, other devices use CLBlast if it was measured, if it needs
     * a single call or if the result is tiny, otherwise the portable kernels,
     * and other kernels only if neither supports the call. */
    uint64_t unfit = 0;
    if (!calibrated && selector->prefer_clblast && gemm_is_all_f32(gemm)) {
        bool tiny = gemm->m <= TINY_SIDE && gemm->n <= TINY_SIDE &&
                    gemm->m > 1 && gemm->n > 1;
        bool measured = selector->cost_model.clblast_time_count != 0;
        if (clblast && (gemm->k <= CLBLAST_MAX_UNSPLIT_K || tiny || measured))
            return;
        unfit = ~PORTABLE_KERNELS;
    }
    /* A kernel that was not measured is never compared with one that was: a
     * time that is not known counts as UNUSABLE_NS, not as 0. */
    const struct gemm_cost_model *model = &selector->cost_model;
    struct gemm_selection own = *out;
    double limit_ns =
        clblast && calibrated ? clblast_ns(selector, gemm) : UNUSABLE_NS;
    double ns = best_kernel_ns(selector, model, gemm, disabled | unfit,
                               MIN_SPLIT_FORMAT_K, &own);
    if (ns == UNUSABLE_NS && !clblast)
        ns = best_kernel_ns(selector, model, gemm, disabled, MIN_SPLIT_FORMAT_K,
                            &own);
    if (ns < limit_ns)
        *out = own;
    else if (limit_ns < UNUSABLE_NS)
        out->ns = limit_ns;
}

bool gemm_selector_predicts(const struct gemm_selector *selector)
{
    return selector->cost_model.calibrated != 0 && !selector->forced;
}

/* Selects the fastest of the plugin's own kernels. If none supports `gemm`, the
 * result is CLBlast. */
static void choose_without_clblast(struct gemm_selector *selector,
                                   const struct tandem_gemm *gemm,
                                   struct gemm_selection *out)
{
    *out = (struct gemm_selection){.clblast = true, .split = NO_SPLIT};
    if (gemm_fits_32bit_index(gemm))
        best_kernel_ns(selector, &selector->cost_model, gemm,
                       disabled_for(selector, gemm), MIN_SPLIT_FORMAT_K, out);
}

/* ---- for plans ---- */

/* A kernel that reads patches is slower than one that reads a matrix: on an
 * H200, 1.5 and 2 times for tiles of 128 and of 64 rows, because each element
 * is read once for each row of tiles. The kernel with the most registers for
 * its sums has none left, and was 3 times slower. */
static double patches_factor(enum gemm_kernel_id kernel)
{
    double rows = gemm_configs[kernel].tile_m;
    return kernel == GEMM_SIMT_128X128 || rows == 0 ? 3 : 1 + 64 / rows;
}

/* Sets `out` to the costs of kernels that read patches. Excludes the others. */
static void patches_costs(const struct gemm_cost_model *from,
                          struct gemm_cost_model *out, uint64_t *disabled)
{
    *out = *from;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        out->kernels[i].step_ns *= patches_factor((enum gemm_kernel_id)i);
        if (!gemm_kernel_reads_patches((enum gemm_kernel_id)i))
            *disabled |= (uint64_t)1 << i;
    }
}

/* Selects one of the plugin's kernels for a convolution. */
static void compute_for_conv(struct gemm_selector *selector,
                             const struct tandem_gemm *gemm, bool patches,
                             struct gemm_selection *out)
{
    uint64_t disabled = disabled_for(selector, gemm);
    bool forced = selector->forced && !selector->forced_selection.clblast;
    *out = (struct gemm_selection){.clblast = true, .split = NO_SPLIT};
    if (!gemm_fits_32bit_index(gemm))
        return;
    if (selector->cost_model.calibrated == 0 && selector->prefer_clblast)
        disabled |= ~PORTABLE_KERNELS;
    struct gemm_cost_model costs;
    const struct gemm_cost_model *model = &selector->cost_model;
    if (patches) {
        patches_costs(model, &costs, &disabled);
        model = &costs;
    }
    if (forced && (!patches || gemm_kernel_reads_patches(
                                   selector->forced_selection.kernel)))
        forced_select(selector, gemm, disabled, out);
    else
        best_kernel_ns(selector, model, gemm, disabled, MIN_CONV_SPLIT_FORMAT_K,
                       out);
}

bool gemm_selector_choose_own(struct gemm_selector *selector,
                              const struct tandem_gemm *gemm, bool patches,
                              uint64_t bytes, struct gemm_selection *out)
{
    const struct gemm_cost_model *model = &selector->cost_model;
    compute_for_conv(selector, gemm, patches, out);
    if (bytes != 0)
        out->ns += model->launch_ns + (double)bytes / model->bytes_per_ns;
    return !out->clblast;
}

bool gemm_selector_choose_any(struct gemm_selector *selector,
                              const struct tandem_gemm *gemm,
                              bool avoids_clblast, struct gemm_selection *out)
{
    gemm_selector_compute(selector, gemm, out);
    if (!out->clblast)
        return true;
    if (!clblast_supports_gemm(gemm))
        return false;
    if (!avoids_clblast)
        return true;
    choose_without_clblast(selector, gemm, out);
    return !out->clblast;
}
