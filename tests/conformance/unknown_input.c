/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input that only a later version of backend.h defines: flags, bytes beyond
 * the known size of a struct, attributes after those of an operator, and
 * dtypes. Every entry must return TANDEM_UNSUPPORTED, so that a host can tell
 * an older plugin from a mistake. The inputs are generated from the tables of
 * the header: each of them is set alone, in a valid call of each operator.
 */
#include "contract.h"

#include "../../tools/common/tensor_call.h"
#include "gemm_launch.h"
#include "suite_class.h"

#include <stdio.h>
#include <string.h>

#define GROUP "unknown"
/* Size of the unknown end of a struct. */
#define TAIL_BYTES 24u
#define ALL_FLAGS 32u

static const uint32_t dtypes[] = {
    TANDEM_I8,  TANDEM_I16,  TANDEM_I32, TANDEM_I64, TANDEM_U8,
    TANDEM_U16, TANDEM_U32,  TANDEM_U64, TANDEM_F16, TANDEM_F32,
    TANDEM_F64, TANDEM_BF16, TANDEM_BOOL};

static bool dtype_is_known(uint32_t dtype)
{
    for (size_t i = 0; i < COUNT_OF(dtypes); i++)
        if (dtypes[i] == dtype)
            return true;
    return false;
}

/* Sets *dtype to unknown dtype number i: f32 with another bit changed, or 0.
 * Returns false if there are fewer. */
static bool dtype_unknown(uint32_t i, uint32_t *dtype)
{
    *dtype = i < ALL_FLAGS ? TANDEM_F32 ^ 1u << i : 0;
    return i <= ALL_FLAGS;
}

/* The structs, followed by fields of a later version. */
struct long_op {
    struct tandem_op op;
    unsigned char tail[TAIL_BYTES];
};
struct long_gemm {
    struct tandem_gemm gemm;
    unsigned char tail[TAIL_BYTES];
};
struct long_options {
    struct tandem_open_options options;
    unsigned char tail[TAIL_BYTES];
};

/* ---- operators ---- */

/* A valid call of an operator, whose parts are changed one after the other. */
struct unknown_call {
    struct mistaken_call call;
    struct long_op op;
    int64_t ints[TANDEM_MAX_ATTRIBUTES + 2];
    double floats[TANDEM_MAX_ATTRIBUTES + 2];
};

static void unknown_call_reset(struct unknown_call *out,
                               const struct op_row *row)
{
    mistaken_call_reset(&out->call, row);
    memset(&out->op, 0, sizeof(out->op));
    memset(out->ints, 0, sizeof(out->ints));
    memset(out->floats, 0, sizeof(out->floats));
    memcpy(out->ints, out->call.ints, sizeof(out->call.ints));
    memcpy(out->floats, out->call.floats, sizeof(out->call.floats));
    out->op.op = out->call.op;
    out->op.op.ints = out->ints;
    out->op.op.floats = out->floats;
}

static enum tandem_status query(struct suite *suite,
                                const struct unknown_call *p)
{
    return tensors_supported(&suite->api, suite->device, &p->op.op,
                             p->call.in_array, p->call.in_count,
                             p->call.out_array, p->call.out_count);
}

static enum tandem_status prepare(struct suite *suite,
                                  const struct unknown_call *p, uint32_t flags)
{
    struct tandem_prepared *prepared = NULL;
    struct tensor_call call;
    enum tandem_status status;

    tensor_call_init(&call, p->call.in_array, p->call.in_count,
                     p->call.out_array, p->call.out_count, 0);
    status = tensor_call_prepare(&call, &suite->api, suite->device, &p->op.op,
                                 flags, &prepared);
    suite->api.prepared_release(prepared);
    return status;
}

/* Expects TANDEM_UNSUPPORTED with all flags. `what` and `number` say what is
 * unknown in the call. */
static void expect_unsupported(struct suite *suite, struct unknown_call *p,
                               const char *what, uint32_t number)
{
    char text[100];

    snprintf(text, sizeof(text), "%s %u", what, number);
    expect_error(suite, prepare(suite, p, 0), TANDEM_UNSUPPORTED, text);
    expect_error(suite, prepare(suite, p, TANDEM_PREPARE_QUERY),
                 TANDEM_UNSUPPORTED, text);
    expect_error(suite, prepare(suite, p, TANDEM_PREPARE_COMPILE_NOW),
                 TANDEM_UNSUPPORTED, text);
}

