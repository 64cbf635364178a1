/* SPDX-License-Identifier: Apache-2.0 */
/* Which faults there are to be had; see fault_sweep.h. */
#include "fault_sweep.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../support/seed.h"
#include "../opencl-layer/heap_tracking.h"

/* Of a case: that it took so long is told. */
#define SLOW_MS 2000u

struct plug plug;
char sweep_cache[4096];
static const struct sweep_subject *subject;
static char label[512];
/* beyond: cases that made fewer calls than their script waits for. */
static uint64_t cases, delivered, beyond, failures, asked_last;
static bool thorough, delivered_last;
static uint64_t seed = 1;

static uint64_t random_below(uint64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return limit ? (seed >> 33) % limit : 0;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void sweep_report(const char *what)
{
    int32_t code;
    const char *function = plug.failed(&code);

    failures++;
    fprintf(stderr, "FAIL %s (%s gave %d): %s\n", label, function, code, what);
    if (subject->details)
        subject->details();
}

uint64_t sweep_case(void)
{
    return cases;
}

/* ---- what is left ---- */

struct sweep_state sweep_state_take(void)
{
    return (struct sweep_state){plug_counts(&plug), heap_blocks(),
                                heap_bytes()};
}

/* Objects of a kind more than before; those whose release was made to fail
 * are the driver's. */
static uint64_t left(const struct layer_counts *before,
                     const struct layer_counts *after, int object)
{
    return plug_alive(after, object) - plug_alive(before, object) -
           (after->unreleased[object] - before->unreleased[object]);
}

bool sweep_queues_left(const struct sweep_state *before)
{
    const struct layer_counts now = plug_counts(&plug);

    return left(&before->counts, &now, LAYER_QUEUE) != 0;
}

void sweep_state_check(const struct sweep_state *before, bool heap)
{
    const struct layer_counts after = plug_counts(&plug);
    char text[128];

    for (int i = 0; i < LAYER_OBJECTS; i++) {
        if (left(&before->counts, &after, i) == 0)
            continue;
        snprintf(text, sizeof text, "%" PRIu64 " %s left",
                 left(&before->counts, &after, i), plug_objects[i]);
        sweep_report(text);
    }
    if (!heap || (heap_blocks() == before->blocks &&
                  heap_bytes() == before->bytes))
        return;
    snprintf(text, sizeof text,
             "%" PRIu64 " heap blocks became %" PRIu64 ", %" PRIu64
             " bytes %" PRIu64,
             before->blocks, heap_blocks(), before->bytes, heap_bytes());
    sweep_report(text);
    heap_print();
}

/* ---- cases ---- */

static void case_run(const struct layer_script *script)
{
    const uint64_t start_ms = now_ms();

    alarm(300);
    cases++;
    subject->one_case(script);
    alarm(0);
    delivered += delivered_last;
    beyond += !delivered_last && asked_last < script->nth;
    if (thorough && now_ms() - start_ms >= SLOW_MS)
        printf("%s: %" PRIu64 " ms\n", label, now_ms() - start_ms);
}

void sweep_fault_ends(void)
{
    const struct layer_counts counts = plug_counts(&plug);

    delivered_last = counts.faults > 0;
    asked_last = counts.asked;
    plug.script_set(NULL);
}

/* How often each function is called by the workload. */
struct profile {
    uint64_t calls, commands, buffers;
    uint64_t of[LAYER_MOST_FUNCTIONS];
};

static struct profile profile_take(void)
{
    struct layer_script nothing = {.fault = LAYER_FAULT_CALL, .nth = 0};
    struct profile profile = {0, 0, 0, {0}};
    const char *name;

    snprintf(label, sizeof label, "without a fault");
    for (int i = 0; i < 2; i++) /* the second compiles nothing */
        case_run(&nothing);
    plug.script_set(&nothing);
    subject->pass();
    for (uint32_t i = 0; i < LAYER_MOST_FUNCTIONS; i++) {
        name = plug.function(i, &profile.of[i]);
        if (!name)
            break;
        profile.calls += profile.of[i];
        if (strncmp(name, "clEnqueue", 9) == 0)
            profile.commands += profile.of[i];
        if (strcmp(name, "clCreateBuffer") == 0)
            profile.buffers = profile.of[i];
    }
    plug.script_set(NULL);
    return profile;
}

static void describe(const char *name, const struct layer_script *script)
{
    snprintf(label, sizeof label,
             "%s: call %" PRIu64 " of %s, pick %u, times %" PRIu64, name,
             script->nth, script->function ? script->function : "all",
             script->pick, script->times);
}

/* Call nth of function (NULL: all), with every code of what it hits there, or
 * with the one that pick chooses. */
static void call_fails(const char *name, enum layer_fault fault,
                       const char *function, uint64_t nth, uint64_t times,
                       bool every)
{
    struct layer_script script = {.fault = fault,
                                  .function = function,
                                  .nth = nth,
                                  .times = times,
                                  .spare_releases = times > 1,
                                  .build_log = "scripted failure"};
    uint32_t picks = 1;
    int32_t code;

    if (!every)
        script.pick = (uint32_t)random_below(1u << 20);
    for (uint32_t i = 0; i < picks; i++, script.pick++) {
        describe(name, &script);
        case_run(&script);
        if (every && i == 0 && delivered_last)
            picks = plug.codes(plug.failed(&code));
    }
}

/* Of the cases since these numbers that made as many calls as it takes, half at
 * least must have met their fault: a sweep that meets none shows nothing. */
static void delivery_check(const char *name, uint64_t cases_before,
                           uint64_t delivered_before, uint64_t beyond_before)
{
    const uint64_t run = cases - cases_before - (beyond - beyond_before);
    const uint64_t met = delivered - delivered_before;

    if (met > 0 && met * 2 >= run)
        return;
    failures++;
    fprintf(stderr, "FAIL %s: %" PRIu64 " of %" PRIu64 " cases met a fault\n",
            name, met, run);
}

/* Each nth from 1 to most, or some of them by chance.  How often a wait asks
 * whether a command is over depends on the machine's load: where a case made
 * fewer calls than the profile counted, the next are taken from those. */
static void sweep(const char *name, enum layer_fault fault, uint64_t most,
                  uint64_t times, uint64_t some)
{
    const bool each = thorough || some > most;
    const uint64_t rounds = each ? most : some;
    const uint64_t start = cases, start_ms = now_ms(), met = delivered;
    const uint64_t beyond_before = beyond;

    for (uint64_t i = 1; i <= rounds; i++) {
        call_fails(name, fault, NULL, each ? i : 1 + random_below(most), times,
                   thorough && times == 1);
        if (!delivered_last && asked_last > 0 && asked_last < most)
            most = asked_last;
        if (i % 100 == 0 || i == rounds)
            printf("%s: call %" PRIu64 " of %" PRIu64 ", %" PRIu64
                   " cases, %" PRIu64 " s\n",
                   name, i, rounds, cases - start,
                   (now_ms() - start_ms) / 1000);
        fflush(stdout);
    }
    delivery_check(name, start, met, beyond_before);
}

/* Every function once at least. */
static void sweep_functions(const struct profile *profile)
{
    const uint64_t start = cases, met = delivered;
    const char *name;
    uint64_t calls;

    for (uint32_t i = 0; (name = plug.function(i, &calls)); i++)
        if (profile->of[i] > 0)
            call_fails("function", LAYER_FAULT_CALL, name,
                       1 + random_below(profile->of[i]), 1, false);
    delivery_check("function", start, met, beyond);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (write(2, "HANG ", 5) < 0 || write(2, label, strlen(label)) < 0)
        _exit(98);
    _exit(99);
}

/* One case, as its label names it: FAULT NTH PICK TIMES [FUNCTION]. */
static void by_hand(char **from)
{
    const struct layer_script script = {
        .fault = (enum layer_fault)atoi(from[0]),
        .nth = strtoull(from[1], NULL, 10),
        .pick = (uint32_t)atoi(from[2]),
        .times = strtoull(from[3], NULL, 10),
        .function = from[4],
        .spare_releases = strcmp(from[3], "1") != 0,
        .build_log = "scripted failure"};

    const uint64_t start = cases, met = delivered;

    describe("by hand", &script);
    case_run(&script);
    delivery_check("by hand", start, met, beyond);
}

static int chosen(int count, char **names, const char *name)
{
    return count < 2 || strcmp(names[1], "all") == 0 ||
           strcmp(names[1], name) == 0;
}

static void sweep_all(int argc, char **argv, const struct profile *profile)
{
    if (argc >= 6 && strcmp(argv[1], "case") == 0)
        by_hand(argv + 2);
    if (chosen(argc, argv, "function"))
        sweep_functions(profile);
    if (chosen(argc, argv, "once"))
        sweep("once", LAYER_FAULT_CALL, profile->calls, 1, subject->once);
    if (chosen(argc, argv, "ever"))
        sweep("ever", LAYER_FAULT_CALL, profile->calls, UINT64_MAX,
              subject->ever);
    if (chosen(argc, argv, "later"))
        sweep("later", LAYER_FAULT_AFTER_ENQUEUE, profile->commands, 1,
              subject->later);
    if (chosen(argc, argv, "lazy")) {
        sweep("lazy", LAYER_FAULT_LAZY, profile->buffers, 1, subject->lazy);
        sweep("lazy for ever", LAYER_FAULT_LAZY, profile->buffers, UINT64_MAX,
              subject->lazy / 2);
        sweep("lazy later", LAYER_FAULT_LAZY_LATER, profile->buffers, 1,
              subject->lazy);
    }
}

int sweep_main(int argc, char **argv, const struct sweep_subject *of)
{
    const char *text = getenv("TANDEM_TEST_LONG");
    const uint64_t start_ms = now_ms();
    struct profile profile;
    char name[64];

    subject = of;
    signal(SIGALRM, on_alarm);
    seed = test_seed();
    thorough = text && strcmp(text, "1") == 0;
    setenv("TANDEM_LAYER_OBJECT_CACHE", "1", 0);
    snprintf(name, sizeof name, "%s%s", subject->name,
             getenv("TANDEM_LAYER_GPU") ? "-gpu" : "");
    plug_cache(sweep_cache, sizeof sweep_cache, name);
    if (!plug_start(&plug))
        return 77;
    heap_watch(plug.api);
    profile = profile_take();
    sweep_all(argc, argv, &profile);
    plug_cache_remove(sweep_cache);
    printf("%" PRIu64 " calls, %" PRIu64 " cases, %" PRIu64
           " of them with a fault, %" PRIu64 " failures, %" PRIu64 " s\n",
           profile.calls, cases, delivered, failures,
           (now_ms() - start_ms) / 1000);
    return failures > 0;
}
