/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: prepare and query_ready. */
#include "contract.h"

#include "operator_list.h"

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

/* A GEMM has no operands. */
static enum tandem_status query(struct tandem_device *device, query_fn function,
                                const struct query_call *query_call)
{
    if (query_call->op.gemm != NULL)
        return function(device, &query_call->op, NULL, 0, NULL, 0);
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

/* Returns true if the plugin has prepare and query_ready; otherwise skips the
 * case. */
static bool has_prepare(struct suite *suite)
{
    if (HAS_FUNCTION(prepare) && HAS_FUNCTION(query_ready))
        return true;
    EXPECT(suite, !suite_has_capability(suite, TANDEM_CAP_JIT_COMPILATION));
    return false;
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

static void protocol_check(struct suite *suite, uint32_t id)
{
    struct tandem_device *device;
    struct query_call query_call;
    enum tandem_status status;

    if (!has_prepare(suite))
        return;
    query_call_set(&query_call, id);
    device = device_new(suite, NULL, NULL);
    if (device == NULL || !require_query_call(suite, device, &query_call))
        return;
    status = query(device, suite->api.query_ready, &query_call);
    if (status != TANDEM_NOT_READY)
        expect(suite, status, TANDEM_OK, "ready before prepare");
    expect(suite, query(device, suite->api.prepare, &query_call), TANDEM_OK,
           "prepare");
    poll_until_ready(suite, device, &query_call);
    expect(suite, query(device, suite->api.prepare, &query_call), TANDEM_OK,
           "prepare of what is ready");
    expect(suite, query(device, suite->api.query_ready, &query_call), TANDEM_OK,
           "ready, once it was");
}

/* Launches right after prepare, while a compile may be running. */
static void case_launch_meanwhile(struct suite *suite)
{
    struct tandem_device *device = device_new(suite, NULL, NULL);
    struct tandem_stream *stream;
    struct query_call query_call;
    struct vector *a;

    query_call_set(&query_call, TANDEM_OP_ABS);
    if (device == NULL || !require_add(suite, device) ||
        !require_query_call(suite, device, &query_call))
        return;
    stream = stream_new(suite, device, 0);
    a = vector_new(suite, device, stream, 777, 0.0f, -1.0f);
    if (stream == NULL || a == NULL)
        return;
    if (suite->api.prepare != NULL)
        expect(suite, query(device, suite->api.prepare, &query_call), TANDEM_OK,
               "prepare");
    query_call.descs[0].buffer = query_call.descs[1].buffer = a->buffer;
    CALL_OK(launch, stream, &query_call.op, query_call.ins, 1, query_call.outs,
            1);
    EXPECT_OK(suite, launch_add(suite, stream, a, a, 1.0));
    expect_vector(suite, stream, a, 1.0f, 1.0f, "|x| + 1");
    if (suite->api.query_ready != NULL && suite->api.prepare != NULL)
        poll_until_ready(suite, device, &query_call);
    device_close(suite, device); /* A compile may still be running. */
}

/* Closes the device while compiles are running. */
static void case_close_meanwhile(struct suite *suite)
{
    static const uint32_t ids[] = {TANDEM_OP_NEG, TANDEM_OP_SIGN, TANDEM_OP_EXP,
                                   TANDEM_OP_SOFTMAX};
    struct tandem_device *device;
    struct query_call query_call;

    if (!HAS_FUNCTION(prepare))
        return;
    device = device_new(suite, NULL, NULL);
    for (uint32_t i = 0; i < COUNT_OF(ids) && device != NULL; i++) {
        enum tandem_status status;

        query_call_set(&query_call, ids[i]);
        status = query(device, suite->api.prepare, &query_call);
        if (status != TANDEM_UNSUPPORTED)
            expect(suite, status, TANDEM_OK, "prepare");
    }
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
    struct query_call query_call = {
        .op = {.struct_size = sizeof(query_call.op),
               .id = TANDEM_OP_GEMM,
               .gemm = &gemm},
    };
    enum tandem_status status;

    if (!has_prepare(suite))
        return;
    status = query(suite->device, suite->api.prepare, &query_call);
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs gemm");
        return;
    }
    expect(suite, status, TANDEM_OK, "prepare(gemm)");
    poll_until_ready(suite, suite->device, &query_call);
}

void contract_ready(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"gemm is ready some time after prepare", case_gemm, false},
        {"launch does not need ready", case_launch_meanwhile, false},
        {"close while operators are prepared", case_close_meanwhile, false},
    };

    static const uint32_t ids[] = {TANDEM_OP_TANH, TANDEM_OP_SUM,
                                   TANDEM_OP_SOFTMAX};

    for (uint32_t i = 0; i < COUNT_OF(ids); i++)
        if (case_begin(suite, "ready", "%s is ready some time after prepare",
                       op_find(ids[i])->name)) {
            protocol_check(suite, ids[i]);
            contract_case_end(suite);
        }
    contract_cases_run(suite, "ready", cases, COUNT_OF(cases));
}