/* Sets everything that is unknown in struct tandem_op. */
static void op_check(struct suite *suite, struct unknown_call *p)
{
    struct tandem_op *op = &p->op.op;
    const struct tandem_op valid = *op;
    const uint32_t known = TANDEM_OP_ALLOW_NONDETERMINISM |
                           TANDEM_OP_ALLOW_TF32 |
                           TANDEM_OP_ALLOW_NORMWISE_ERROR;

    for (uint32_t i = 0; i < ALL_FLAGS; i++) {
        op->flags = 1u << i;
        if ((op->flags & known) == 0)
            expect_unsupported(suite, p, "flag", i);
    }
    *op = valid;
    for (uint32_t i = 0; i < TAIL_BYTES; i++) {
        op->struct_size = sizeof(*op) + i + 1;
        EXPECT_OK(suite, query(suite, p));
        p->op.tail[i] = 1;
        expect_unsupported(suite, p, "byte", i);
        op->struct_size = sizeof(p->op);
        expect_unsupported(suite, p, "byte", i);
        p->op.tail[i] = 0;
    }
    *op = valid;
    for (uint32_t i = op->int_count; i < COUNT_OF(p->ints); i++) {
        op->int_count = i + 1;
        expect_unsupported(suite, p, "integer attribute", i);
    }
    *op = valid;
    for (uint32_t i = op->float_count; i < COUNT_OF(p->floats); i++) {
        op->float_count = i + 1;
        expect_unsupported(suite, p, "float attribute", i);
    }
    *op = valid;
}

static void dtypes_check(struct suite *suite, struct unknown_call *p)
{
    for (uint32_t k = 0; k < p->call.in_count + p->call.out_count; k++) {
        struct tandem_tensor_desc *desc =
            k < p->call.in_count ? &p->call.ins[k]
                                 : &p->call.outs[k - p->call.in_count];
        const uint32_t valid = desc->dtype;
        uint32_t dtype;

        for (uint32_t i = 0; dtype_unknown(i, &dtype); i++) {
            desc->dtype = dtype;
            if (!dtype_is_known(dtype))
                expect_unsupported(suite, p, "a dtype of operand", k);
        }
        desc->dtype = valid;
    }
}

static void operator_run(struct suite *suite, const struct op_row *row,
                         struct unknown_call *p)
{
    static const unsigned char contents[MISTAKE_BYTES];
    unsigned char now[MISTAKE_BYTES];
    enum tandem_status status;

    unknown_call_reset(p, row);
    status = query(suite, p);
    if (status == TANDEM_UNSUPPORTED)
        case_skip(suite, "needs the operator %s", row->name);
    if (status == TANDEM_UNSUPPORTED ||
        !expect(suite, status, TANDEM_OK, "a query of the valid call") ||
        !CALL_OK(upload, suite->stream, p->call.buffer, 0, contents,
                 MISTAKE_BYTES, 0))
        return;
    op_check(suite, p);
    dtypes_check(suite, p);
    if (CALL_OK(download, suite->stream, p->call.buffer, 0, now, MISTAKE_BYTES,
                0, SUITE_TIMEOUT_NS) &&
        memcmp(now, contents, MISTAKE_BYTES) != 0)
        case_fail(suite, "a rejected call wrote the buffer");
}

static void operators_unknown_run(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        struct unknown_call p = {.call = {.buffer = NULL}};

        if (!case_begin(suite, GROUP, "%s", op_table[i].name))
            continue;
        if (CALL_OK(alloc, suite->device, TANDEM_BYTES(MISTAKE_BYTES),
                    &p.call.buffer))
            operator_run(suite, &op_table[i], &p);
        suite->api.free(p.call.buffer);
        contract_case_end(suite);
    }
}

/* ---- gemm ---- */

static void expect_gemm_unsupported(struct suite *suite,
                                    const struct long_gemm *product,
                                    const char *what, uint32_t number)
{
    char text[100];

    snprintf(text, sizeof(text), "gemm: %s %u", what, number);
    expect_error(suite, suite->api.gemm(suite->stream, &product->gemm),
                 TANDEM_UNSUPPORTED, text);
}

