/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the kernels of cl/gemm/gemv.cl, which multiply a matrix and vectors. */
#include "opencl/plan/gemv_plan.h"

#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_params.h"

/* Division of matrix rows among the work-items of a GEMV work-group. */
struct gemv_shape {
    uint32_t rows_per_item; /* matrix rows per work-item */
    uint32_t lanes;         /* work-items among which k is divided */
    uint32_t k_unroll;      /* unrolled iterations along k */
    uint32_t group_log2;
};

/* Fastest work-group shapes of GEMV_1, GEMV_4, GEMV_8 and GEMV_16, measured on
 * an H200 (see docs/kernels.md). */
static const struct gemv_shape k_major_shapes[] = {
    {2, 32, 4, 7}, {2, 32, 4, 7}, {4, 32, 2, 7}, {4, 32, 2, 7}};
static const struct gemv_shape mn_major_shapes[] = {
    {4, 64, 8, 8}, {4, 32, 8, 8}, {4, 32, 8, 8}, {4, 16, 4, 8}};
static const struct gemv_shape gemv_1_mn_major_shape = {
    4, 64, 8, GEMV_MN_MAJOR_GROUP_LOG2};

/* 512 (the largest k_tile) times ld must fit in an unsigned 32-bit integer. */
#define MAX_LD (INT32_MAX / 256)

struct gemv_operands {
    struct gemm_operand matrix, vectors;
    bool swapped; /* true if the matrix is `b` */
    const struct gemv_shape *shape;
    uint32_t max_vectors; /* maximum per work-group */
    uint32_t row_tiles, vector_tiles;
};

static const struct gemv_shape *gemv_shape(enum gemm_kernel_id kernel,
                                           bool mn_major)
{
    if (kernel == GEMV_1_MN_MAJOR)
        return &gemv_1_mn_major_shape;
    return &(mn_major ? mn_major_shapes : k_major_shapes)[kernel - GEMV_1];
}

/* ---- kernel ---- */

/* Returns the shape with which the kernel is compiled.  Devices other than
 * NVIDIA's can have fewer registers.  Therefore their loop unrolls half as many
 * iterations, and if the matrix is K-major and a work-item has more than two
 * rows, the rows per work-item and the lanes are also halved. */
static struct gemv_shape compiled_shape(const struct kernel_key *key,
                                        const struct platform_device *hardware)
{
    bool is_mn_major = key->a_layout != 0;
    struct gemv_shape shape =
        *gemv_shape((enum gemm_kernel_id)key->gemm_kernel, is_mn_major);
    if (hardware->nvidia)
        return shape;
    shape.k_unroll /= 2;
    if (!is_mn_major && shape.rows_per_item > 2) {
        shape.rows_per_item /= 2;
        shape.lanes /= 2;
    }
    return shape;
}

/* A macro with a member of the shape, at the offset `in->argument`. */
static uint32_t shape_member(const struct define_input *in)
{
    const struct gemv_shape shape = compiled_shape(in->key, in->hardware);
    uint32_t value;
    memcpy(&value, (const char *)&shape + in->argument, sizeof(value));
    return value;
}
#define DEFINE_SHAPE(name, member)                                             \
    DEFINE_NUMBER(name, shape_member, offsetof(struct gemv_shape, member))

static uint32_t is_stream(const struct define_input *in)
{
    return in->hardware->nvidia && in->key->gemm_kernel == GEMV_1_MN_MAJOR
               ? 1
               : NOT_DEFINED;
}

