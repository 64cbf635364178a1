/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of buffer_seal: every way to write a sealed buffer is refused,
 * and every way to read the buffer works. */
#include "contract.h"

/* Returns c = a b for matrices of 4 rows and columns. */
static struct tandem_gemm
gemm_of(const struct vector *a, const struct vector *b, const struct vector *c)
{
    return (struct tandem_gemm){.struct_size = sizeof(struct tandem_gemm),
                                .dtype = TANDEM_F32,
                                .m = 4,
                                .n = 4,
                                .k = 4,
                                .batch = 1,
                                .alpha = 1,
                                .a = {a->buffer, 0, 4, 0},
                                .b = {b->buffer, 0, 4, 0},
                                .c = {c->buffer, 0, 4, 0}};
}

#define EXPECT_SEALED(function, ...)                                           \
    expect_error(suite, suite->api.function(__VA_ARGS__),                      \
                 TANDEM_INVALID_ARGUMENT, #function " to a sealed buffer")

/* Writes the sealed vector in every way. */
static void sealed_write(struct suite *suite, const struct vector *sealed,
                         const struct vector *other)
{
    const struct tandem_gemm gemm = gemm_of(other, other, sealed);
    struct tandem_stream *stream = suite->stream;
    struct tandem_buffer *buffer = sealed->buffer;
    const float one = 1;
    void *memory = NULL;

    EXPECT_SEALED(upload, stream, buffer, 4, &one, 4, 0);
    EXPECT_SEALED(upload, stream, buffer, 4, &one, 4, TANDEM_TRANSFER_ASYNC);
    EXPECT_SEALED(fill, stream, buffer, 8, 4, &one, 4);
    EXPECT_SEALED(copy, stream, buffer, 0, other->buffer, 0, 4);
    EXPECT_SEALED(gemm, stream, &gemm);
    expect_error(suite, launch_add(suite, NULL, sealed, other, 1.0),
                 TANDEM_INVALID_ARGUMENT, "launch to a sealed buffer");
    expect_error(suite, launch_add(suite, NULL, sealed, sealed, 1.0),
                 TANDEM_INVALID_ARGUMENT, "launch in a sealed buffer");
    if (suite->api.map == NULL)
        return;
    EXPECT_SEALED(map, stream, buffer, 0, 4, TANDEM_MAP_WRITE, SUITE_TIMEOUT_NS,
                  &memory);
    EXPECT_SEALED(map, stream, buffer, 0, 4, TANDEM_MAP_READ | TANDEM_MAP_WRITE,
                  SUITE_TIMEOUT_NS, &memory);
    EXPECT(suite, memory == NULL);
}

/* Reads the sealed vector in every way.  c and d are overwritten. */
static void sealed_read(struct suite *suite, struct vector *sealed,
                        struct vector *c, struct vector *d)
{
    const struct tandem_gemm gemm = gemm_of(sealed, d, c);
    void *memory = NULL;

    CALL_OK(copy, suite->stream, c->buffer, 0, sealed->buffer, 0, 64);
    expect_vector(suite, NULL, c, 1.0f, 1.0f, "a copy of the sealed buffer");
    EXPECT_OK(suite, launch_add(suite, NULL, c, sealed, 1.0));
    expect_vector(suite, NULL, c, 2.0f, 1.0f, "the output of a launch");
    if (suite->api.map != NULL &&
        suite->api.map(suite->stream, sealed->buffer, 0, 64, TANDEM_MAP_READ,
                       SUITE_TIMEOUT_NS, &memory) == TANDEM_OK) {
        EXPECT(suite, *(float *)memory == 1.0f);
        CALL_OK(unmap, suite->stream, sealed->buffer, memory);
    }
    /* d becomes the identity matrix. */
    for (int64_t i = 0; i < 16; i++)
        d->values[i] = i % 5 == 0;
    CALL_OK(upload, suite->stream, d->buffer, 0, d->values, 64, 0);
    for (int i = 0; i < 3; i++)
        CALL_OK(gemm, suite->stream, &gemm);
    expect_vector(suite, NULL, c, 1.0f, 1.0f, "the output of a GEMM");
    expect_vector(suite, NULL, sealed, 1.0f, 1.0f, "the sealed buffer");
}

static void case_sealed(struct suite *suite)
{
    struct vector *sealed, *c, *d;
    struct tandem_gemm probe;
    void *memory = NULL;

    if (!HAS_FUNCTION(buffer_seal))
        return;
    sealed = vector_new(suite, NULL, NULL, 16, 1.0f, 1.0f);
    c = vector_new(suite, NULL, NULL, 16, 0.0f, 0.0f);
    d = vector_new(suite, NULL, NULL, 16, 0.0f, 0.0f);
    if (sealed == NULL || c == NULL || d == NULL)
        return;
    probe = gemm_of(d, d, c);
    if (suite->api.gemm(suite->stream, &probe) == TANDEM_UNSUPPORTED) {
        case_skip(suite, "the device does not support the GEMM");
        return;
    }
    if (suite->api.map != NULL &&
        suite->api.map(suite->stream, sealed->buffer, 0, 64, TANDEM_MAP_READ,
                       SUITE_TIMEOUT_NS, &memory) == TANDEM_OK) {
        EXPECT_SEALED(buffer_seal, sealed->buffer);
        CALL_OK(unmap, suite->stream, sealed->buffer, memory);
    }
    for (int i = 0; i < 2; i++) /* sealing again changes nothing */
        CALL_OK(buffer_seal, sealed->buffer);
    sealed_write(suite, sealed, d);
    sealed_read(suite, sealed, c, d);
}

void contract_sealed_buffer(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"a sealed buffer is read, but not written", case_sealed, true}};

    contract_cases_run(suite, "memory", cases, COUNT_OF(cases));
}
