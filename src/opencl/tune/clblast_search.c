/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for fast CLBlast parameters. The first candidates are CLBlast's own
 * parameters and values that are good on GPUs. Each further candidate is the
 * best set so far with one to three values, or sometimes all, changed at
 * random. The time of a candidate is that of a whole CLBlast call, with
 * packing. */
#include <stdio.h>
#include <string.h>

#include "opencl/gemm/clblast_params.h"
#include "opencl/device/event_poll.h"
#include "opencl/tune/tuning_candidate.h"
#include "opencl/tune/tune.h"

/* Height and width of the matrices with which candidates are timed. */
#define SIDE 4096
#define CPU_SIDE 512
#define TRIED_SLOTS 4096u
/* A candidate is better only if it takes less than this fraction of the best
 * time, so that measurement noise does not decide. */
#define MIN_GAIN 0.99
#define RANDOM_STEP_PERCENT 20u
#define MAX_DRAWS 50000u
/* After this many failed draws in succession, each draw changes all values. */
#define MAX_NEAR_DRAWS 2000u
/* CLBlast's parameter GemmRoutine is the matrix size from which on CLBlast uses
 * its indirect kernel. With ALWAYS_DIRECT, CLBlast always uses its direct
 * kernel. MAX_INDIRECT_SIZE is the largest value that the search reports. */
#define ALWAYS_DIRECT 65536u
#define MAX_INDIRECT_SIZE 2048u

/* CLBlast kernels in search order, with their relative shares of the time. */
static const struct {
    enum clblast_kernel_id id;
    uint32_t share;
} schedule[] = {
    {CLBLAST_XGEMM, 56},       {CLBLAST_XGEMM_DIRECT, 14},
    {CLBLAST_GEMM_ROUTINE, 8}, {CLBLAST_TRANSPOSE, 4},
    {CLBLAST_PADTRANSPOSE, 4}, {CLBLAST_PAD, 3},
    {CLBLAST_COPY, 3},
};
#define SCHEDULED (sizeof(schedule) / sizeof(schedule[0]))

/* Parameters that are good on GPUs: tiles of 128 and 64, with 8 x 8 and 8 x 4
 * results per work-item. */
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
    const struct tuning_results_sink *sink;
    struct tuning_candidate candidate;
    const struct tandem_device_info *device;
    cl_device_id id;
    struct clblast_params best;
    double best_ns;
    uint64_t random_state;
    uint64_t tried[TRIED_SLOTS]; /* hashes of the tried parameter sets */
    uint32_t tried_count;
};

static uint32_t random_below(struct search *search, uint32_t limit)
{
    search->random_state = search->random_state * 6364136223846793005u + 1u;
    return (uint32_t)(search->random_state >> 33) % limit;
}

/* ---- candidates ---- */

/* Records that a parameter set is tried. Returns false if the set is invalid or
 * was tried already, or if the hash set of tried sets is full. */
static bool tried_add(struct search *search, const struct clblast_params *set)
{
    enum clblast_kernel_id id = search->candidate.kernel;
    uint64_t hash = 0xcbf29ce484222325u;
    if (!clblast_params_valid(id, set, search->device))
        return false;
    for (uint32_t i = 0; i < clblast_kernels[id].count; i++)
        hash = (hash ^ set->values[i]) * 0x100000001b3u;
    hash |= 1;
    uint32_t at = (uint32_t)(hash >> 40) % TRIED_SLOTS;
    for (; search->tried[at] != 0; at = (at + 1) % TRIED_SLOTS)
        if (search->tried[at] == hash)
            return false;
    if (search->tried_count + 1 >= TRIED_SLOTS)
        return false;
    search->tried[at] = hash;
    search->tried_count++;
    return true;
}

