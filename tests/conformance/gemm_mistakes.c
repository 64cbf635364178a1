/* SPDX-License-Identifier: Apache-2.0 */
/* Table of invalid calls of gemm; see mistakes.h. */
#include "mistakes.h"

#include "operand.h"

#include <math.h>

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

static void gelu(struct mistaken_gemm *p, double form)
{
    p->gemm.activation = TANDEM_OP_GELU;
    p->gemm.activation_parameter = form;
}

/* X(function, name, flags, statement that makes the mistake) */
#define MISTAKES(X)                                                            \
    X(gemm_null, "gemm NULL", ALWAYS_INVALID, p->pointer = NULL)               \
    X(size_zero, "gemm with a struct_size of 0", ALWAYS_INVALID,               \
      p->gemm.struct_size = 0)                                                 \
    X(size_short, "gemm with a struct_size that is too small", ALWAYS_INVALID, \
      p->gemm.struct_size = TANDEM_GEMM_MIN_SIZE_1_0 - 1)                      \
    X(dtype_bool, "gemm of bool", MAYBE_LATER, p->gemm.dtype = TANDEM_BOOL)    \
    X(c_dtype_bool, "gemm into bool", MAYBE_LATER,                             \
      p->gemm.c_dtype = TANDEM_BOOL)                                           \
    X(m_negative, "gemm with m < 0", 0, p->gemm.m = -1)                        \
    X(n_negative, "gemm with n < 0", 0, p->gemm.n = -2)                        \
    X(k_negative, "gemm with k < 0", 0, p->gemm.k = -3)                        \
    X(batch_zero, "gemm with no batch", 0, p->gemm.batch = 0)                  \
    X(batch_negative, "gemm with batch < 0", 0, p->gemm.batch = -1)            \
    X(m_huge, "gemm with m of 2^40", IN_BUFFER, p->gemm.m = INT64_C(1) << 40)  \
    X(all_huge, "gemm of 2^80 elements", IN_SIZE,                              \
      p->gemm.m = p->gemm.n = p->gemm.a.ld = p->gemm.b.ld = p->gemm.c.ld =     \
          INT64_C(1) << 40)                                                    \
    X(ld_a, "gemm with a's ld too small", 0, p->gemm.a.ld = 3)                 \
    X(ld_b, "gemm with b's ld too small", 0, p->gemm.b.ld = 4)                 \
    X(ld_c, "gemm with c's ld too small", 0, p->gemm.c.ld = 4)                 \
    X(ld_negative, "gemm with a negative ld", 0, p->gemm.a.ld = -4)            \
    X(stride_zero, "gemm with stride 0 for c", 0, p->gemm.c.batch_stride = 0)  \
    X(stride_overlaps, "gemm with batches of c that overlap", INVALID_BUFFER,  \
      p->gemm.c.batch_stride = 7)                                              \
    X(stride_negative, "gemm with a before its buffer", IN_BUFFER,             \
      p->gemm.a.batch_stride = -12)                                            \
    X(a_null, "gemm without a", INVALID_BUFFER, p->gemm.a.buffer = NULL)       \
    X(c_null, "gemm without c", INVALID_BUFFER, p->gemm.c.buffer = NULL)       \
    X(a_foreign, "gemm with a of another device", INVALID_BUFFER,              \
      p->gemm.a.buffer = p->other_device_object)                               \
    X(c_foreign, "gemm with c of another device", INVALID_BUFFER,              \
      p->gemm.c.buffer = p->other_device_object)                               \
    X(b_freed, "gemm with b freed", INVALID_BUFFER,                            \
      p->gemm.b.buffer = p->freed)                                             \
    X(a_past, "gemm with a past the end", INVALID_BUFFER,                      \
      p->gemm.a.byte_offset = MISTAKE_BYTES - 92)                              \
    X(c_past, "gemm with c past the end", INVALID_BUFFER,                      \
      p->gemm.c.byte_offset = MISTAKE_BYTES - 116)                             \
    X(offset_absurd, "gemm with an offset that wraps around", INVALID_BUFFER,  \
      p->gemm.b.byte_offset = UINT64_MAX - 3)                                  \
    X(offset_odd, "gemm with an offset within an element", INVALID_BUFFER,     \
      p->gemm.b.byte_offset = 514)                                             \
    X(bias_null, "gemm without its bias", INVALID_BUFFER, p->gemm.bias = NULL) \
    X(bias_unkind, "gemm with a bias of no kind", INVALID_BUFFER,              \
      p->gemm.bias_kind = TANDEM_BIAS_NONE)                                    \
    X(bias_past, "gemm with bias past the end", INVALID_BUFFER,                \
      p->gemm.bias_byte_offset = MISTAKE_BYTES - 16)                           \
    X(activation_add, "gemm with the activation add", MAYBE_LATER,             \
      p->gemm.activation = TANDEM_OP_ADD)                                      \
    X(activation_unknown, "gemm with an unknown activation", MAYBE_LATER,      \
      p->gemm.activation = 99)                                                 \
    X(celu_zero, "gemm with the activation celu and alpha 0", 0,               \
      p->gemm.activation = TANDEM_OP_CELU)                                     \
    X(gelu_half, "gemm with form 0.5 of gelu", 0, gelu(p, 0.5))                \
    X(gelu_two, "gemm with form 2 of gelu", 0, gelu(p, 2))                     \
    X(gelu_minus, "gemm with form -1 of gelu", 0, gelu(p, -1))                 \
    X(gelu_tiny, "gemm with form 1e-300 of gelu", 0, gelu(p, 1e-300))          \
    X(gelu_nan, "gemm with form NaN of gelu", 0, gelu(p, (double)NAN))         \
    X(overlaps_a, "gemm with c over a", INVALID_BUFFER,                        \
      p->gemm.c.byte_offset = 40)                                              \
    X(overlaps_b, "gemm with c over b", INVALID_BUFFER,                        \
      p->gemm.c.byte_offset = 508)                                             \
    X(overlaps_bias, "gemm with c over bias", INVALID_BUFFER,                  \
      p->gemm.c.byte_offset = 2048)

#define FUNCTION(function, name, flags, statement)                             \
    static void mistake_##function(struct mistaken_gemm *p)                    \
    {                                                                          \
        statement;                                                             \
    }
#define ROW(function, name, flags, statement) {name, mistake_##function, flags},

MISTAKES(FUNCTION)
const struct gemm_mistake gemm_mistakes[] = {MISTAKES(ROW)};
const uint32_t gemm_mistake_count = COUNT_OF(gemm_mistakes);
