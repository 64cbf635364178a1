/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the calls to each simulated device, for the life of the process.
 * Any thread may change them; relaxed atomics.
 */
#include <string.h>

#include "internal.h"

static struct sim_counters counters[SIM_MAX_DEVICES];

struct sim_counters *counters_of(uint32_t device)
{
    return &counters[device];
}

void tandem_sim_counters(uint32_t device, struct sim_counters *out_counters)
{
    const size_t fields = sizeof *out_counters / sizeof(uint64_t);
    uint64_t sum[sizeof *out_counters / sizeof(uint64_t)] = {0};

    for (uint32_t i = 0; i < SIM_MAX_DEVICES; i++) {
        const uint64_t *of = (const uint64_t *)&counters[i];

        if (device != i && device != UINT32_MAX)
            continue;
        for (size_t f = 0; f < fields; f++)
            sum[f] += __atomic_load_n(&of[f], __ATOMIC_RELAXED);
    }
    memcpy(out_counters, sum, sizeof sum);
}
