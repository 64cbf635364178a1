/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid arguments of prepared operators and of gemm: each case makes one
 * mistake in a valid call. The call must return an error, must not write
 * anything, and the device must work as before.
 */
#include "contract.h"

#include "../../tools/common/tensor_call.h"
#include "gemm_launch.h"
#include "suite_class.h"

#include <string.h>

#define LAUNCH_GROUP "invalid-launch"
#define GEMM_GROUP "invalid-gemm"

/* Checks the status of a call, and notes it with the message, so that
 * tests/plugin can compare plugins. Returns true if a query must reject the
 * call. */
static bool status_check(struct suite *suite, enum tandem_status status,
                         uint32_t flags, const char *call)
{
    const bool unsupported =
        status == TANDEM_UNSUPPORTED && !(flags & ALWAYS_INVALID);

    expect_error(suite, status,
                 unsupported ? TANDEM_UNSUPPORTED : TANDEM_INVALID_ARGUMENT,
                 call);
    case_note(suite, "%s: %s",
              flags & MAYBE_LATER ? "declined" : status_text(status),
              plugin_message(suite));
    return !(flags & (IN_BUFFER | IN_SIZE));
}

/* ---- launch ---- */

static enum tandem_status query(struct suite *suite,
                                const struct mistaken_call *p)
{
    return tensors_supported(&suite->api, suite->device, p->op_pointer,
                             p->in_array, p->in_count, p->out_array,
                             p->out_count);
}

static enum tandem_status launch(struct suite *suite,
                                 const struct mistaken_call *p)
{
    return tensors_launch(&suite->api, suite->device, suite->stream,
                          p->op_pointer, p->in_array, p->in_count, p->out_array,
                          p->out_count, 0);
}

/*
 * Sets p to a valid call of the operator. If that operator is not supported,
 * and has one input and no attributes, sets p to a call of another such
 * operator. Returns the status of a query of the call.
 */
static enum tandem_status operator_choose(struct suite *suite,
                                          struct mistaken_call *p,
                                          const struct op_row *row)
{
    enum tandem_status status;

    mistaken_call_reset(p, row);
    status = query(suite, p);
    for (uint32_t i = 0;
         status == TANDEM_UNSUPPORTED && i < op_table_count &&
         row->op_class == TANDEM_CLASS_UNARY && row->ints + row->floats == 0;
         i++) {
        if (op_table[i].op_class != row->op_class ||
            op_table[i].ints + op_table[i].floats != 0)
            continue;
        mistaken_call_reset(p, &op_table[i]);
        status = query(suite, p);
    }
    return status;
}

static void call_mistake_run(struct suite *suite, struct mistaken_call *p,
                             const struct call_mistake *mistake,
                             const struct device_pair *pair)
{
    const struct op_row *row = op_find(mistake->op);
    enum tandem_status status = operator_choose(suite, p, row);

    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs the operator %s", row->name);
        return;
    }
    if (!expect(suite, status, TANDEM_OK, "a query of the valid call"))
        return;
    mistake->make(p);
    status = launch(suite, p);
    /* A plugin sees the memory only if it supports the rest of the call. */
    if (status == TANDEM_UNSUPPORTED && (mistake->flags & IN_BUFFER) != 0 &&
        query(suite, p) == TANDEM_UNSUPPORTED) {
        pair_check(suite, pair);
        return;
    }
    if (status_check(suite, status, mistake->flags, "launch")) {
        status = query(suite, p);
        if (status != TANDEM_UNSUPPORTED || (mistake->flags & ALWAYS_INVALID))
            expect(suite, status, TANDEM_INVALID_ARGUMENT,
                   "a query of a call that launch rejected");
    }
    pair_check(suite, pair);
    mistaken_call_reset(p, p->row);
    expect(suite, launch(suite, p), TANDEM_OK, "the valid call afterwards");
}

