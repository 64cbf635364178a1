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
        .activation_parameter = KEY_TANH(key),
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
                        const struct form *form, enum tile_id tile,
                        struct division division)
{
    struct tandem_gemm gemm = gemm_of(out, key, form);
    plan_product(&out->plan, &gemm, tile, division, NULL, KEY_GROUP_LOG2(key));
    return take(out, key, &gemm);
}

/* One that has no tiles. */
static bool sample_plain(struct sample *out, uint64_t key)
{
    struct form form = {
        .m = 1, .n = 1, .k = 1, .dtype = warmup_call_dtype(key, 1)};
    struct tandem_gemm gemm = gemm_of(out, key, &form);
    if (KEY_KERNEL(key) == KERNEL_MULTIPLY)
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
                        .turned_a = KEY_A_OUTER(key) != 0,
                        .turned_b = KEY_B_OUTER(key) == 0,
                        .shifted_a = KEY_VECTOR(key) == 0,
                        .shifted_b = KEY_SECOND_VECTOR(key) == 0,
                        .dtype = warmup_call_dtype(key, 1)};
    return try_product(out, key, &form, (enum tile_id)KEY_TILE(key), WHOLE);
}

/* a is the wide operand.  A column that does not lie along k has gaps. */
static bool sample_skinny(struct sample *out, uint64_t key)
{
    int64_t narrow = (int64_t)1 << KEY_HELD_LOG2(key);
    bool outer = KEY_B_OUTER(key) != 0;
    struct form form = {.m = 2 * narrow < SIDE ? SIDE : 2 * narrow,
                        .n = narrow,
                        .k = SIDE,
                        .turned_a = KEY_A_OUTER(key) != 0,
                        .turned_b = !outer,
                        .shifted_a = KEY_VECTOR(key) == 0,
                        .shifted_b = KEY_SECOND_VECTOR(key) == 0,
                        .dtype = warmup_call_dtype(key, 1)};
    struct tandem_gemm gemm = gemm_of(out, key, &form);
    if (outer && narrow == 1)
        gemm.b.ld = 2;
    plan_product(&out->plan, &gemm, (enum tile_id)KEY_TILE(key), WHOLE, NULL,
                 KEY_GROUP_LOG2(key));
    return take(out, key, &gemm);
}

/* What makes c of two or four parts, of all tiles or of the second one. */
static bool sample_join(struct sample *out, uint64_t key)
{
    uint32_t kernel = KEY_KERNEL(key);
    struct division division = {kernel == KERNEL_JOIN_LANES ? 4 : 2,
                                kernel == KERNEL_JOIN_TILES ? 1 : ALL_TILES};
    struct form form = {.m = kernel == KERNEL_JOIN_TILES ? TWO_TILES : SIDE,
                        .n = SIDE,
                        .k = tiles[TILE_SMALL].slice * division.splits,
                        .dtype = warmup_call_dtype(key, 1)};
    return try_product(out, key, &form, TILE_SMALL, division);
}

static bool sample_pad(struct sample *out, uint64_t key)
{
    struct form form = {.m = SIDE,
                        .n = SIDE,
                        .k = SIDE,
                        .shifted_a = true,
                        .shifted_b = true,
                        .dtype = warmup_call_dtype(key, 0)};
    return try_product(out, key, &form, GEMM_SIMT_128X128, WHOLE);
}

static bool sample_pack(struct sample *out, uint64_t key)
{
    static const struct {
        uint32_t dtype;
        enum tile_id tile;
    } formats[] = {[FORMAT_F16] = {TANDEM_F16, TILE_HALF_MEDIUM},
                   [FORMAT_BF16] = {TANDEM_BF16, TILE_HALF_MEDIUM},
                   [FORMAT_TF32] = {TANDEM_F32, TILE_TF32_MEDIUM},
                   [FORMAT_PAIR] = {TANDEM_F32, TILE_PAIR_MEDIUM},
                   [FORMAT_SPLIT] = {TANDEM_F32, TILE_WGMMA_SPLIT_MEDIUM}};
    uint32_t format =
        KEY_KERNEL(key) == KERNEL_PACK ? KEY_FORMAT(key) : FORMAT_PAIR;
    bool held = KEY_KERNEL(key) == KERNEL_PACK_HELD || format != FORMAT_PAIR;
    if (format > FORMAT_SPLIT)
        return false;
    struct form form = {.m = SIDE,
                        .n = SIDE,
                        .k = held ? SIDE : LONG_DEPTH,
                        .shifted_a = true,
                        .shifted_b = true,
                        .dtype = formats[format].dtype};
    return try_product(out, key, &form, formats[format].tile, WHOLE);
}

bool warmup_call_make_gemm(struct sample *out, uint64_t key)
{
    switch (KEY_KERNEL(key)) {
    case KERNEL_EPILOGUE:
    case KERNEL_MULTIPLY:
        return sample_plain(out, key);
    case KERNEL_PRODUCT:
        return sample_tile(out, key);
    case KERNEL_SKINNY:
        return sample_skinny(out, key);
    case KERNEL_PAD:
        return sample_pad(out, key);
    case KERNEL_PACK_MAXIMA:
    case KERNEL_PACK:
    case KERNEL_PACK_HELD:
        return sample_pack(out, key);
    default:
        return sample_join(out, key);
    }
}
