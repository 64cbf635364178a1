/* SPDX-License-Identifier: Apache-2.0 */
/* Finds warm-up calls for the kernels of a GEMM, and chooses dtypes and plan
 * steps for the warm-up calls of all operators. */
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

/* ---- all operators ---- */

uint32_t warmup_call_dtype(uint64_t key, uint32_t operand)
{
    static const uint32_t dtypes[16] = {
        [TYPE_FLOAT] = TANDEM_F32,  [TYPE_INT] = TANDEM_I32,
        [TYPE_LONG] = TANDEM_I64,   [TYPE_UCHAR] = TANDEM_U8,
        [TYPE_USHORT] = TANDEM_F16, [TYPE_UINT] = TANDEM_F32,
        [TYPE_ULONG] = TANDEM_I64,  [TYPE_BOOL] = TANDEM_BOOL,
        [TYPE_F16] = TANDEM_F16,    [TYPE_BF16] = TANDEM_BF16};
    return dtypes[KEY_TYPE(key, operand)];
}

static uint64_t without_64bit_flag(uint64_t key)
{
    return key & ~variant_key_kernel(0, 0, true, 0);
}

bool warmup_call_select_step(struct warmup_call *out, uint64_t key,
                             const uint64_t *operand_bytes)
{
    const struct kernel_step *step = out->plan.step;
    const struct kernel_step *end = step + out->plan.step_count;
    while (step < end &&
           without_64bit_flag(step->key) != without_64bit_flag(key))
        step++;
    if (step == end)
        return false;
    out->step = step;
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        const struct tandem_buffer *buffer = step->buffers[i];
        uint64_t bytes =
            buffer != NULL ? operand_bytes[buffer - out->operands]
            : step->arrival_counters != 0 && step->arrival_counters == i
                ? ARRIVAL_COUNTERS * sizeof(uint32_t)
                : out->plan.temp_bytes;
        out->bytes[i] = (bytes + 3) / 4 * 4;
    }
    return true;
}

/* ---- GEMM ---- */

/* Sets the buffer of a matrix.  Also sets the row pitch if the caller has not
 * set it.  Returns the size of the buffer in bytes. */
static uint64_t matrix_set(struct tandem_matrix *matrix,
                           struct tandem_buffer *buffer, int64_t rows,
                           int64_t columns, uint32_t dtype)
{
    matrix->buffer = buffer;
    if (matrix->ld == 0)
        matrix->ld = columns;
    return matrix->byte_offset +
           (uint64_t)((rows - 1) * matrix->ld + columns) * dtype_bytes(dtype);
}

/* Plans `gemm` and selects the step that runs `key`.  The caller has set the
 * sizes, flags and offsets of `gemm`, and the dtype of a and b. */
static bool try_gemm(struct warmup_call *out, uint64_t key,
                     struct tandem_gemm *gemm, enum gemm_kernel_id tile,
                     struct split_k division)
{
    int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    bool transposed_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool transposed_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    uint64_t bytes[WARMUP_OPERANDS];
    gemm->struct_size = sizeof(*gemm);
    gemm->batch = 1;
    gemm->alpha = 1;
    gemm->activation = KEY_OP(key);
    gemm->activation_parameter = KEY_GELU_TANH(key);
    gemm->c_dtype = warmup_call_dtype(key, 0);
    bytes[C] = matrix_set(&gemm->c, &out->operands[C], m, n, gemm->c_dtype);
    bytes[A] = matrix_set(&gemm->a, &out->operands[A], transposed_a ? k : m,
                          transposed_a ? m : k, gemm->dtype);
    bytes[B] = matrix_set(&gemm->b, &out->operands[B], transposed_b ? n : k,
                          transposed_b ? k : n, gemm->dtype);
    if (KEY_KERNEL(key) == KERNEL_GEMM_NAIVE)
        plan_naive_gemm(&out->plan, gemm, KEY_GROUP_LOG2(key));
    else if (KEY_KERNEL(key) == KERNEL_GEMM_EPILOGUE)
        plan_epilogue(&out->plan, gemm, KEY_GROUP_LOG2(key), 1.0f);
    else
        plan_gemm(&out->plan, gemm, tile, division, NULL, KEY_GROUP_LOG2(key));
    return warmup_call_select_step(out, key, bytes);
}

/* Makes the call for a SIMT or GEMV kernel.  For a GEMV, operand `a` is the
 * matrix, and a single vector that is not contiguous along k has gaps between
 * its elements.  Operands that are not read as aligned vec4 start at the second
 * element of their buffers. */
