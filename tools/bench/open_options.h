/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices are opened with besides the library's own keys: the command
 * line's --open-option=KEY=VALUE (tandem_open_options in backend.h).
 */
#ifndef TANDEM_BENCH_OPEN_OPTIONS_H
#define TANDEM_BENCH_OPEN_OPTIONS_H

#include <stdint.h>

#define MAX_OPEN_OPTIONS 32u

struct open_options {
    uint32_t count;
    const char *keys[MAX_OPEN_OPTIONS],
        *values[MAX_OPEN_OPTIONS]; /* the caller's */
};

#endif
