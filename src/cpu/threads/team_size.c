/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the number of threads for a job; see team_size.h. */
#include "config.h"

#include "cpu/threads/team_size.h"

#include <math.h>

/* Maximum ratio of a job's parallel time to its single-threaded time.  For a
 * smaller gain, the time estimates are too inaccurate to use threads. */
#define GAIN 0.9
/* Weight of a new, slower measurement in the moving average of team_learn. */
#define RISE 0.125f

uint32_t team_counted(uint32_t threads)
{
    return threads - threads / 4;
}

void team_measured(struct team_costs *known, double two, double all,
                   uint32_t threads, double cold)
{
    uint32_t counted = team_counted(threads);
    if (known->two > 0) {
        two = fmin(two, known->two);
        all = fmin(all, known->all);
        cold = fmin(cold, known->cold);
    }
    known->two = two;
    known->all = all;
    known->cold = fmax(cold, all);
    known->each = counted > 2 ? fmax((all - two) / (counted - 2), 0) : 0;
    known->fixed = fmax(two - 2 * known->each, 0);
    /* Two threads save at most half of the single-threaded time, so a job must
     * take at least twice their wake-up latency. */
    known->least = 2 * two;
}

/* Returns the number of spinning threads that minimizes a job's time.  *out_ns
 * receives that time, fixed + each * n + alone_ns / n for n threads. */
static uint32_t warm_team(const struct team_costs *costs, double alone_ns,
                          uint32_t limit, double *out_ns)
{
    double best = limit;
    if (costs->each * limit * limit > alone_ns)
        best = sqrt(alone_ns / costs->each);
    uint32_t team = best < 2 ? 2 : (uint32_t)best;
    *out_ns = costs->fixed + costs->each * team + alone_ns / team;
    return team;
}

uint32_t team_size_choose(const struct team_costs *costs,
                          struct team_credit *credit, double alone_ns,
                          uint32_t limit, uint32_t awake, double now_ns,
                          double spin_ns)
{
    double warm_ns, few_ns = alone_ns;
    uint32_t few = 1;
    if (limit < 2)
        return 1;
    uint32_t team = warm_team(costs, alone_ns, limit, &warm_ns);
    if (warm_ns > alone_ns * GAIN)
        return 1;
    if (team <= awake)
        return team;
    if (awake > 1) {
        few = warm_team(costs, alone_ns, awake, &few_ns);
        if (few_ns > alone_ns) {
            few = 1;
            few_ns = alone_ns;
        }
    }
    double cold_ns = costs->cold + alone_ns / limit;
    if (now_ns - credit->at > spin_ns)
        credit->ns = 0;
    credit->at = now_ns + few_ns;
    credit->ns += few_ns - warm_ns;
    if (cold_ns > few_ns * GAIN && credit->ns < costs->cold)
        return few;
    credit->ns = 0;
    return team;
}

float team_learn(float known, float seen)
{
    if (known == 0 || seen < known)
        return seen;
    return known + (seen - known) * RISE;
}
