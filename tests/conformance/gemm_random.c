/* SPDX-License-Identifier: Apache-2.0 */
/* Random GEMMs; see gemm.h. */
#include "gemm.h"

#include "element_value.h"

#include <math.h>

/* One dimension is small, for which there are separate kernels. */
static void narrow_sizes_draw(struct tandem_gemm *gemm, struct random *random)
{
    static const int64_t narrow[] = {1, 1, 2, 3, 4, 5, 8, 10, 16, 17, 31, 32};
    const bool is_large = random_once_in(random, 4);
    int64_t wide = is_large ? random_between(random, 700, 1500)
                            : random_between(random, 1, 300);

    gemm->m = narrow[random_below(random, COUNT_OF(narrow))];
    gemm->n = wide;
    if (random_once_in(random, 2)) {
        gemm->n = gemm->m;
        gemm->m = wide;
    }
    gemm->k = is_large ? random_between(random, 200, 1200)
                       : random_between(random, 1, 300);
}

/* Selects m, n and k: small, one of them 1, a large k, or 0. */
static void sizes_draw(struct tandem_gemm *gemm, struct random *random)
{
    int64_t *sizes[3] = {&gemm->m, &gemm->n, &gemm->k};
    uint64_t kind = random_below(random, 16);

    for (uint32_t i = 0; i < 3; i++)
        *sizes[i] = random_between(random, 1, kind < 8 ? 17 : 40);
    if (kind == 8) {
        gemm->m = random_between(random, 1, 6);
        gemm->n = random_between(random, 1, 6);
        gemm->k = random_between(random, 1000, 9000);
    }
    if (kind == 9)
        *sizes[random_below(random, 2)] = random_between(random, 200, 1100);
    if (kind == 10)
        *sizes[random_below(random, 3)] = 0;
    if (kind == 11)
        *sizes[random_below(random, 3)] = 1;
    if (kind == 13)
        narrow_sizes_draw(gemm, random);
    if (kind == 12 && random_once_in(random, 8))
        for (uint32_t i = 0; i < 3; i++)
            *sizes[i] = random_between(random, 100, 150);
    gemm->batch = random_once_in(random, 3) ? random_between(random, 2, 5) : 1;
    /* Sometimes a row length that is a multiple of the vector width. */
    if (random_once_in(random, 4))
        for (uint32_t i = 0; i < 3; i++)
            *sizes[i] = (*sizes[i] + 3) / 4 * 4;
}

/*
 * If an axis has at most one element, sometimes replaces its stride, which
 * does not affect any address.
 */
static void unused_stride_replace(struct random *random, int64_t elements,
                                  int64_t axis, int64_t *stride)
{
    static const int64_t others[] = {INT64_MIN, -3, 0, INT64_MAX};

    if ((elements == 0 || axis == 1) && random_once_in(random, 4))
        *stride = others[random_below(random, 4)];
}

/* Creates one matrix operand of rows x columns as stored. */
static void matrix_draw(struct call *p, struct random *random, uint32_t place,
                        uint32_t dtype, int64_t rows, int64_t columns,
                        struct tandem_matrix *out)
{
    bool output = place == 3;
    int64_t batch = p->gemm.batch;
    int64_t shape[3] = {batch, rows, columns};
    int64_t width = columns < 1 ? 1 : columns;
    int64_t strides[3] = {0, width, 1};
    int64_t lead = random_once_in(random, 2) ? 0 : random_between(random, 0, 9);
    int64_t trail = random_once_in(random, 2) ? 0 : 64;

    if (random_once_in(random, 2))
        strides[1] += random_between(random, 0, 9);
    strides[0] = rows * strides[1];
    if (random_once_in(random, 2))
        strides[0] += random_between(random, 0, 9);
    /* Batches next to each other in the rows. */
    if (random_once_in(random, 6)) {
        strides[0] = width;
        strides[1] = batch * width;
    } else if (!output && random_once_in(random, 3)) {
        strides[0] = random_once_in(random, 2)
                         ? 0
                         : random_between(random, 0, strides[0]);
    }
    if (batch == 1 && random_once_in(random, 4))
        strides[0] = 0;
    operand_init_strided(&p->operands[place], dtype, 3, shape, strides, lead,
                         trail);
    out->byte_offset = p->operands[place].desc.byte_offset;
    out->ld = strides[1];
    out->batch_stride = strides[0];
    unused_stride_replace(random, batch * rows * columns, rows, &out->ld);
    unused_stride_replace(random, batch * rows * columns, batch,
                          &out->batch_stride);
}

