/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for CLBlast's parameters: from those that it has and a few that
 * serve GPUs well, by steps that change one or two of the best ones found, and
 * now and then by a throw of the dice.  What counts is the time of a call, its
 * copies of operands included.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "opencl/gemm/clblast.h"
#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"
#include "opencl/tune/tuning_candidate.h"
#include "opencl/tune/tune.h"

/* Side of the matrices of the large calls. */
#define SIDE 4096
#define CPU_SIDE 512
#define TRIED_SLOTS 4096u
/* Gains below this are noise. */
#define GAIN 0.99
/* Of all steps, in percent. */
#define RANDOM_STEP_PERCENT 20u
/* A threshold that no product reaches. */
#define ALWAYS_DIRECT 65536u

/* The clblast_kernels in search order, each with its share of the time. */
static const struct {
    enum clblast_kernel_id id;
    uint32_t share;
} plan[] = {
    {CLBLAST_XGEMM, 56},       {CLBLAST_XGEMM_DIRECT, 14},
    {CLBLAST_GEMM_ROUTINE, 8}, {CLBLAST_TRANSPOSE, 4},
    {CLBLAST_PADTRANSPOSE, 4}, {CLBLAST_PAD, 3},
    {CLBLAST_COPY, 3},
};
#define PLANNED (sizeof(plan) / sizeof(plan[0]))

/* Tiles of 128 and 64, eight sums by eight and eight by four an item. */
static const struct {
    enum clblast_kernel_id id;
    struct clblast_params set;
} seeds[] = {
    {CLBLAST_XGEMM,
     {{0, 1, 16, 2, 16, 16, 128, 16, 16, 128, 1, 1, 0, 0, 4, 4}}},
    {CLBLAST_XGEMM,
     {{0, 1, 32, 2, 16, 16, 128, 16, 16, 128, 1, 1, 1, 1, 4, 2}}},
    {CLBLAST_XGEMM, {{0, 1, 16, 2, 32, 16, 128, 32, 8, 128, 1, 1, 1, 0, 4, 1}}},
    {CLBLAST_XGEMM, {{0, 1, 16, 2, 16, 16, 128, 8, 8, 64, 1, 1, 0, 0, 4, 4}}},
    {CLBLAST_XGEMM, {{0, 1, 32, 2, 16, 16, 64, 16, 16, 64, 1, 1, 0, 0, 4, 4}}},
    {CLBLAST_XGEMM, {{0, 1, 16, 2, 8, 8, 64, 8, 8, 64, 1, 1, 0, 0, 4, 4}}},
    {CLBLAST_XGEMM_DIRECT, {{2, 16, 16, 16, 16, 1, 1, 2, 2, 64}}},
    {CLBLAST_XGEMM_DIRECT, {{2, 8, 8, 8, 8, 1, 1, 4, 2, 32}}},
    {CLBLAST_XGEMM_DIRECT, {{8, 8, 16, 32, 16, 1, 1, 2, 1, 32}}},
    {CLBLAST_TRANSPOSE, {{16, 1, 0, 2}}},
    {CLBLAST_COPY, {{16, 8, 4, 2}}},
};
#define SEEDS (sizeof(seeds) / sizeof(seeds[0]))

struct search {
    struct meter *meter;
    const struct findings *findings;
    struct trial trial;
    struct clblast_device_limits limits;
    cl_device_id id;
    enum clblast_kernel_id family;
    struct clblast_params best;
    double best_ns;
    uint64_t state; /* of the dice */
    uint64_t tried[TRIED_SLOTS];
    uint32_t tries;
};

static uint32_t dice(struct search *search, uint32_t sides)
{
    search->state = search->state * 6364136223846793005u + 1u;
    return (uint32_t)(search->state >> 33) % sides;
}

/* ---- candidates ---- */

/* Notes a set; false where it was noted before, or there is no more room. */
static bool tried_add(struct search *search, const struct clblast_params *set)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < clblast_kernels[search->family].count; i++)
        hash = (hash ^ set->values[i]) * 0x100000001b3u;
    hash |= 1;
    uint32_t at = (uint32_t)(hash >> 40) % TRIED_SLOTS;
    for (; search->tried[at] != 0; at = (at + 1) % TRIED_SLOTS)
        if (search->tried[at] == hash)
            return false;
    if (search->tries + 1 >= TRIED_SLOTS)
        return false;
    search->tried[at] = hash;
    search->tries++;
    return true;
}

