/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid arguments of gemm: each case makes one mistake in a valid GEMM. */
#include "contract.h"

#include "mistakes.h"

#include <string.h>

#define GROUP "invalid-gemm"
#define BYTES MISTAKE_BYTES

static enum tandem_status supports(struct suite *suite,
                                   const struct mistaken_gemm *p)
{
    struct tandem_op op = {
        .struct_size = sizeof(op), .id = TANDEM_OP_GEMM, .gemm = p->pointer};

    return suite->api.supports(suite->device, &op, NULL, 0, NULL, 0);
}

static void error_check(struct suite *suite, const struct mistaken_gemm *p,
                        const struct gemm_mistake *mistake)
{
    enum tandem_status status = suite->api.gemm(suite->stream, p->pointer);
    const bool unsupported =
        status == TANDEM_UNSUPPORTED && !(mistake->flags & ALWAYS_INVALID);

    expect_error(suite, status,
                 unsupported ? TANDEM_UNSUPPORTED : TANDEM_INVALID_ARGUMENT,
                 mistake->name);
    if (mistake->flags & (IN_BUFFER | IN_SIZE))
        return;
    status = supports(suite, p);
    if (status != TANDEM_UNSUPPORTED)
        expect(suite, status, TANDEM_INVALID_ARGUMENT,
               "supports of a call that gemm rejected");
}

static void mistake_run(struct suite *suite, const struct gemm_mistake *mistake,
                        struct mistaken_gemm *p, const unsigned char *before)
{
    unsigned char after[BYTES];
    enum tandem_status status;

    mistaken_gemm_reset(p);
    status = supports(suite, p);
    if (status == TANDEM_UNSUPPORTED && strstr(mistake->name, "bias") == NULL) {
        p->plain = true;
        mistaken_gemm_reset(p);
        status = supports(suite, p);
    }
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs gemm");
        return;
    }
    if (!expect(suite, status, TANDEM_OK, "supports of the valid product"))
        return;
    mistake->make(p);
    error_check(suite, p, mistake);
    if (EXPECT_OK(suite, suite->api.download(suite->stream, p->buffer, 0, after,
                                             BYTES, 0, SUITE_TIMEOUT_NS)) &&
        memcmp(after, before, BYTES) != 0)
        case_fail(suite, "the rejected GEMM wrote the buffer");
    mistaken_gemm_reset(p);
    EXPECT_OK(suite, suite->api.gemm(suite->stream, &p->gemm));
    EXPECT_OK(suite,
              suite->api.upload(suite->stream, p->buffer, 0, before, BYTES, 0));
}

static bool buffers_open(struct suite *suite, struct mistaken_gemm *p,
                         struct tandem_device **out_other,
                         const unsigned char *before)
{
    const struct tandem_backend *api = &suite->api;

    memset(p, 0, sizeof(*p));
    *out_other = NULL;
    if (!EXPECT_OK(suite, suite_open(suite, NULL, NULL, out_other)) ||
        !EXPECT_OK(suite,
                   api->alloc(*out_other, BYTES, &p->other_device_object)) ||
        !EXPECT_OK(suite, api->alloc(suite->device, BYTES, &p->freed)) ||
        !EXPECT_OK(suite, api->alloc(suite->device, BYTES, &p->buffer)))
        return false;
    api->free(p->freed);
    return EXPECT_OK(
        suite, api->upload(suite->stream, p->buffer, 0, before, BYTES, 0));
}

static void case_no_stream(struct suite *suite)
{
    struct mistaken_gemm product = {.buffer = NULL};

    if (!case_begin(suite, GROUP, "gemm on no stream"))
        return;
    mistaken_gemm_reset(&product);
    expect_error(suite, suite->api.gemm(NULL, &product.gemm),
                 TANDEM_INVALID_ARGUMENT, "gemm on no stream");
    case_end(suite);
}

void invalid_gemm_run(struct suite *suite)
{
    unsigned char before[BYTES];
    struct tandem_device *other = NULL;
    struct mistaken_gemm product;

    for (uint32_t i = 0; i < BYTES; i++)
        before[i] = (unsigned char)(i % 61);
    case_no_stream(suite);
    for (uint32_t i = 0; i < gemm_mistake_count; i++) {
        if (!case_begin(suite, GROUP, "%s", gemm_mistakes[i].name))
            continue;
        if (buffers_open(suite, &product, &other, before))
            mistake_run(suite, &gemm_mistakes[i], &product, before);
        suite->api.free(product.buffer);
        if (other != NULL)
            suite->api.close(other);
        case_end(suite);
    }
}
