/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerates the faults to inject; see fault_sweep.h. */
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
#include "support/case_summary.h"

/* Cases that take longer are reported. */
#define SLOW_MS 2000u

struct plug plug;
char sweep_cache[4096];
static const struct sweep_subject *subject;
static char label[512];
static const char *part_name = ""; /* The current part of the program. */
/* beyond: cases that made fewer calls than their script waits for. */
static uint64_t cases, delivered, beyond, failures, asked_last;
static bool all_cases, delivered_last;
static uint64_t seed = 1;

uint64_t sweep_random(uint64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return limit ? (seed >> 33) % limit : 0;
}

bool sweep_is_full(void)
{
    return all_cases;
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
    if (subject->failed[0])
        fprintf(stderr, "  the first failure: %s\n", subject->failed);
    if (subject->wrong[0])
        fprintf(stderr, "  wrong: %s\n", subject->wrong);
}

uint64_t sweep_case(void)
{
    return cases;
}

/* ---- object and heap counts ---- */

struct sweep_state sweep_state_take(void)
{
    return (struct sweep_state){plug_counts(&plug), heap_blocks(),
                                heap_bytes()};
}

/*
 * Returns how many more objects of a kind there are than before, without those
 * whose release was made to fail.
 */
static uint64_t objects_left(const struct layer_counts *before,
                             const struct layer_counts *after, int object)
{
    return plug_alive(after, object) - plug_alive(before, object) -
           (after->unreleased[object] - before->unreleased[object]);
}

static bool queues_left(const struct sweep_state *before)
{
    const struct layer_counts now = plug_counts(&plug);

    return objects_left(&before->counts, &now, LAYER_QUEUE) != 0;
}

void sweep_queues_wait(const struct sweep_state *before,
                       void (*device_open)(void))
{
    const struct timespec pause = {0, 5000000};

    for (int i = 0; i < 12000 && queues_left(before); i++) {
        nanosleep(&pause, NULL);
        device_open();
    }
}

void sweep_state_check(const struct sweep_state *before, bool heap)
{
    const struct layer_counts after = plug_counts(&plug);
    char text[128];

    for (int i = 0; i < LAYER_OBJECTS; i++) {
        if (objects_left(&before->counts, &after, i) == 0)
            continue;
        snprintf(text, sizeof text, "%" PRIu64 " %s left",
                 objects_left(&before->counts, &after, i), plug_objects[i]);
        sweep_report(text);
    }
    if (!heap ||
        (heap_blocks() == before->blocks && heap_bytes() == before->bytes))
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
    if (all_cases && now_ms() - start_ms >= SLOW_MS)
        printf("%s: %" PRIu64 " ms\n", label, now_ms() - start_ms);
}

void sweep_fault_ends(void)
{
    const struct layer_counts counts = plug_counts(&plug);

    delivered_last = counts.faults > 0;
    asked_last = counts.asked;
    plug.script_set(NULL);
}

/* The number of calls that the workload makes to each function. */
struct profile {
    uint64_t calls, commands, buffers;
    uint64_t of[LAYER_MOST_FUNCTIONS];
};

static struct profile profile_take(void)
{
    struct layer_script nothing = {.fault = LAYER_FAULT_CALL, .nth = 0};
    struct profile profile = {0, 0, 0, {0}};
    const char *name;

    snprintf(label, sizeof label, "%s without a fault", part_name);
    for (int i = 0; i < 2; i++) /* The second pass compiles nothing. */
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
             "%s %s: call %" PRIu64 " of %s, pick %u, times %" PRIu64,
             part_name, name, script->nth,
             script->function ? script->function : "all", script->pick,
             script->times);
}

/*
 * Runs a case in which call nth of the function fails (NULL: of any function),
 * with every error code that the function may return, or with one code that
 * pick selects.
 */
static void fail_call(const char *name, enum layer_fault fault,
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
        script.pick = (uint32_t)sweep_random(1u << 20);
    for (uint32_t i = 0; i < picks; i++, script.pick++) {
        describe(name, &script);
        case_run(&script);
        if (every && i == 0 && delivered_last)
            picks = plug.codes(plug.failed(&code));
    }
}

/*
 * Checks that the fault occurred in at least half of the cases since these
 * counts, without those that made too few calls. A sweep whose faults do not
 * occur tests nothing.
 */
static void delivery_check(const char *name, uint64_t cases_before,
                           uint64_t delivered_before, uint64_t beyond_before)
{
    const uint64_t run = cases - cases_before - (beyond - beyond_before);
    const uint64_t occurred = delivered - delivered_before;

    if (occurred > 0 && occurred * 2 >= run)
        return;
    failures++;
    fprintf(stderr,
            "FAIL %s %s: %" PRIu64 " of %" PRIu64 " cases met a fault\n",
            part_name, name, occurred, run);
}

