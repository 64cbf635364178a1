/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of each dtype as bits and as values.  See element_value.h. */
#include "element_value.h"

#include <math.h>
#include <string.h>

uint64_t bits_read(const void *element, uint32_t bytes)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;

    switch (bytes) {
    case 1:
        memcpy(&u8, element, 1);
        return u8;
    case 2:
        memcpy(&u16, element, 2);
        return u16;
    case 4:
        memcpy(&u32, element, 4);
        return u32;
    default:
        memcpy(&u64, element, 8);
        return u64;
    }
}

void bits_write(void *element, uint32_t bytes, uint64_t bits)
{
    uint8_t u8 = (uint8_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint32_t u32 = (uint32_t)bits;

    switch (bytes) {
    case 1:
        memcpy(element, &u8, 1);
        break;
    case 2:
        memcpy(element, &u16, 2);
        break;
    case 4:
        memcpy(element, &u32, 4);
        break;
    default:
        memcpy(element, &bits, 8);
        break;
    }
}

static double float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static double half_of(uint32_t bits)
{
    double sign = bits & 0x8000u ? -1.0 : 1.0;
    int exponent = (int)(bits >> 10) & 31;
    double fraction = (double)(bits & 1023u);

    if (exponent == 31)
        return fraction != 0.0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, -24);
    return sign * ldexp(1024.0 + fraction, exponent - 25);
}

double bits_real(uint32_t dtype, uint64_t bits)
{
    double value;

    switch (dtype) {
    case TANDEM_F16:
        return half_of((uint32_t)bits);
    case TANDEM_BF16:
        return float_of((uint32_t)bits << 16);
    case TANDEM_F32:
        return float_of((uint32_t)bits);
    case TANDEM_F64:
        memcpy(&value, &bits, sizeof(value));
        return value;
    case TANDEM_U64:
        return (double)bits;
    default:
        return (double)bits_integer(dtype, bits);
    }
}

int64_t bits_integer(uint32_t dtype, uint64_t bits)
{
    switch (dtype) {
    case TANDEM_I8:
        return (int8_t)bits;
    case TANDEM_I16:
        return (int16_t)bits;
    case TANDEM_I32:
        return (int32_t)bits;
    case TANDEM_U8:
    case TANDEM_BOOL:
        return (uint8_t)bits;
    case TANDEM_U16:
        return (uint16_t)bits;
    case TANDEM_U32:
        return (uint32_t)bits;
    default:
        return (int64_t)bits;
    }
}

uint64_t bits_from_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Parameters of a binary floating-point format. */
struct format {
    int digits; /* Significant bits of a normal number. */
    int least;  /* The exponent of the smallest subnormal. */
    double largest;
};

static struct format format_of(uint32_t dtype)
{
    switch (dtype) {
    case TANDEM_F16:
        return (struct format){11, -24, 65504.0};
    case TANDEM_BF16:
        return (struct format){8, -133, 0x1.fep127};
    case TANDEM_F32:
        return (struct format){24, -149, 0x1.fffffep127};
    default:
        return (struct format){53, -1074, 0x1.fffffffffffffp1023};
    }
}

double real_rounded(uint32_t dtype, double value)
{
    struct format format = format_of(dtype);
    int exponent;
    double rounded;

    if (!isfinite(value) || value == 0.0 || dtype == TANDEM_F64)
        return value;
    (void)frexp(value, &exponent);
    exponent -= format.digits;
    if (exponent < format.least)
        exponent = format.least;
    rounded = ldexp(rint(ldexp(value, -exponent)), exponent);
    if (fabs(rounded) > format.largest)
        return value < 0.0 ? -(double)INFINITY : (double)INFINITY;
    return rounded;
}

