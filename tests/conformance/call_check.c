/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes calls on plugins and checks the outcome: the statuses of prepare and
 * launch, every byte of the buffers, and the values by the operator's metric;
 * see call.h. If a call runs twice, each run fills the outputs with another
 * byte, so that an element that is never written is wrong in one of them.
 */
#include "call.h"

#include "../../tools/common/tensor_call.h"
#include "element_value.h"
#include "gemm_launch.h"
#include "reference.h"
#include "suite_class.h"
#include "tolerance.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RUNS 2u

static const unsigned char poison[MAX_RUNS] = {0xa5, OPERAND_GAP};

/* The statuses that a plugin returned for a call, and the bytes it wrote. */
struct outcome {
    const struct suite *plugin;
    enum tandem_status query, launch;
    char message[256]; /* The message of launch, if it failed. */
    char failure[256]; /* Another function that failed, or "". */
    uint32_t runs;     /* The runs that returned TANDEM_OK. */
    /* The content of each whole buffer, indexed by storage. */
    unsigned char *after[MAX_RUNS][CALL_OPERANDS];
};

/* The arguments of a call. */
struct arguments {
    struct tandem_op op;
    bool is_gemm;
    bool is_operator; /* The GEMM can be launched as an operator, too. */
    struct tandem_gemm gemm;
    struct tandem_buffer *buffers[CALL_OPERANDS]; /* Indexed by storage. */
    struct tandem_tensor_desc descs[CALL_OPERANDS];
    /* One more entry than operands, because a wrong count may be passed. */
    const struct tandem_tensor_desc *ins[CALL_OPERANDS + 1];
    const struct tandem_tensor_desc *outs[CALL_OPERANDS + 1];
    uint32_t in_count, out_count;
};

static uint32_t operand_count(const struct call *call)
{
    return call->inputs + call->outputs;
}

/* Returns true if operand i has a buffer of its own. */
static bool owns_storage(const struct call *call, uint32_t i)
{
    return call->operands[i].present && call->storage[i] == i;
}

static bool storage_is_written(const struct call *call, uint32_t storage)
{
    bool written = false;

    for (uint32_t i = call->inputs; i < operand_count(call); i++)
        written |= call->storage[i] == storage;
    return written;
}

static void tensors_bind(struct arguments *arguments, const struct call *call)
{
    for (uint32_t i = 0; i < operand_count(call); i++) {
        struct tandem_tensor_desc *desc = &arguments->descs[i];
        bool there = call->operands[i].present && !(call->missing >> i & 1u);

        *desc = call->operands[i].desc;
        desc->buffer = call->without_buffer >> i & 1u
                           ? NULL
                           : arguments->buffers[call->storage[i]];
        if (i < call->inputs)
            arguments->ins[i] = there ? desc : NULL;
        else
            arguments->outs[i - call->inputs] = there ? desc : NULL;
    }
    for (uint32_t i = call->inputs; i <= CALL_OPERANDS; i++)
        arguments->ins[i] = &arguments->descs[0];
    for (uint32_t i = call->outputs; i <= CALL_OPERANDS; i++)
        arguments->outs[i] = &arguments->descs[call->inputs];
    arguments->in_count = call->passed_inputs;
    arguments->out_count = call->passed_outputs;
}

static void arguments_bind(struct arguments *arguments, const struct call *call)
{
    arguments->op =
        (struct tandem_op){.struct_size = call->struct_size,
                           .id = call->row->id,
                           .flags = call->flags,
                           .int_count = call->int_count,
                           .float_count = call->float_count,
                           .ints = call->int_count ? call->ints : NULL,
                           .floats = call->float_count ? call->floats : NULL};
    tensors_bind(arguments, call);
    arguments->is_gemm = call_is_gemm(call);
    if (!arguments->is_gemm)
        return;
    arguments->is_operator = call->expected_status == EXPECT_OK_IF_SUPPORTED ||
                             call->only_launch_detects;
    memset(&arguments->gemm, 0, sizeof(arguments->gemm));
    memcpy(&arguments->gemm, &call->gemm,
           call->gemm.struct_size < sizeof(call->gemm) ? call->gemm.struct_size
                                                       : sizeof(call->gemm));
    arguments->gemm.a.buffer = arguments->descs[0].buffer;
    arguments->gemm.b.buffer = arguments->descs[1].buffer;
    arguments->gemm.bias = arguments->descs[2].buffer;
    arguments->gemm.c.buffer = arguments->descs[3].buffer;
}

