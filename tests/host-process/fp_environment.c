/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment of a host; see fp_environment.h. */
#include <config.h>

#include <check.h>
#include <fenv.h>

#include "fp_environment.h"

#ifdef __SSE__
#include <xmmintrin.h>
#define FLUSHING 0x8040u
#endif

struct fp_environment fp_environment_read(void)
{
    struct fp_environment now = {fegetround(), fegetexcept(), 0};

#ifdef __SSE__
    now.flushing = _mm_getcsr() & FLUSHING;
#endif
    return now;
}

void fp_environment_compare(struct fp_environment before,
                            struct fp_environment after)
{
    ck_assert_int_eq(before.rounding, after.rounding);
    ck_assert_int_eq(before.traps, after.traps);
    ck_assert_uint_eq(before.flushing, after.flushing);
}

void fp_environment_flush(void)
{
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | FLUSHING);
#endif
}
