/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values and the check of results; see reference.h. */
#include "reference.h"

#include "element_value.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void expected_init(struct expected *expected, enum expected_kind kind,
                   int64_t elements)
{
    memset(expected, 0, sizeof(*expected));
    expected->kind = kind;
    expected->elements = elements;
    expected->real = must_allocate((uint64_t)elements * sizeof(double));
    if (kind == EXPECTED_REAL)
        expected->tolerance =
            must_allocate((uint64_t)elements * sizeof(double));
    else
        expected->integer = must_allocate((uint64_t)elements * sizeof(int64_t));
}

void expected_finish(struct expected *expected)
{
    free(expected->real);
    free(expected->tolerance);
    free(expected->integer);
    free(expected->unspecified);
    memset(expected, 0, sizeof(*expected));
}

void expected_allow_unspecified(struct expected *expected)
{
    expected->unspecified = must_allocate((uint64_t)expected->elements);
}

double reference_flushed(double x)
{
    return fabs(x) < (double)FLT_MIN ? fabs(x) : 0.0;
}

double reference_attribute(double value)
{
    double size = fabs(value);

    if (size == 0.0 || !(size < (double)INFINITY) ||
        (size >= (double)FLT_MIN && size <= (double)FLT_MAX))
        return value;
    size = (double)(float)fmin(size, (double)FLT_MAX);
    return copysign(fmax(size, 0x1p-149), value);
}

double reference_epsilon(double value)
{
    return value > 0.0 ? fmax(reference_attribute(value), (double)FLT_MIN)
                       : value;
}

double reference_ulp(double tolerance, double real)
{
    return tolerance * float_spacing(real);
}

double reference_log2(int64_t n)
{
    return n > 1 ? log2((double)n) : 0.0;
}

int64_t axis_from_start(int64_t axis, uint32_t rank)
{
    return axis < 0 ? axis + rank : axis;
}

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