/* ---- one plugin ---- */

static bool failed(struct outcome *outcome, enum tandem_status status,
                   const char *function)
{
    if (status == TANDEM_OK)
        return false;
    if (outcome->failure[0] == '\0')
        snprintf(outcome->failure, sizeof(outcome->failure), "%s: %s: %s",
                 function, status_text(status),
                 plugin_message(outcome->plugin));
    return true;
}

/* Allocates and fills the buffers; in later runs refills those of outputs. */
static bool buffers_upload(struct outcome *outcome, struct arguments *arguments,
                           struct call *call, uint32_t run, bool poisoned)
{
    const struct tandem_backend *api = &outcome->plugin->api;

    for (uint32_t i = 0; i < operand_count(call); i++) {
        const struct operand *operand = &call->operands[i];

        if (!owns_storage(call, i) || (run > 0 && !storage_is_written(call, i)))
            continue;
        if (run == 0 && failed(outcome,
                               api->alloc(outcome->plugin->device,
                                          TANDEM_BYTES(operand->bytes),
                                          &arguments->buffers[i]),
                               "alloc"))
            return false;
        if (poisoned && i >= call->inputs && !call->output_is_read)
            memset(operand->image, poison[run], operand->bytes);
        if (failed(outcome,
                   api->upload(outcome->plugin->stream, arguments->buffers[i],
                               0, operand->image, operand->bytes, 0),
                   "upload"))
            return false;
    }
    return true;
}

/* Returns the status of prepare, which knows no memory. */
static enum tandem_status call_query(const struct suite *plugin,
                                     const struct arguments *arguments)
{
    if (arguments->is_gemm)
        return gemm_supported_as_operator(&plugin->api, plugin->device,
                                          &arguments->gemm);
    return tensors_supported(&plugin->api, plugin->device, &arguments->op,
                             arguments->ins, arguments->in_count,
                             arguments->outs, arguments->out_count);
}

static bool takes_scalars(const struct suite *plugin,
                          const struct arguments *arguments)
{
    const struct op_row *row = op_find(arguments->op.id);

    return row != NULL && arguments->op.float_count > 0 &&
           (row->op_class == TANDEM_CLASS_BINARY ||
            row->op_class == TANDEM_CLASS_COMPARE ||
            row->op_class == TANDEM_CLASS_TERNARY ||
            row->op_class == TANDEM_CLASS_OPTIMIZER) &&
           call_query(plugin, arguments) == TANDEM_OK;
}

/* Prepares the call with other scalars, and passes the right ones to launch. */
static enum tandem_status launch_with_scalars(const struct suite *plugin,
                                              const struct arguments *arguments)
{
    const uint32_t floats = arguments->op.float_count;
    const bool has_step = arguments->op.id == TANDEM_OP_ADAM;
    double other[TANDEM_MAX_ATTRIBUTES], scalars[TANDEM_MAX_ATTRIBUTES + 1];
    int64_t ints[TANDEM_MAX_ATTRIBUTES];
    struct tandem_op op = arguments->op;
    struct tandem_prepared *prepared = NULL;
    struct tensor_call call;
    enum tandem_status status;

    for (uint32_t i = 0; i < floats; i++) {
        other[i] = i % 2 == 0 ? 0.5 : 0.25;
        scalars[i] = op.floats[i];
    }
    op.floats = other;
    if (has_step) {
        ints[0] = op.ints[0] + 1;
        ints[1] = op.ints[1];
        scalars[floats] = (double)op.ints[0];
        op.ints = ints;
    }
    tensor_call_init(&call, arguments->ins, arguments->in_count,
                     arguments->outs, arguments->out_count, 0);
    status = tensor_call_prepare(&call, &plugin->api, plugin->device, &op, 0,
                                 &prepared);
    if (status != TANDEM_OK)
        return status;
    status = plugin->api.launch(plugin->stream, prepared, call.memory,
                                arguments->in_count + arguments->out_count,
                                scalars, floats + has_step);
    plugin->api.prepared_release(prepared);
    return status;
}

