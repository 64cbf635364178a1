/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of each dtype as bits and as values.  Pure functions.
 */
#ifndef TANDEM_CONFORMANCE_ELEMENT_VALUE_H
#define TANDEM_CONFORMANCE_ELEMENT_VALUE_H

#include <tandem/backend.h>

uint64_t bits_read(const void *element, uint32_t bytes);
void bits_write(void *element, uint32_t bytes, uint64_t bits);

/* The value as float64; exact for every dtype but I64 and U64. */
double bits_real(uint32_t dtype, uint64_t bits);
/* Integer dtypes and BOOL. */
int64_t bits_integer(uint32_t dtype, uint64_t bits);
uint64_t bits_from_float(float value);
/* Integer dtypes and BOOL: the low bits.  Float dtypes but F64: rounded. */
uint64_t bits_from_integer(uint32_t dtype, int64_t value);
/* Float dtypes: rounded. */
uint64_t bits_from_real(uint32_t dtype, double value);

/* The number of a float dtype that is nearest, of two the one that ends in an
 * even digit; infinite where it would be past the largest. */
double real_rounded(uint32_t dtype, double value);
/* Likewise, from the whole integer; not F64. */
double integer_rounded(uint32_t dtype, int64_t value);

bool dtype_is_float(uint32_t dtype);
/* F16 and BF16. */
bool dtype_has_16_bits(uint32_t dtype);
const char *dtype_text(uint32_t dtype);

/* Whether an F32, BF16 or F64 element is subnormal, and the zero of its sign.
 * What is subnormal in F16 is not in f32, in which all is computed. */
bool bits_subnormal(uint32_t dtype, uint64_t bits);
uint64_t bits_flushed(uint32_t dtype, uint64_t bits);

/* The distance of neighbouring f32 values at x (x finite or beyond FLT_MAX:
 * as at FLT_MAX). */
double float_spacing(double x);

#endif
