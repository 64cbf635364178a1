/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs launches under test; see launch_check.h. The outputs are filled with a
 * different byte in the second run, so that an element that is never written
 * is wrong in one of them. The elements must have the same bits in both runs,
 * and every other byte must keep its fill value.
 */
#include "launch_check.h"

#include "element_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 2

static const unsigned char poison[RUNS] = {0xa5, 0xff};

/* The device objects of a call. */
struct run {
    struct suite *suite;
    struct call *call;
    struct tandem_op op;
    struct tandem_buffer *inputs[TANDEM_MAX_OPERANDS];
    /* NULL if the output is an input. */
    struct tandem_buffer *outputs[TANDEM_MAX_OPERANDS];
    struct tandem_tensor_desc descs[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *ins[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *outs[TANDEM_MAX_OPERANDS];
    unsigned char *results[RUNS][TANDEM_MAX_OPERANDS];
};

void call_init(struct call *call, const struct op_row *row)
{
    memset(call, 0, sizeof(*call));
    call->row = row;
    call->int_count = row->ints;
    call->float_count = row->floats;
    call->required = row->required;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++)
        call->alias[i] = -1;
}

void call_finish(struct call *call)
{
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        operand_finish(&call->inputs[i]);
        operand_finish(&call->outputs[i]);
    }
}

/* Returns the op that is passed to the plugin.  It points into the call. */
static struct tandem_op call_op(const struct call *call)
{
    struct tandem_op op = {.struct_size = sizeof(op),
                           .id = call->row->id,
                           .int_count = call->int_count,
                           .float_count = call->float_count,
                           .ints = call->int_count ? call->ints : NULL,
                           .floats = call->float_count ? call->floats : NULL};

    return op;
}

uint32_t call_out_dtype(const struct op_row *row)
{
    if (row->op_class == TANDEM_CLASS_COMPARE ||
        row->op_class == TANDEM_CLASS_LOGICAL)
        return TANDEM_BOOL;
    if (row->op_class == TANDEM_CLASS_ARG_REDUCE)
        return TANDEM_I64;
    return TANDEM_F32;
}

enum tandem_status operand_upload(struct suite *suite,
                                  const struct operand *operand,
                                  struct tandem_buffer **out_buffer)
{
    enum tandem_status status =
        suite->api.alloc(suite->device, operand->bytes, out_buffer);

    if (status != TANDEM_OK)
        return status;
    return suite->api.upload(suite->stream, *out_buffer, 0, operand->image,
                             operand->bytes, 0);
}

static const struct operand *output_of(const struct call *call, uint32_t k)
{
    return call->alias[k] >= 0 ? &call->inputs[call->alias[k]]
                               : &call->outputs[k];
}

static void operands_text(const struct call *call, char *text, size_t size)
{
    size_t used = 0;
    char one[300];

    text[0] = '\0';
    for (uint32_t i = 0; i < call->row->inputs && used < size; i++) {
        operand_text(&call->inputs[i], one, sizeof(one));
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0 ? "" : ", ", one);
    }
    for (uint32_t i = 0; i < call->row->outputs && used < size; i++) {
        operand_text(output_of(call, i), one, sizeof(one));
        used += (size_t)snprintf(text + used, size - used, " -> %s", one);
    }
}

/* Prints the call once, before the first failure. */
static void call_describe(struct suite *suite, const struct call *call)
{
    char text[420];

    if (suite->reports != 0 || !case_prints_failures(suite))
        return;
    operands_text(call, text, sizeof(text));
    case_fail(suite, "%s: %s", call->row->name, text);
}

static void run_bind(struct run *run)
{
    struct call *call = run->call;

    for (uint32_t i = 0; i < call->row->inputs; i++) {
        struct tandem_tensor_desc *desc = &run->descs[i];

        *desc = call->inputs[i].desc;
        desc->buffer = run->inputs[i];
        run->ins[i] = call->inputs[i].present ? desc : NULL;
    }
    for (uint32_t i = 0; i < call->row->outputs; i++) {
        struct tandem_tensor_desc *desc = &run->descs[TANDEM_MAX_OPERANDS + i];
        int32_t alias = call->alias[i];

        *desc = output_of(call, i)->desc;
        desc->buffer = alias >= 0 ? run->inputs[alias] : run->outputs[i];
        run->outs[i] = desc;
    }
}

