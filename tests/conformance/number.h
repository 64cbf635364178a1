/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of each dtype as bits and as values.  Pure functions.
 */
#ifndef TANDEM_CONFORMANCE_NUMBER_H
#define TANDEM_CONFORMANCE_NUMBER_H

#include <tandem/backend.h>

uint64_t bits_read(const void *element, uint32_t bytes);
void bits_write(void *element, uint32_t bytes, uint64_t bits);

/* The value as float64; exact for every dtype but I64 and U64. */
double bits_real(uint32_t dtype, uint64_t bits);
/* Integer dtypes and BOOL. */
int64_t bits_integer(uint32_t dtype, uint64_t bits);
uint64_t bits_from_float(float value);
/* Integer dtypes and BOOL: the low bits.  F32: rounded. */
uint64_t bits_from_integer(uint32_t dtype, int64_t value);

bool dtype_is_float(uint32_t dtype);
const char *dtype_text(uint32_t dtype);

/* Whether an F32 (or F64) element is subnormal, and the zero of its sign. */
bool bits_subnormal(uint32_t dtype, uint64_t bits);
uint64_t bits_flushed(uint32_t dtype, uint64_t bits);

/* The distance of neighbouring f32 values at x (x finite or beyond FLT_MAX:
 * as at FLT_MAX). */
double float_spacing(double x);

#endif
