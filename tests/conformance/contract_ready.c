/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: prepare and query_ready. */
#include "contract.h"

#include "operator_list.h"

#define GROUP "ready"
/*
 * A device that compiles becomes ready within this number of polls, 10 ms
 * apart, on any compiler.
 */
#define POLLS 12000
#define POLL_MS 10u

/* A call for prepare and query_ready. Its descriptors have no buffers. */
struct query_call {
    struct tandem_op op;
    struct tandem_tensor_desc descs[2];
    const struct tandem_tensor_desc *ins[1], *outs[1];
    int64_t ints[2];
};

static void query_call_set(struct query_call *query_call, uint32_t id)
{
    *query_call = (struct query_call){.ints = {1, 1}};
    query_call->descs[0] = flat_desc(NULL, TANDEM_F32, 777);
    query_call->descs[1] = flat_desc(NULL, TANDEM_F32, 777);
    query_call->op.struct_size = sizeof(query_call->op);
    query_call->op.id = id;
    if (id == TANDEM_OP_SUM) {
        query_call->descs[1].shape[0] = 1;
        query_call->op.int_count = 2;
    } else if (id == TANDEM_OP_SOFTMAX) {
        query_call->ints[0] = 0;
        query_call->op.int_count = 1;
    }
    query_call->op.ints =
        query_call->op.int_count != 0 ? query_call->ints : NULL;
    query_call->ins[0] = &query_call->descs[0];
    query_call->outs[0] = &query_call->descs[1];
}

typedef enum tandem_status (*query_fn)(struct tandem_device *,
                                       const struct tandem_op *,
                                       const struct tandem_tensor_desc *const *,
                                       uint32_t,
                                       const struct tandem_tensor_desc *const *,
                                       uint32_t);

static enum tandem_status query(struct tandem_device *device, query_fn function,
                                const struct query_call *query_call)
{
    return function(device, &query_call->op, query_call->ins, 1,
                    query_call->outs, 1);
}

static bool poll_until_ready(struct suite *suite, struct tandem_device *device,
                             const struct query_call *query_call)
{
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; i < POLLS && status == TANDEM_NOT_READY; i++) {
        status = query(device, suite->api.query_ready, query_call);
        if (status == TANDEM_NOT_READY)
            sleep_ms(POLL_MS);
    }
    return expect(suite, status, TANDEM_OK, "ready after prepare, polled");
}

static void case_protocol(struct suite *suite, uint32_t id)
{
    struct query_call query_call;
    struct tandem_device *device = NULL;
    enum tandem_status status;

    if (!case_begin(suite, GROUP, "%s is ready some time after prepare",
                    op_find(id)->name))
        return;
    query_call_set(&query_call, id);
    if (suite->api.query_ready == NULL || suite->api.prepare == NULL) {
        EXPECT(suite, !suite_has_capability(suite, TANDEM_CAP_JIT_COMPILATION));
        case_skip(suite, "prepare and ready are left to the loader");
    } else if (EXPECT_OK(suite, suite_open(suite, NULL, NULL, &device))) {
        status = query(device, suite->api.supports, &query_call);
        if (status == TANDEM_UNSUPPORTED) {
            case_skip(suite, "needs the operator %s", op_find(id)->name);
        } else if (expect(suite, status, TANDEM_OK, "supports")) {
            status = query(device, suite->api.query_ready, &query_call);
            if (status != TANDEM_NOT_READY)
                expect(suite, status, TANDEM_OK, "ready before prepare");
            expect(suite, query(device, suite->api.prepare, &query_call),
                   TANDEM_OK, "prepare");
            poll_until_ready(suite, device, &query_call);
            expect(suite, query(device, suite->api.prepare, &query_call),
                   TANDEM_OK, "prepare of what is ready");
            expect(suite, query(device, suite->api.query_ready, &query_call),
                   TANDEM_OK, "ready, once it was");
        }
    }
    if (device != NULL)
        suite->api.close(device);
    case_end(suite);
}

/* Returns true if the device supports the call; otherwise skips the case. */
static bool require_query_call(struct suite *suite,
                               struct tandem_device *device,
                               const struct query_call *query_call)
{
    enum tandem_status status = query(device, suite->api.supports, query_call);

    if (status == TANDEM_UNSUPPORTED)
        case_skip(suite, "needs the operator %s",
                  op_find(query_call->op.id)->name);
    else
        expect(suite, status, TANDEM_OK, "supports of what is launched");
    return status == TANDEM_OK;
}

