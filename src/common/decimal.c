/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers; see decimal.h. */
#include "common/decimal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool decimal_read(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    *out = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (!is_digit(*text))
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            value = UINT64_MAX;
    }
    *out = value;
    return true;
}

bool decimal_parse_double(const char **text, double *out)
{
    const char *at = *text;
    double value = 0, unit = 1;
    bool any = false;
    *out = 0;
    while (*at == ' ')
        at++;
    for (; is_digit(*at); at++, any = true) {
        value = value * 10 + (*at - '0');
        if (value > DECIMAL_MAX)
            return false;
    }
    if (*at == '.')
        for (at++; is_digit(*at); at++, any = true) {
            unit /= 10;
            value += unit * (*at - '0');
        }
    while (*at == ' ')
        at++;
    if (!any)
        return false;
    *text = at;
    *out = value;
    return true;
}

bool decimal_append_double(char *text, size_t bytes, double value)
{
    size_t used = strlen(text);
    char digits[40];
    if (!(value >= 0 && value <= DECIMAL_MAX))
        return false;
    uint64_t thousandths = (uint64_t)(value * 1000 + 0.5);
    int length = snprintf(digits, sizeof(digits), "%" PRIu64 ".%03" PRIu64,
                          thousandths / 1000, thousandths % 1000);
    while (digits[length - 1] == '0')
        length--;
    if (digits[length - 1] == '.')
        length--;
    if ((size_t)length >= bytes - used)
        return false;
    memcpy(text + used, digits, (size_t)length);
    text[used + (size_t)length] = '\0';
    return true;
}
