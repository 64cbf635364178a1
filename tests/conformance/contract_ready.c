/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: prepare and ready.
 */
#include "contract.h"

#include "operator_list.h"

#define GROUP "ready"
/* A device that compiles becomes ready within this, however slow its
 * compiler is: 12,000 polls, 10 ms apart. */
#define POLLS 12000
#define POLL_MS 10u

/* A call that is asked about; its descriptors carry no buffers. */
struct question {
    struct tandem_op op;
    struct tandem_tensor_desc descs[2];
    const struct tandem_tensor_desc *ins[1], *outs[1];
    int64_t ints[2];
};

static void question_set(struct question *question, uint32_t id)
{
    *question = (struct question){.ints = {1, 1}};
    question->descs[0] = flat_desc(NULL, TANDEM_F32, 777);
    question->descs[1] = flat_desc(NULL, TANDEM_F32, 777);
    question->op.struct_size = sizeof(question->op);
    question->op.id = id;
    if (id == TANDEM_OP_SUM) {
        question->descs[1].shape[0] = 1;
        question->op.int_count = 2;
    } else if (id == TANDEM_OP_SOFTMAX) {
        question->ints[0] = 0;
        question->op.int_count = 1;
    }
    question->op.ints = question->op.int_count != 0 ? question->ints : NULL;
    question->ins[0] = &question->descs[0];
    question->outs[0] = &question->descs[1];
}

typedef enum tandem_status (*ask_fn)(struct tandem_device *,
                                     const struct tandem_op *,
                                     const struct tandem_tensor_desc *const *,
                                     uint32_t,
                                     const struct tandem_tensor_desc *const *,
                                     uint32_t);

static enum tandem_status ask(struct tandem_device *device, ask_fn function,
                              const struct question *question)
{
    return function(device, &question->op, question->ins, 1, question->outs, 1);
}

static bool polled_ready(struct suite *suite, struct tandem_device *device,
                         const struct question *question)
{
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; i < POLLS && status == TANDEM_NOT_READY; i++) {
        status = ask(device, suite->api.query_ready, question);
        if (status == TANDEM_NOT_READY)
            sleep_ms(POLL_MS);
    }
    return expect(suite, status, TANDEM_OK, "ready after prepare, polled");
}

static void case_protocol(struct suite *suite, uint32_t id)
{
    struct question question;
    struct tandem_device *device = NULL;
    enum tandem_status status;

    if (!case_begin(suite, GROUP, "%s is ready some time after prepare",
                    op_find(id)->name))
        return;
    question_set(&question, id);
    if (suite->api.query_ready == NULL || suite->api.prepare == NULL) {
        EXPECT(suite, !suite_has(suite, TANDEM_CAP_JIT_COMPILATION));
        case_skip(suite, "prepare and ready are left to the loader");
    } else if (EXPECT_OK(suite, suite_open(suite, NULL, NULL, &device))) {
        status = ask(device, suite->api.supports, &question);
        if (status == TANDEM_UNSUPPORTED) {
            case_skip(suite, "needs the operator %s", op_find(id)->name);
        } else if (expect(suite, status, TANDEM_OK, "supports")) {
            status = ask(device, suite->api.query_ready, &question);
            if (status != TANDEM_NOT_READY)
                expect(suite, status, TANDEM_OK, "ready before prepare");
            expect(suite, ask(device, suite->api.prepare, &question), TANDEM_OK,
                   "prepare");
            polled_ready(suite, device, &question);
            expect(suite, ask(device, suite->api.prepare, &question), TANDEM_OK,
                   "prepare of what is ready");
            expect(suite, ask(device, suite->api.query_ready, &question),
                   TANDEM_OK, "ready, once it was");
        }
    }
    if (device != NULL)
        suite->api.close(device);
    case_end(suite);
}

/* Whether the device serves it; the case is skipped where not. */
static bool needs_question(struct suite *suite, struct tandem_device *device,
                           const struct question *question)
{
    enum tandem_status status = ask(device, suite->api.supports, question);

    if (status == TANDEM_UNSUPPORTED)
        case_skip(suite, "needs the operator %s",
                  op_find(question->op.id)->name);
    else
        expect(suite, status, TANDEM_OK, "supports of what is launched");
    return status == TANDEM_OK;
}

/* Right after prepare, while a compile may be under way. */
static void case_launch_meanwhile(struct suite *suite)
{
    struct tandem_device *device = NULL;
    struct tandem_stream *stream = NULL;
    struct question question;
    struct vector a = {0};

    if (!case_begin(suite, GROUP, "launch does not need ready"))
        return;
    question_set(&question, TANDEM_OP_ABS);
    if (EXPECT_OK(suite, suite_open(suite, NULL, NULL, &device)) &&
        needs_add(suite, device) && needs_question(suite, device, &question) &&
        EXPECT_OK(suite, suite->api.stream_create(device, 0, &stream)) &&
        vector_new(suite, device, stream, &a, 777, 0.0f, -1.0f)) {
        if (suite->api.prepare != NULL)
            expect(suite, ask(device, suite->api.prepare, &question), TANDEM_OK,
                   "prepare");
        question.descs[0].buffer = question.descs[1].buffer = a.buffer;
        EXPECT_OK(suite, suite->api.launch(stream, &question.op, question.ins,
                                           1, question.outs, 1));
        EXPECT_OK(suite, launch_add(suite, stream, &a, &a, 1.0));
        vector_holds(suite, stream, &a, 1.0f, 1.0f, "|x| + 1");
        if (suite->api.query_ready != NULL && suite->api.prepare != NULL)
            polled_ready(suite, device, &question);
    }
    if (device != NULL)
        suite->api.close(device); /* a compile may still be under way */
    a.buffer = NULL;
    vector_free(suite, &a);
    case_end(suite);
}

/* Closed at once, with compiles under way. */
static void case_close_meanwhile(struct suite *suite)
{
    struct tandem_device *device = NULL;
    struct question question;

    if (!case_begin(suite, GROUP, "close while operators are prepared"))
        return;
    if (suite->api.prepare == NULL) {
        case_skip(suite, "prepare is left to the loader");
    } else if (EXPECT_OK(suite, suite_open(suite, NULL, NULL, &device))) {
        static const uint32_t ids[] = {TANDEM_OP_NEG, TANDEM_OP_SIGN,
                                       TANDEM_OP_EXP, TANDEM_OP_SOFTMAX};

        for (uint32_t i = 0; i < 4; i++) {
            enum tandem_status status;

            question_set(&question, ids[i]);
            status = ask(device, suite->api.prepare, &question);
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
