/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input to gemm: each case spoils one thing of a valid product.
 */
#include "contract.h"

#include <math.h>
#include <string.h>

#define GROUP "bad-gemm"
#define BYTES 4096u

struct product {
    struct tandem_gemm gemm;
    const struct tandem_gemm *pointer;
    struct tandem_buffer *buffer, *foreign, *freed;
    bool plain; /* without bias and activation */
};

/* 3 x 5 = (3 x 4)(4 x 5), two batches, all in one buffer. */
static void product_set(struct product *p)
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

#define SPOIL(name, statement)                                                 \
    static void name(struct product *p)                                        \
    {                                                                          \
        statement;                                                             \
    }

SPOIL(gemm_null, p->pointer = NULL)
SPOIL(size_zero, p->gemm.struct_size = 0)
SPOIL(size_short, p->gemm.struct_size = TANDEM_GEMM_BYTES_1_0 - 1)
SPOIL(dtype_bool, p->gemm.dtype = TANDEM_BOOL)
SPOIL(dtype_unknown, p->gemm.dtype = 0x7777)
SPOIL(c_dtype_bool, p->gemm.c_dtype = TANDEM_BOOL)
SPOIL(c_dtype_unknown, p->gemm.c_dtype = 0x7777)
SPOIL(m_negative, p->gemm.m = -1)
SPOIL(n_negative, p->gemm.n = -2)
SPOIL(k_negative, p->gemm.k = -3)
SPOIL(batch_zero, p->gemm.batch = 0)
SPOIL(batch_negative, p->gemm.batch = -1)
SPOIL(m_huge, p->gemm.m = INT64_C(1) << 40)
SPOIL(all_huge, p->gemm.m = p->gemm.n = p->gemm.a.ld = p->gemm.b.ld =
                    p->gemm.c.ld = INT64_C(1) << 40)
SPOIL(ld_a, p->gemm.a.ld = 3)
SPOIL(ld_b, p->gemm.b.ld = 4)
SPOIL(ld_c, p->gemm.c.ld = 4)
SPOIL(ld_negative, p->gemm.a.ld = -4)
SPOIL(stride_zero, p->gemm.c.batch_stride = 0)
SPOIL(stride_overlaps, p->gemm.c.batch_stride = 7)
SPOIL(stride_negative, p->gemm.a.batch_stride = -12)
SPOIL(a_null, p->gemm.a.buffer = NULL)
SPOIL(c_null, p->gemm.c.buffer = NULL)
SPOIL(a_foreign, p->gemm.a.buffer = p->foreign)
SPOIL(c_foreign, p->gemm.c.buffer = p->foreign)
SPOIL(b_freed, p->gemm.b.buffer = p->freed)
SPOIL(a_past, p->gemm.a.byte_offset = BYTES - 92)
SPOIL(c_past, p->gemm.c.byte_offset = BYTES - 116)
SPOIL(offset_absurd, p->gemm.b.byte_offset = UINT64_MAX - 3)
SPOIL(offset_odd, p->gemm.b.byte_offset = 514)
SPOIL(bias_null, p->gemm.bias = NULL)
SPOIL(bias_kind, p->gemm.bias_kind = 3)
SPOIL(bias_unkind, p->gemm.bias_kind = TANDEM_BIAS_NONE)
SPOIL(bias_past, p->gemm.bias_byte_offset = BYTES - 16)
SPOIL(activation_add, p->gemm.activation = TANDEM_OP_ADD)
SPOIL(activation_unknown, p->gemm.activation = 99)
static void gelu(struct product *p, double form)
{
    p->gemm.activation = TANDEM_OP_GELU;
    p->gemm.activation_alpha = form;
}

SPOIL(gelu_half, gelu(p, 0.5))
SPOIL(gelu_two, gelu(p, 2))
SPOIL(gelu_minus, gelu(p, -1))
SPOIL(gelu_tiny, gelu(p, 1e-300))
SPOIL(gelu_nan, gelu(p, (double)NAN))
SPOIL(flags_unknown, p->gemm.flags = 1u << 4)
SPOIL(overlaps_a, p->gemm.c.byte_offset = 40)
SPOIL(overlaps_b, p->gemm.c.byte_offset = 508)
SPOIL(overlaps_bias, p->gemm.c.byte_offset = 2048)

