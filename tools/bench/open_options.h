/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options for opening devices, from --open-option=KEY=VALUE on the command line
 * (tandem_open_options in backend.h).
 */
#ifndef TANDEM_BENCH_OPEN_OPTIONS_H
#define TANDEM_BENCH_OPEN_OPTIONS_H

#include <stdint.h>

#define MAX_OPEN_OPTIONS 32u

struct open_options {
    uint32_t count;
    const char *keys[MAX_OPEN_OPTIONS],
        *values[MAX_OPEN_OPTIONS]; /* borrowed */
};

#endif
