/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of each dtype as bits and as values.  Pure functions. */
#ifndef TANDEM_CONFORMANCE_ELEMENT_VALUE_H
#define TANDEM_CONFORMANCE_ELEMENT_VALUE_H

#include <tandem/backend.h>

uint64_t bits_read(const void *element, uint32_t bytes);
void bits_write(void *element, uint32_t bytes, uint64_t bits);

/* Returns the value as float64, exact for every dtype except I64 and U64. */
double bits_real(uint32_t dtype, uint64_t bits);
/* For integer dtypes and BOOL. */
int64_t bits_integer(uint32_t dtype, uint64_t bits);
uint64_t bits_from_float(float value);
/*
 * For integer dtypes and BOOL returns the low bits; for float dtypes except
 * F64 rounds the value.
 */
uint64_t bits_from_integer(uint32_t dtype, int64_t value);
/* For float dtypes; rounds the value. */
uint64_t bits_from_real(uint32_t dtype, double value);

/*
 * Rounds to the nearest number of a float dtype, ties to even. Values past the
 * largest number become infinite.
 */
double real_rounded(uint32_t dtype, double value);
/* Rounds an integer like real_rounded, but only once. Not for F64. */
double integer_rounded(uint32_t dtype, int64_t value);

bool dtype_is_float(uint32_t dtype);
/* Returns true for F16 and BF16. */
bool dtype_has_16_bits(uint32_t dtype);
const char *dtype_text(uint32_t dtype);

/*
 * Returns true if an F32, BF16 or F64 element is subnormal, in which case it
 * may be flushed to zero. F16 is excluded, because devices compute in f32,
 * which represents subnormal F16 numbers exactly.
 */
bool bits_subnormal(uint32_t dtype, uint64_t bits);
uint64_t bits_flushed(uint32_t dtype, uint64_t bits);

/* Returns the distance between f32 values at x, or at FLT_MAX beyond it. */
double float_spacing(double x);

#endif
