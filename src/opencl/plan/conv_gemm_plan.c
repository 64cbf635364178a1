/* SPDX-License-Identifier: Apache-2.0 */
/* Plans a convolution as a GEMM of its weight and of patches of its input; see
 * cl/gemm/patches.cl. */
#include "opencl/plan/conv_gemm_plan.h"
#include "opencl/plan/gemm_selector.h"

#include "common/argument_check.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/plan/kernel_step.h"
#include "gemm/store_patches.cl"

/* Maximum size in bytes of stored patches. */
#define MAX_STORED_BYTES ((uint64_t)256 << 20)
#define STORE_GROUP_LOG2 8u
#define TEMP_ALIGN 256u

/* Largest distance between the elements of an image that a patch reads, so that
 * sums of a few distances fit 31 bits. */
#define MAX_DISTANCE (INT32_MAX / 8)

/* Returns true if the elements of the spatial axes are neighbours. */
static bool axes_are_contiguous(const int64_t *strides, const int64_t *lengths)
{
    int64_t step = 1;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        if (lengths[i] > 1 && strides[i] != step)
            return false;
        step *= lengths[i];
    }
    return true;
}

/* Returns true if the taps of a weight's row are neighbours, in the order of
 * the rows of the patches. */
static bool weight_is_matrix(const struct conv_problem *conv)
{
    int64_t taps[MAX_SPATIAL_AXES];
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++)
        taps[i] = conv->window.axis[i].kernel;
    return axes_are_contiguous(conv->weight_tap, taps) &&
           (conv->channels == 1 || conv->weight_channel == conv->taps) &&
           (conv->rows == 1 || conv->weight_row >= conv->depth);
}

/* Returns true if the elements of the output's spatial axes are neighbours. */
static bool output_is_matrix(const struct conv_problem *conv)
{
    int64_t lengths[MAX_SPATIAL_AXES];
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++)
        lengths[i] = conv->window.axis[i].out;
    return axes_are_contiguous(conv->out.axis, lengths) &&
           (conv->rows == 1 || conv->out.channel >= conv->columns) &&
           conv->out.batch >= 0;
}

/* Returns true if the residual is missing, or is another tensor than the output
 * with the same strides. */
static bool residual_is_matrix(const struct conv_problem *conv,
                               const struct tandem_tensor_desc *output)
{
    const struct tandem_tensor_desc *residual = conv->residual_tensor;
    if (residual == NULL)
        return true;
    for (uint32_t i = 0; i < output->rank; i++)
        if (output->shape[i] > 1 && residual->strides[i] != output->strides[i])
            return false;
    return buffer_slot(residual->buffer) != buffer_slot(output->buffer);
}

static bool fits(int64_t count, int64_t distance)
{
    return stride_magnitude(distance) <=
           (uint64_t)(MAX_DISTANCE / (count > 1 ? count : 1));
}

/* Returns true if the windows are small, and distances in an image fit 31 bits.
 */
static bool input_fits(const struct conv_problem *conv)
{
    bool ok = fits(conv->channels, conv->x.channel);
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES && ok; i++) {
        const struct window_axis *axis = &conv->window.axis[i];
        ok = axis->kernel <= MAX_PATCH_TAPS &&
             fits(axis->dilation, axis->kernel) &&
             fits(axis->stride, axis->out) && fits(axis->begin, 1) &&
             fits(axis->in + axis->begin + axis->kernel * axis->dilation +
                      axis->stride * axis->out,
                  conv->x.axis[i]);
    }
    return ok;
}

void patches_params_fill(struct patches_params *out,
                         const struct conv_problem *conv)
{
    struct iteration_space columns = {.rank = MAX_SPATIAL_AXES};
    struct iteration_space taps = {.rank = MAX_SPATIAL_AXES};
    int64_t window_end = 0; /* offset after the last tap of a row or plane */
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &conv->window.axis[i];
        int64_t step = axis->dilation * conv->x.axis[i];
        columns.shape[MAX_SPATIAL_AXES - 1 - i] = axis->out;
        taps.shape[MAX_SPATIAL_AXES - 1 - i] = axis->kernel;
        out->axis[i] = (int32_t)conv->x.axis[i];
        out->tap[i] = (int32_t)step;
        out->lengths[i] = (int32_t)axis->in;
        out->kernel_size[i] = (int32_t)axis->kernel;
        out->stride[i] = (int32_t)axis->stride;
        out->dilation[i] = (int32_t)axis->dilation;
        out->begin[i] = (int32_t)axis->begin;
        out->next_tap[i] = (int32_t)(step - window_end);
        window_end = axis->kernel * step;
    }
    out->channel = (int32_t)conv->x.channel;
    out->next_tap[MAX_SPATIAL_AXES] = (int32_t)(conv->x.channel - window_end);
    fast_divmod_fill(&out->column_space, &columns);
    fast_divmod_fill(&out->tap_space, &taps);
}

