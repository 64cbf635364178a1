/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the results of plugins; see result_check.h. */
#include "result_check.h"

#include "conformance/element_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *status_name(enum tandem_status status)
{
    static const char *const names[] = {
        [TANDEM_OK] = "ok",
        [TANDEM_INVALID_ARGUMENT] = "invalid argument",
        [TANDEM_UNSUPPORTED] = "unsupported",
        [TANDEM_NO_DEVICE] = "no device",
        [TANDEM_OUT_OF_MEMORY] = "out of memory",
        [TANDEM_NOT_READY] = "not ready",
        [TANDEM_DEVICE_LOST] = "device lost",
        [TANDEM_FAILED] = "failed"};

    return (unsigned)status < sizeof(names) / sizeof(names[0])
               ? names[status]
               : "an unknown status";
}

void checker_init(struct checker *checker, const struct problem *problem)
{
    memset(checker, 0, sizeof(*checker));
    checker->problem = problem;
}

void checker_finish(struct checker *checker)
{
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++) {
        expected_finish(&checker->expected[0][i]);
        expected_finish(&checker->expected[1][i]);
    }
    free(checker->outside);
}

/*
 * ---- expected results ------------------------------------------------------
 */

static bool broadcasts(const struct op_row *row)
{
    return (row->op_class >= TANDEM_CLASS_BINARY &&
            row->op_class <= TANDEM_CLASS_TERNARY) ||
           row->op_class == TANDEM_CLASS_COPY;
}

static uint32_t scalar_dtype(const struct op_row *row, uint32_t i)
{
    if (row->op_class == TANDEM_CLASS_LOGICAL ||
        (row->id == TANDEM_OP_WHERE && i == 0))
        return TANDEM_BOOL;
    return TANDEM_F32;
}

static void expected_compute(struct checker *checker)
{
    const struct problem *p = checker->problem;
    const struct tandem_tensor_desc *out = &p->operands[p->inputs].desc;
    struct dense dense[PROBLEM_OPERANDS];
    struct reference reference = {.row = p->row,
                                  .ints = p->ints,
                                  .floats = p->floats,
                                  .inputs = dense,
                                  .out_dtype = out->dtype,
                                  .out_rank = out->rank,
                                  .out_shape = out->shape};

    for (uint32_t i = 0; i < p->inputs; i++) {
        const struct operand *operand = &p->operands[i];
        bool wide = broadcasts(p->row);

        dense_load(&dense[i], operand, scalar_dtype(p->row, i),
                   wide ? out->rank : operand->desc.rank,
                   wide ? out->shape : operand->desc.shape);
        checker->subnormal |= dense_has_subnormals(&dense[i]);
    }
    reference_compute(&reference, checker->expected[0]);
    for (uint32_t i = 0; checker->subnormal && i < p->inputs; i++)
        dense[i].flush = true;
    if (checker->subnormal)
        reference_compute(&reference, checker->expected[1]);
    for (uint32_t i = 0; i < p->inputs; i++)
        dense_finish(&dense[i]);
}

static void expected_compute_gemm(struct checker *checker)
{
    const struct problem *p = checker->problem;

    reference_gemm(&p->gemm, p->operands[0].image, p->operands[1].image,
                   p->operands[3].image, p->operands[2].image,
                   &checker->expected[0][0]);
    range_find(p, checker->expected[0], &checker->outside);
}

static void checker_compute(struct checker *checker)
{
    if (checker->computed)
        return;
    checker->computed = true;
    if (checker->problem->row->op_class == TANDEM_CLASS_GEMM)
        expected_compute_gemm(checker);
    else
        expected_compute(checker);
}

/* ---- bytes ------------------------------------------------------------------
 */

/* Checks that no byte changed except those of the outputs' elements. */
static bool check_bytes(const struct problem *p,
                        const struct call_outcome *call_outcome, bool written,
                        char *text, size_t size)
{
    for (uint32_t storage = 0; storage < p->inputs + p->outputs; storage++) {
        const struct operand *h = &p->operands[storage];
        unsigned char *now = call_outcome->after[storage];
        unsigned char *masked;
        uint64_t at = 0;

        if (now == NULL)
            continue;
        masked = must_allocate(h->bytes);
        memcpy(masked, now, h->bytes);
        for (uint32_t k = p->inputs; written && k < p->inputs + p->outputs;
             k++) {
            const struct operand *out = &p->operands[k];
            uint32_t bytes = TANDEM_DTYPE_BYTES(out->desc.dtype);

            for (int64_t i = 0; p->storage[k] == storage && i < out->elements;
                 i++)
                memcpy(masked + out->offsets[i], h->image + out->offsets[i],
                       bytes);
        }
        while (at < h->bytes && masked[at] == h->image[at])
            at++;
        free(masked);
        if (at == h->bytes)
            continue;
        snprintf(text, size,
                 "byte %" PRIu64 " of %" PRIu64 " of operand %u's buffer was "
                 "written",
                 at, h->bytes, storage);
        return false;
    }
    return true;
}

/* ---- numbers
 * ----------------------------------------------------------------- */

static void value_text(uint32_t dtype, uint64_t bits, char *text, size_t size)
{
    if (dtype_is_float(dtype))
        snprintf(text, size, "%.9g", bits_real(dtype, bits));
    else
        snprintf(text, size, "%" PRId64, bits_integer(dtype, bits));
}

static void wanted_text(const struct expected *expected, int64_t i,
                        uint32_t dtype, char *text, size_t size)
{
    if (expected->kind == EXPECTED_REAL)
        snprintf(text, size, "%.12g", expected->real[i]);
    else
        value_text(dtype, (uint64_t)expected->integer[i], text, size);
}

