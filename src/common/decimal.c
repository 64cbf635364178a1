/* SPDX-License-Identifier: Apache-2.0 */
/* Parses decimal numbers; see decimal.h. */
#include "common/decimal.h"

bool decimal_read(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    *out = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            value = UINT64_MAX;
    }
    *out = value;
    return true;
}
