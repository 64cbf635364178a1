/* SPDX-License-Identifier: Apache-2.0 */
/* Finds warm-up calls for the kernels of a GEMM. */
#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/program/warmup_call.h"

/* Indices of the operands in a warm-up call. */
enum { C, A, B };

#define SIDE 4
/* Number of rows for which GEMM_SIMT_32X64 needs two tiles. */
#define TWO_TILES 33
/* Value of k for which a row does not fit in the registers of a work-group. */
#define LONG_K 4128

static void matrix_set(struct warmup_call *out, struct tandem_matrix *matrix,
                       uint32_t operand, int64_t columns, bool shifted,
                       uint32_t dtype)
{
    matrix->buffer = &out->operands[operand];
    matrix->byte_offset = shifted ? dtype_bytes(dtype) : 0;
    matrix->ld = columns;
}

static uint64_t matrix_bytes(const struct tandem_matrix *matrix, int64_t rows,
                             int64_t columns, uint32_t dtype)
{
    return matrix->byte_offset +
           (uint64_t)((rows - 1) * matrix->ld + columns) * dtype_bytes(dtype);
}

/* Shape of a GEMM and layout of its operands.  An operand with an offset starts
 * at the second element of its buffer. */
struct gemm_shape {
    int64_t m, n, k;
    bool transposed_a, transposed_b, offset_a, offset_b;
    uint32_t dtype; /* dtype of a and b */
};