double integer_rounded(uint32_t dtype, int64_t value)
{
    struct format format = format_of(dtype);
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t kept, lost, half;
    double rounded;
    int shift = 0;

    while (size >> shift >> format.digits != 0)
        shift++;
    kept = size >> shift;
    if (shift > 0) {
        lost = size - (kept << shift);
        half = UINT64_C(1) << (shift - 1);
        kept += lost > half || (lost == half && (kept & 1u) != 0);
    }
    rounded = ldexp((double)kept, shift);
    if (rounded > format.largest)
        rounded = (double)INFINITY;
    return value < 0 ? -rounded : rounded;
}

static uint64_t half_bits(double value)
{
    uint64_t sign = signbit(value) ? 0x8000u : 0;
    int exponent;

    value = fabs(value);
    if (isnan(value))
        return sign | 0x7e00u;
    if (isinf(value))
        return sign | 0x7c00u;
    if (value < 0x1p-14)
        return sign | (uint64_t)ldexp(value, 24);
    (void)frexp(value, &exponent);
    return sign + ((uint64_t)(exponent + 14) << 10) +
           ((uint64_t)ldexp(value, 11 - exponent) - 1024u);
}

uint64_t bits_from_real(uint32_t dtype, double value)
{
    double rounded = real_rounded(dtype, value);
    uint64_t bits;

    switch (dtype) {
    case TANDEM_F16:
        return half_bits(rounded);
    case TANDEM_BF16:
        return bits_from_float((float)rounded) >> 16;
    case TANDEM_F32:
        return bits_from_float((float)rounded);
    default:
        memcpy(&bits, &rounded, sizeof(bits));
        return bits;
    }
}

uint64_t bits_from_integer(uint32_t dtype, int64_t value)
{
    if (dtype_is_float(dtype))
        return bits_from_real(dtype, integer_rounded(dtype, value));
    return (uint64_t)value;
}

bool dtype_has_16_bits(uint32_t dtype)
{
    return dtype == TANDEM_F16 || dtype == TANDEM_BF16;
}

bool dtype_is_float(uint32_t dtype)
{
    return dtype == TANDEM_F16 || dtype == TANDEM_BF16 || dtype == TANDEM_F32 ||
           dtype == TANDEM_F64;
}

const char *dtype_text(uint32_t dtype)
{
    switch (dtype) {
    case TANDEM_I8:
        return "i8";
    case TANDEM_I16:
        return "i16";
    case TANDEM_I32:
        return "i32";
    case TANDEM_I64:
        return "i64";
    case TANDEM_U8:
        return "u8";
    case TANDEM_U16:
        return "u16";
    case TANDEM_U32:
        return "u32";
    case TANDEM_U64:
        return "u64";
    case TANDEM_F16:
        return "f16";
    case TANDEM_F32:
        return "f32";
    case TANDEM_F64:
        return "f64";
    case TANDEM_BF16:
        return "bf16";
    case TANDEM_BOOL:
        return "bool";
    default:
        return "unknown";
    }
}

bool bits_subnormal(uint32_t dtype, uint64_t bits)
{
    if (dtype == TANDEM_F32)
        return (bits & 0x7f800000u) == 0 && (bits & 0x007fffffu) != 0;
    if (dtype == TANDEM_BF16)
        return (bits & 0x7f80u) == 0 && (bits & 0x007fu) != 0;
    if (dtype == TANDEM_F64)
        return (bits & 0x7ff0000000000000u) == 0 &&
               (bits & 0x000fffffffffffffu) != 0;
    return false;
}

uint64_t bits_flushed(uint32_t dtype, uint64_t bits)
{
    if (!bits_subnormal(dtype, bits))
        return bits;
    return bits & (dtype == TANDEM_F32    ? 0x80000000u
                   : dtype == TANDEM_BF16 ? 0x8000u
                                          : 0x8000000000000000u);
}

double float_spacing(double x)
{
    int exponent;

    x = fabs(x);
    if (!(x >= 0x1p-126))
        return 0x1p-149;
    if (x >= 0x1p127)
        return 0x1p104;
    (void)frexp(x, &exponent);
    return ldexp(1.0, exponent - 24);
}
