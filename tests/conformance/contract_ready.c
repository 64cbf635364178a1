/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: operators are ready some time after prepare. */
#include "contract.h"

#include "../../tools/common/tensor_call.h"

#include "operator_list.h"

/*
 * A device that compiles becomes ready within this number of polls, 10 ms
 * apart, on any compiler.
 */
#define POLLS 12000
#define POLL_MS 10u

/* A call. Its descriptors have no buffers. */
struct ready_call {
    struct tandem_op op;
    struct tandem_tensor_desc descs[2];
    const struct tandem_tensor_desc *ins[1], *outs[1];
    int64_t ints[2];
};

static void call_set(struct ready_call *call, uint32_t id)
{
    *call = (struct ready_call){.ints = {1, 1}};
    call->descs[0] = flat_desc(NULL, TANDEM_F32, 777);
    call->descs[1] = flat_desc(NULL, TANDEM_F32, 777);
    call->op.struct_size = sizeof(call->op);
    call->op.id = id;
    if (id == TANDEM_OP_SUM) {
        call->descs[1].shape[0] = 1;
        call->op.int_count = 2;
    } else if (id == TANDEM_OP_SOFTMAX) {
        call->ints[0] = 0;
        call->op.int_count = 1;
    }
    call->op.ints = call->op.int_count != 0 ? call->ints : NULL;
    call->ins[0] = &call->descs[0];
    call->outs[0] = &call->descs[1];
}

static enum tandem_status prepare(struct suite *suite,
                                  struct tandem_device *device,
                                  const struct ready_call *call,
                                  struct tandem_prepared **out_prepared)
{
    struct tensor_call tensors;

    tensor_call_init(&tensors, call->ins, 1, call->outs, 1, 0);
    return tensor_call_prepare(&tensors, &suite->api, device, &call->op, 0,
                               out_prepared);
}

static bool poll_until_ready(struct suite *suite,
                             struct tandem_prepared *prepared)
{
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; i < POLLS && status == TANDEM_NOT_READY; i++) {
        status = suite->api.prepared_wait(prepared, 0);
        if (status == TANDEM_NOT_READY)
            sleep_ms(POLL_MS);
    }
    return expect(suite, status, TANDEM_OK, "ready after prepare, polled");
}

/* Returns true if the device supports the call; otherwise skips the case. */
static bool require_call(struct suite *suite, struct tandem_device *device,
                         const struct ready_call *call)
{
    enum tandem_status status = tensors_supported(
        &suite->api, device, &call->op, call->ins, 1, call->outs, 1);

    if (status == TANDEM_UNSUPPORTED)
        case_skip(suite, "needs the operator %s", op_find(call->op.id)->name);
    else
        expect(suite, status, TANDEM_OK, "a query of what is launched");
    return status == TANDEM_OK;
}

/* Expects that an operator which was compiled is ready at once. */
static void expect_ready(struct suite *suite, struct tandem_device *device,
                         const struct ready_call *call)
{
    struct tandem_prepared_info info = {.struct_size = sizeof(info)};
    struct tandem_prepared *prepared = NULL;
    struct tensor_call tensors;

    tensor_call_init(&tensors, call->ins, 1, call->outs, 1, 0);
    if (CALL_OK(prepare, device, &call->op, tensors.pointers, 1,
                tensors.pointers + 1, 1, TANDEM_PREPARE_QUERY, &info, NULL))
        EXPECT(suite, info.is_ready == 1);
    if (expect(suite, prepare(suite, device, call, &prepared), TANDEM_OK,
               "prepare of what is ready"))
        expect(suite, suite->api.prepared_wait(prepared, 0), TANDEM_OK,
               "ready, once it was");
    suite->api.prepared_release(prepared);
}