/* Describes the GEMM, whose operand `b` is a matrix with the channels of the
 * input as rows. */
static void gemm_fill(struct tandem_gemm *out, const struct op_request *request,
                      const struct conv_problem *conv)
{
    const struct tandem_tensor_desc *x = request->inputs[0];
    const struct tandem_tensor_desc *weight = request->inputs[1];
    const struct tandem_tensor_desc *output = request->outputs[0];
    const struct tandem_tensor_desc *bias = conv->bias_tensor;
    int64_t ld = conv->rows == 1 ? conv->depth : conv->weight_row;
    int64_t x_ld = conv->channels == 1 ? conv->columns : conv->x.channel;
    int64_t c_ld = conv->rows == 1 ? conv->columns : conv->out.channel;
    *out = (struct tandem_gemm){
        .struct_size = sizeof(*out),
        .dtype = TANDEM_F32,
        .c_dtype = TANDEM_F32,
        .m = conv->rows,
        .n = conv->columns,
        .k = conv->depth,
        .batch = conv->batch,
        .flags = (request->op->flags & TANDEM_OP_ALLOW_TF32) != 0
                     ? TANDEM_GEMM_ALLOW_TF32
                     : 0,
        .alpha = 1,
        .b = {x->buffer, x->byte_offset, x_ld, conv->x.batch},
        .beta = conv->residual_tensor != NULL,
        .a = {weight->buffer, weight->byte_offset, ld, 0},
        .c = {output->buffer, output->byte_offset, c_ld, conv->out.batch},
        .activation = conv->activation.op,
        .activation_parameter = conv->activation.parameters[0],
        .activation_parameter2 = conv->activation.parameters[1]};
    if (bias == NULL)
        return;
    out->bias_kind = TANDEM_BIAS_PER_ROW;
    out->bias = bias->buffer;
    out->bias_byte_offset = bias->byte_offset;
}

/* Returns true if the rows of the patches are the channels of the input. */
static bool input_is_matrix(const struct conv_problem *conv)
{
    int64_t lengths[MAX_SPATIAL_AXES];
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &conv->window.axis[i];
        lengths[i] = axis->in;
        if (axis->kernel != 1 || axis->begin != 0 || axis->in != axis->out ||
            (axis->in > 1 && axis->stride != 1))
            return false;
    }
    return axes_are_contiguous(conv->x.axis, lengths) && conv->x.batch >= 0 &&
           (conv->channels == 1 || conv->x.channel >= conv->columns);
}