/* buffers: supports does not look at them.  either: a backend may as well
 * call it unsupported, as what a later version may serve.  firm: by the header
 * it is invalid, whatever is served. */
static const struct spoilt {
    const char *name;
    void (*spoil)(struct product *p);
    bool buffers, either, firm;
} spoilts[] = {
    {"gemm NULL", gemm_null, false, false, true},
    {"gemm with a struct_size of 0", size_zero, false, false, true},
    {"gemm with a struct_size that is too small", size_short, false, false,
     true},
    {"gemm of bool", dtype_bool, false, true, false},
    {"gemm of an unknown dtype", dtype_unknown, false, false, false},
    {"gemm into bool", c_dtype_bool, false, true, false},
    {"gemm into an unknown dtype", c_dtype_unknown, false, false, false},
    {"gemm with m < 0", m_negative, false, false, false},
    {"gemm with n < 0", n_negative, false, false, false},
    {"gemm with k < 0", k_negative, false, false, false},
    {"gemm with no batch", batch_zero, false, false, false},
    {"gemm with batch < 0", batch_negative, false, false, false},
    {"gemm with m of 2^40", m_huge, true, false, false},
    {"gemm of 2^80 elements", all_huge, false, false, false},
    {"gemm with a's ld too small", ld_a, false, false, false},
    {"gemm with b's ld too small", ld_b, false, false, false},
    {"gemm with c's ld too small", ld_c, false, false, false},
    {"gemm with a negative ld", ld_negative, false, false, false},
    {"gemm with stride 0 for c", stride_zero, false, false, false},
    {"gemm with batches of c that overlap", stride_overlaps, true, false, true},
    {"gemm with a before its buffer", stride_negative, true, false, false},
    {"gemm without a", a_null, true, false, true},
    {"gemm without c", c_null, true, false, true},
    {"gemm with a of another device", a_foreign, true, false, true},
    {"gemm with c of another device", c_foreign, true, false, true},
    {"gemm with b freed", b_freed, true, false, true},
    {"gemm with a past the end", a_past, true, false, true},
    {"gemm with c past the end", c_past, true, false, true},
    {"gemm with an offset that wraps around", offset_absurd, true, false, true},
    {"gemm with an offset within an element", offset_odd, true, false, true},
    {"gemm without its bias", bias_null, true, false, true},
    {"gemm with an unknown bias", bias_kind, false, false, false},
    {"gemm with a bias of no kind", bias_unkind, true, false, true},
    {"gemm with bias past the end", bias_past, true, false, true},
    {"gemm with the activation add", activation_add, false, true, false},
    {"gemm with an unknown activation", activation_unknown, false, true, false},
    {"gemm with form 0.5 of gelu", gelu_half, false, false, false},
    {"gemm with form 2 of gelu", gelu_two, false, false, false},
    {"gemm with form -1 of gelu", gelu_minus, false, false, false},
    {"gemm with form 1e-300 of gelu", gelu_tiny, false, false, false},
    {"gemm with form NaN of gelu", gelu_nan, false, false, false},
    {"gemm with flags that there are not", flags_unknown, false, false, true},
    {"gemm with c over a", overlaps_a, true, false, true},
    {"gemm with c over b", overlaps_b, true, false, true},
    {"gemm with c over bias", overlaps_bias, true, false, true},
};
#define SPOILTS (sizeof(spoilts) / sizeof(spoilts[0]))

