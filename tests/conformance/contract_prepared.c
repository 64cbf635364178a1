/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: prepared operators. call_check.c also prepares the calls of
 * the operators' cases.
 */
#include "contract.h"

#include <pthread.h>
#include <string.h>

#include "operator_list.h"

#define ELEMENTS 1000

/* y = x + scalar, described for vectors of f32. */
struct add_call {
    struct tandem_op op;
    double value;
    struct tandem_operand_desc descs[2]; /* x, y */
    const struct tandem_operand_desc *ins[2], *outs[1];
};

static void add_call_set(struct add_call *out, double value)
{
    memset(out, 0, sizeof(*out));
    out->value = value;
    out->op = (struct tandem_op){.struct_size = sizeof(out->op),
                                 .id = TANDEM_OP_ADD,
                                 .float_count = 1,
                                 .floats = &out->value};
    for (uint32_t i = 0; i < 2; i++) {
        out->descs[i].dtype = TANDEM_F32;
        out->descs[i].rank = 1;
        out->descs[i].shape[0] = ELEMENTS;
        out->descs[i].strides[0] = 1;
    }
    out->ins[0] = &out->descs[0]; /* ins[1] is the scalar. */
    out->outs[0] = &out->descs[1];
}

static enum tandem_status prepare(struct suite *suite,
                                  const struct add_call *call, uint32_t flags,
                                  struct tandem_prepared_info *info,
                                  struct tandem_prepared **prepared)
{
    return suite->api.prepare(suite->device, &call->op, call->ins, 2,
                              call->outs, 1, flags, info, prepared);
}

static enum tandem_status launch_at(struct suite *suite,
                                    struct tandem_stream *stream,
                                    struct tandem_prepared *prepared,
                                    struct tandem_buffer *x, uint64_t x_offset,
                                    struct tandem_buffer *y, uint64_t y_offset)
{
    const struct tandem_memory memory[] = {
        {x, x_offset}, {NULL, 0}, {y, y_offset}};

    return suite->api.launch(stream, prepared, memory, 3, NULL, 0);
}

/* An operator that was prepared, and vectors for it. */
struct fixture {
    struct add_call call;
    struct tandem_prepared *prepared;
    struct vector *x, *y;
};

static bool fixture_make(struct suite *suite, struct fixture *out)
{
    memset(out, 0, sizeof(*out));
    add_call_set(&out->call, 0.5);
    out->x = vector_new(suite, suite->device, NULL, ELEMENTS, 1, 1);
    out->y = vector_new(suite, suite->device, NULL, ELEMENTS, -1, 0);
    return out->x != NULL && out->y != NULL &&
           expect(suite, prepare(suite, &out->call, 0, NULL, &out->prepared),
                  TANDEM_OK, "prepare");
}

static void fixture_finish(struct suite *suite, struct fixture *of)
{
    if (of->prepared != NULL)
        suite->api.prepared_release(of->prepared);
}

static void one_operator_many_launches(struct suite *suite)
{
    struct fixture of;

    if (fixture_make(suite, &of)) {
        struct vector *other =
            vector_new(suite, suite->device, NULL, ELEMENTS, 50, 2);

        for (int i = 0; i < 3 && other != NULL; i++) {
            expect(suite,
                   launch_at(suite, suite->stream, of.prepared, of.x->buffer, 0,
                             of.y->buffer, 0),
                   TANDEM_OK, "a launch");
            expect_vector(suite, NULL, of.y, 1.5f, 1, "x + 0.5");
            expect(suite,
                   launch_at(suite, suite->stream, of.prepared, other->buffer,
                             0, of.y->buffer, 0),
                   TANDEM_OK, "a launch with other memory");
            expect_vector(suite, NULL, of.y, 50.5f, 2, "other memory");
        }
    }
    fixture_finish(suite, &of);
}

/* Launches at every offset of elements, on operands of the element's alignment.
 */
static void offsets_change(struct suite *suite)
{
    struct fixture of;

    if (fixture_make(suite, &of)) {
        struct vector *from =
            vector_new(suite, suite->device, NULL, ELEMENTS + 70, 0, 1);
        struct vector *to =
            vector_new(suite, suite->device, NULL, ELEMENTS + 70, 0, 0);

        for (uint64_t i = 0; i < 70 && from != NULL && to != NULL; i += 3) {
            float first = (float)i + 0.5f;

            expect(suite,
                   launch_at(suite, suite->stream, of.prepared, from->buffer,
                             i * 4, to->buffer, (69 - i) * 4),
                   TANDEM_OK, "a launch at other offsets");
            CALL_OK(copy, suite->stream, of.y->buffer, 0, to->buffer,
                    (69 - i) * 4, ELEMENTS * 4);
            expect_vector(suite, NULL, of.y, first, 1, "other offsets");
        }
    }
    fixture_finish(suite, &of);
}