static void value_throw(struct search *search, struct clblast_params *set,
                        uint32_t index)
{
    const struct clblast_param *parameter =
        &clblast_kernels[search->family].params[index];
    set->values[index] = parameter->values[dice(search, parameter->count)];
}

/* Another valid set that was not tried yet. */
static bool candidate_next(struct search *search, struct clblast_params *out)
{
    uint32_t count = clblast_kernels[search->family].count;
    bool throw = dice(search, 100) < RANDOM_STEP_PERCENT;
    for (uint32_t attempt = 0; attempt < 50000; attempt++) {
        *out = search->best;
        uint32_t changes = throw ? count : 1 + dice(search, 3);
        for (uint32_t i = 0; i < changes; i++)
            value_throw(search, out, throw ? i : dice(search, count));
        if (clblast_params_valid(search->family, out, &search->limits) &&
            tried_add(search, out))
            return true;
        /* Nothing near the best is left, then. */
        throw |= attempt > 2000;
    }
    return false;
}

static void tell_best(struct search *search)
{
    char key[64], text[CLBLAST_PARAMS_TEXT_BYTES];
    snprintf(key, sizeof(key), "clblast.%s",
             clblast_kernels[search->family].name);
    clblast_params_format(search->family, &search->best, text);
    search->findings->sink(search->findings->user, key, text);
}

/* Tries a set, keeps it where it is right and faster.  What is wrong, or does
 * not run, leaves the device well. */
static enum tandem_status candidate_try(struct search *search,
                                        const struct clblast_params *set)
{
    double ns;
    if (clblast_params_set(search->id, search->family, set) != 0)
        return TANDEM_OK;
    enum tandem_status status = trial_check(&search->trial);
    search->meter->enough_ns = 1.2 * search->best_ns;
    if (status == TANDEM_OK)
        status = tuning_candidate_time(&search->trial, &ns);
    search->meter->enough_ns = 0;
    /* A failure found after the fact is the stream's until it is told. */
    if (status != TANDEM_OK)
        stream_synchronize(search->meter->stream,
                           device_timeout_ns(search->meter->device));
    if (status == TANDEM_OK && ns > 0 && ns < GAIN * search->best_ns) {
        search->best = *set;
        search->best_ns = ns;
        tell_best(search);
    }
    return meter_goes_on(status) ? TANDEM_OK : status;
}

/* ---- a family ---- */

/* First CLBlast's own: a better one may not be there. */
static enum tandem_status family_search(struct search *search)
{
    struct clblast_params set;
    enum tandem_status status = TANDEM_OK;
    memset(search->tried, 0, sizeof(search->tried));
    search->tries = 0;
    search->best_ns = 0;
    search->trial.family = search->family;
    if (!clblast_params_get(search->id, search->family, &search->best))
        return TANDEM_OK;
    tried_add(search, &search->best);
    uint64_t start = monotonic_ns(), left = meter_left_ns(search->meter);
    status = tuning_candidate_time(&search->trial, &search->best_ns);
    if (status != TANDEM_OK || search->best_ns <= 0)
        return meter_goes_on(status) ? TANDEM_OK : status;
    /* Compilers that are so slow leave no time for a search. */
    if (monotonic_ns() - start > left / 2)
        return TANDEM_OK;
    for (uint32_t i = 0; i < SEEDS && status == TANDEM_OK; i++)
        if (seeds[i].id == search->family && meter_left_ns(search->meter) > 0 &&
            clblast_params_valid(search->family, &seeds[i].set,
                                 &search->limits) &&
            tried_add(search, &seeds[i].set))
            status = candidate_try(search, &seeds[i].set);
    while (status == TANDEM_OK && meter_left_ns(search->meter) > 0 &&
           candidate_next(search, &set))
        status = candidate_try(search, &set);
    clblast_params_set(search->id, search->family, &search->best);
    return status;
}