/* Returns a number that depends only on the call, not on calls before it. */
static uint32_t call_number(const struct arguments *arguments)
{
    uint32_t number = arguments->op.id;

    for (uint32_t i = 0; i < CALL_OPERANDS; i++) {
        const struct tandem_tensor_desc *desc = &arguments->descs[i];

        number = number * 31 + (uint32_t)desc->byte_offset;
        for (uint32_t k = 0; k < desc->rank && k < TANDEM_MAX_RANK; k++)
            number = number * 31 + (uint32_t)desc->shape[k];
    }
    return number ^ number >> 16;
}

/*
 * Makes the call in one of several ways: the first and the second of several
 * runs, or one that its number selects. Results can depend on the alignment, so
 * that of several runs is the same.
 */
static enum tandem_status launch_in_turn(const struct suite *plugin,
                                         const struct arguments *arguments,
                                         uint32_t run, uint32_t runs)
{
    const uint32_t number = call_number(arguments);
    const uint32_t turn = runs > 1 ? run : number;

    if (arguments->is_gemm)
        return turn % 2 == 0 || !arguments->is_operator
                   ? plugin->api.gemm(plugin->stream, &arguments->gemm)
                   : gemm_launch_as_operator(&plugin->api, plugin->device,
                                             plugin->stream, &arguments->gemm,
                                             turn % 4 == 1);
    if (turn % 2 == 1 && (number >> 4) % 2 == 0 &&
        takes_scalars(plugin, arguments))
        return launch_with_scalars(plugin, arguments);
    return tensors_launch(&plugin->api, plugin->device, plugin->stream,
                          &arguments->op, arguments->ins, arguments->in_count,
                          arguments->outs, arguments->out_count,
                          turn % 4 < 2 ? 64 : 0);
}

/* Downloads the buffers of outputs and, after the last run, of inputs. */
static bool buffers_download(struct outcome *outcome,
                             const struct arguments *arguments,
                             const struct call *call, uint32_t run, bool last)
{
    const struct suite *plugin = outcome->plugin;

    for (uint32_t i = 0; i < operand_count(call); i++) {
        const uint64_t bytes = call->operands[i].bytes;

        if (!owns_storage(call, i) || (!last && !storage_is_written(call, i)))
            continue;
        outcome->after[run][i] = must_allocate(bytes);
        if (failed(outcome,
                   plugin->api.download(plugin->stream, arguments->buffers[i],
                                        0, outcome->after[run][i], bytes, 0,
                                        SUITE_TIMEOUT_NS),
                   "download"))
            return false;
    }
    return true;
}

/* Checks that no byte changed except those of the outputs' elements. */
static void bytes_check(struct outcome *outcome, const struct call *call,
                        uint32_t run)
{
    for (uint32_t storage = 0; storage < operand_count(call); storage++) {
        const struct operand *owner = &call->operands[storage];
        const unsigned char *now = outcome->after[run][storage];
        unsigned char *masked;
        uint64_t at = 0;

        if (now == NULL)
            continue;
        masked = must_allocate(owner->bytes);
        memcpy(masked, now, owner->bytes);
        for (uint32_t k = call->inputs; k < operand_count(call); k++) {
            const struct operand *out = &call->operands[k];
            uint32_t bytes = TANDEM_DTYPE_BYTES(out->desc.dtype);

            if (call->storage[k] != storage || outcome->launch != TANDEM_OK)
                continue;
            for (int64_t i = 0; i < out->elements; i++)
                memcpy(masked + out->offsets[i], owner->image + out->offsets[i],
                       bytes);
        }
        while (at < owner->bytes && masked[at] == owner->image[at])
            at++;
        free(masked);
        if (at == owner->bytes || outcome->failure[0] != '\0')
            continue;
        snprintf(outcome->failure, sizeof(outcome->failure),
                 "byte %" PRIu64 " of %" PRIu64 " of the buffer of %s %u "
                 "belongs to no element of an output and was overwritten",
                 at, owner->bytes, storage < call->inputs ? "input" : "output",
                 storage < call->inputs ? storage : storage - call->inputs);
    }
}