static void refused_check(struct suite *suite, const struct spoilt *spoilt,
                          struct product *p, struct refusals *refusals)
{
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_GEMM};
    enum tandem_status status = suite->api.gemm(suite->stream, p->pointer);

    expect_refusal(
        suite, refusals, status,
        status == TANDEM_UNSUPPORTED &&
                (spoilt->either || (!spoilt->firm && !suite->options->strict))
            ? TANDEM_UNSUPPORTED
            : TANDEM_INVALID_ARGUMENT,
        "gemm", spoilt->name);
    if (spoilt->buffers ||
        (spoilt->spoil == all_huge && !suite->options->strict))
        return;
    op.gemm = p->pointer;
    status = suite->api.supports(suite->device, &op, NULL, 0, NULL, 0);
    if (status != TANDEM_UNSUPPORTED)
        expect(suite, status, TANDEM_INVALID_ARGUMENT,
               "supports of what gemm refused");
}

static void spoilt_run(struct suite *suite, const struct spoilt *spoilt,
                       struct product *p, const unsigned char *before,
                       struct refusals *refusals)
{
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_GEMM};
    unsigned char after[BYTES];
    enum tandem_status status;

    product_set(p);
    op.gemm = p->pointer;
    status = suite->api.supports(suite->device, &op, NULL, 0, NULL, 0);
    if (status == TANDEM_UNSUPPORTED && strstr(spoilt->name, "bias") == NULL) {
        p->plain = true;
        product_set(p);
        status = suite->api.supports(suite->device, &op, NULL, 0, NULL, 0);
    }
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs gemm");
        return;
    }
    if (!expect(suite, status, TANDEM_OK, "supports of the valid product"))
        return;
    spoilt->spoil(p);
    refused_check(suite, spoilt, p, refusals);
    if (EXPECT_OK(suite, suite->api.download(suite->stream, p->buffer, 0, after,
                                             BYTES, 0, SUITE_TIMEOUT_NS)) &&
        memcmp(after, before, BYTES) != 0)
        case_fail(suite, "the refused product wrote the buffer");
    product_set(p);
    EXPECT_OK(suite, suite->api.gemm(suite->stream, &p->gemm));
    EXPECT_OK(suite,
              suite->api.upload(suite->stream, p->buffer, 0, before, BYTES, 0));
}

static bool product_open(struct suite *suite, struct product *p,
                         struct tandem_device **out_other,
                         const unsigned char *before)
{
    const struct tandem_backend *api = &suite->api;

    memset(p, 0, sizeof(*p));
    *out_other = NULL;
    if (!EXPECT_OK(suite, suite_open(suite, NULL, NULL, out_other)) ||
        !EXPECT_OK(suite, api->alloc(*out_other, BYTES, &p->foreign)) ||
        !EXPECT_OK(suite, api->alloc(suite->device, BYTES, &p->freed)) ||
        !EXPECT_OK(suite, api->alloc(suite->device, BYTES, &p->buffer)))
        return false;
    api->free(p->freed);
    return EXPECT_OK(
        suite, api->upload(suite->stream, p->buffer, 0, before, BYTES, 0));
}

static void case_no_stream(struct suite *suite)
{
    struct refusals refusals = {0};
    struct product p = {0};

    if (!case_begin(suite, GROUP, "gemm on no stream"))
        return;
    product_set(&p);
    expect_refusal(suite, &refusals, suite->api.gemm(NULL, &p.gemm),
                   TANDEM_INVALID_ARGUMENT, NULL, "gemm on no stream");
    case_end(suite);
}

void bad_input_gemm(struct suite *suite)
{
    static struct refusals refusals;
    unsigned char before[BYTES];
    struct tandem_device *other = NULL;
    struct product product;

    memset(&refusals, 0, sizeof(refusals));
    for (uint32_t i = 0; i < BYTES; i++)
        before[i] = (unsigned char)(i % 61);
    case_no_stream(suite);
    for (uint32_t i = 0; i < SPOILTS; i++) {
        if (!case_begin(suite, GROUP, "%s", spoilts[i].name))
            continue;
        if (product_open(suite, &product, &other, before))
            spoilt_run(suite, &spoilts[i], &product, before, &refusals);
        suite->api.free(product.buffer);
        if (other != NULL)
            suite->api.close(other);
        case_end(suite);
    }
}
