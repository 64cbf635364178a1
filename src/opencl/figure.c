/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in profiles; see figure.h. */
#include "opencl/figure.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

bool decimal_parse_double(const char **text, double *out)
{
    const char *at = *text;
    double value = 0, unit = 1;
    bool any = false;
    *out = 0;
    while (*at == ' ')
        at++;
    for (; digit(*at); at++, any = true) {
        value = value * 10 + (*at - '0');
        if (value > FIGURE_MAX)
            return false;
    }
    if (*at == '.')
        for (at++; digit(*at); at++, any = true) {
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

bool figure_write(char *text, size_t bytes, double value)
{
    size_t used = strlen(text);
    char figure[40];
    if (!(value >= 0 && value <= FIGURE_MAX))
        return false;
    uint64_t thousandths = (uint64_t)(value * 1000 + 0.5);
    int length =
        snprintf(figure, sizeof(figure), "%" PRIu64 ".%03" PRIu64,
                 thousandths / 1000, thousandths % 1000);
    while (figure[length - 1] == '0')
        length--;
    if (figure[length - 1] == '.')
        length--;
    if ((size_t)length >= bytes - used)
        return false;
    memcpy(text + used, figure, (size_t)length);
    text[used + (size_t)length] = '\0';
    return true;
}