static void in_place(struct suite *suite)
{
    struct fixture of;
    struct tandem_prepared *same = NULL;

    if (fixture_make(suite, &of)) {
        of.call.descs[1].same_as_input = 1;
        if (expect(suite, prepare(suite, &of.call, 0, NULL, &same), TANDEM_OK,
                   "prepare, in place")) {
            expect(suite,
                   launch_at(suite, suite->stream, same, of.x->buffer, 0,
                             of.x->buffer, 0),
                   TANDEM_OK, "in place");
            expect_vector(suite, NULL, of.x, 1.5f, 1, "x + 0.5 in place");
            expect_error(suite,
                         launch_at(suite, suite->stream, same, of.x->buffer, 0,
                                   of.y->buffer, 0),
                         TANDEM_INVALID_ARGUMENT, "another output");
        }
        expect_error(suite,
                     launch_at(suite, suite->stream, of.prepared, of.x->buffer,
                               0, of.x->buffer, 0),
                     TANDEM_INVALID_ARGUMENT, "in place, but not prepared so");
        /* x + x in place */
        suite->api.prepared_release(same);
        same = NULL;
        of.call.ins[1] = &of.call.descs[0];
        of.call.op.float_count = 0;
        if (expect(suite, prepare(suite, &of.call, 0, NULL, &same), TANDEM_OK,
                   "prepare of x + x in place")) {
            const struct tandem_memory memory[] = {
                {of.x->buffer, 0}, {of.x->buffer, 0}, {of.x->buffer, 0}};

            expect(suite,
                   suite->api.launch(suite->stream, same, memory, 3, NULL, 0),
                   TANDEM_OK, "x + x in place");
            expect_vector(suite, NULL, of.x, 3, 2, "x + x in place");
        }
        of.call.ins[1] = NULL;
        of.call.op.float_count = 1;
        of.call.descs[1].same_as_input = 2; /* the scalar */
        expect_error(suite, prepare(suite, &of.call, 0, NULL, &same),
                     TANDEM_INVALID_ARGUMENT, "the output is a scalar");
    }
    if (same != NULL)
        suite->api.prepared_release(same);
    fixture_finish(suite, &of);
}

/* Launches with memory that does not fit the description. */
static void wrong_memory(struct suite *suite)
{
    struct fixture of;
    struct device_pair pair = {.contents = {0}};
    struct tandem_prepared *aligned = NULL;

    if (fixture_make(suite, &of) && pair_open(suite, &pair)) {
        struct tandem_buffer *x = of.x->buffer, *y = of.y->buffer;
        struct tandem_stream *stream = suite->stream;
        const struct {
            const char *what;
            struct tandem_buffer *x, *y;
            uint64_t x_offset, y_offset;
        } wrong[] = {{"NULL", NULL, y, 0, 0},
                     {"a freed buffer", x, pair.freed, 0, 0},
                     {"another device's buffer", pair.other_buffer, y, 0, 0},
                     {"past the end", x, y, 4, 0},
                     {"far past the end", x, y, 0, UINT64_MAX - 3},
                     {"half an element", x, y, 0, 2}};

        for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
            expect_error(suite,
                         launch_at(suite, stream, of.prepared, wrong[i].x,
                                   wrong[i].x_offset, wrong[i].y,
                                   wrong[i].y_offset),
                         TANDEM_INVALID_ARGUMENT, wrong[i].what);
        expect_error(
            suite, launch_at(suite, pair.other_stream, of.prepared, x, 0, y, 0),
            TANDEM_INVALID_ARGUMENT, "another device's stream");
        expect_error(suite,
                     suite->api.launch(stream, of.prepared, NULL, 3, NULL, 0),
                     TANDEM_INVALID_ARGUMENT, "no memory");
        expect_error(
            suite,
            suite->api.launch(stream, of.prepared,
                              (const struct tandem_memory[]){{x, 0}, {y, 0}}, 2,
                              NULL, 0),
            TANDEM_INVALID_ARGUMENT, "too few operands");
        of.call.descs[0].shape[0] = of.call.descs[1].shape[0] = ELEMENTS / 2;
        of.call.descs[0].alignment_bytes = 16;
        expect(suite, prepare(suite, &of.call, 0, NULL, &aligned), TANDEM_OK,
               "prepare of aligned operands");
        expect_error(suite, launch_at(suite, stream, aligned, x, 8, y, 0),
                     TANDEM_INVALID_ARGUMENT, "less alignment");
        expect(suite, launch_at(suite, stream, aligned, x, 16, y, 4), TANDEM_OK,
               "enough alignment");
        expect(suite, launch_at(suite, stream, of.prepared, x, 0, y, 0),
               TANDEM_OK, "right memory afterwards");
        expect_vector(suite, NULL, of.y, 1.5f, 1, "x + 0.5");
        suite->api.free(pair.buffer);
    }
    if (aligned != NULL)
        suite->api.prepared_release(aligned);
    fixture_finish(suite, &of);
}