static void gemm_check(struct suite *suite, struct long_gemm *product)
{
    struct tandem_gemm *gemm = &product->gemm;
    const struct tandem_gemm valid = *gemm;
    const uint32_t known = TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B |
                           TANDEM_GEMM_ALLOW_TF32 |
                           TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    uint32_t dtype;

    for (uint32_t i = 0; i < ALL_FLAGS; i++) {
        *gemm = valid;
        gemm->flags = 1u << i;
        if ((gemm->flags & known) == 0)
            expect_gemm_unsupported(suite, product, "flag", i);
        *gemm = valid;
        gemm->reserved = 1u << i;
        expect_gemm_unsupported(suite, product, "reserved bit", i);
        *gemm = valid;
        gemm->bias_kind = 1u << i;
        if (gemm->bias_kind > TANDEM_BIAS_PER_ROW)
            expect_gemm_unsupported(suite, product, "bias_kind bit", i);
    }
    for (uint32_t i = 0; dtype_unknown(i, &dtype); i++) {
        *gemm = valid;
        gemm->dtype = dtype;
        if (!dtype_is_known(dtype))
            expect_gemm_unsupported(suite, product, "dtype", dtype);
        *gemm = valid;
        gemm->c_dtype = dtype;
        if (dtype != 0 && !dtype_is_known(dtype))
            expect_gemm_unsupported(suite, product, "c_dtype", dtype);
    }
    *gemm = valid;
    for (uint32_t i = 0; i < TAIL_BYTES; i++) {
        gemm->struct_size = sizeof(*gemm) + i + 1;
        CALL_OK(gemm, suite->stream, gemm);
        product->tail[i] = 1;
        expect_gemm_unsupported(suite, product, "byte", i);
        product->tail[i] = 0;
    }
    *gemm = valid;
}

static void gemm_unknown_run(struct suite *suite)
{
    struct mistaken_gemm plain = {.plain = true};
    struct long_gemm product = {.tail = {0}};
    enum tandem_status status;

    if (!case_begin(suite, GROUP, "the function gemm"))
        return;
    if (CALL_OK(alloc, suite->device, TANDEM_BYTES(MISTAKE_BYTES),
                &plain.buffer)) {
        mistaken_gemm_reset(&plain);
        product.gemm = plain.gemm;
        status = gemm_supported_as_operator(&suite->api, suite->device,
                                            &product.gemm);
        if (status == TANDEM_UNSUPPORTED)
            case_skip(suite, "needs gemm");
        else if (expect(suite, status, TANDEM_OK, "a query of gemm"))
            gemm_check(suite, &product);
    }
    suite->api.free(plain.buffer);
    contract_case_end(suite);
}

/* ---- other entries ---- */

static void flags_run(struct suite *suite)
{
    const struct tandem_backend *api = &suite->api;
    unsigned char byte = 0;
    struct tandem_buffer *buffer;
    struct tandem_stream *made;
    void *memory;

    if (!CALL_OK(alloc, suite->device, TANDEM_BYTES(1), &buffer))
        return;
    for (uint32_t i = 0; i < ALL_FLAGS; i++) {
        const uint32_t flag = 1u << i;

        if ((flag & TANDEM_TRANSFER_ASYNC) == 0) {
            expect_error(suite,
                         api->upload(suite->stream, buffer, 0, &byte, 1, flag),
                         TANDEM_UNSUPPORTED, "an unknown flag of upload");
            expect_error(suite,
                         api->download(suite->stream, buffer, 0, &byte, 1, flag,
                                       SUITE_TIMEOUT_NS),
                         TANDEM_UNSUPPORTED, "an unknown flag of download");
        }
        if ((flag & (TANDEM_MAP_READ | TANDEM_MAP_WRITE)) == 0 &&
            api->map != NULL)
            expect_error(suite,
                         api->map(suite->stream, buffer, 0, 1,
                                  flag | TANDEM_MAP_READ, SUITE_TIMEOUT_NS,
                                  &memory),
                         TANDEM_UNSUPPORTED, "an unknown flag of map");
        if ((flag & TANDEM_STREAM_PROFILING) == 0)
            expect_error(suite, api->stream_create(suite->device, flag, &made),
                         TANDEM_UNSUPPORTED,
                         "an unknown flag of stream_create");
    }
    api->free(buffer);
}

