/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of the kernels of matrix products. */
#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/program/warmup_call.h"

/* The operands of a sample. */
enum { C, A, B };

#define SIDE 4
/* One row more than a small tile has, so that there are two. */
#define TWO_TILES 33
/* Rows that are too long for a group to keep. */
#define LONG_DEPTH 4128

static void matrix_set(struct sample *out, struct tandem_matrix *matrix,
                       uint32_t operand, int64_t columns, bool shifted,
                       uint32_t dtype)
{
    matrix->buffer = &out->operands[operand];
    matrix->byte_offset = shifted ? dtype_bytes(dtype) : 0;
    matrix->ld = columns;
}

static uint64_t bytes_of(const struct tandem_matrix *matrix, int64_t rows,
                         int64_t columns, uint32_t dtype)
{
    return matrix->byte_offset +
           (uint64_t)((rows - 1) * matrix->ld + columns) * dtype_bytes(dtype);
}

/* A product of the key's dtypes and activation, a of m by k and b of k by n,
 * turned or not; shifted: an element into its buffer. */
struct form {
    int64_t m, n, k;
    bool turned_a, turned_b, shifted_a, shifted_b;
    uint32_t dtype; /* of a and b */
};

static struct tandem_gemm gemm_of(struct sample *out, uint64_t key,
                                  const struct form *form)
{
    struct tandem_gemm gemm = {
        .struct_size = sizeof(gemm),
        .dtype = form->dtype,
        .flags = (form->turned_a ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                 (form->turned_b ? TANDEM_GEMM_TRANSPOSE_B : 0u),
        .m = form->m,
        .n = form->n,
        .k = form->k,
        .batch = 1,
        .alpha = 1,
        .activation = KEY_OP(key),
        .activation_parameter = KEY_GELU_TANH(key),
        .c_dtype = warmup_call_dtype(key, 0)};
    matrix_set(out, &gemm.a, A, form->turned_a ? form->m : form->k,
               form->shifted_a, form->dtype);
    matrix_set(out, &gemm.b, B, form->turned_b ? form->k : form->n,
               form->shifted_b, form->dtype);
    matrix_set(out, &gemm.c, C, form->n, false, gemm.c_dtype);
    return gemm;
}

/* Of what was planned of gemm. */
static bool take(struct sample *out, uint64_t key,
                 const struct tandem_gemm *gemm)
{
    bool turned_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool turned_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    const uint64_t bytes[WARMUP_OPERANDS] = {
        [C] = bytes_of(&gemm->c, gemm->m, gemm->n, gemm->c_dtype),
        [A] = bytes_of(&gemm->a, turned_a ? gemm->k : gemm->m,
                       turned_a ? gemm->m : gemm->k, gemm->dtype),
        [B] = bytes_of(&gemm->b, turned_b ? gemm->n : gemm->k,
                       turned_b ? gemm->k : gemm->n, gemm->dtype)};
    return warmup_call_select_step(out, key, bytes);
}

static bool try_product(struct sample *out, uint64_t key,
                        const struct form *form, enum gemm_kernel_id tile,
                        struct split_k division)
{
    struct tandem_gemm gemm = gemm_of(out, key, form);
    plan_gemm(&out->plan, &gemm, tile, division, NULL, KEY_GROUP_LOG2(key));
    return take(out, key, &gemm);
}

/* One that has no tiles. */
static bool sample_plain(struct sample *out, uint64_t key)
{
    struct form form = {
        .m = 1, .n = 1, .k = 1, .dtype = warmup_call_dtype(key, 1)};
    struct tandem_gemm gemm = gemm_of(out, key, &form);
    if (KEY_KERNEL(key) == KERNEL_GEMM_NAIVE)
        plan_naive_gemm(&out->plan, &gemm, KEY_GROUP_LOG2(key));
    else
        plan_epilogue(&out->plan, &gemm, KEY_GROUP_LOG2(key), 1.0f);
    return take(out, key, &gemm);
}

static bool sample_tile(struct sample *out, uint64_t key)
{
    struct form form = {.m = SIDE,
                        .n = SIDE,
                        .k = SIDE,
                        .turned_a = KEY_A_MN_MAJOR(key) != 0,
                        .turned_b = KEY_B_MN_MAJOR(key) == 0,
                        .shifted_a = KEY_VEC4(key) == 0,
                        .shifted_b = KEY_SECOND_VEC4(key) == 0,
                        .dtype = warmup_call_dtype(key, 1)};
    return try_product(out, key, &form,
                       (enum gemm_kernel_id)KEY_GEMM_KERNEL(key), NO_SPLIT);
}

/* a is the wide operand.  A column that does not lie along k has gaps. */
static bool sample_skinny(struct sample *out, uint64_t key)
{
    int64_t narrow = (int64_t)1 << KEY_REGISTER_VEC4_LOG2(key);
    bool outer = KEY_B_MN_MAJOR(key) != 0;
    struct form form = {.m = 2 * narrow < SIDE ? SIDE : 2 * narrow,
                        .n = narrow,
                        .k = SIDE,
                        .turned_a = KEY_A_MN_MAJOR(key) != 0,
                        .turned_b = !outer,
                        .shifted_a = KEY_VEC4(key) == 0,
                        .shifted_b = KEY_SECOND_VEC4(key) == 0,
                        .dtype = warmup_call_dtype(key, 1)};
    struct tandem_gemm gemm = gemm_of(out, key, &form);
    if (outer && narrow == 1)
        gemm.b.ld = 2;
    plan_gemm(&out->plan, &gemm, (enum gemm_kernel_id)KEY_GEMM_KERNEL(key),
              NO_SPLIT, NULL, KEY_GROUP_LOG2(key));
    return take(out, key, &gemm);
}

/* What makes c of two or four parts, of all tiles or of the second one. */
static bool sample_join(struct sample *out, uint64_t key)
{
    uint32_t kernel = KEY_KERNEL(key);
    struct split_k division = {
        kernel == KERNEL_SPLIT_K_FIXUP_LANES ? 4 : 2,
        kernel == KERNEL_SPLIT_K_FIXUP_TILES ? 1 : ALL_GEMM_TILES};
    struct form form = {
        .m = kernel == KERNEL_SPLIT_K_FIXUP_TILES ? TWO_TILES : SIDE,
        .n = SIDE,
        .k = gemm_configs[GEMM_SIMT_32X64].k_tile * division.splits,
        .dtype = warmup_call_dtype(key, 1)};
    return try_product(out, key, &form, GEMM_SIMT_32X64, division);
}

static bool sample_pad(struct sample *out, uint64_t key)
{
    struct form form = {.m = SIDE,
                        .n = SIDE,
                        .k = SIDE,
                        .shifted_a = true,
                        .shifted_b = true,
                        .dtype = warmup_call_dtype(key, 0)};
    return try_product(out, key, &form, GEMM_SIMT_128X128, NO_SPLIT);
}

static bool sample_pack(struct sample *out, uint64_t key)
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
    bool held =
        KEY_KERNEL(key) == KERNEL_PACK_SINGLE_PASS || format != FORMAT_FP16X3;
    if (format > FORMAT_3XTF32)
        return false;
    struct form form = {.m = SIDE,
                        .n = SIDE,
                        .k = held ? SIDE : LONG_DEPTH,
                        .shifted_a = true,
                        .shifted_b = true,
                        .dtype = formats[format].dtype};
    return try_product(out, key, &form, formats[format].tile, NO_SPLIT);
}

bool warmup_call_make_gemm(struct sample *out, uint64_t key)
{
    switch (KEY_KERNEL(key)) {
    case KERNEL_GEMM_EPILOGUE:
    case KERNEL_GEMM_NAIVE:
        return sample_plain(out, key);
    case KERNEL_GEMM_SIMT:
        return sample_tile(out, key);
    case KERNEL_GEMV:
        return sample_skinny(out, key);
    case KERNEL_PAD_OPERANDS:
        return sample_pad(out, key);
    case KERNEL_PACK_MAXIMA:
    case KERNEL_PACK_OPERANDS:
    case KERNEL_PACK_SINGLE_PASS:
        return sample_pack(out, key);
    default:
        return sample_join(out, key);
    }
}
