/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on plugins.  See result_check.h. */
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

void judge_init(struct judge *judge, const struct problem *problem)
{
    memset(judge, 0, sizeof(*judge));
    judge->problem = problem;
}

void judge_finish(struct judge *judge)
{
    for (uint32_t i = 0; i < PROBLEM_OPERANDS; i++) {
        expected_finish(&judge->expected[0][i]);
        expected_finish(&judge->expected[1][i]);
    }
    free(judge->outside);
}

/* ---- what is expected ------------------------------------------------------
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

static void expected_compute(struct judge *judge)
{
    const struct problem *p = judge->problem;
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
        judge->subnormal |= dense_has_subnormals(&dense[i]);
    }
    reference_compute(&reference, judge->expected[0]);
    for (uint32_t i = 0; judge->subnormal && i < p->inputs; i++)
        dense[i].flush = true;
    if (judge->subnormal)
        reference_compute(&reference, judge->expected[1]);
    for (uint32_t i = 0; i < p->inputs; i++)
        dense_finish(&dense[i]);
}

static void product_compute(struct judge *judge)
{
    const struct problem *p = judge->problem;

    reference_gemm(&p->gemm, p->operands[0].image, p->operands[1].image,
                   p->operands[3].image, p->operands[2].image,
                   &judge->expected[0][0]);
    range_find(p, judge->expected[0], &judge->outside);
}

static void judge_compute(struct judge *judge)
{
    if (judge->computed)
        return;
    judge->computed = true;
    if (judge->problem->row->op_class == TANDEM_CLASS_GEMM)
        product_compute(judge);
    else
        expected_compute(judge);
}

/* ---- bytes ------------------------------------------------------------------
 */

/* No byte but those of the outputs' elements may differ. */
static bool bytes_judge(const struct problem *p, const struct attempt *attempt,
                        bool written, char *text, size_t size)
{
    for (uint32_t home = 0; home < p->inputs + p->outputs; home++) {
        const struct operand *h = &p->operands[home];
        unsigned char *now = attempt->after[home];
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

            for (int64_t i = 0; p->home[k] == home && i < out->elements; i++)
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
                 at, h->bytes, home);
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

/* A scale without end, as of a row without spread, allows any number. */
static bool anything_goes(const struct judge *judge, uint32_t k, int64_t i)
{
    const struct expected *expected = &judge->expected[0][k];

    if (k == 0 && judge->outside != NULL && judge->outside[i])
        return true;
    return judge->problem->row->op_class == TANDEM_CLASS_NORM &&
           !isfinite(expected->tolerance[i]);
}

static bool element_accepts(const struct judge *judge, uint32_t k, int64_t i,
                            uint32_t dtype, uint64_t bits, double *out_error)
{
    double other;

    return expected_accepts(&judge->expected[0][k], i, dtype, bits,
                            out_error) ||
           (judge->subnormal &&
            expected_accepts(&judge->expected[1][k], i, dtype, bits, &other)) ||
           anything_goes(judge, k, i);
}

static bool numbers_judge(struct judge *judge, const struct attempt *attempt,
                          char *text, size_t size)
{
    const struct problem *p = judge->problem;

    judge_compute(judge);
    for (uint32_t k = 0; k < p->outputs; k++) {
        const struct operand *out = &p->operands[p->inputs + k];
        const unsigned char *after = attempt->after[p->home[p->inputs + k]];
        uint32_t dtype = out->desc.dtype, bytes = TANDEM_DTYPE_BYTES(dtype);

        for (int64_t i = 0; i < out->elements; i++) {
            uint64_t bits = bits_read(after + out->offsets[i], bytes);
            char got[64], want[64];
            double error;

            if (element_accepts(judge, k, i, dtype, bits, &error))
                continue;
            value_text(dtype, bits, got, sizeof(got));
            wanted_text(&judge->expected[0][k], i, dtype, want, sizeof(want));
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

static bool must_serve(const struct problem *p, uint32_t caps)
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

static bool status_right(const struct problem *p, uint32_t caps,
                         enum tandem_status got)
{
    switch (p->verdict) {
    case VERDICT_SERVED:
        return got == TANDEM_OK ||
               (got == TANDEM_UNSUPPORTED && !must_serve(p, caps));
    case VERDICT_INVALID:
        return got == TANDEM_INVALID_ARGUMENT;
    case VERDICT_UNSERVED:
        return got == TANDEM_UNSUPPORTED;
    case VERDICT_REFUSED:
        return got == TANDEM_INVALID_ARGUMENT || got == TANDEM_UNSUPPORTED;
    default:
        return got == TANDEM_OK || got == TANDEM_INVALID_ARGUMENT;
    }
}

static const char *verdict_text(enum verdict verdict)
{
    static const char *const texts[] = {
        [VERDICT_SERVED] = "ok",
        [VERDICT_INVALID] = "invalid argument",
        [VERDICT_UNSERVED] = "unsupported",
        [VERDICT_REFUSED] = "invalid argument or unsupported",
        [VERDICT_OPEN] = "ok or invalid argument"};

    return texts[verdict];
}

static bool statuses_judge(const struct problem *p,
                           const struct attempt *attempt, uint32_t caps,
                           char *text, size_t size)
{
    enum tandem_status seen = attempt->supports;

    text[0] = '\0';
    if (!status_right(p, caps, attempt->launch))
        snprintf(text, size, "launch: %s, expected %s (%s)",
                 status_name(attempt->launch), verdict_text(p->verdict),
                 attempt->message);
    else if (attempt->launch != TANDEM_OK && attempt->message[0] == '\0')
        snprintf(text, size, "launch was refused without a message");
    else if (seen != attempt->launch && !(p->memory_alone && seen == TANDEM_OK))
        snprintf(text, size, "supports: %s, but launch: %s (%s)",
                 status_name(seen), status_name(attempt->launch),
                 attempt->message);
    return text[0] == '\0';
}

void judge_attempt(struct judge *judge, const struct attempt *attempt,
                   uint32_t caps, char *text, size_t size)
{
    const struct problem *p = judge->problem;
    bool launched = attempt->launch == TANDEM_OK;

    snprintf(text, size, "%s", attempt->failure);
    if (text[0] == '\0' && statuses_judge(p, attempt, caps, text, size) &&
        bytes_judge(p, attempt, launched, text, size) && launched)
        numbers_judge(judge, attempt, text, size);
}