static void wrong_descriptions(struct suite *suite)
{
    struct fixture of;
    struct tandem_prepared_info info = {.struct_size = 0};
    struct tandem_prepared *got = NULL;

    if (fixture_make(suite, &of)) {
        struct add_call call = of.call;

        call.outs[0] = &call.descs[1];
        call.ins[0] = &call.descs[0];
        call.op.floats = &call.value;
#define REFUSES(status, change)                                                \
    do {                                                                       \
        struct add_call before = call;                                         \
        change;                                                                \
        expect_error(suite, prepare(suite, &call, 0, NULL, &got), status,      \
                     #change);                                                 \
        call = before;                                                         \
    } while (0)
        REFUSES(TANDEM_INVALID_ARGUMENT, call.descs[1].shape[0]++);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.descs[0].rank = 9);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.descs[0].alignment_bytes = 12);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.descs[0].alignment_bytes = 2);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.descs[1].same_as_input = 3);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.descs[0].same_as_input = 1);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.descs[1].strides[0] = 0);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.outs[0] = NULL);
        REFUSES(TANDEM_INVALID_ARGUMENT, call.op.float_count = 0);
        REFUSES(TANDEM_UNSUPPORTED, call.descs[0].reserved[3] = 1);
        REFUSES(TANDEM_UNSUPPORTED, call.op.id = TANDEM_OP_ID_END - 1);
        expect_error(suite, prepare(suite, &call, 0, NULL, NULL),
                     TANDEM_INVALID_ARGUMENT, "out_prepared is NULL");
        expect_error(suite, prepare(suite, &call, 0, &info, &got),
                     TANDEM_INVALID_ARGUMENT, "out_info without a size");
        EXPECT(suite, got == NULL);
    }
    fixture_finish(suite, &of);
}

static void query_and_wait(struct suite *suite)
{
    struct fixture of;
    struct tandem_prepared_info info = {.struct_size = sizeof(info)};
    struct tandem_prepared *got = NULL;

    if (fixture_make(suite, &of)) {
        expect(suite,
               prepare(suite, &of.call, TANDEM_PREPARE_QUERY, &info, NULL),
               TANDEM_OK, "a query");
        expect(
            suite,
            prepare(suite, &of.call, TANDEM_PREPARE_COMPILE_NOW, &info, &got),
            TANDEM_OK, "compiled now");
        EXPECT(suite, info.is_ready == 1);
        EXPECT(suite, info.predicted_ns >= 0 && info.predicted_ns < 1e12);
        expect(suite, suite->api.prepared_wait(got, 0), TANDEM_OK, "a poll");
        expect(suite, suite->api.prepared_wait(of.prepared, SUITE_TIMEOUT_NS),
               TANDEM_OK, "a wait");
    }
    if (got != NULL)
        suite->api.prepared_release(got);
    fixture_finish(suite, &of);
}

static void released_handles(struct suite *suite)
{
    struct fixture of;
    const char foreign[256] = "";

    if (fixture_make(suite, &of)) {
        struct tandem_buffer *x = of.x->buffer, *y = of.y->buffer;

        /* The work of a launch may go on when the operator is released. */
        expect(suite, launch_at(suite, suite->stream, of.prepared, x, 0, y, 0),
               TANDEM_OK, "a launch");
        suite->api.prepared_release(of.prepared);
        expect_error(suite,
                     launch_at(suite, suite->stream, of.prepared, x, 0, y, 0),
                     TANDEM_INVALID_ARGUMENT, "after the release");
        expect_error(suite, suite->api.prepared_wait(of.prepared, 0),
                     TANDEM_INVALID_ARGUMENT, "a wait after the release");
        suite->api.prepared_release(of.prepared);
        of.prepared = NULL;
        expect_error(suite, launch_at(suite, suite->stream, NULL, x, 0, y, 0),
                     TANDEM_INVALID_ARGUMENT, "NULL");
        expect_error(suite,
                     launch_at(suite, suite->stream,
                               (struct tandem_prepared *)(void *)foreign, x, 0,
                               y, 0),
                     TANDEM_INVALID_ARGUMENT, "a foreign handle");
        suite->api.prepared_release(NULL);
        expect_vector(suite, NULL, of.y, 1.5f, 1, "x + 0.5");
    }
    fixture_finish(suite, &of);
}