/* Passes NULL as the stream or device to each function with an operator. */
static void case_no_device(struct suite *suite)
{
    struct tandem_tensor_desc desc = flat_desc(NULL, TANDEM_F32, 4);
    const struct tandem_tensor_desc *descs[] = {&desc};
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_NEG};
    const struct tandem_backend *api = &suite->api;

    if (!case_begin(suite, LAUNCH_GROUP, "no stream, no device"))
        return;
    expect_error(suite, api->launch(NULL, NULL, NULL, 0, NULL, 0),
                 TANDEM_INVALID_ARGUMENT, "launch on no stream");
    if (tensors_supported(api, suite->device, &op, descs, 1, descs, 1) ==
        TANDEM_OK)
        expect_error(suite,
                     tensors_launch(api, suite->device, NULL, &op, descs, 1,
                                    descs, 1, 0),
                     TANDEM_INVALID_ARGUMENT, "launch of neg on no stream");
    expect_error(suite, tensors_supported(api, NULL, &op, descs, 1, descs, 1),
                 TANDEM_INVALID_ARGUMENT, "a query of no device");
    expect_error(suite, tensors_prepare(api, NULL, &op, descs, 1, descs, 1, 0),
                 TANDEM_INVALID_ARGUMENT, "prepare on no device");
    expect_error(suite, api->prepared_wait(NULL, 0), TANDEM_INVALID_ARGUMENT,
                 "a wait for no operator");
    case_end(suite);
}

void invalid_launch_run(struct suite *suite)
{
    const struct call_mistake *mistake;
    struct device_pair pair;
    struct mistaken_call call;

    case_no_device(suite);
    for (uint32_t i = 0; (mistake = mistake_get(i)) != NULL; i++) {
        if (!case_begin(suite, LAUNCH_GROUP, "%s: %s",
                        op_find(mistake->op)->name, mistake->name))
            continue;
        /* Every byte is a valid bool. */
        for (uint32_t k = 0; k < PAIR_BYTES; k++)
            pair.contents[k] = k % 3 == 0;
        if (pair_open(suite, &pair)) {
            call.buffer = pair.buffer;
            call.other_device_object = pair.other_buffer;
            call.freed = pair.freed;
            call_mistake_run(suite, &call, mistake, &pair);
        }
        suite->api.free(pair.buffer);
        contract_case_end(suite);
    }
}

/* ---- gemm ---- */

static void gemm_mistake_run(struct suite *suite, struct mistaken_gemm *p,
                             const struct gemm_mistake *mistake,
                             const struct device_pair *pair)
{
    enum tandem_status status;

    mistaken_gemm_reset(p);
    status = gemm_supported_as_operator(&suite->api, suite->device, &p->gemm);
    if (status == TANDEM_UNSUPPORTED && strstr(mistake->name, "bias") == NULL) {
        p->plain = true;
        mistaken_gemm_reset(p);
        status =
            gemm_supported_as_operator(&suite->api, suite->device, &p->gemm);
    }
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "needs gemm");
        return;
    }
    if (!expect(suite, status, TANDEM_OK, "a query of the valid product"))
        return;
    mistake->make(p);
    status_check(suite, suite->api.gemm(suite->stream, p->pointer),
                 mistake->flags, mistake->name);
    pair_check(suite, pair);
    mistaken_gemm_reset(p);
    CALL_OK(gemm, suite->stream, &p->gemm);
}

static void case_no_stream(struct suite *suite)
{
    struct mistaken_gemm product = {.buffer = NULL};

    if (!case_begin(suite, GEMM_GROUP, "gemm on no stream"))
        return;
    mistaken_gemm_reset(&product);
    expect_error(suite, suite->api.gemm(NULL, &product.gemm),
                 TANDEM_INVALID_ARGUMENT, "gemm on no stream");
    case_end(suite);
}

void invalid_gemm_run(struct suite *suite)
{
    struct device_pair pair;

    case_no_stream(suite);
    for (uint32_t i = 0; i < gemm_mistake_count; i++) {
        struct mistaken_gemm product = {.plain = false};

        if (!case_begin(suite, GEMM_GROUP, "%s", gemm_mistakes[i].name))
            continue;
        for (uint32_t k = 0; k < PAIR_BYTES; k++)
            pair.contents[k] = (unsigned char)(k % 61);
        if (pair_open(suite, &pair)) {
            product.buffer = pair.buffer;
            product.other_device_object = pair.other_buffer;
            product.freed = pair.freed;
            gemm_mistake_run(suite, &product, &gemm_mistakes[i], &pair);
        }
        suite->api.free(pair.buffer);
        contract_case_end(suite);
    }
}