static enum tandem_status run_supports(struct run *run)
{
    const struct op_row *row = run->call->row;

    return run->suite->api.supports(run->suite->device, &run->op, run->ins,
                                    row->inputs, run->outs, row->outputs);
}

static enum tandem_status run_launch(struct run *run)
{
    const struct op_row *row = run->call->row;

    return run->suite->api.launch(run->suite->stream, &run->op, run->ins,
                                  row->inputs, run->outs, row->outputs);
}

static bool run_allocate(struct run *run)
{
    struct suite *suite = run->suite;
    struct call *call = run->call;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < call->row->inputs && status == TANDEM_OK; i++)
        if (call->inputs[i].present)
            status = operand_upload(suite, &call->inputs[i], &run->inputs[i]);
    for (uint32_t i = 0; i < call->row->outputs && status == TANDEM_OK; i++)
        if (call->alias[i] < 0)
            status = suite->api.alloc(suite->device, call->outputs[i].bytes,
                                      &run->outputs[i]);
    return expect(suite, status, TANDEM_OK, "alloc and upload of operands");
}

/* Refills the outputs, and restores inputs that were overwritten. */
static bool run_prepare(struct run *run, int number)
{
    struct suite *suite = run->suite;
    struct call *call = run->call;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < call->row->outputs && status == TANDEM_OK; i++) {
        const struct operand *operand = output_of(call, i);

        if (call->alias[i] < 0) {
            memset(call->outputs[i].image, poison[number], operand->bytes);
            status = suite->api.upload(suite->stream, run->outputs[i], 0,
                                       operand->image, operand->bytes, 0);
        } else if (number > 0) {
            status =
                suite->api.upload(suite->stream, run->inputs[call->alias[i]], 0,
                                  operand->image, operand->bytes, 0);
        }
    }
    return expect(suite, status, TANDEM_OK, "upload of poisoned outputs");
}

static bool run_download(struct run *run, int number)
{
    struct suite *suite = run->suite;
    struct call *call = run->call;

    for (uint32_t i = 0; i < call->row->outputs; i++) {
        const struct operand *operand = output_of(call, i);
        enum tandem_status status;

        run->results[number][i] = must_allocate(operand->bytes);
        status = suite->api.download(
            suite->stream, run->descs[TANDEM_MAX_OPERANDS + i].buffer, 0,
            run->results[number][i], operand->bytes, 0, SUITE_TIMEOUT_NS);
        if (!expect(suite, status, TANDEM_OK, "download of output %u", i))
            return false;
    }
    return true;
}

static bool run_inputs_unchanged(struct run *run)
{
    struct suite *suite = run->suite;
    struct call *call = run->call;
    bool same = true;

    for (uint32_t i = 0; i < call->row->inputs; i++) {
        const struct operand *operand = &call->inputs[i];
        unsigned char *now;
        bool written = !operand->present;

        for (uint32_t k = 0; k < call->row->outputs; k++)
            written |= call->alias[k] == (int32_t)i;
        if (written)
            continue;
        now = must_allocate(operand->bytes);
        if (!expect(suite,
                    suite->api.download(suite->stream, run->inputs[i], 0, now,
                                        operand->bytes, 0, SUITE_TIMEOUT_NS),
                    TANDEM_OK, "download of input %u", i)) {
            same = false;
        } else if (memcmp(now, operand->image, operand->bytes) != 0) {
            call_describe(suite, call);
            case_fail(suite, "input %u was changed", i);
            same = false;
        }
        free(now);
    }
    return same;
}

/*
 * Checks that all bytes of the buffer that do not belong to an element are
 * unchanged.
 */
static void gaps_check(struct suite *suite, const struct call *call,
                       const struct operand *operand, uint32_t k,
                       const unsigned char *before, const unsigned char *after)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(operand->desc.dtype);
    unsigned char *masked = must_allocate(operand->bytes);

    memcpy(masked, after, operand->bytes);
    for (int64_t i = 0; i < operand->elements; i++)
        memcpy(masked + operand->offsets[i], before + operand->offsets[i],
               bytes);
    if (memcmp(masked, before, operand->bytes) != 0) {
        uint64_t at = 0;

        while (masked[at] == before[at])
            at++;
        call_describe(suite, call);
        case_fail(suite,
                  "output %u: byte %" PRIu64 " of the buffer belongs to no "
                  "element and was overwritten",
                  k, at);
    }
    free(masked);
}