/* Launches of one thread, on its own stream. */
struct thread_launches {
    struct suite *suite;
    struct fixture *of;
    struct tandem_stream *stream;
    struct vector *y;
    enum tandem_status status; /* of the first failed call */
};

static void *launches_run(void *argument)
{
    struct thread_launches *own = argument;

    for (int i = 0; i < 200 && own->status == TANDEM_OK; i++)
        own->status = launch_at(own->suite, own->stream, own->of->prepared,
                                own->of->x->buffer, 0, own->y->buffer, 0);
    if (own->status == TANDEM_OK)
        own->status =
            own->suite->api.stream_synchronize(own->stream, SUITE_TIMEOUT_NS);
    return NULL;
}

/* Two threads launch one operator, with an output each or with the same one,
 * which gets the same values from both. */
static void two_threads_run(struct suite *suite, struct fixture *of,
                            struct vector *second)
{
    struct thread_launches own[2] = {
        {.suite = suite, .of = of, .stream = suite->stream, .y = of->y},
        {.suite = suite, .of = of, .y = second}};
    pthread_t thread;

    /* The vectors were written on the first stream. */
    if (!CALL_OK(stream_synchronize, suite->stream, SUITE_TIMEOUT_NS) ||
        !CALL_OK(stream_create, suite->device, 0, &own[1].stream))
        return;
    if (pthread_create(&thread, NULL, launches_run, &own[1]) == 0) {
        launches_run(&own[0]);
        pthread_join(thread, NULL);
        expect(suite, own[0].status, TANDEM_OK, "the first thread");
        expect(suite, own[1].status, TANDEM_OK, "the second thread");
    } else {
        case_fail(suite, "no thread");
    }
    suite->api.stream_destroy(own[1].stream);
    expect_vector(suite, NULL, of->y, 1.5f, 1, "the first output");
    expect_vector(suite, NULL, second, 1.5f, 1, "the second output");
}

static void two_threads(struct suite *suite)
{
    struct fixture of;

    if (fixture_make(suite, &of)) {
        struct vector *second =
            vector_new(suite, suite->device, NULL, ELEMENTS, -1, 0);

        if (second != NULL) {
            two_threads_run(suite, &of, second);
            two_threads_run(suite, &of, of.y);
        }
    }
    fixture_finish(suite, &of);
}

static void closed_device(struct suite *suite)
{
    struct fixture of;
    struct tandem_prepared *left = NULL;

    if (fixture_make(suite, &of)) {
        struct tandem_device *other = device_new(suite, NULL, NULL);

        if (other != NULL &&
            expect(suite,
                   suite->api.prepare(other, &of.call.op, of.call.ins, 2,
                                      of.call.outs, 1, 0, NULL, &left),
                   TANDEM_OK, "prepare on another device")) {
            device_close(suite, other);
            expect_error(suite, suite->api.prepared_wait(left, 0),
                         TANDEM_INVALID_ARGUMENT, "after the close");
            expect_error(suite,
                         launch_at(suite, suite->stream, left, of.x->buffer, 0,
                                   of.y->buffer, 0),
                         TANDEM_INVALID_ARGUMENT, "a launch after the close");
            suite->api.prepared_release(left);
        }
    }
    fixture_finish(suite, &of);
}

void contract_prepared(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"one operator, many launches", one_operator_many_launches, true},
        {"offsets change", offsets_change, true},
        {"in place", in_place, true},
        {"wrong memory", wrong_memory, true},
        {"wrong descriptions", wrong_descriptions, true},
        {"query and wait", query_and_wait, true},
        {"released handles", released_handles, true},
        {"closed device", closed_device, true},
        {"two threads", two_threads, true},
    };

    contract_cases_run(suite, "prepared", cases,
                       sizeof(cases) / sizeof(cases[0]));
}
