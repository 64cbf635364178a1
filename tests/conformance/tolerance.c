/* SPDX-License-Identifier: Apache-2.0 */
/* Tolerances of the metrics, and the check of results; see tolerance.h. */
#include "tolerance.h"

#include "element_value.h"

#include <float.h>
#include <math.h>

/* ---- the tolerance of a metric ---- */

double reference_flushed(double x)
{
    return fabs(x) < (double)FLT_MIN ? fabs(x) : 0.0;
}

double tolerance_ulp(double tolerance, double real)
{
    return tolerance * float_spacing(real);
}

double reference_log2(int64_t n)
{
    return n > 1 ? log2((double)n) : 0.0;
}

/*
 * The metrics ULP_PLUS_INPUT and TERM_MAGNITUDE of hardswish are relative to x,
 * TERM_MAGNITUDE of hardsigmoid to its terms.
 */
double tolerance_unary(const struct op_row *row, double r, double x,
                       const double *floats)
{
    if (row->id == TANDEM_OP_HARDSIGMOID)
        x = fabs(reference_attribute(floats[0]) * x) +
            fabs(reference_attribute(floats[1]));
    if (row->id == TANDEM_OP_HARDSIGMOID && isinf(x))
        return 0.0;
    switch (row->metric) {
    case TANDEM_METRIC_ULP_PLUS_INPUT:
        return tolerance_ulp(row->tolerance, r) + 0x1p-20 * fabs(x);
    case TANDEM_METRIC_TERM_MAGNITUDE:
        return row->tolerance * TOLERANCE_2EPS * fabs(x);
    default:
        return tolerance_ulp(row->tolerance, r);
    }
}

double tolerance_log_sum_exp(const struct op_row *row, const struct slot *slot,
                             double real)
{
    return (row->tolerance + reference_log2(slot->count)) * TOLERANCE_2EPS *
           fmax(1.0, fmax(fabs(real), slot->largest));
}

double tolerance_reduction(const struct op_row *row, const struct slot *slot,
                           double real, double scale)
{
    switch (row->metric) {
    case TANDEM_METRIC_LOG_SUM_EXP:
        return tolerance_log_sum_exp(row, slot, real);
    case TANDEM_METRIC_PROD:
        return (row->tolerance + (double)slot->count) * TOLERANCE_2EPS *
               fabs(real);
    default:
        return (row->tolerance + reference_log2(slot->count)) * TOLERANCE_2EPS *
               scale;
    }
}

/* ---- the check of an element ---- */

static bool exact_accepts(uint32_t dtype, double want, double got)
{
    double rounded = real_rounded(dtype, want);

    if (isnan(want))
        return isnan(got);
    return got == rounded || (got == 0.0 && fabs(rounded) < (double)FLT_MIN);
}

/*
 * Returns true if got is 0 and a number within the tolerance is subnormal and
 * may therefore be flushed.
 */
static bool flushed(double want, double tolerance, double got)
{
    return got == 0.0 && fabs(want) - tolerance < (double)FLT_MIN;
}

/* Returns true if got is acceptable; want or got is NaN. */
static bool nan_accepts(double want, double tolerance, double got)
{
    return isnan(want) && (isnan(got) || (isinf(tolerance) && got == 0.0));
}

/* Returns true if got is the rounding of some number within the tolerance. */
static bool narrow_accepts(uint32_t dtype, double want, double tolerance,
                           double got, double *out_error)
{
    *out_error = fabs(got - want) / tolerance;
    if (isnan(want) || isnan(got))
        return nan_accepts(want, tolerance, got);
    if (isinf(want))
        return got == want;
    return (got >= real_rounded(dtype, want - tolerance) &&
            got <= real_rounded(dtype, want + tolerance)) ||
           flushed(want, tolerance, got);
}

static bool real_accepts(double want, double tolerance, double got,
                         double *out_error)
{
    *out_error = (double)INFINITY;
    if (isnan(want) || isnan(got))
        return nan_accepts(want, tolerance, got);
    if (isinf(want))
        return got == want;
    /* A value that may exceed the range of f32 may round to infinity. */
    if (isinf(got))
        return (got > 0.0 ? want : -want) + tolerance > (double)FLT_MAX;
    *out_error = got == want ? 0.0 : fabs(got - want) / tolerance;
    return *out_error <= 1.0 || flushed(want, tolerance, got);
}

static double tolerance_at(const struct expected *expected, int64_t element)
{
    double tolerance = expected->tolerance[element];

    if (fabs(expected->real[element]) < (double)FLT_MIN &&
        tolerance < expected->subnormal_tolerance)
        return expected->subnormal_tolerance;
    return tolerance;
}

bool expected_accepts(const struct expected *expected, int64_t element,
                      uint32_t dtype, uint64_t bits, double *out_error)
{
    double got = bits_real(dtype, bits);

    *out_error = (double)INFINITY;
    if (expected->unspecified != NULL &&
        expected->unspecified[element] == UNSPECIFIED)
        return true;
    switch (expected->kind) {
    case EXPECTED_INTEGER:
        return bits_integer(dtype, bits) == expected->integer[element];
    case EXPECTED_BITS:
        if (isnan(expected->real[element]))
            return isnan(got);
        return bits == (uint64_t)expected->integer[element];
    default:
        if (expected->unspecified != NULL &&
            expected->unspecified[element] == UNSPECIFIED_UNLESS_NAN &&
            !isnan(expected->real[element]))
            return true;
        if (expected->exact)
            return exact_accepts(dtype, expected->real[element], got);
        if (dtype_has_16_bits(dtype))
            return narrow_accepts(dtype, expected->real[element],
                                  tolerance_at(expected, element), got,
                                  out_error);
        return real_accepts(expected->real[element],
                            tolerance_at(expected, element), got, out_error);
    }
}
