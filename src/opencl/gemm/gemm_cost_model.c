/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of matrix products; see gemm_cost_model.h. */
#include "opencl/gemm/gemm_cost_model.h"

#include <math.h>
#include <string.h>

#include "common/decimal.h"

/* Of one H200 with driver 580; docs/gpu-kernels.md.  The ratios serve other
 * NVIDIA GPUs until they are measured. */
static const struct gemm_kernel_cost first_costs[GEMM_KERNEL_COUNT] = {
    [GEMM_SIMT_128X128] = {5000, 105, 92},
    [GEMM_SIMT_64X64] = {4200, 35, 26},
    [GEMM_SIMT_32X64] = {3500, 22.5, 15.8},
    [GEMM_MMA_3XTF32_128X128] = {5300, 77, 63},
    [GEMM_MMA_3XTF32_64X64] = {2400, 39, 17.9},
    [GEMV_1] = {3000, 0.1, 0.127},
    [GEMV_4] = {3000, 0.163, 0.134},
    [GEMV_8] = {3000, 0.21, 0.172},
    [GEMV_16] = {3000, 0.28, 0.225},
    [GEMM_MMA_TF32_128X256] = {5000, 36, 36},
    [GEMM_MMA_TF32_128X64] = {4500, 12.3, 12.2},
    [GEMM_MMA_FP16X3_128X128] = {6000, 33, 33},
    [GEMM_MMA_FP16X3_64X64] = {5000, 11.5, 9.8},
    [GEMM_MMA_16BIT_128X256] = {5000, 17.5, 17.5},
    [GEMM_MMA_16BIT_128X64] = {4500, 7, 5.7},
    [GEMM_SIMT_128X64] = {4800, 60, 50},
    [GEMM_WGMMA_FP16X3_128X128] = {6000, 17.6, 17.6},
    [GEMM_WGMMA_FP16X3_128X64] = {6000, 10.5, 10.5},
    [GEMM_WGMMA_3XTF32_128X128] = {6000, 35, 35},
    [GEMM_WGMMA_3XTF32_128X64] = {6000, 21, 21},
    [GEMM_WGMMA_TF32_256X128] = {6000, 22, 22},
    [GEMM_WGMMA_TF32_128X128] = {6000, 11.5, 11.5},
    [GEMM_WGMMA_16BIT_128X128] = {6000, 5.8, 5.8},
    [GEMM_WGMMA_16BIT_128X64] = {6000, 3.4, 3.4},
    [GEMV_1_MN_MAJOR] = {3000, 0.065, 0.121},
};
/* Of the others, as those.  Where these alone were not measured, their ratios
 * to those serve. */
static const struct gemm_kernel_cost first_across[GEMM_KERNEL_COUNT] = {
    [GEMV_1] = {3000, 0.1, 0.145},
};
#define FIRST_OUTER_SHARE 0.02
#define FIRST_LAUNCH_NS 3000
#define FIRST_BYTES_PER_NS 3000

#define LONGEST_NS 1e12
#define LARGEST 1e9 /* of m, n, k and batch */

/* What a tile costs across k by what it costs along k. */
static struct gemm_kernel_cost across_of(const struct gemm_kernel_cost *along,
                                         uint32_t tile)
{
    struct gemm_kernel_cost cost = *along;
    if (first_across[tile].step_ns > 0) {
        cost.latency_ns *=
            first_across[tile].latency_ns / first_costs[tile].latency_ns;
        cost.step_ns *= first_across[tile].step_ns / first_costs[tile].step_ns;
    }
    return cost;
}

void gemm_cost_model_init(struct gemm_cost_model *model)
{
    memset(model, 0, sizeof(*model));
    memcpy(model->kernels, first_costs, sizeof(first_costs));
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++)
        model->kernels_mn_major[i] = across_of(&first_costs[i], i);
    model->mn_major_overhead = FIRST_OUTER_SHARE;
    model->launch_ns = FIRST_LAUNCH_NS;
    model->bytes_per_ns = FIRST_BYTES_PER_NS;
}

/* ---- the profile's ---- */

static bool number_take(const char **text, double least, double most,
                        double *out)
{
    return decimal_parse_double(text, out) && *out >= least && *out <= most;
}