static struct tandem_gemm gemm_of(struct warmup_call *out, uint64_t key,
                                  const struct gemm_shape *shape)
{
    struct tandem_gemm gemm = {
        .struct_size = sizeof(gemm),
        .dtype = shape->dtype,
        .flags = (shape->transposed_a ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                 (shape->transposed_b ? TANDEM_GEMM_TRANSPOSE_B : 0u),
        .m = shape->m,
        .n = shape->n,
        .k = shape->k,
        .batch = 1,
        .alpha = 1,
        .activation = KEY_OP(key),
        .activation_parameter = KEY_GELU_TANH(key),
        .c_dtype = warmup_call_dtype(key, 0)};
    matrix_set(out, &gemm.a, A, shape->transposed_a ? shape->m : shape->k,
               shape->offset_a, shape->dtype);
    matrix_set(out, &gemm.b, B, shape->transposed_b ? shape->k : shape->n,
               shape->offset_b, shape->dtype);
    matrix_set(out, &gemm.c, C, shape->n, false, gemm.c_dtype);
    return gemm;
}

/* Selects the step that runs `key` in the plan of `gemm`. */
static bool select_step(struct warmup_call *out, uint64_t key,
                        const struct tandem_gemm *gemm)
{
    bool transposed_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool transposed_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    const uint64_t bytes[WARMUP_OPERANDS] = {
        [C] = matrix_bytes(&gemm->c, gemm->m, gemm->n, gemm->c_dtype),
        [A] = matrix_bytes(&gemm->a, transposed_a ? gemm->k : gemm->m,
                           transposed_a ? gemm->m : gemm->k, gemm->dtype),
        [B] = matrix_bytes(&gemm->b, transposed_b ? gemm->n : gemm->k,
                           transposed_b ? gemm->k : gemm->n, gemm->dtype)};
    return warmup_call_select_step(out, key, bytes);
}

static bool try_gemm(struct warmup_call *out, uint64_t key,
                     const struct gemm_shape *shape, enum gemm_kernel_id tile,
                     struct split_k division)
{
    struct tandem_gemm gemm = gemm_of(out, key, shape);
    plan_gemm(&out->plan, &gemm, tile, division, NULL, KEY_GROUP_LOG2(key));
    return select_step(out, key, &gemm);
}

/* Makes the call for the naive GEMM kernel or for the epilogue kernel. */
static bool warmup_naive(struct warmup_call *out, uint64_t key)
{
    struct gemm_shape shape = {
        .m = 1, .n = 1, .k = 1, .dtype = warmup_call_dtype(key, 1)};
    struct tandem_gemm gemm = gemm_of(out, key, &shape);
    if (KEY_KERNEL(key) == KERNEL_GEMM_NAIVE)
        plan_naive_gemm(&out->plan, &gemm, KEY_GROUP_LOG2(key));
    else
        plan_epilogue(&out->plan, &gemm, KEY_GROUP_LOG2(key), 1.0f);
    return select_step(out, key, &gemm);
}

static bool warmup_simt(struct warmup_call *out, uint64_t key)
{
    struct gemm_shape shape = {.m = SIDE,
                               .n = SIDE,
                               .k = SIDE,
                               .transposed_a = KEY_A_MN_MAJOR(key) != 0,
                               .transposed_b = KEY_B_MN_MAJOR(key) == 0,
                               .offset_a = KEY_VEC4(key) == 0,
                               .offset_b = KEY_SECOND_VEC4(key) == 0,
                               .dtype = warmup_call_dtype(key, 1)};
    return try_gemm(out, key, &shape, (enum gemm_kernel_id)KEY_GEMM_KERNEL(key),
                    NO_SPLIT);
}

/* Makes the call for a GEMV kernel.  The operand a is the matrix.  A vector b
 * that is not contiguous along k has gaps between its elements. */
static bool warmup_gemv(struct warmup_call *out, uint64_t key)
{
    int64_t vectors = (int64_t)1 << KEY_GEMV_VECTORS_LOG2(key);
    bool mn_major = KEY_B_MN_MAJOR(key) != 0;
    struct gemm_shape shape = {.m = 2 * vectors < SIDE ? SIDE : 2 * vectors,
                               .n = vectors,
                               .k = SIDE,
                               .transposed_a = KEY_A_MN_MAJOR(key) != 0,
                               .transposed_b = !mn_major,
                               .offset_a = KEY_VEC4(key) == 0,
                               .offset_b = KEY_SECOND_VEC4(key) == 0,
                               .dtype = warmup_call_dtype(key, 1)};
    struct tandem_gemm gemm = gemm_of(out, key, &shape);
    if (mn_major && vectors == 1)
        gemm.b.ld = 2;
    plan_gemm(&out->plan, &gemm, (enum gemm_kernel_id)KEY_GEMM_KERNEL(key),
              NO_SPLIT, NULL, KEY_GROUP_LOG2(key));
    return select_step(out, key, &gemm);
}

/* Makes the call for the fixup kernel, which adds the partial sums of two or
 * four splits, either of all tiles or of the second tile. */
static bool warmup_fixup(struct warmup_call *out, uint64_t key)
{
    uint32_t kernel = KEY_KERNEL(key);
    struct split_k division = {
        kernel == KERNEL_SPLIT_K_FIXUP_LANES ? 4 : 2,
        kernel == KERNEL_SPLIT_K_FIXUP_TILES ? 1 : ALL_GEMM_TILES};
    struct gemm_shape shape = {
        .m = kernel == KERNEL_SPLIT_K_FIXUP_TILES ? TWO_TILES : SIDE,
        .n = SIDE,
        .k = gemm_configs[GEMM_SIMT_32X64].k_tile * division.splits,
        .dtype = warmup_call_dtype(key, 1)};
    return try_gemm(out, key, &shape, GEMM_SIMT_32X64, division);
}

static bool warmup_pad(struct warmup_call *out, uint64_t key)
{
    struct gemm_shape shape = {.m = SIDE,
                               .n = SIDE,
                               .k = SIDE,
                               .offset_a = true,
                               .offset_b = true,
                               .dtype = warmup_call_dtype(key, 0)};
    return try_gemm(out, key, &shape, GEMM_SIMT_128X128, NO_SPLIT);
}

static bool warmup_pack(struct warmup_call *out, uint64_t key)
{
    static const struct {
        uint32_t dtype;
        enum gemm_kernel_id tile;
    } formats[] = {[FORMAT_F16] = {TANDEM_F16, GEMM_MMA_16BIT_128X64},
                   [FORMAT_BF16] = {TANDEM_BF16, GEMM_MMA_16BIT_128X64},
                   [FORMAT_TF32] = {TANDEM_F32, GEMM_MMA_TF32_128X64},
                   [FORMAT_FP16X3] = {TANDEM_F32, GEMM_MMA_FP16X3_64X64},
                   [FORMAT_3XTF32] = {TANDEM_F32, GEMM_WGMMA_3XTF32_128X64}};
    uint32_t format = KEY_KERNEL(key) == KERNEL_PACK_OPERANDS ? KEY_FORMAT(key)
                                                              : FORMAT_FP16X3;
    bool in_registers =
        KEY_KERNEL(key) == KERNEL_PACK_SINGLE_PASS || format != FORMAT_FP16X3;
    if (format > FORMAT_3XTF32)
        return false;
    struct gemm_shape shape = {.m = SIDE,
                               .n = SIDE,
                               .k = in_registers ? SIDE : LONG_K,
                               .offset_a = true,
                               .offset_b = true,
                               .dtype = formats[format].dtype};
    return try_gemm(out, key, &shape, formats[format].tile, NO_SPLIT);
}

bool warmup_call_make_gemm(struct warmup_call *out, uint64_t key)
{
    switch (KEY_KERNEL(key)) {
    case KERNEL_GEMM_EPILOGUE:
    case KERNEL_GEMM_NAIVE:
        return warmup_naive(out, key);
    case KERNEL_GEMM_SIMT:
        return warmup_simt(out, key);
    case KERNEL_GEMV:
        return warmup_gemv(out, key);
    case KERNEL_PAD_OPERANDS:
        return warmup_pad(out, key);
    case KERNEL_PACK_MAXIMA:
    case KERNEL_PACK_OPERANDS:
    case KERNEL_PACK_SINGLE_PASS:
        return warmup_pack(out, key);
    default:
        return warmup_fixup(out, key);
    }
}