static bool warmup_simt_or_gemv(struct warmup_call *out, uint64_t key,
                                struct tandem_gemm *gemm)
{
    bool a_is_mn_major = KEY_A_MN_MAJOR(key) != 0;
    bool b_is_mn_major = KEY_B_MN_MAJOR(key) != 0;
    gemm->flags = (a_is_mn_major ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                  (b_is_mn_major ? 0u : TANDEM_GEMM_TRANSPOSE_B);
    if (KEY_VEC4(key) == 0)
        gemm->a.byte_offset = dtype_bytes(gemm->dtype);
    if (KEY_SECOND_VEC4(key) == 0)
        gemm->b.byte_offset = dtype_bytes(gemm->dtype);
    if (KEY_KERNEL(key) == KERNEL_GEMV) {
        gemm->n = (int64_t)1 << KEY_GEMV_VECTORS_LOG2(key);
        gemm->m = 2 * gemm->n < SIDE ? SIDE : 2 * gemm->n;
        if (b_is_mn_major && gemm->n == 1)
            gemm->b.ld = 2;
    }
    return try_gemm(out, key, gemm, (enum gemm_kernel_id)KEY_GEMM_KERNEL(key),
                    NO_SPLIT);
}

/* Makes the call for a fixup kernel, which adds partial sums.  In this call, k
 * is split into two or four ranges, for all tiles or only for the second
 * tile. */
static bool warmup_fixup(struct warmup_call *out, uint64_t key,
                         struct tandem_gemm *gemm)
{
    struct split_k division = {2, ALL_GEMM_TILES};
    if (KEY_KERNEL(key) == KERNEL_SPLIT_K_FIXUP_LANES)
        division.splits = 4;
    if (KEY_KERNEL(key) == KERNEL_SPLIT_K_FIXUP_TILES) {
        division.split_tiles = 1;
        gemm->m = TWO_TILES;
    }
    gemm->k = gemm_configs[GEMM_SIMT_32X64].k_tile * division.splits;
    return try_gemm(out, key, gemm, GEMM_SIMT_32X64, division);
}

/* Makes the call for a kernel that packs or pads operands.  The operands start
 * at the second element of their buffers, so that packing is necessary. */
static bool warmup_copy(struct warmup_call *out, uint64_t key,
                        struct tandem_gemm *gemm)
{
    static const struct {
        uint32_t dtype;
        enum gemm_kernel_id tile;
    } formats[8] = {[FORMAT_F16] = {TANDEM_F16, GEMM_MMA_16BIT_128X64},
                    [FORMAT_BF16] = {TANDEM_BF16, GEMM_MMA_16BIT_128X64},
                    [FORMAT_TF32] = {TANDEM_F32, GEMM_MMA_TF32_128X64},
                    [FORMAT_FP16X3] = {TANDEM_F32, GEMM_MMA_FP16X3_64X64},
                    [FORMAT_3XTF32] = {TANDEM_F32, GEMM_WGMMA_3XTF32_128X64}};
    uint32_t kernel = KEY_KERNEL(key);
    uint32_t format =
        kernel == KERNEL_PACK_OPERANDS ? KEY_FORMAT(key) : FORMAT_FP16X3;
    bool pads = kernel == KERNEL_PAD_OPERANDS;
    if (!pads && kernel != KERNEL_PACK_SINGLE_PASS && format == FORMAT_FP16X3)
        gemm->k = LONG_K;
    gemm->dtype = pads ? warmup_call_dtype(key, 0) : formats[format].dtype;
    gemm->a.byte_offset = gemm->b.byte_offset = dtype_bytes(gemm->dtype);
    return try_gemm(out, key, gemm,
                    pads ? GEMM_SIMT_128X128 : formats[format].tile, NO_SPLIT);
}

bool warmup_call_make_gemm(struct warmup_call *out, uint64_t key)
{
    struct tandem_gemm gemm = {
        .m = SIDE, .n = SIDE, .k = SIDE, .dtype = warmup_call_dtype(key, 1)};
    switch (KEY_KERNEL(key)) {
    case KERNEL_GEMM_EPILOGUE:
    case KERNEL_GEMM_NAIVE:
        gemm.m = gemm.n = gemm.k = 1;
        return try_gemm(out, key, &gemm, GEMM_SIMT_32X64, NO_SPLIT);
    case KERNEL_GEMM_SIMT:
    case KERNEL_GEMV:
        return warmup_simt_or_gemv(out, key, &gemm);
    case KERNEL_PAD_OPERANDS:
    case KERNEL_PACK_MAXIMA:
    case KERNEL_PACK_OPERANDS:
    case KERNEL_PACK_SINGLE_PASS:
        return warmup_copy(out, key, &gemm);
    default:
        return warmup_fixup(out, key, &gemm);
    }
}