static const struct kernel_define defines[] = {
    GEMM_DTYPE_DEFINES,
    DEFINE_CONFIG("VECTOR_COUNT", gemv_vectors),
    DEFINE_SHAPE("ITEM_ROWS", rows_per_item),
    DEFINE_SHAPE("LANES", lanes),
    DEFINE_SHAPE("K_UNROLL", k_unroll),
    DEFINE_FIELD("A_MN_MAJOR", a_layout),
    DEFINE_FIELD("B_MN_MAJOR", b_layout),
    DEFINE_VECTOR("W_VECTOR", vec4),
    DEFINE_VECTOR("X_VECTOR", b_vec4),
    DEFINE_NUMBER("STREAM", is_stream, 0),
    EPILOGUE_DEFINES,
    END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(gemv);
static const struct kernel_info kernel_gemv = {
    KERNEL_SOURCE(gemv), .function = "gemv", .defines = defines,
    .param_bytes = sizeof(struct gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};

/* ---- plans ---- */

static uint32_t rows_per_group(const struct gemv_shape *shape)
{
    return (1u << shape->group_log2) / shape->lanes * shape->rows_per_item;
}

/* Selects which operand is the matrix and which one holds the vectors.  The
 * operand with more rows is the matrix.  If both have the same number of rows,
 * `a` is the matrix if it is K-major, otherwise `b`. */
static struct gemv_operands operands_of(const struct tandem_gemm *gemm,
                                        enum gemm_kernel_id kernel)
{
    struct gemm_operand a = operand_of(gemm, OPERAND_A);
    struct gemm_operand b = operand_of(gemm, OPERAND_B);
    struct gemv_operands out;
    out.swapped = a.rows < b.rows || (a.rows == b.rows && a.is_mn_major);
    out.matrix = out.swapped ? b : a;
    out.vectors = out.swapped ? a : b;
    /* A single vector whose elements are adjacent can be read as K-major. */
    if (out.vectors.rows == 1 && out.vectors.matrix->ld == 1)
        out.vectors.is_mn_major = false;
    out.shape = gemv_shape(kernel, out.matrix.is_mn_major);
    out.max_vectors = gemm_configs[kernel].gemv_vectors;
    out.row_tiles = (uint32_t)div_ceil((uint64_t)out.matrix.rows,
                                       rows_per_group(out.shape));
    out.vector_tiles =
        (uint32_t)div_ceil((uint64_t)out.vectors.rows, out.max_vectors);
    return out;
}

struct gemm_tiling gemv_tiling(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel)
{
    struct gemv_operands operands = operands_of(gemm, kernel);
    const struct gemv_shape *shape = operands.shape;
    return (struct gemm_tiling){
        .groups = (uint64_t)operands.row_tiles * operands.vector_tiles *
                  (uint64_t)gemm->batch,
        .k_tile = shape->lanes * shape->k_unroll *
                  (operands.matrix.is_mn_major ? 1 : 4),
        .cost_units = rows_per_group(shape),
        .matrix_is_mn_major = operands.matrix.is_mn_major};
}

bool gemv_supports(const struct tandem_gemm *gemm, enum gemm_kernel_id kernel)
{
    int64_t vectors = gemm->m < gemm->n ? gemm->m : gemm->n;
    return vectors <= 2 * (int64_t)gemm_configs[kernel].gemv_vectors &&
           gemm->a.ld < MAX_LD && gemm->b.ld < MAX_LD &&
           (kernel != GEMV_1_MN_MAJOR ||
            operands_of(gemm, kernel).matrix.is_mn_major);
}

static struct kernel_key key_of(const struct tandem_gemm *gemm,
                                const struct gemv_operands *operands,
                                enum gemm_kernel_id kernel)
{
    /* If there is a single vector, its leading dimension does not matter. */
    struct gemm_operand vectors = operands->vectors;
    struct tandem_matrix single = *vectors.matrix;
    single.ld = 0;
    if (vectors.rows == 1 && !vectors.is_mn_major)
        vectors.matrix = &single;
    bool vec4 = operand_is_vec4(gemm, vectors) &&
                (operands->max_vectors > 1 || !vectors.is_mn_major);
    struct kernel_key key = {.kernel = &kernel_gemv,
                             .group_log2 = operands->shape->group_log2,
                             .gemm_kernel = kernel,
                             .a_layout = operands->matrix.is_mn_major,
                             .b_layout = vectors.is_mn_major,
                             .vec4 = operand_is_vec4(gemm, operands->matrix),
                             .b_vec4 = vec4};
    kernel_key_set_types(&key, gemm);
    return key;
}

/* Returns true if the kernel adds its partial sums to totals after every
 * PARTIAL_DEPTH elements along k (HAS_TOTALS in cl/gemm/gemv.cl). */
static bool has_totals(const struct tandem_gemm *gemm,
                       const struct gemv_operands *operands)
{
    return operands->max_vectors == 1 ||
           (!operands->matrix.is_mn_major &&
            (operands->max_vectors < 16 ||
             operand_is_vec4(gemm, operands->matrix)));
}

/* Returns the smallest number of splits of k that keeps rounding errors in
 * bounds.  A kernel that adds its partial sums to totals needs one split.  In
 * other kernels, each split adds at most PARTIAL_TERMS products, unless this
 * would take more than MAX_SPLIT_K splits. */
static uint32_t min_splits(const struct tandem_gemm *gemm,
                           const struct gemv_operands *operands)
{
    uint64_t k = PARTIAL_TERMS * operands->shape->lanes;
    uint64_t splits = div_ceil((uint64_t)gemm->k, k);
    if (has_totals(gemm, operands))
        return 1;
    return splits < MAX_SPLIT_K ? (uint32_t)splits : MAX_SPLIT_K;
}

void plan_gemv(struct launch_plan *plan, const struct tandem_gemm *gemm,
               const struct tandem_tensor_desc *old, enum gemm_kernel_id kernel,
               uint32_t splits, uint32_t group_log2)
{
    struct gemv_operands operands = operands_of(gemm, kernel);
    struct gemm_tiling tiling = gemv_tiling(gemm, kernel);
    struct gemm_params params;
    gemm_params_fill(&params, gemm, tiling.k_tile,
                     max_u32(splits, min_splits(gemm, &operands)));
    /* The kernel expects the matrix as operand `a`. */
    gemm_params_set_operands(&params, operands.matrix.matrix,
                             operands.vectors.matrix, gemm->dtype);
    gemm_params_set_old(&params, old);
    gemm_params_set_tiles(&params, operands.row_tiles, operands.vector_tiles,
                          ALL_GEMM_TILES);
    params.flags |= operands.swapped ? OPERANDS_SWAPPED : 0;
    params.partial_offset = plan->temp_bytes / sizeof(float);
    bool split = params.splits > 1;
    if (split) {
        params.flags |= STORES_PARTIALS;
        plan->temp_bytes += params.splits * params.c_elements * sizeof(float);
    }
    struct kernel_key key = key_of(gemm, &operands, kernel);
    if (!split)
        gemm_key_set_activation(&key, gemm);
    struct kernel_step *step = plan_add_step(plan, &key, &params);
    step_add_gemm_c(step, gemm, !split, AT(gemm_params, c_offset));
    if (split)
        step_add_temp(step, true);
    else
        step_add_gemm_c(step, gemm, false, NO_OFFSET);
    step_add_gemm_operand(step, gemm, operands.matrix,
                          AT(gemm_params, a_offset));
    step_add_gemm_operand(step, gemm, operands.vectors,
                          AT(gemm_params, b_offset));
    step_add_gemm_bias(step, gemm, AT(gemm_params, bias_offset));
    step_add_gemm_old(step, gemm, split ? NULL : old);
    step->groups = tiling.groups * params.splits;
    if (split)
        plan_split_k_fixup(plan, gemm, old, &params, group_log2);
}
