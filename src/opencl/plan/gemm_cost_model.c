/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts the costs of GEMM kernels; see gemm_cost_model.h. */
#include "opencl/plan/gemm_cost_model.h"

#include <math.h>
#include <string.h>

#include "common/decimal.h"

/* Kernel costs, measured on an H200 with driver 580; see docs/kernels.md.
 * Other NVIDIA GPUs use these costs until they are calibrated. */
static const struct gemm_kernel_cost default_costs[GEMM_KERNEL_COUNT] = {
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
    [GEMM_RECOMPUTE] = {4800, 200, 200},
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
/* Ratio of GEMV_1's step_ns for an MN-major matrix to that for a K-major
 * matrix. The built-in costs of the other GEMV kernels do not depend on the
 * layout. */
#define GEMV_1_MN_MAJOR_FACTOR (0.145 / 0.127)
#define DEFAULT_MN_MAJOR_PENALTY 0.02
#define DEFAULT_LAUNCH_NS 3000
#define DEFAULT_BYTES_PER_NS 3000

#define MAX_NS 1e12
#define MAX_SIZE 1e9 /* upper limit of m, n, k and batch of a measured GEMM */

void gemm_cost_model_init(struct gemm_cost_model *model)
{
    *model =
        (struct gemm_cost_model){.mn_major_penalty = DEFAULT_MN_MAJOR_PENALTY,
                                 .launch_ns = DEFAULT_LAUNCH_NS,
                                 .bytes_per_ns = DEFAULT_BYTES_PER_NS};
    memcpy(model->kernels, default_costs, sizeof(default_costs));
    memcpy(model->kernels_mn_major, default_costs, sizeof(default_costs));
    model->kernels_mn_major[GEMV_1].step_ns *= GEMV_1_MN_MAJOR_FACTOR;
}

static bool number_parse(const char **text, double min, double max, double *out)
{
    return decimal_parse_double(text, out) && *out >= min && *out <= max;
}

/* Parses a tuning result that is a single number. */
static bool single_parse(const char *value, double min, double max, double *out)
{
    double number;
    if (!number_parse(&value, min, max, &number) || *value != '\0')
        return false;
    *out = number;
    return true;
}

/* Returns how many times as long as on the GPU of the built-in costs the
 * kernels with tiles take that any f32 GEMM may use, as the geometric mean of
 * the measured ones.  Returns 1 if none was measured. */
static double measured_slowdown(const struct gemm_cost_model *model)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        const struct gemm_kernel_config *config = &gemm_configs[i];
        if ((model->calibrated >> i & 1u) == 0 || config->gemv_vectors != 0 ||
            (config->mma_format != MMA_NONE && !config->is_3xtf32))
            continue;
        sum += log(model->kernels[i].step_ns / default_costs[i].step_ns);
        count++;
    }
    return count != 0 ? exp(sum / count) : 1;
}

/* Scales the built-in costs of tensor-core kernels that were not measured, so
 * that they can be compared with measured ones on a slower or faster GPU. */
static void unmeasured_costs_scale(struct gemm_cost_model *model)
{
    double slowdown = measured_slowdown(model);
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        if ((model->calibrated >> i & 1u) != 0 ||
            gemm_configs[i].mma_format == MMA_NONE)
            continue;
        model->kernels[i].latency_ns = default_costs[i].latency_ns * slowdown;
        model->kernels[i].step_ns = default_costs[i].step_ns * slowdown;
    }
}

