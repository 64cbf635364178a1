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

struct control control_read(void)
{
    struct control now = {fegetround(), fegetexcept(), 0};

#ifdef __SSE__
    now.flushing = _mm_getcsr() & FLUSHING;
#endif
    return now;
}

void control_compare(struct control before, struct control after)
{
    ck_assert_int_eq(before.rounding, after.rounding);
    ck_assert_int_eq(before.traps, after.traps);
    ck_assert_uint_eq(before.flushing, after.flushing);
}

void control_flush(void)
{
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | FLUSHING);
#endif
}