/* The least side from which on indirect products are faster. */
static enum tandem_status routine_search(struct search *search)
{
    static const uint32_t sides[] = {64,  128, 192,  256,  384,
                                     512, 768, 1024, 1536, 2048};
    enum { SIDES = sizeof(sides) / sizeof(sides[0]) };
    struct clblast_params own, forced = {{0}};
    double ns[2][SIDES] = {{0}};
    enum tandem_status status = TANDEM_OK;
    search->trial.family = CLBLAST_GEMM_ROUTINE;
    if (!clblast_params_get(search->id, CLBLAST_GEMM_ROUTINE, &own))
        return TANDEM_OK;
    uint64_t left = meter_left_ns(search->meter);
    uint64_t end = search->meter->deadline_ns;
    for (uint32_t direct = 0; direct < 2 && status == TANDEM_OK; direct++) {
        search->meter->deadline_ns = end - (direct != 0 ? 0 : left / 2);
        forced.values[0] = direct != 0 ? ALWAYS_DIRECT : 0;
        clblast_params_set(search->id, CLBLAST_GEMM_ROUTINE, &forced);
        for (uint32_t i = 0; i < SIDES && status == TANDEM_OK; i++)
            if (sides[i] <= search->trial.side &&
                meter_left_ns(search->meter) > 0)
                status = trial_time_product(&search->trial, sides[i],
                                            &ns[direct][i]);
    }
    search->best = own;
    uint32_t from = SIDES, seen = 0;
    for (uint32_t i = SIDES; i-- > 0;) {
        if (ns[0][i] <= 0 || ns[1][i] <= 0)
            continue;
        seen++;
        if (ns[0][i] >= ns[1][i])
            break;
        from = i;
    }
    if (seen > 0 && status == TANDEM_OK) {
        search->best.values[0] = from < SIDES ? sides[from] : 2048;
        tell_best(search);
    }
    clblast_params_set(search->id, CLBLAST_GEMM_ROUTINE, &search->best);
    return meter_goes_on(status) ? TANDEM_OK : status;
}

/* One family, of products by the kernel that is searched for. */
static enum tandem_status one_search(struct search *search,
                                     enum clblast_kernel_id id)
{
    struct clblast_params own, forced = {{0}};
    enum tandem_status status;
    search->family = id;
    if (id == CLBLAST_GEMM_ROUTINE)
        return routine_search(search);
    if (id != CLBLAST_XGEMM && id != CLBLAST_XGEMM_DIRECT)
        return family_search(search);
    if (!clblast_params_get(search->id, CLBLAST_GEMM_ROUTINE, &own))
        return TANDEM_OK;
    forced.values[0] = id == CLBLAST_XGEMM_DIRECT ? ALWAYS_DIRECT : 0;
    clblast_params_set(search->id, CLBLAST_GEMM_ROUTINE, &forced);
    status = family_search(search);
    clblast_params_set(search->id, CLBLAST_GEMM_ROUTINE, &own);
    return status;
}

enum tandem_status tune_search(struct meter *meter,
                               const struct findings *findings)
{
    const struct platform_device *hardware = meter->device->hardware;
    struct search search = {.meter = meter,
                            .findings = findings,
                            .limits = clblast_device_limits_get(hardware),
                            .id = hardware->id,
                            .state = monotonic_ns()};
    bool cpu = hardware->info.kind == TANDEM_DEVICE_CPU;
    uint64_t end = meter->deadline_ns;
    uint32_t shares = 0;
    clblast_init_once(&meter->stream->queue);
    enum tandem_status status =
        trial_start(&search.trial, meter, cpu ? CPU_SIDE : SIDE);
    for (uint32_t i = 0; i < PLANNED; i++)
        shares += plan[i].share;
    for (uint32_t i = 0; i < PLANNED && status == TANDEM_OK; i++) {
        uint64_t now = monotonic_ns();
        uint64_t left = now < end ? end - now : 0;
        meter->deadline_ns = now + left / shares * plan[i].share;
        shares -= plan[i].share;
        if (left > 0)
            status = one_search(&search, plan[i].id);
    }
    meter->deadline_ns = end;
    trial_end(&search.trial);
    return status;
}