/* An infinite scale, as for a constant row, allows any value. */
static bool scale_is_infinite(const struct checker *checker, uint32_t k,
                              int64_t i)
{
    const struct expected *expected = &checker->expected[0][k];

    if (k == 0 && checker->outside != NULL && checker->outside[i])
        return true;
    return checker->problem->row->op_class == TANDEM_CLASS_NORM &&
           !isfinite(expected->tolerance[i]);
}

static bool element_accepts(const struct checker *checker, uint32_t k,
                            int64_t i, uint32_t dtype, uint64_t bits,
                            double *out_error)
{
    double other;

    return expected_accepts(&checker->expected[0][k], i, dtype, bits,
                            out_error) ||
           (checker->subnormal && expected_accepts(&checker->expected[1][k], i,
                                                   dtype, bits, &other)) ||
           scale_is_infinite(checker, k, i);
}

static bool check_values(struct checker *checker,
                         const struct call_outcome *call_outcome, char *text,
                         size_t size)
{
    const struct problem *p = checker->problem;

    checker_compute(checker);
    for (uint32_t k = 0; k < p->outputs; k++) {
        const struct operand *out = &p->operands[p->inputs + k];
        const unsigned char *after =
            call_outcome->after[p->storage[p->inputs + k]];
        uint32_t dtype = out->desc.dtype, bytes = TANDEM_DTYPE_BYTES(dtype);

        for (int64_t i = 0; i < out->elements; i++) {
            uint64_t bits = bits_read(after + out->offsets[i], bytes);
            char got[64], want[64];
            double error;

            if (element_accepts(checker, k, i, dtype, bits, &error))
                continue;
            value_text(dtype, bits, got, sizeof(got));
            wanted_text(&checker->expected[0][k], i, dtype, want, sizeof(want));
            snprintf(text, size,
                     "output %u, element %" PRId64 " of %" PRId64
                     ": got %s, expected %s, off by %.3g tolerances",
                     k, i, out->elements, got, want, error);
            return false;
        }
    }
    return true;
}

/* ---- statuses
 * ---------------------------------------------------------------- */

static bool must_be_supported(const struct problem *p, uint32_t caps)
{
    bool narrow = false;

    for (uint32_t i = 0; i < p->inputs + p->outputs; i++)
        narrow |= dtype_has_16_bits(p->operands[i].desc.dtype);
    if (narrow &&
        (p->row->op_class == TANDEM_CLASS_CAST ||
         p->row->op_class == TANDEM_CLASS_GEMM) &&
        !(caps & TANDEM_CAP_F16_BF16_STORAGE))
        return false;
    return p->row->required && (caps & TANDEM_CAP_CORE_OPERATORS) != 0;
}

static bool status_is_expected(const struct problem *p, uint32_t caps,
                               enum tandem_status got)
{
    switch (p->expected_status) {
    case EXPECT_OK_IF_SUPPORTED:
        return got == TANDEM_OK ||
               (got == TANDEM_UNSUPPORTED && !must_be_supported(p, caps));
    case EXPECT_INVALID_ARGUMENT:
        return got == TANDEM_INVALID_ARGUMENT;
    case EXPECT_UNSUPPORTED:
        return got == TANDEM_UNSUPPORTED;
    case EXPECT_ERROR:
        return got == TANDEM_INVALID_ARGUMENT || got == TANDEM_UNSUPPORTED;
    default:
        return got == TANDEM_OK || got == TANDEM_INVALID_ARGUMENT;
    }
}

static const char *expected_status_text(enum expected_status expected_status)
{
    static const char *const texts[] = {
        [EXPECT_OK_IF_SUPPORTED] = "ok",
        [EXPECT_INVALID_ARGUMENT] = "invalid argument",
        [EXPECT_UNSUPPORTED] = "unsupported",
        [EXPECT_ERROR] = "invalid argument or unsupported",
        [EXPECT_OK_OR_INVALID] = "ok or invalid argument"};

    return texts[expected_status];
}

static bool check_statuses(const struct problem *p,
                           const struct call_outcome *call_outcome,
                           uint32_t caps, char *text, size_t size)
{
    enum tandem_status seen = call_outcome->supports;

    text[0] = '\0';
    if (!status_is_expected(p, caps, call_outcome->launch))
        snprintf(text, size, "launch: %s, expected %s (%s)",
                 status_name(call_outcome->launch),
                 expected_status_text(p->expected_status),
                 call_outcome->message);
    else if (call_outcome->launch != TANDEM_OK &&
             call_outcome->message[0] == '\0')
        snprintf(text, size, "launch failed without a message");
    else if (seen != call_outcome->launch &&
             !(p->only_launch_detects && seen == TANDEM_OK))
        snprintf(text, size, "supports: %s, but launch: %s (%s)",
                 status_name(seen), status_name(call_outcome->launch),
                 call_outcome->message);
    return text[0] == '\0';
}

void check_outcome(struct checker *checker,
                   const struct call_outcome *call_outcome, uint32_t caps,
                   char *text, size_t size)
{
    const struct problem *p = checker->problem;
    bool launched = call_outcome->launch == TANDEM_OK;

    snprintf(text, size, "%s", call_outcome->failure);
    if (text[0] == '\0' && check_statuses(p, call_outcome, caps, text, size) &&
        check_bytes(p, call_outcome, launched, text, size) && launched)
        check_values(checker, call_outcome, text, size);
}