/* Draws a valid, untried candidate. Returns false if MAX_DRAWS draws fail. */
static bool candidate_next(struct search *search, struct clblast_params *out)
{
    const struct clblast_kernel *kernel =
        &clblast_kernels[search->candidate.kernel];
    bool draw_all = random_below(search, 100) < RANDOM_STEP_PERCENT;
    for (uint32_t draw = 0; draw < MAX_DRAWS; draw++) {
        *out = search->best;
        uint32_t changes =
            draw_all ? kernel->count : 1 + random_below(search, 3);
        for (uint32_t i = 0; i < changes; i++) {
            uint32_t index = draw_all ? i : random_below(search, kernel->count);
            const struct clblast_param *param = &kernel->params[index];
            out->values[index] =
                param->values[random_below(search, param->count)];
        }
        if (tried_add(search, out))
            return true;
        draw_all |= draw > MAX_NEAR_DRAWS;
    }
    return false;
}

static void best_report(struct search *search)
{
    enum clblast_kernel_id id = search->candidate.kernel;
    char key[64], text[CLBLAST_PARAMS_TEXT_BYTES];
    snprintf(key, sizeof(key), "clblast.%s", clblast_kernels[id].name);
    clblast_params_format(id, &search->best, text);
    search->sink->callback(search->sink->user, key, text);
}

/* Checks and times a candidate. If it is faster than the best one (see
 * MIN_GAIN), stores and reports it as the best. */
static enum tandem_status candidate_try(struct search *search,
                                        const struct clblast_params *set)
{
    struct kernel_timer *timer = search->candidate.timer;
    double ns;
    if (clblast_params_set(search->id, search->candidate.kernel, set) != 0)
        return TANDEM_OK;
    enum tandem_status status = tuning_candidate_check(&search->candidate);
    timer->cutoff_ns = 1.2 * search->best_ns;
    if (status == TANDEM_OK)
        status = tuning_candidate_time(&search->candidate, 0, &ns);
    timer->cutoff_ns = 0;
    /* Waiting for the stream also clears the stream's asynchronous error. */
    if (status != TANDEM_OK)
        kernel_timer_drain(timer);
    if (status == TANDEM_OK && ns > 0 && ns < MIN_GAIN * search->best_ns) {
        search->best = *set;
        search->best_ns = ns;
        best_report(search);
    }
    return tuning_can_continue(status) ? TANDEM_OK : status;
}

/* ---- one kernel ---- */

/* Searches for fast parameters of one CLBlast kernel. Reports parameters only
 * if they are faster than CLBlast's own. */
static enum tandem_status params_search(struct search *search)
{
    struct clblast_params set;
    struct kernel_timer *timer = search->candidate.timer;
    enum clblast_kernel_id id = search->candidate.kernel;
    enum tandem_status status = TANDEM_OK;
    memset(search->tried, 0, sizeof(search->tried));
    search->tried_count = 0;
    search->best_ns = 0;
    if (!clblast_params_get(search->id, id, &search->best))
        return TANDEM_OK;
    tried_add(search, &search->best);
    uint64_t start = monotonic_ns();
    uint64_t remaining_ns = kernel_timer_remaining_ns(timer);
    status = tuning_candidate_time(&search->candidate, 0, &search->best_ns);
    if (status != TANDEM_OK || search->best_ns <= 0)
        return tuning_can_continue(status) ? TANDEM_OK : status;
    /* Skip the search if the first call, which compiles the kernel, took more
     * than half of the remaining time. */
    if (monotonic_ns() - start > remaining_ns / 2)
        return TANDEM_OK;
    for (uint32_t i = 0; i < SEEDS && status == TANDEM_OK; i++)
        if (seeds[i].id == id && kernel_timer_remaining_ns(timer) > 0 &&
            tried_add(search, &seeds[i].set))
            status = candidate_try(search, &seeds[i].set);
    while (status == TANDEM_OK && kernel_timer_remaining_ns(timer) > 0 &&
           candidate_next(search, &set))
        status = candidate_try(search, &set);
    clblast_params_set(search->id, id, &search->best);
    return status;
}

/* Matrix sizes at which CLBlast's direct and indirect kernels are compared. */
static const uint32_t sides[] = {64,  128, 192,  256,  384,
                                 512, 768, 1024, 1536, MAX_INDIRECT_SIZE};
enum { SIDES = sizeof(sides) / sizeof(sides[0]) };