static void value_text(uint32_t dtype, uint64_t bits, char *text, size_t size)
{
    if (dtype_is_float(dtype))
        snprintf(text, size, "%.9g (%08" PRIx64 ")", bits_real(dtype, bits),
                 bits);
    else
        snprintf(text, size, "%" PRId64, bits_integer(dtype, bits));
}

static void wanted_text(const struct expected *expected, int64_t i,
                        uint32_t dtype, char *text, size_t size)
{
    if (expected->kind == EXPECTED_INTEGER)
        snprintf(text, size, "%" PRId64, expected->integer[i]);
    else if (expected->kind == EXPECTED_REAL)
        snprintf(text, size, "%.12g", expected->real[i]);
    else
        value_text(dtype, (uint64_t)expected->integer[i], text, size);
}

static void element_report(struct run *run, uint32_t k,
                           const struct expected *expected, int64_t i,
                           uint64_t bits, double error)
{
    const struct operand *operand = output_of(run->call, k);
    const struct call *call = run->call;
    char at[200], got[64], want[64], values[200] = "";
    int64_t index[TANDEM_MAX_RANK] = {0}, rest = i;
    size_t used = 0;

    for (uint32_t axis = operand->desc.rank; axis-- > 0;) {
        index[axis] = rest % operand->desc.shape[axis];
        rest /= operand->desc.shape[axis];
    }
    shape_text(operand->desc.rank, index, at, sizeof(at));
    value_text(operand->desc.dtype, bits, got, sizeof(got));
    wanted_text(expected, i, operand->desc.dtype, want, sizeof(want));
    for (uint32_t j = 0; j < call->row->inputs && used < 150; j++) {
        char one[64];

        if (!call->inputs[j].present ||
            call->inputs[j].elements != operand->elements)
            continue;
        value_text(call->inputs[j].desc.dtype, operand_get(&call->inputs[j], i),
                   one, sizeof(one));
        used += (size_t)snprintf(values + used, sizeof(values) - used,
                                 "; input %u there: %s", j, one);
    }
    call_describe(run->suite, call);
    case_fail(run->suite,
              "output %u at %s: got %s, expected %s, off by %.3g tolerances%s",
              k, at, got, want, error, values);
}

/* flushed is NULL if no input is subnormal. */
static void output_check(struct run *run, uint32_t k,
                         const struct expected *expected,
                         const struct expected *flushed)
{
    const struct operand *operand = output_of(run->call, k);
    uint32_t dtype = operand->desc.dtype, bytes = TANDEM_DTYPE_BYTES(dtype);
    int64_t wrong = 0, unequal = 0;

    if (expected->elements != operand->elements) {
        case_fail(run->suite,
                  "the suite expects %" PRId64 " elements of %" PRId64,
                  expected->elements, operand->elements);
        return;
    }
    for (int64_t i = 0; i < operand->elements; i++) {
        uint64_t one =
            bits_read(run->results[0][k] + operand->offsets[i], bytes);
        uint64_t two =
            bits_read(run->results[1][k] + operand->offsets[i], bytes);
        double error, other;

        unequal += one != two;
        if (expected_accepts(expected, i, dtype, one, &error) ||
            (flushed != NULL &&
             expected_accepts(flushed, i, dtype, one, &other)))
            continue;
        if (wrong++ < 3)
            element_report(run, k, expected, i, one, error);
    }
    if (wrong > 0)
        case_fail(run->suite,
                  "output %u: %" PRId64 " of %" PRId64 " elements are wrong", k,
                  wrong, operand->elements);
    if (unequal > 0) {
        call_describe(run->suite, run->call);
        case_fail(run->suite,
                  "output %u: %" PRId64 " elements differ when "
                  "run again (or were not written)",
                  k, unequal);
    }
}

static bool broadcasts(const struct op_row *row)
{
    switch (row->op_class) {
    case TANDEM_CLASS_BINARY:
    case TANDEM_CLASS_COMPARE:
    case TANDEM_CLASS_LOGICAL:
    case TANDEM_CLASS_TERNARY:
    case TANDEM_CLASS_COPY:
        return true;
    default:
        return false;
    }
}