static void protocol_check(struct suite *suite, uint32_t id)
{
    struct tandem_device *device;
    struct tandem_prepared *prepared = NULL;
    struct ready_call call;
    enum tandem_status status;

    call_set(&call, id);
    device = device_new(suite, NULL, NULL);
    if (device == NULL || !require_call(suite, device, &call) ||
        !expect(suite, prepare(suite, device, &call, &prepared), TANDEM_OK,
                "prepare"))
        return;
    status = suite->api.prepared_wait(prepared, 0);
    if (status != TANDEM_NOT_READY)
        expect(suite, status, TANDEM_OK, "a poll right after prepare");
    poll_until_ready(suite, prepared);
    expect(suite, suite->api.prepared_wait(prepared, 0), TANDEM_OK,
           "a poll of what is ready");
    suite->api.prepared_release(prepared);
    expect_ready(suite, device, &call);
}

/* Launches right after prepare, while a compile may be running. */
static void case_launch_meanwhile(struct suite *suite)
{
    struct tandem_device *device = device_new(suite, NULL, NULL);
    struct tandem_prepared *prepared = NULL;
    struct tandem_stream *stream;
    struct ready_call call;
    struct vector *x, *a;

    call_set(&call, TANDEM_OP_ABS);
    if (device == NULL || !require_add(suite, device) ||
        !require_call(suite, device, &call))
        return;
    stream = stream_new(suite, device, 0);
    x = vector_new(suite, device, stream, 777, 0.0f, -1.0f);
    a = vector_new(suite, device, stream, 777, 0.0f, 0.0f);
    if (stream == NULL || x == NULL || a == NULL)
        return;
    if (expect(suite, prepare(suite, device, &call, &prepared), TANDEM_OK,
               "prepare")) {
        const struct tandem_memory memory[] = {{x->buffer, 0}, {a->buffer, 0}};

        CALL_OK(launch, stream, prepared, memory, 2, NULL, 0);
        EXPECT_OK(suite, launch_add(suite, stream, a, a, 1.0));
        expect_vector(suite, stream, a, 1.0f, 1.0f, "|x| + 1");
        poll_until_ready(suite, prepared);
    }
    device_close(suite, device); /* A compile may still be running. */
    suite->api.prepared_release(prepared);
}

/* Closes the device while compiles are running. */
static void case_close_meanwhile(struct suite *suite)
{
    static const uint32_t ids[] = {TANDEM_OP_NEG, TANDEM_OP_SIGN, TANDEM_OP_EXP,
                                   TANDEM_OP_SOFTMAX};
    struct tandem_prepared *prepared[COUNT_OF(ids)] = {NULL};
    struct tandem_device *device = device_new(suite, NULL, NULL);
    struct ready_call call;

    for (uint32_t i = 0; i < COUNT_OF(ids) && device != NULL; i++) {
        enum tandem_status status;

        call_set(&call, ids[i]);
        status = prepare(suite, device, &call, &prepared[i]);
        if (status != TANDEM_UNSUPPORTED)
            expect(suite, status, TANDEM_OK, "prepare");
    }
    if (device != NULL)
        device_close(suite, device);
    for (uint32_t i = 0; i < COUNT_OF(ids); i++)
        suite->api.prepared_release(prepared[i]);
}

static void case_gemm(struct suite *suite)
{
    static const int64_t ints[] = {TANDEM_OP_INVALID, 0};
    static const double floats[] = {1, 0, 0, 0};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_GEMM,
                                 .int_count = COUNT_OF(ints),
                                 .float_count = COUNT_OF(floats),
                                 .ints = ints,
                                 .floats = floats};
    const struct tandem_operand_desc a = {TANDEM_F32, 2, {16, 32}, {32, 1},
                                          0,          0, {0}},
                                     b = {TANDEM_F32, 2, {32, 24}, {24, 1},
                                          0,          0, {0}},
                                     c = {TANDEM_F32, 2, {16, 24}, {24, 1},
                                          0,          0, {0}};
    const struct tandem_operand_desc *inputs[] = {&a, &b}, *output = &c;
    struct tandem_prepared *prepared = NULL;
    enum tandem_status status = suite->api.prepare(
        suite->device, &op, inputs, 2, &output, 1, 0, NULL, &prepared);

    if (status == TANDEM_UNSUPPORTED)
        case_skip(suite, "needs gemm");
    else if (expect(suite, status, TANDEM_OK, "prepare of gemm"))
        poll_until_ready(suite, prepared);
    suite->api.prepared_release(prepared);
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
