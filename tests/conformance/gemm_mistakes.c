/* SPDX-License-Identifier: Apache-2.0 */
/* Table of invalid calls of gemm; see mistakes.h. */
#include "mistakes.h"

#include <math.h>

#define BYTES MISTAKE_BYTES
/* Flags of a mistake in a buffer that the header requires to be rejected. */
#define INVALID_BUFFER (IN_BUFFER | ALWAYS_INVALID)

void mistaken_gemm_reset(struct mistaken_gemm *p)
{
    p->gemm = (struct tandem_gemm){
        .struct_size = sizeof(p->gemm),
        .dtype = TANDEM_F32,
        .m = 3,
        .n = 5,
        .k = 4,
        .batch = 2,
        .alpha = 1.0,
        .a = {p->buffer, 0, 4, 12},
        .b = {p->buffer, 512, 5, 20},
        .c = {p->buffer, 1024, 5, 15},
        .bias = p->buffer,
        .bias_byte_offset = 2048,
        .bias_kind = TANDEM_BIAS_PER_COLUMN,
        .activation = TANDEM_OP_RELU,
    };
    if (p->plain) {
        p->gemm.bias = NULL;
        p->gemm.bias_byte_offset = 0;
        p->gemm.bias_kind = TANDEM_BIAS_NONE;
        p->gemm.activation = TANDEM_OP_INVALID;
    }
    p->pointer = &p->gemm;
}

#define MISTAKE(name, statement)                                               \
    static void name(struct mistaken_gemm *p)                                  \
    {                                                                          \
        statement;                                                             \
    }

MISTAKE(gemm_null, p->pointer = NULL)
MISTAKE(size_zero, p->gemm.struct_size = 0)
MISTAKE(size_short, p->gemm.struct_size = TANDEM_GEMM_MIN_SIZE_1_0 - 1)
MISTAKE(dtype_bool, p->gemm.dtype = TANDEM_BOOL)
MISTAKE(dtype_unknown, p->gemm.dtype = 0x7777)
MISTAKE(c_dtype_bool, p->gemm.c_dtype = TANDEM_BOOL)
MISTAKE(c_dtype_unknown, p->gemm.c_dtype = 0x7777)
MISTAKE(m_negative, p->gemm.m = -1)
MISTAKE(n_negative, p->gemm.n = -2)
MISTAKE(k_negative, p->gemm.k = -3)
MISTAKE(batch_zero, p->gemm.batch = 0)
MISTAKE(batch_negative, p->gemm.batch = -1)
MISTAKE(m_huge, p->gemm.m = INT64_C(1) << 40)
MISTAKE(all_huge, p->gemm.m = p->gemm.n = p->gemm.a.ld = p->gemm.b.ld =
                      p->gemm.c.ld = INT64_C(1) << 40)
MISTAKE(ld_a, p->gemm.a.ld = 3)
MISTAKE(ld_b, p->gemm.b.ld = 4)
MISTAKE(ld_c, p->gemm.c.ld = 4)
MISTAKE(ld_negative, p->gemm.a.ld = -4)
MISTAKE(stride_zero, p->gemm.c.batch_stride = 0)
MISTAKE(stride_overlaps, p->gemm.c.batch_stride = 7)
MISTAKE(stride_negative, p->gemm.a.batch_stride = -12)
MISTAKE(a_null, p->gemm.a.buffer = NULL)
MISTAKE(c_null, p->gemm.c.buffer = NULL)
MISTAKE(a_foreign, p->gemm.a.buffer = p->other_device_object)
MISTAKE(c_foreign, p->gemm.c.buffer = p->other_device_object)
MISTAKE(b_freed, p->gemm.b.buffer = p->freed)
MISTAKE(a_past, p->gemm.a.byte_offset = BYTES - 92)
MISTAKE(c_past, p->gemm.c.byte_offset = BYTES - 116)
MISTAKE(offset_absurd, p->gemm.b.byte_offset = UINT64_MAX - 3)
MISTAKE(offset_odd, p->gemm.b.byte_offset = 514)
MISTAKE(bias_null, p->gemm.bias = NULL)
MISTAKE(bias_kind, p->gemm.bias_kind = 3)
MISTAKE(bias_unkind, p->gemm.bias_kind = TANDEM_BIAS_NONE)
MISTAKE(bias_past, p->gemm.bias_byte_offset = BYTES - 16)
MISTAKE(activation_add, p->gemm.activation = TANDEM_OP_ADD)
MISTAKE(activation_unknown, p->gemm.activation = 99)
static void gelu(struct mistaken_gemm *p, double form)
{
    p->gemm.activation = TANDEM_OP_GELU;
    p->gemm.activation_parameter = form;
}