/* Makes the call `runs` times. Only several runs poison the outputs. */
static void outcome_run(struct outcome *outcome, const struct suite *plugin,
                        struct call *call, uint32_t runs)
{
    struct arguments arguments = {.in_count = 0};

    memset(outcome, 0, sizeof(*outcome));
    outcome->plugin = plugin;
    for (uint32_t run = 0; run < runs && outcome->runs == run; run++) {
        enum tandem_status status;

        if (!buffers_upload(outcome, &arguments, call, run, runs > 1))
            break;
        arguments_bind(&arguments, call);
        if (run == 0)
            outcome->query = call_query(plugin, &arguments);
        status = launch_in_turn(plugin, &arguments, run, runs);
        if (status != TANDEM_OK)
            snprintf(outcome->message, sizeof(outcome->message), "%s",
                     plugin_message(plugin));
        if (run == 0)
            outcome->launch = status;
        if (run == 0 && arguments.is_gemm && !arguments.is_operator)
            outcome->query = status; /* the operator has other arguments */
        if (run > 0)
            failed(outcome, status, "the second launch");
        if (!buffers_download(outcome, &arguments, call, run,
                              run + 1 == runs || status != TANDEM_OK))
            break;
        bytes_check(outcome, call, run);
        outcome->runs += status == TANDEM_OK;
    }
    failed(outcome,
           plugin->api.stream_synchronize(plugin->stream, SUITE_TIMEOUT_NS),
           "stream_synchronize");
    for (uint32_t i = 0; i < CALL_OPERANDS; i++)
        plugin->api.free(arguments.buffers[i]);
}

static void outcome_finish(struct outcome *outcome)
{
    for (uint32_t run = 0; run < MAX_RUNS; run++)
        for (uint32_t i = 0; i < CALL_OPERANDS; i++)
            free(outcome->after[run][i]);
}

/* ---- expected results ---- */

/* The expected results of a call; computed once for all plugins. */
struct checker {
    const struct call *call;
    bool computed, subnormal;
    /* The results with subnormal inputs unchanged, and flushed to zero. */
    struct expected expected[2][CALL_OPERANDS];
};

static void checker_compute(struct checker *checker)
{
    const struct call *call = checker->call;
    const struct suite_class *class = class_of(call->row);
    const struct tandem_tensor_desc *out = &call->operands[call->inputs].desc;
    const bool wide = (class->rules & BROADCASTS) != 0;
    struct dense dense[CALL_OPERANDS];

    if (checker->computed)
        return;
    checker->computed = true;
    if (call_is_gemm(call)) {
        class->reference(call, NULL, checker->expected[0]);
        return;
    }
    for (uint32_t i = 0; i < call->inputs; i++) {
        const struct operand *operand = &call->operands[i];

        dense_load(&dense[i], operand, wide ? out->rank : operand->desc.rank,
                   wide ? out->shape : operand->desc.shape);
        checker->subnormal |= dense_has_subnormals(&dense[i]);
    }
    class->reference(call, dense, checker->expected[0]);
    for (uint32_t i = 0; i < call->inputs; i++)
        dense[i].flush = true;
    if (checker->subnormal)
        class->reference(call, dense, checker->expected[1]);
    for (uint32_t i = 0; i < call->inputs; i++)
        dense_finish(&dense[i]);
}

static void checker_finish(struct checker *checker)
{
    for (uint32_t i = 0; i < CALL_OPERANDS; i++) {
        expected_finish(&checker->expected[0][i]);
        expected_finish(&checker->expected[1][i]);
    }
}

/* ---- reports ---- */