static void run_check(struct run *run)
{
    struct call *call = run->call;
    const struct tandem_tensor_desc *out = &output_of(call, 0)->desc;
    struct dense dense[TANDEM_MAX_OPERANDS];
    struct expected expected[2][TANDEM_MAX_OPERANDS];
    bool subnormal = false;
    struct reference reference = {.row = call->row,
                                  .ints = call->ints,
                                  .floats = call->floats,
                                  .inputs = dense,
                                  .out_dtype = out->dtype,
                                  .out_rank = out->rank,
                                  .out_shape = out->shape};

    for (uint32_t i = 0; i < call->row->inputs; i++) {
        const struct operand *operand = &call->inputs[i];
        bool wide = broadcasts(call->row);
        uint32_t scalar_dtype =
            call->row->op_class == TANDEM_CLASS_LOGICAL ||
                    (call->row->id == TANDEM_OP_WHERE && i == 0)
                ? TANDEM_BOOL
                : TANDEM_F32;

        dense_load(&dense[i], operand, scalar_dtype,
                   wide ? out->rank : operand->desc.rank,
                   wide ? out->shape : operand->desc.shape);
        subnormal |= dense_has_subnormals(&dense[i]);
    }
    reference_compute(&reference, expected[0]);
    if (subnormal) {
        for (uint32_t i = 0; i < call->row->inputs; i++)
            dense[i].flush = true;
        reference_compute(&reference, expected[1]);
    }
    for (uint32_t k = 0; k < call->row->outputs; k++) {
        output_check(run, k, &expected[0][k],
                     subnormal ? &expected[1][k] : NULL);
        expected_finish(&expected[0][k]);
        if (subnormal)
            expected_finish(&expected[1][k]);
    }
    for (uint32_t i = 0; i < call->row->inputs; i++)
        dense_finish(&dense[i]);
}

/* The operator is unsupported: launch must say so too, and write nothing. */
static void run_declined(struct run *run)
{
    struct suite *suite = run->suite;
    struct call *call = run->call;

    if (call->required &&
        suite_has_capability(suite, TANDEM_CAP_CORE_OPERATORS)) {
        call_describe(suite, call);
        case_fail(suite, "a required operator was declined: %s",
                  plugin_message(suite));
        return;
    }
    if (!run_prepare(run, 0))
        return;
    expect(suite, run_launch(run), TANDEM_UNSUPPORTED,
           "launch of what supports() declined");
    if (run_download(run, 0))
        for (uint32_t k = 0; k < call->row->outputs; k++)
            if (memcmp(run->results[0][k], output_of(call, k)->image,
                       output_of(call, k)->bytes) != 0)
                case_fail(suite, "a declined launch wrote output %u", k);
    case_skip(suite, "declined");
}

static void run_twice(struct run *run)
{
    struct suite *suite = run->suite;
    struct call *call = run->call;

    for (int number = 0; number < RUNS; number++) {
        enum tandem_status status;

        if (!run_prepare(run, number))
            return;
        status = run_launch(run);
        if (status != TANDEM_OK)
            call_describe(suite, call);
        if (!expect(suite, status, TANDEM_OK,
                    "launch of %s, which supports() "
                    "accepted",
                    call->row->name) ||
            !run_download(run, number))
            return;
        for (uint32_t k = 0; k < call->row->outputs; k++)
            gaps_check(suite, call, output_of(call, k), k,
                       output_of(call, k)->image, run->results[number][k]);
    }
    if (run_inputs_unchanged(run))
        run_check(run);
}

static void run_finish(struct run *run)
{
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        run->suite->api.free(run->inputs[i]);
        run->suite->api.free(run->outputs[i]);
        for (int number = 0; number < RUNS; number++)
            free(run->results[number][i]);
    }
}

void call_run(struct suite *suite, struct call *call)
{
    struct run run = {.suite = suite, .call = call, .op = call_op(call)};
    enum tandem_status status;

    if (run_allocate(&run)) {
        run_bind(&run);
        status = run_supports(&run);
        if (status == TANDEM_UNSUPPORTED) {
            run_declined(&run);
        } else if (status == TANDEM_OK) {
            run_twice(&run);
        } else {
            call_describe(suite, call);
            expect(suite, status, TANDEM_OK, "supports(%s)", call->row->name);
        }
    }
    run_finish(&run);
}