/* Launches right after prepare, while a compile may be running. */
static void case_launch_meanwhile(struct suite *suite)
{
    struct tandem_device *device = NULL;
    struct tandem_stream *stream = NULL;
    struct query_call query_call;
    struct vector a = {0};

    if (!case_begin(suite, GROUP, "launch does not need ready"))
        return;
    query_call_set(&query_call, TANDEM_OP_ABS);
    if (EXPECT_OK(suite, suite_open(suite, NULL, NULL, &device)) &&
        require_add(suite, device) &&
        require_query_call(suite, device, &query_call) &&
        EXPECT_OK(suite, suite->api.stream_create(device, 0, &stream)) &&
        vector_new(suite, device, stream, &a, 777, 0.0f, -1.0f)) {
        if (suite->api.prepare != NULL)
            expect(suite, query(device, suite->api.prepare, &query_call),
                   TANDEM_OK, "prepare");
        query_call.descs[0].buffer = query_call.descs[1].buffer = a.buffer;
        EXPECT_OK(suite,
                  suite->api.launch(stream, &query_call.op, query_call.ins, 1,
                                    query_call.outs, 1));
        EXPECT_OK(suite, launch_add(suite, stream, &a, &a, 1.0));
        expect_vector(suite, stream, &a, 1.0f, 1.0f, "|x| + 1");
        if (suite->api.query_ready != NULL && suite->api.prepare != NULL)
            poll_until_ready(suite, device, &query_call);
    }
    if (device != NULL)
        suite->api.close(device); /* A compile may still be running. */
    a.buffer = NULL;
    vector_free(suite, &a);
    case_end(suite);
}

/* Closes the device while compiles are running. */
static void case_close_meanwhile(struct suite *suite)
{
    struct tandem_device *device = NULL;
    struct query_call query_call;

    if (!case_begin(suite, GROUP, "close while operators are prepared"))
        return;
    if (suite->api.prepare == NULL) {
        case_skip(suite, "prepare is left to the loader");
    } else if (EXPECT_OK(suite, suite_open(suite, NULL, NULL, &device))) {
        static const uint32_t ids[] = {TANDEM_OP_NEG, TANDEM_OP_SIGN,
                                       TANDEM_OP_EXP, TANDEM_OP_SOFTMAX};

        for (uint32_t i = 0; i < 4; i++) {
            enum tandem_status status;

            query_call_set(&query_call, ids[i]);
            status = query(device, suite->api.prepare, &query_call);
            if (status != TANDEM_UNSUPPORTED)
                expect(suite, status, TANDEM_OK, "prepare");
        }
        suite->api.close(device);
    }
    case_end(suite);
}

static void gemm_ready(struct suite *suite, const struct tandem_op *op)
{
    enum tandem_status status = TANDEM_NOT_READY;

    status = suite->api.prepare(suite->device, op, NULL, 0, NULL, 0);
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs gemm");
        return;
    }
    expect(suite, status, TANDEM_OK, "prepare(gemm)");
    status = TANDEM_NOT_READY;
    for (int i = 0; i < POLLS && status == TANDEM_NOT_READY; i++) {
        status = suite->api.query_ready(suite->device, op, NULL, 0, NULL, 0);
        if (status == TANDEM_NOT_READY)
            sleep_ms(POLL_MS);
    }
    expect(suite, status, TANDEM_OK, "ready(gemm) after prepare, polled");
}

static void case_gemm(struct suite *suite)
{
    struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                               .dtype = TANDEM_F32,
                               .m = 16,
                               .n = 24,
                               .k = 32,
                               .batch = 1,
                               .alpha = 1.0,
                               .a = {.ld = 32},
                               .b = {.ld = 24},
                               .c = {.ld = 24}};
    struct tandem_op op = {
        .struct_size = sizeof(op), .id = TANDEM_OP_GEMM, .gemm = &gemm};

    if (!case_begin(suite, GROUP, "gemm is ready some time after prepare"))
        return;
    if (suite->api.query_ready == NULL || suite->api.prepare == NULL)
        case_skip(suite, "prepare and ready are left to the loader");
    else
        gemm_ready(suite, &op);
    case_end(suite);
}

void contract_ready(struct suite *suite)
{
    case_protocol(suite, TANDEM_OP_TANH);
    case_protocol(suite, TANDEM_OP_SUM);
    case_protocol(suite, TANDEM_OP_SOFTMAX);
    case_gemm(suite);
    case_launch_meanwhile(suite);
    case_close_meanwhile(suite);
}