DECLARE_KERNEL_SOURCE(store_patches);
static const struct kernel_define no_defines[] = {END_OF_DEFINES};
static const struct kernel_info kernel_store_patches = {
    KERNEL_SOURCE(store_patches), .function = "store_patches",
    .defines = no_defines, .param_bytes = sizeof(struct store_patches_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};

static uint64_t stored_bytes(const struct tandem_gemm *gemm)
{
    return (uint64_t)gemm->n * (uint64_t)gemm->k * (uint64_t)gemm->batch *
           sizeof(float);
}

/* Describes stored patches at an offset of the temporary buffer. */
static void gemm_set_stored(struct tandem_gemm *gemm, uint64_t offset)
{
    gemm->flags |= TANDEM_GEMM_TRANSPOSE_B;
    gemm->b =
        (struct tandem_matrix){TEMP_BUFFER, offset, gemm->k, gemm->n * gemm->k};
}

/* Plans the kernel that stores the patches, and sets the operand `b`. */
static void plan_store(struct launch_plan *plan, struct tandem_gemm *gemm,
                       const struct tandem_tensor_desc *x,
                       const struct conv_problem *conv)
{
    const struct kernel_key key = {.kernel = &kernel_store_patches,
                                   .group_log2 = STORE_GROUP_LOG2};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct store_patches_params *out =
        (struct store_patches_params *)step->params;
    /* The next reservation may assume that it begins at a multiple. */
    uint64_t bytes = div_ceil(stored_bytes(gemm), TEMP_ALIGN) * TEMP_ALIGN;
    uint64_t offset = plan_reserve_temp(plan, bytes, TEMP_ALIGN);
    patches_params_fill(&out->patches, conv);
    out->out_offset = offset / sizeof(float);
    out->x_offset = element_offset(x);
    out->x_batch = conv->x.batch;
    out->columns = (uint32_t)gemm->n;
    out->rows = (uint32_t)gemm->k;
    out->tiles_m = (uint32_t)div_ceil((uint64_t)gemm->k, PATCH_TILE);
    out->tiles_n = (uint32_t)div_ceil((uint64_t)gemm->n, PATCH_TILE);
    step_add_temp(step, true);
    step_add_tensor(step, x, false, AT(store_patches_params, x_offset));
    step->groups =
        (uint64_t)out->tiles_m * out->tiles_n * (uint64_t)gemm->batch;
    gemm_set_stored(gemm, offset);
}

/* The ways to read the patches. */
enum patch_access {
    PATCHES_ARE_INPUT, /* they are a matrix in memory */
    PATCHES_GATHERED,  /* the GEMM kernel reads elements of the input */
    PATCHES_STORED     /* another kernel stores them before */
};

/* Selects the fastest way and its kernel.  Returns false if no kernel supports
 * the GEMM. */
static bool access_select(const struct op_request *request,
                          const struct tandem_gemm *gemm,
                          const struct conv_problem *conv,
                          enum patch_access *out_access,
                          struct gemm_selection *out)
{
    struct gemm_selection stored;
    struct tandem_gemm matrix = *gemm;
    uint64_t bytes = stored_bytes(gemm);
    matrix.beta = 0; /* another matrix than c is added */
    *out_access = PATCHES_ARE_INPUT;
    if (input_is_matrix(conv))
        return gemm_selector_choose_own(request->gemm_selector, &matrix, false,
                                        0, out);
    gemm_set_stored(&matrix, 0);
    bool has_stored = request->group_log2 >= STORE_GROUP_LOG2 &&
                      bytes <= MAX_STORED_BYTES &&
                      gemm_selector_choose_own(request->gemm_selector, &matrix,
                                               false, 2 * bytes, &stored);
    /* Patches never need packing, like a matrix of a multiple of 4 columns. */
    matrix.flags &= ~(uint32_t)TANDEM_GEMM_TRANSPOSE_B;
    matrix.n = (gemm->n + 3) / 4 * 4;
    matrix.b = (struct tandem_matrix){.ld = matrix.n};
    bool has_gathered =
        gemm_selector_choose_own(request->gemm_selector, &matrix, true, 0, out);
    *out_access = PATCHES_GATHERED;
    if (!has_stored || (has_gathered && out->ns <= stored.ns))
        return has_gathered;
    *out_access = PATCHES_STORED;
    *out = stored;
    return true;
}

bool plan_conv_as_gemm(struct launch_plan *plan,
                       const struct op_request *request,
                       const struct conv_problem *conv)
{
    const struct tandem_tensor_desc *x = request->inputs[0];
    struct gemm_patches patches = {.tensor = x};
    struct gemm_sources sources = {.old = conv->residual_tensor};
    struct gemm_selection selection;
    enum patch_access access;
    struct tandem_gemm gemm;
    if (request->gemm_selector == NULL || conv->is_transposed ||
        conv->groups != 1 || conv->depth == 0 || !weight_is_matrix(conv) ||
        !output_is_matrix(conv) || !input_fits(conv) ||
        !residual_is_matrix(conv, request->outputs[0]) ||
        (conv->bias_tensor != NULL && conv->rows > 1 && conv->bias_stride != 1))
        return false;
    gemm_fill(&gemm, request, conv);
    if (!access_select(request, &gemm, conv, &access, &selection))
        return false;
    if (access == PATCHES_STORED) {
        plan_store(plan, &gemm, x, conv);
    } else if (access == PATCHES_GATHERED) {
        patches_params_fill(&patches.params, conv);
        sources.patches = &patches;
    }
    plan_add_gemm(plan, &gemm, &sources, &selection, NULL, request->group_log2);
    plan->selected_gemm = (uint32_t)selection.kernel + 1;
    plan->predicted_ns = selection.ns;
    return true;
}