/* A call of prepare with unknown flags or reserved members. */
static void prepare_run(struct suite *suite)
{
    const uint32_t known = TANDEM_PREPARE_QUERY | TANDEM_PREPARE_COMPILE_NOW;
    struct unknown_call p = {.call = {.buffer = NULL}};
    struct tandem_operand_desc descs[2] = {{.dtype = TANDEM_F32}};
    const struct tandem_operand_desc *in = &descs[0], *out = &descs[1];

    unknown_call_reset(&p, op_find(TANDEM_OP_NEG));
    for (uint32_t i = 0; i < ALL_FLAGS; i++)
        if ((1u << i & known) == 0)
            expect_error(suite, prepare(suite, &p, 1u << i), TANDEM_UNSUPPORTED,
                         "an unknown flag of prepare");
    descs[1] = descs[0];
    for (uint32_t k = 0; k < COUNT_OF(descs); k++)
        for (uint32_t i = 0; i < COUNT_OF(descs[k].reserved); i++) {
            descs[k].reserved[i] = 1;
            expect_error(suite,
                         suite->api.prepare(suite->device, &p.op.op, &in, 1,
                                            &out, 1, TANDEM_PREPARE_QUERY, NULL,
                                            NULL),
                         TANDEM_UNSUPPORTED, "a reserved member of an operand");
            descs[k].reserved[i] = 0;
        }
}

/* Fails the case unless alloc returns the status, and a buffer on success. */
static void alloc_expect(struct suite *suite,
                         const struct tandem_alloc_options *options,
                         enum tandem_status want, const char *what)
{
    struct tandem_buffer *buffer = NULL;
    enum tandem_status status =
        suite->api.alloc(suite->device, options, &buffer);

    if (want == TANDEM_OK)
        expect(suite, status, want, "%s", what);
    else
        expect_error(suite, status, want, what);
    EXPECT(suite, (buffer != NULL) == (status == TANDEM_OK));
    suite->api.free(buffer);
}

static void alloc_run(struct suite *suite)
{
    struct long_alloc {
        struct tandem_alloc_options options;
        unsigned char tail[TAIL_BYTES];
    } p = {.options = {.struct_size = sizeof(p)}};

    alloc_expect(suite, &p.options, TANDEM_OK, "options that are 0");
    p.options.bytes = 64;
    for (uint32_t i = 0; i < TAIL_BYTES; i++) {
        p.tail[i] = 1;
        alloc_expect(suite, &p.options, TANDEM_UNSUPPORTED, "an unknown byte");
        p.tail[i] = 0;
    }
    for (uint32_t i = 0; i < ALL_FLAGS; i++) {
        p.options.reserved = 1u << i;
        alloc_expect(suite, &p.options, TANDEM_UNSUPPORTED, "options.reserved");
    }
}

static void open_run(struct suite *suite)
{
    struct long_options p = {.options = {.struct_size = sizeof(p.options)}};
    const uint32_t index = suite->options->device;
    struct tandem_device *device = NULL;

    p.options.reserved = 1;
    expect_error(suite, suite->api.open(index, &p.options, &device),
                 TANDEM_UNSUPPORTED, "options.reserved");
    p.options.reserved = 0;
    for (uint32_t i = 0; i < TAIL_BYTES; i++) {
        p.options.struct_size = sizeof(p.options) + i + 1;
        p.tail[i] = 1;
        expect_error(suite, suite->api.open(index, &p.options, &device),
                     TANDEM_UNSUPPORTED, "an unknown byte of the options");
        EXPECT(suite, device == NULL);
        p.tail[i] = 0;
    }
}

/* Options of a later version whose fields, except for the size, are 0. */
static void default_options_run(struct suite *suite)
{
    struct long_options p = {.options = {.struct_size = sizeof(p)}};
    struct tandem_device *device = NULL;

    if (CALL_OK(open, suite->options->device, &p.options, &device))
        suite->api.close(device);
}

void unknown_input_run(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"flags of transfers, map and stream_create", flags_run, false},
        {"flags and reserved members of prepare", prepare_run, false},
        {"options of alloc", alloc_run, false},
        {"options of open", open_run, false},
        {"options of open that are 0", default_options_run, false},
    };

    operators_unknown_run(suite);
    gemm_unknown_run(suite);
    contract_cases_run(suite, GROUP, cases, COUNT_OF(cases));
}
