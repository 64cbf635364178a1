/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid calls of launch and gemm. Tandem's own plugins return
 * TANDEM_INVALID_ARGUMENT even for unsupported operators, a query and prepare
 * detect the same mistakes with the same message, each message names
 * the operator and differs from those of other mistakes, and the CPU and the
 * OpenCL plugin have the same messages. The conformance suite tests that
 * nothing is written.
 */
#include <config.h>

#include "plugin.h"

#include <string.h>

static void status_check(const struct bench *bench, enum tandem_status status,
                         uint32_t flags, const char *function, const char *call)
{
    const bool unsupported =
        status == TANDEM_UNSUPPORTED && (flags & MAYBE_LATER);

    ck_assert_msg(status == TANDEM_INVALID_ARGUMENT || unsupported,
                  "%s: %s, %s: status %d: %s", bench->plugin->name, function,
                  call, (int)status,
                  status != TANDEM_OK ? bench->api->last_error() : "");
}

static void name_check(const struct bench *bench, const char *name,
                       const char *call)
{
    ck_assert_msg(strstr(bench->api->last_error(), name) != NULL,
                  "%s: %s, %s: the message does not name the operator: %s",
                  bench->plugin->name, name, call, bench->api->last_error());
}

/* Fails the test unless the function repeated the last message of launch or
 * gemm. */
static void repetition_check(const struct bench *bench,
                             const struct messages *messages,
                             const char *function)
{
    const uint32_t last = messages->count - 1;

    ck_assert_msg(
        strcmp(bench->api->last_error(), messages->messages[last]) == 0,
        "%s: %s of %s, %s: \"%s\", but launch: \"%s\"", bench->plugin->name,
        function, messages->functions[last], messages->calls[last],
        bench->api->last_error(), messages->messages[last]);
}

/* ---- launch ---- */

static enum tandem_status query(const struct bench *bench,
                                const struct mistaken_call *p)
{
    return tensors_supported(bench->api, bench->device, p->op_pointer,
                             p->in_array, p->in_count, p->out_array,
                             p->out_count);
}

static enum tandem_status prepare(const struct bench *bench,
                                  const struct mistaken_call *p)
{
    return tensors_prepare(bench->api, bench->device, p->op_pointer,
                           p->in_array, p->in_count, p->out_array, p->out_count,
                           0);
}

static enum tandem_status launch(const struct bench *bench,
                                 const struct mistaken_call *p)
{
    return tensors_launch(bench->api, bench->device, bench->stream,
                          p->op_pointer, p->in_array, p->in_count, p->out_array,
                          p->out_count, 0);
}

static void call_check(const struct bench *bench, struct messages *messages,
                       struct mistaken_call *p,
                       const struct call_mistake *mistake)
{
    const char *name = op_find(mistake->op)->name;
    const enum tandem_status launched = launch(bench, p);

    status_check(bench, launched, mistake->flags, name, mistake->name);
    message_check(messages, bench, launched, name, mistake->name);
    if (!(mistake->flags & UNNAMED))
        name_check(bench, name, mistake->name);
    if (mistake->flags & IN_BUFFER)
        return;
    ck_assert_msg(query(bench, p) == launched, "%s: a query of %s, %s",
                  bench->plugin->name, name, mistake->name);
    repetition_check(bench, messages, "a query");
    ck_assert_msg(prepare(bench, p) == launched, "%s: prepare of %s, %s",
                  bench->plugin->name, name, mistake->name);
    repetition_check(bench, messages, "prepare");
}

static void launches(const struct bench *bench, struct messages *messages)
{
    const struct call_mistake *mistake;
    struct mistaken_call call;

    call.buffer = bench->buffer;
    call.other_device_object = bench->other_device_object;
    call.freed = bench->freed;
    for (uint32_t i = 0;
         bench->plugin->has_operators && (mistake = mistake_get(i)) != NULL;
         i++) {
        mistaken_call_reset(&call, op_find(mistake->op));
        OK(bench, query(bench, &call));
        mistake->make(&call);
        call_check(bench, messages, &call, mistake);
    }
}

/* ---- overlaps ---- */

static void shifted_operands(struct mistaken_call *p)
{
    p->outs[0].byte_offset = p->ins[0].byte_offset + 4;
}

static void in_place(struct mistaken_call *p)
{
    p->outs[0].byte_offset = p->ins[0].byte_offset;
}

static void overlapping_output(struct mistaken_call *p)
{
    p->outs[0].strides[0] = 3;
}

static void overlaps(const struct bench *bench, struct messages *messages)
{
    static const struct call_mistake mistakes[] = {
        {"an output one element after its input", TANDEM_OP_NEG,
         shifted_operands, IN_BUFFER},
        {"an output with rows that overlap", TANDEM_OP_NEG, overlapping_output,
         IN_BUFFER},
        {"a sum in place", TANDEM_OP_SUM, in_place, IN_BUFFER},
        {"softmax in place", TANDEM_OP_SOFTMAX, in_place, IN_BUFFER},
        {"a transposition in place", TANDEM_OP_TRANSPOSE, in_place, IN_BUFFER},
    };
    struct mistaken_call call;

    call.buffer = bench->buffer;
    for (size_t i = 0; bench->plugin->has_operators &&
                       i < sizeof(mistakes) / sizeof(mistakes[0]);
         i++) {
        mistaken_call_reset(&call, op_find(mistakes[i].op));
        mistakes[i].make(&call);
        call_check(bench, messages, &call, &mistakes[i]);
    }
}

/* ---- gemm ---- */

static void gemm_check(const struct bench *bench, struct messages *messages,
                       struct mistaken_gemm *p,
                       const struct gemm_mistake *mistake)
{
    const enum tandem_status launched =
        bench->api->gemm(bench->stream, p->pointer);

    status_check(bench, launched, mistake->flags, "gemm", mistake->name);
    message_check(messages, bench, launched, "gemm", mistake->name);
    name_check(bench, "gemm", mistake->name);
}

static void gemms(const struct bench *bench, struct messages *messages)
{
    struct mistaken_gemm product = {.plain = false};

    product.buffer = bench->buffer;
    product.other_device_object = bench->other_device_object;
    product.freed = bench->freed;
    for (uint32_t i = 0; bench->plugin->has_operators && i < gemm_mistake_count;
         i++) {
        mistaken_gemm_reset(&product);
        gemm_mistakes[i].make(&product);
        gemm_check(bench, messages, &product, &gemm_mistakes[i]);
    }
}

/* ---- tests ---- */

static const invalid_calls_fn parts[] = {launches, overlaps, gemms};

PLUGIN_TEST(invalid_calls_are_rejected)
{
    static struct messages messages;

    for (int i = 0; i < CASES_IN(parts); i++)
        invalid_calls_run((uint32_t)_i, parts[i], &messages);
}

LOOP_TEST(invalid_calls_have_the_same_messages, CASES_IN(parts))
{
    messages_compare(parts[_i]);
}

void invalid_calls_add(TCase *tests)
{
    tests_add(tests);
}