/*
 * Runs a case for each nth from 1 to last, or for some random ones. The number
 * of queries that a wait makes depends on the machine's load. If a case made
 * fewer calls than the profile counted, later cases are limited to that
 * number, and another random case replaces it.
 */
static void sweep(const char *name, enum layer_fault fault, uint64_t last,
                  uint64_t times, uint64_t random_count)
{
    const bool each = all_cases || random_count > last;
    uint64_t rounds = each ? last : random_count;
    const uint64_t start = cases, start_ms = now_ms(), occurred = delivered;
    const uint64_t beyond_before = beyond;

    for (uint64_t i = 1; i <= rounds; i++) {
        fail_call(name, fault, NULL, each ? i : 1 + sweep_random(last), times,
                  all_cases && times == 1);
        if (!delivered_last && asked_last > 0 && asked_last < last) {
            last = asked_last;
            rounds += !each;
        }
        if (i % 100 == 0 || i == rounds)
            printf("%s %s: call %" PRIu64 " of %" PRIu64 ", %" PRIu64
                   " cases, %" PRIu64 " s\n",
                   part_name, name, i, rounds, cases - start,
                   (now_ms() - start_ms) / 1000);
        fflush(stdout);
    }
    delivery_check(name, start, occurred, beyond_before);
}

/* Sweeps over each function at least once. */
static void sweep_functions(const struct profile *profile)
{
    const uint64_t start = cases, occurred = delivered;
    const char *name;
    uint64_t calls;

    for (uint32_t i = 0; (name = plug.function(i, &calls)); i++)
        if (profile->of[i] > 0)
            fail_call("function", LAYER_FAULT_CALL, name,
                      1 + sweep_random(profile->of[i]), 1, false);
    delivery_check("function", start, occurred, beyond);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (write(2, "HANG ", 5) < 0 || write(2, label, strlen(label)) < 0)
        _exit(98);
    _exit(99);
}

/* Runs the case of the command line: FAULT NTH PICK TIMES [FUNCTION]. */
static void command_line_case(char **from)
{
    const struct layer_script script = {
        .fault = (enum layer_fault)atoi(from[0]),
        .nth = strtoull(from[1], NULL, 10),
        .pick = (uint32_t)atoi(from[2]),
        .times = strtoull(from[3], NULL, 10),
        .function = from[4],
        .spare_releases = strcmp(from[3], "1") != 0,
        .build_log = "scripted failure"};

    const uint64_t start = cases, occurred = delivered;

    describe("by hand", &script);
    case_run(&script);
    delivery_check("by hand", start, occurred, beyond);
}

static int chosen(int count, char **names, const char *name)
{
    return count < 2 || strcmp(names[1], "all") == 0 ||
           strcmp(names[1], name) == 0;
}

/* Runs the sweeps over one part. Returns the number of its calls. */
static uint64_t sweep_part(int argc, char **argv)
{
    const struct profile taken = profile_take(), *profile = &taken;

    if (argc >= 6 && strcmp(argv[1], "case") == 0)
        command_line_case(argv + 2);
    /* Programs with parts have small ones, which the other sweeps cover. */
    if (!subject->part_select && chosen(argc, argv, "function"))
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
    return profile->calls;
}

/* Runs the sweeps over all parts. Returns the number of their calls. */
static uint64_t sweep_all(int argc, char **argv)
{
    uint64_t calls = 0;

    if (!subject->part_select)
        return sweep_part(argc, argv);
    for (uint64_t i = 0; (part_name = subject->part_select(i)) != NULL; i++)
        calls += sweep_part(argc, argv);
    return calls;
}

int sweep_main(int argc, char **argv, const struct sweep_subject *of)
{
    const char *text = getenv("TANDEM_TEST_LONG");
    const uint64_t start_ms = now_ms();
    uint64_t calls;
    char name[64];

    subject = of;
    signal(SIGALRM, on_alarm);
    seed = test_seed();
    all_cases = text && strcmp(text, "1") == 0;
    setenv("TANDEM_LAYER_OBJECT_CACHE", "1", 0);
    snprintf(name, sizeof name, "%s%s", subject->name,
             getenv("TANDEM_LAYER_GPU") ? "-gpu" : "");
    plug_cache(sweep_cache, sizeof sweep_cache, name);
    if (!plug_start(&plug))
        return 77;
    /* The plugin keeps the memory of this thread's messages. */
    plug.api->device_count(NULL);
    heap_watch(plug.api);
    calls = sweep_all(argc, argv);
    plug_cache_remove(sweep_cache);
    printf("%" PRIu64 " calls, %" PRIu64 " cases, %" PRIu64
           " of them with a fault, %" PRIu64 " failures, %" PRIu64 " s\n",
           calls, cases, delivered, failures, (now_ms() - start_ms) / 1000);
    return case_summary(delivered - failures, failures);
}