static void bias_draw(struct call *p, struct random *random, uint32_t dtype)
{
    int64_t n =
        p->gemm.bias_kind == TANDEM_BIAS_PER_ROW ? p->gemm.m : p->gemm.n;
    int64_t stride = 1;

    operand_init_strided(&p->operands[2], dtype, 1, &n, &stride,
                         random_between(random, 0, 5),
                         random_once_in(random, 2) ? 0 : 64);
    p->gemm.bias_byte_offset = p->operands[2].desc.byte_offset;
    if (p->gemm.bias_kind == TANDEM_BIAS_NONE)
        p->without_buffer |= 1u << 2;
}

static void options_draw(struct tandem_gemm *gemm, struct random *random,
                         const struct block *block)
{
    static const double factors[] = {1.0, 1.0, 1.0, 0.5, -1.0, 1e-3, 700.0};
    static const double betas[] = {0.0, 0.0, 0.0, 1.0, -0.5, 1e3};

    gemm->flags = (uint32_t)random_u64(random) &
                  (TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B);
    if (random_once_in(random, 8))
        gemm->flags |= TANDEM_GEMM_ALLOW_TF32;
    if (random_once_in(random, 8))
        gemm->flags |= TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    gemm->alpha = factors[random_below(random, 7)];
    gemm->beta = betas[random_below(random, 6)];
    gemm->bias_kind = (uint32_t)random_below(random, 3);
    gemm->activation = random_below(random, 2) == 0 ? TANDEM_OP_INVALID
                                                    : activation_draw(block);
    if (gemm->activation == TANDEM_OP_GELU)
        gemm->activation_parameter = (double)random_below(random, 2);
    else
        gemm->activation_parameter = (double)(float)random_normal(random);
    if (gemm->activation == TANDEM_OP_CELU)
        gemm->activation_parameter = fabs(gemm->activation_parameter) + 0.125;
    gemm->activation_parameter2 = (double)(float)random_normal(random);
}

static uint32_t block_dtype(const struct block *block, uint32_t number)
{
    static const uint32_t dtypes[] = {TANDEM_F32, TANDEM_F32, TANDEM_F32,
                                      TANDEM_F16, TANDEM_BF16};

    return dtypes[block->numbers[number] % COUNT_OF(dtypes)];
}

void gemm_draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct tandem_gemm *gemm = &call->gemm;
    const uint32_t c_dtype =
        random_once_in(random, 2) ? 0 : block_dtype(block, 4);
    uint32_t stored;
    bool ta, tb;

    gemm->struct_size = sizeof(*gemm);
    gemm->dtype = block_dtype(block, 3);
    gemm->c_dtype = c_dtype;
    stored = c_dtype != 0 ? c_dtype : gemm->dtype;
    gemm_require(call, gemm->dtype, stored);
    sizes_draw(gemm, random);
    options_draw(gemm, random, block);
    call->output_is_read = (float)gemm->beta != 0.0f;
    ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    matrix_draw(call, random, 0, gemm->dtype, ta ? gemm->k : gemm->m,
                ta ? gemm->m : gemm->k, &gemm->a);
    matrix_draw(call, random, 1, gemm->dtype, tb ? gemm->n : gemm->k,
                tb ? gemm->k : gemm->n, &gemm->b);
    bias_draw(call, random, stored);
    matrix_draw(call, random, 3, stored, gemm->m, gemm->n, &gemm->c);
}

/* Removes subnormal elements, which a device may flush to zero. */
static void subnormals_clear(struct operand *operand)
{
    for (int64_t i = 0; i < operand->elements; i++)
        operand_set(operand, i,
                    bits_flushed(operand->desc.dtype, operand_get(operand, i)));
}

bool gemm_fill(struct call *call, uint32_t input, const struct spread *spread)
{
    static const struct spread normal = {.kind = SPREAD_NORMAL};
    struct spread values = *spread;

    if (call->gemm.flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR)
        values.special = SPECIAL_NONE;
    for (uint32_t i = input; i < (input == 2 ? 4u : input + 1u); i++) {
        const bool usual = i >= 2 && random_once_in(call->random, 2);

        if (i == 3 && call->gemm.beta == 0.0)
            continue;
        reals_fill(&call->operands[i], usual ? &normal : &values, call->random);
        subnormals_clear(&call->operands[i]);
    }
    return true;
}
