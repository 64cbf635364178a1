/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid arguments of supports, launch, prepare and query_ready: each case
 * makes one mistake in a valid call of one operator. The call must return an
 * error, must not write anything, and the device must work as before.
 */
#include "contract.h"

#include "suite_class.h"

#include <string.h>

#define GROUP "invalid-launch"
#define BYTES MISTAKE_BYTES
#define BAD TANDEM_INVALID_ARGUMENT

static enum tandem_status supports(struct suite *suite,
                                   const struct mistaken_call *p)
{
    return suite->api.supports(suite->device, p->op_pointer, p->in_array,
                               p->in_count, p->out_array, p->out_count);
}

static enum tandem_status launch(struct suite *suite,
                                 const struct mistaken_call *p)
{
    return suite->api.launch(suite->stream, p->op_pointer, p->in_array,
                             p->in_count, p->out_array, p->out_count);
}

static void unchanged_check(struct suite *suite, const struct mistaken_call *p,
                            const unsigned char *before)
{
    unsigned char after[BYTES];

    if (EXPECT_OK(suite, suite->api.download(suite->stream, p->buffer, 0, after,
                                             BYTES, 0, SUITE_TIMEOUT_NS)) &&
        memcmp(before, after, BYTES) != 0)
        case_fail(suite, "the rejected launch wrote the buffer");
}

static void error_check(struct suite *suite, const struct mistaken_call *p,
                        const struct call_mistake *mistake)
{
    enum tandem_status status = launch(suite, p);
    const bool unsupported =
        status == TANDEM_UNSUPPORTED && !(mistake->flags & ALWAYS_INVALID);

    expect_error(suite, status, unsupported ? TANDEM_UNSUPPORTED : BAD,
                 "launch");
    if (mistake->flags & (IN_BUFFER | IN_SIZE))
        return;
    status = supports(suite, p);
    if (status != TANDEM_UNSUPPORTED || (mistake->flags & ALWAYS_INVALID))
        expect(suite, status, BAD, "supports of a call that launch rejected");
}

/*
 * Sets p to a valid call of the operator. If that operator is not supported,
 * and has one input and no attributes, sets p to a call of another such
 * operator. Returns what supports returns for the call.
 */
static enum tandem_status operator_choose(struct suite *suite,
                                          struct mistaken_call *p,
                                          const struct op_row *row)
{
    enum tandem_status status;

    mistaken_call_reset(p, row);
    status = supports(suite, p);
    for (uint32_t id = TANDEM_OP_NEG;
         status == TANDEM_UNSUPPORTED && row->op_class == TANDEM_CLASS_UNARY &&
         row->ints + row->floats == 0 && id <= TANDEM_OP_HARDSWISH;
         id++) {
        const struct op_row *other = op_find(id);

        if (other == NULL || other->ints + other->floats != 0)
            continue;
        mistaken_call_reset(p, other);
        status = supports(suite, p);
    }
    return status;
}

static void mistake_run(struct suite *suite, struct mistaken_call *p,
                        const struct call_mistake *mistake,
                        const unsigned char *before)
{
    const struct op_row *row = op_find(mistake->op);
    enum tandem_status status = operator_choose(suite, p, row);

    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs the operator %s", row->name);
        return;
    }
    if (!expect(suite, status, TANDEM_OK, "supports of the valid call"))
        return;
    mistake->make(p);
    error_check(suite, p, mistake);
    unchanged_check(suite, p, before);
    mistaken_call_reset(p, p->row);
    expect(suite, launch(suite, p), TANDEM_OK, "the valid call afterwards");
    EXPECT_OK(suite,
              suite->api.upload(suite->stream, p->buffer, 0, before, BYTES, 0));
}

static bool buffers_open(struct suite *suite, struct mistaken_call *p,
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

/* Passes NULL as the stream or device to every function that takes an
 * operator. */
static void case_no_device(struct suite *suite)
{
    struct tandem_tensor_desc desc = flat_desc(NULL, TANDEM_F32, 4);
    const struct tandem_tensor_desc *descs[] = {&desc};
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_NEG};
    const struct tandem_backend *api = &suite->api;

    if (!case_begin(suite, GROUP, "no stream, no device"))
        return;
    expect_error(suite, api->launch(NULL, &op, descs, 1, descs, 1), BAD,
                 "launch on no stream");
    expect_error(suite, api->supports(NULL, &op, descs, 1, descs, 1), BAD,
                 "supports of no device");
    if (api->prepare != NULL)
        expect_error(suite, api->prepare(NULL, &op, descs, 1, descs, 1), BAD,
                     "prepare on no device");
    if (api->query_ready != NULL)
        expect_error(suite, api->query_ready(NULL, &op, descs, 1, descs, 1),
                     BAD, "ready of no device");
    case_end(suite);
}

void invalid_launch_run(struct suite *suite)
{
    unsigned char before[BYTES];
    struct tandem_device *other = NULL;
    const struct call_mistake *mistake;
    struct mistaken_call call;

    for (uint32_t i = 0; i < BYTES; i++)
        before[i] = (unsigned char)(i % 3 == 0);
    case_no_device(suite);
    for (uint32_t i = 0; (mistake = mistake_get(i)) != NULL; i++) {
        if (!case_begin(suite, GROUP, "%s: %s", op_find(mistake->op)->name,
                        mistake->name))
            continue;
        if (buffers_open(suite, &call, &other, before))
            mistake_run(suite, &call, mistake, before);
        suite->api.free(call.buffer);
        if (other != NULL)
            suite->api.close(other);
        case_end(suite);
    }
}