/* Prints the call once, before the first failure. */
__attribute__((format(printf, 4, 5))) static void
report(struct suite *suite, const struct call *call,
       const struct outcome *outcome, const char *format, ...)
{
    char text[420], failure[420];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(failure, sizeof(failure), format, arguments);
    va_end(arguments);
    if (suite->reports == 0 && case_prints_failures(suite)) {
        call_text(call, text, sizeof(text));
        case_fail(suite, "%s%s%s", text, suite->other != NULL ? " on " : "",
                  suite->other != NULL ? outcome->plugin->options->plugin : "");
    }
    case_fail(suite, "%s", failure);
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

static void element_report(struct suite *suite, const struct checker *checker,
                           const struct outcome *outcome, uint32_t k, int64_t i,
                           uint64_t bits, double error)
{
    const struct call *call = checker->call;
    const struct operand *operand = &call->operands[call->inputs + k];
    char got[64], want[64], values[200] = "";
    int64_t index[TANDEM_MAX_RANK] = {0}, rest = i;
    size_t used = 0;

    for (uint32_t axis = operand->desc.rank; axis-- > 0;) {
        index[axis] = rest % operand->desc.shape[axis];
        rest /= operand->desc.shape[axis];
    }
    value_text(operand->desc.dtype, bits, got, sizeof(got));
    wanted_text(&checker->expected[0][k], i, operand->desc.dtype, want,
                sizeof(want));
    for (uint32_t j = 0; j < call->inputs && used < 150; j++) {
        const struct operand *input = &call->operands[j];
        char one[64];

        if (!input->present || input->elements != operand->elements ||
            call_is_gemm(call))
            continue;
        value_text(input->desc.dtype, operand_get(input, i), one, sizeof(one));
        used += (size_t)snprintf(values + used, sizeof(values) - used,
                                 "; input %u there: %s", j, one);
    }
    report(suite, call, outcome,
           "output %u at %s: got %s, expected %s, off by %.3g tolerances%s", k,
           shape_text(operand->desc.rank, index), got, want, error, values);
}

/* ---- checks ---- */

static bool element_accepts(const struct checker *checker, uint32_t k,
                            int64_t i, uint32_t dtype, uint64_t bits,
                            double *out_error)
{
    double other;

    return expected_accepts(&checker->expected[0][k], i, dtype, bits,
                            out_error) ||
           (checker->subnormal &&
            expected_accepts(&checker->expected[1][k], i, dtype, bits, &other));
}

static uint64_t element_bits(const struct outcome *outcome,
                             const struct call *call, uint32_t run, uint32_t k,
                             int64_t i)
{
    const struct operand *out = &call->operands[call->inputs + k];
    const unsigned char *after =
        outcome->after[run][call->storage[call->inputs + k]];

    return bits_read(after + out->offsets[i],
                     TANDEM_DTYPE_BYTES(out->desc.dtype));
}

static void output_check(struct suite *suite, struct checker *checker,
                         const struct outcome *outcome, uint32_t k)
{
    const struct call *call = checker->call;
    const struct operand *out = &call->operands[call->inputs + k];
    const uint32_t dtype = out->desc.dtype;
    int64_t wrong = 0, unequal = 0;

    if (checker->expected[0][k].elements != out->elements) {
        case_fail(suite, "the suite expects %" PRId64 " elements of %" PRId64,
                  checker->expected[0][k].elements, out->elements);
        return;
    }
    for (int64_t i = 0; i < out->elements; i++) {
        uint64_t bits = element_bits(outcome, call, 0, k, i);
        double error;

        if (outcome->runs > 1)
            unequal += bits != element_bits(outcome, call, 1, k, i);
        if (!element_accepts(checker, k, i, dtype, bits, &error) && wrong++ < 3)
            element_report(suite, checker, outcome, k, i, bits, error);
    }
    if (wrong > 0)
        report(suite, call, outcome,
               "output %u: %" PRId64 " of %" PRId64 " elements are wrong", k,
               wrong, out->elements);
    if (unequal > 0)
        report(suite, call, outcome,
               "output %u: %" PRId64 " elements differ when run again (or "
               "were not written)",
               k, unequal);
}

static bool must_be_supported(const struct call *call,
                              const struct outcome *outcome)
{
    const uint32_t caps = outcome->plugin->info.caps;

    return call->required_caps != 0 &&
           (caps & call->required_caps) == call->required_caps;
}

static bool status_is_expected(const struct call *call,
                               const struct outcome *outcome)
{
    const enum tandem_status got = outcome->launch;

    /* A call that is neither valid nor supported may return either. */
    if (got == TANDEM_UNSUPPORTED && !must_be_supported(call, outcome) &&
        !suite_has_capability(outcome->plugin, TANDEM_CAP_CORE_OPERATORS))
        return true;
    switch (call->expected_status) {
    case EXPECT_OK_IF_SUPPORTED:
        return got == TANDEM_OK ||
               (got == TANDEM_UNSUPPORTED && !must_be_supported(call, outcome));
    case EXPECT_INVALID_ARGUMENT:
        return got == TANDEM_INVALID_ARGUMENT;
    case EXPECT_UNSUPPORTED:
        return got == TANDEM_UNSUPPORTED;
    case EXPECT_INVALID_OR_UNSUPPORTED:
        return got == TANDEM_INVALID_ARGUMENT || got == TANDEM_UNSUPPORTED;
    default:
        return got == TANDEM_OK || got == TANDEM_INVALID_ARGUMENT;
    }
}

static bool statuses_check(struct suite *suite, const struct call *call,
                           const struct outcome *outcome)
{
    static const char *const expected[] = {
        [EXPECT_OK_IF_SUPPORTED] = "ok, because the operator is required",
        [EXPECT_INVALID_ARGUMENT] = "invalid argument",
        [EXPECT_UNSUPPORTED] = "unsupported",
        [EXPECT_INVALID_OR_UNSUPPORTED] = "invalid argument or unsupported",
        [EXPECT_OK_OR_INVALID] = "ok or invalid argument"};

    if (!status_is_expected(call, outcome))
        report(suite, call, outcome, "launch: %s, expected %s (%s)",
               status_text(outcome->launch), expected[call->expected_status],
               outcome->message);
    else if (outcome->launch != TANDEM_OK && outcome->message[0] == '\0')
        report(suite, call, outcome, "launch failed without a message");
    else if (outcome->query != outcome->launch &&
             !(call->only_launch_detects &&
               (outcome->query == TANDEM_OK ||
                (outcome->query == TANDEM_UNSUPPORTED &&
                 !must_be_supported(call, outcome)))))
        report(suite, call, outcome, "prepare: %s, but launch: %s (%s)",
               status_text(outcome->query), status_text(outcome->launch),
               outcome->message);
    else
        return true;
    return false;
}

static void outcome_check(struct suite *suite, struct checker *checker,
                          const struct outcome *outcome)
{
    const struct call *call = checker->call;

    if (outcome->failure[0] != '\0')
        report(suite, call, outcome, "%s", outcome->failure);
    if (!statuses_check(suite, call, outcome) || outcome->failure[0] != '\0' ||
        outcome->launch != TANDEM_OK)
        return;
    checker_compute(checker);
    for (uint32_t k = 0; k < call->outputs; k++)
        output_check(suite, checker, outcome, k);
}

void call_run(struct suite *suite, struct call *call)
{
    struct checker checker = {.call = call};
    struct outcome outcome;

    outcome_run(&outcome, suite, call, MAX_RUNS);
    outcome_check(suite, &checker, &outcome);
    if (outcome.launch == TANDEM_UNSUPPORTED)
        case_skip(suite, "declined: %s", outcome.message);
    outcome_finish(&outcome);
    checker_finish(&checker);
}

/* Both statuses must be equal, unless a plugin may decline the call. */
static void statuses_compare(struct suite *suite, const struct call *call,
                             const struct outcome *outcome,
                             const struct outcome *other)
{
    const uint32_t caps = outcome->plugin->info.caps & other->plugin->info.caps;

    if (outcome->launch != other->launch &&
        (call->expected_status != EXPECT_OK_IF_SUPPORTED ||
         (caps & TANDEM_CAP_CORE_OPERATORS) != 0))
        report(suite, call, outcome, "launch: %s here, %s on %s",
               status_text(outcome->launch), status_text(other->launch),
               other->plugin->options->plugin);
}

enum tandem_status call_run_once(struct suite *suite, struct call *call)
{
    struct checker checker = {.call = call};
    struct outcome outcome, other;

    outcome_run(&outcome, suite, call, 1);
    outcome_check(suite, &checker, &outcome);
    if (suite->other != NULL) {
        outcome_run(&other, suite->other, call, 1);
        outcome_check(suite, &checker, &other);
        statuses_compare(suite, call, &outcome, &other);
        outcome_finish(&other);
    }
    outcome_finish(&outcome);
    checker_finish(&checker);
    return outcome.launch;
}