/* Makes CLBlast always use the direct kernel, or always the indirect one. */
static void direct_kernel_force(const struct search *search, bool direct)
{
    const struct clblast_params forced = {{direct ? ALWAYS_DIRECT : 0}};
    clblast_params_set(search->id, CLBLAST_GEMM_ROUTINE, &forced);
}

/* Finds the matrix size at and above which the indirect kernel is faster. */
static enum tandem_status routine_search(struct search *search)
{
    struct kernel_timer *timer = search->candidate.timer;
    double ns[2][SIDES] = {{0}}; /* indirect, direct */
    enum tandem_status status = TANDEM_OK;
    if (!clblast_params_get(search->id, CLBLAST_GEMM_ROUTINE, &search->best))
        return TANDEM_OK;
    uint64_t remaining_ns = kernel_timer_remaining_ns(timer);
    uint64_t end = timer->deadline_ns;
    for (uint32_t direct = 0; direct < 2 && status == TANDEM_OK; direct++) {
        timer->deadline_ns = end - (direct != 0 ? 0 : remaining_ns / 2);
        direct_kernel_force(search, direct != 0);
        for (uint32_t i = 0; i < SIDES && status == TANDEM_OK; i++)
            if (sides[i] <= search->candidate.side &&
                kernel_timer_remaining_ns(timer) > 0)
                status = tuning_candidate_time(&search->candidate, sides[i],
                                               &ns[direct][i]);
    }
    uint32_t min_size = MAX_INDIRECT_SIZE, compared = 0;
    for (uint32_t i = SIDES; i-- > 0;) {
        if (ns[0][i] <= 0 || ns[1][i] <= 0)
            continue;
        compared++;
        if (ns[0][i] >= ns[1][i])
            break;
        min_size = sides[i];
    }
    if (compared > 0 && status == TANDEM_OK) {
        search->best.values[0] = min_size;
        best_report(search);
    }
    clblast_params_set(search->id, CLBLAST_GEMM_ROUTINE, &search->best);
    return tuning_can_continue(status) ? TANDEM_OK : status;
}

static enum tandem_status kernel_search(struct search *search,
                                        enum clblast_kernel_id id)
{
    struct clblast_params routine;
    search->candidate.kernel = id;
    if (id == CLBLAST_GEMM_ROUTINE)
        return routine_search(search);
    if (id != CLBLAST_XGEMM && id != CLBLAST_XGEMM_DIRECT)
        return params_search(search);
    if (!clblast_params_get(search->id, CLBLAST_GEMM_ROUTINE, &routine))
        return TANDEM_OK;
    direct_kernel_force(search, id == CLBLAST_XGEMM_DIRECT);
    enum tandem_status status = params_search(search);
    clblast_params_set(search->id, CLBLAST_GEMM_ROUTINE, &routine);
    return status;
}

enum tandem_status clblast_search_run(struct kernel_timer *timer,
                                      const struct tuning_results_sink *sink)
{
    const struct platform_device *hardware = timer->device->hardware;
    struct search search = {.sink = sink,
                            .device = &hardware->info,
                            .id = hardware->id,
                            .random_state = monotonic_ns()};
    bool cpu = hardware->info.kind == TANDEM_DEVICE_CPU;
    uint64_t end = timer->deadline_ns;
    uint32_t shares = 0;
    clblast_init_once(&timer->stream->queue);
    enum tandem_status status =
        tuning_candidate_init(&search.candidate, timer, cpu ? CPU_SIDE : SIDE);
    for (uint32_t i = 0; i < SCHEDULED; i++)
        shares += schedule[i].share;
    for (uint32_t i = 0; i < SCHEDULED && status == TANDEM_OK; i++) {
        uint64_t now = monotonic_ns();
        uint64_t remaining_ns = now < end ? end - now : 0;
        timer->deadline_ns = now + remaining_ns / shares * schedule[i].share;
        shares -= schedule[i].share;
        if (remaining_ns > 0)
            status = kernel_search(&search, schedule[i].id);
    }
    timer->deadline_ns = end;
    tuning_candidate_finish(&search.candidate);
    return status;
}