MISTAKE(gelu_half, gelu(p, 0.5))
MISTAKE(gelu_two, gelu(p, 2))
MISTAKE(gelu_minus, gelu(p, -1))
MISTAKE(gelu_tiny, gelu(p, 1e-300))
MISTAKE(gelu_nan, gelu(p, (double)NAN))
MISTAKE(flags_unknown, p->gemm.flags = 1u << 4)
MISTAKE(overlaps_a, p->gemm.c.byte_offset = 40)
MISTAKE(overlaps_b, p->gemm.c.byte_offset = 508)
MISTAKE(overlaps_bias, p->gemm.c.byte_offset = 2048)

const struct gemm_mistake gemm_mistakes[] = {
    {"gemm NULL", gemm_null, ALWAYS_INVALID},
    {"gemm with a struct_size of 0", size_zero, ALWAYS_INVALID},
    {"gemm with a struct_size that is too small", size_short, ALWAYS_INVALID},
    {"gemm of bool", dtype_bool, MAYBE_LATER},
    {"gemm of an unknown dtype", dtype_unknown, 0},
    {"gemm into bool", c_dtype_bool, MAYBE_LATER},
    {"gemm into an unknown dtype", c_dtype_unknown, 0},
    {"gemm with m < 0", m_negative, 0},
    {"gemm with n < 0", n_negative, 0},
    {"gemm with k < 0", k_negative, 0},
    {"gemm with no batch", batch_zero, 0},
    {"gemm with batch < 0", batch_negative, 0},
    {"gemm with m of 2^40", m_huge, IN_BUFFER},
    {"gemm of 2^80 elements", all_huge, IN_SIZE},
    {"gemm with a's ld too small", ld_a, 0},
    {"gemm with b's ld too small", ld_b, 0},
    {"gemm with c's ld too small", ld_c, 0},
    {"gemm with a negative ld", ld_negative, 0},
    {"gemm with stride 0 for c", stride_zero, 0},
    {"gemm with batches of c that overlap", stride_overlaps, INVALID_BUFFER},
    {"gemm with a before its buffer", stride_negative, IN_BUFFER},
    {"gemm without a", a_null, INVALID_BUFFER},
    {"gemm without c", c_null, INVALID_BUFFER},
    {"gemm with a of another device", a_foreign, INVALID_BUFFER},
    {"gemm with c of another device", c_foreign, INVALID_BUFFER},
    {"gemm with b freed", b_freed, INVALID_BUFFER},
    {"gemm with a past the end", a_past, INVALID_BUFFER},
    {"gemm with c past the end", c_past, INVALID_BUFFER},
    {"gemm with an offset that wraps around", offset_absurd, INVALID_BUFFER},
    {"gemm with an offset within an element", offset_odd, INVALID_BUFFER},
    {"gemm without its bias", bias_null, INVALID_BUFFER},
    {"gemm with an unknown bias", bias_kind, 0},
    {"gemm with a bias of no kind", bias_unkind, INVALID_BUFFER},
    {"gemm with bias past the end", bias_past, INVALID_BUFFER},
    {"gemm with the activation add", activation_add, MAYBE_LATER},
    {"gemm with an unknown activation", activation_unknown, MAYBE_LATER},
    {"gemm with form 0.5 of gelu", gelu_half, 0},
    {"gemm with form 2 of gelu", gelu_two, 0},
    {"gemm with form -1 of gelu", gelu_minus, 0},
    {"gemm with form 1e-300 of gelu", gelu_tiny, 0},
    {"gemm with form NaN of gelu", gelu_nan, 0},
    {"gemm with unknown flags", flags_unknown, ALWAYS_INVALID},
    {"gemm with c over a", overlaps_a, INVALID_BUFFER},
    {"gemm with c over b", overlaps_b, INVALID_BUFFER},
    {"gemm with c over bias", overlaps_bias, INVALID_BUFFER},
};
_Static_assert(sizeof(gemm_mistakes) / sizeof(gemm_mistakes[0]) ==
                   GEMM_MISTAKES,
               "GEMM_MISTAKES is the length of the table");