static bool kernel_parse(struct gemm_cost_model *model, const char *name,
                         const char *value, bool mn_major)
{
    struct gemm_kernel_cost cost;
    uint32_t kernel = 0;
    while (kernel < GEMM_KERNEL_COUNT &&
           strcmp(gemm_configs[kernel].name, name) != 0)
        kernel++;
    if (kernel == GEMM_KERNEL_COUNT)
        return true;
    if (!number_parse(&value, 0, MAX_NS, &cost.start_ns) ||
        !number_parse(&value, 0.001, MAX_NS, &cost.latency_ns) ||
        !number_parse(&value, 0.001, MAX_NS, &cost.step_ns) || *value != '\0')
        return false;
    if (mn_major) {
        model->kernels_mn_major[kernel] = cost;
        model->calibrated_mn_major |= 1u << kernel;
        return true;
    }
    model->kernels[kernel] = cost;
    model->calibrated |= 1u << kernel;
    unmeasured_costs_scale(model);
    if (kernel == GEMV_1)
        cost.step_ns *= GEMV_1_MN_MAJOR_FACTOR;
    if ((model->calibrated_mn_major >> kernel & 1u) == 0)
        model->kernels_mn_major[kernel] = cost;
    return true;
}

static bool clblast_time_parse(const char **text, struct clblast_time *out,
                               double *out_ns)
{
    double work = 1;
    for (uint32_t i = 0; i < 3; i++) {
        double size;
        if (!number_parse(text, 1, MAX_SIZE, &size))
            return false;
        work *= size;
        out->log2_size[i] = log2f((float)size);
    }
    if (!number_parse(text, 0.001, MAX_NS, out_ns))
        return false;
    out->log2_ns_per_work = (float)log2(*out_ns / work);
    return true;
}

static bool clblast_times_parse(struct gemm_cost_model *model,
                                const char *value)
{
    struct clblast_time times[MAX_CLBLAST_TIMES];
    uint32_t count = 0;
    double min_ns = MAX_NS;
    do {
        double ns;
        if (count == MAX_CLBLAST_TIMES ||
            !clblast_time_parse(&value, &times[count], &ns))
            return false;
        min_ns = ns < min_ns ? ns : min_ns;
        count++;
    } while (*value++ == ';');
    if (value[-1] != '\0')
        return false;
    memcpy(model->clblast_times, times, count * sizeof(times[0]));
    model->clblast_time_count = count;
    model->min_clblast_ns = min_ns;
    return true;
}

bool gemm_cost_model_parse(struct gemm_cost_model *model, const char *key,
                           const char *value)
{
    if (strncmp(key, "kernel.", 7) == 0)
        return kernel_parse(model, key + 7, value, false);
    if (strncmp(key, "kernel_mn_major.", 16) == 0)
        return kernel_parse(model, key + 16, value, true);
    if (strcmp(key, "launch_ns") == 0)
        return single_parse(value, 1, MAX_NS, &model->launch_ns);
    if (strcmp(key, "copy_bytes_per_ns") == 0)
        return single_parse(value, 1e-3, 1e6, &model->bytes_per_ns);
    if (strcmp(key, "mn_major_penalty") == 0)
        return single_parse(value, 0, 10, &model->mn_major_penalty);
    if (strcmp(key, "clblast") == 0)
        return clblast_times_parse(model, value);
    return true;
}

/* Interpolates the logarithms of the measured times per unit of work. A
 * measurement's weight is the inverse fourth power of the distance between its
 * sizes and the GEMM's. If the sizes are equal, the measured time results. */
double gemm_cost_model_clblast_ns(const struct gemm_cost_model *model,
                                  const struct tandem_gemm *gemm)
{
    const float size[3] = {log2f((float)gemm->m), log2f((float)gemm->n),
                           log2f((float)gemm->k)};
    float sum = 0, weights = 0;
    for (uint32_t i = 0; i < model->clblast_time_count; i++) {
        const struct clblast_time *time = &model->clblast_times[i];
        float squares = 1e-4f;
        for (uint32_t axis = 0; axis < 3; axis++) {
            float distance = size[axis] - time->log2_size[axis];
            squares += distance * distance;
        }
        float weight = 1 / (squares * squares);
        sum += weight * time->log2_ns_per_work;
        weights += weight;
    }
    double ns = (double)exp2f(sum / weights + size[0] + size[1] + size[2]);
    return fmax(ns, model->min_clblast_ns);
}
