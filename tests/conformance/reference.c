/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values; see reference.h. */
#include "reference.h"

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

int64_t axis_from_start(int64_t axis, uint32_t rank)
{
    return axis < 0 ? axis + rank : axis;
}