/* The only number of a value. */
static bool single_take(const char *value, double least, double most,
                        double *out)
{
    double number;
    if (!number_take(&value, least, most, &number) || *value != '\0')
        return false;
    *out = number;
    return true;
}

static bool tile_take(struct gemm_cost_model *model, const char *name,
                      const char *value, bool across)
{
    struct gemm_kernel_cost cost;
    uint32_t tile = 0;
    while (tile < GEMM_KERNEL_COUNT &&
           strcmp(gemm_configs[tile].name, name) != 0)
        tile++;
    if (tile == GEMM_KERNEL_COUNT)
        return true;
    if (!number_take(&value, 0, LONGEST_NS, &cost.start_ns) ||
        !number_take(&value, 0.001, LONGEST_NS, &cost.latency_ns) ||
        !number_take(&value, 0.001, LONGEST_NS, &cost.step_ns) ||
        *value != '\0')
        return false;
    if (across)
        model->kernels_mn_major[tile] = cost;
    else if ((model->calibrated_mn_major >> tile & 1u) == 0)
        model->kernels_mn_major[tile] = across_of(&cost, tile);
    if (!across)
        model->kernels[tile] = cost;
    *(across ? &model->calibrated_mn_major : &model->calibrated) |= 1u << tile;
    return true;
}

static bool time_take(const char **text, struct clblast_time *out,
                      double *out_ns)
{
    double work = 1;
    for (uint32_t i = 0; i < 4; i++) {
        double size;
        if (!number_take(text, 1, LARGEST, &size))
            return false;
        work *= size;
        out->size[i] = log2f((float)size);
    }
    if (!number_take(text, 0.001, LONGEST_NS, out_ns))
        return false;
    out->rate = (float)log2(*out_ns / work);
    return true;
}

static bool times_take(struct gemm_cost_model *model, const char *value)
{
    struct clblast_time times[MAX_CLBLAST_TIMES];
    uint32_t count = 0;
    double least_ns = LONGEST_NS;
    do {
        double ns;
        if (count == MAX_CLBLAST_TIMES ||
            !time_take(&value, &times[count], &ns))
            return false;
        least_ns = ns < least_ns ? ns : least_ns;
        count++;
    } while (*value++ == ';');
    if (value[-1] != '\0')
        return false;
    memcpy(model->clblast_times, times, count * sizeof(times[0]));
    model->clblast_time_count = count;
    model->min_clblast_ns = least_ns;
    return true;
}

bool gemm_cost_model_parse(struct gemm_cost_model *model, const char *key,
                           const char *value)
{
    if (strncmp(key, "kernel.", 7) == 0)
        return tile_take(model, key + 7, value, false);
    if (strncmp(key, "kernel_mn_major.", 16) == 0)
        return tile_take(model, key + 16, value, true);
    if (strcmp(key, "launch_ns") == 0)
        return single_take(value, 1, LONGEST_NS, &model->launch_ns);
    if (strcmp(key, "copy_bytes_per_ns") == 0)
        return single_take(value, 1e-3, 1e6, &model->bytes_per_ns);
    if (strcmp(key, "mn_major_penalty") == 0)
        return single_take(value, 0, 10, &model->mn_major_overhead);
    if (strcmp(key, "clblast_times") == 0)
        return times_take(model, value);
    return true;
}

/* ---- CLBlast's times ---- */

/* The mean of the logarithms of the rates, each by the inverse of its distance
 * to the power of four: at a point that was measured, its own. */
double gemm_cost_model_clblast_ns(const struct gemm_cost_model *model,
                                  const struct tandem_gemm *gemm)
{
    const float size[4] = {log2f((float)gemm->m), log2f((float)gemm->n),
                           log2f((float)gemm->k), log2f((float)gemm->batch)};
    float sum = 0, weights = 0;
    for (uint32_t i = 0; i < model->clblast_time_count; i++) {
        const struct clblast_time *time = &model->clblast_times[i];
        float squares = 1e-4f;
        for (uint32_t axis = 0; axis < 4; axis++) {
            float apart = size[axis] - time->size[axis];
            squares += apart * apart;
        }
        float weight = 1 / (squares * squares);
        sum += weight * time->rate;
        weights += weight;
    }
    double ns = (double)exp2f(sum / weights + size[0] + size[1] + size[2] +
                              size[3]);
    return ns > model->min_clblast_ns ? ns : model->min_clblast_ns;
}
