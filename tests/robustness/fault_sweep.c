/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerates the faults to inject; see fault_sweep.h. */
#include "fault_sweep.h"

#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../support/seed.h"
#include "heap_tracking.h"
#include "support/case_summary.h"

/* Cases that take longer are reported. */
#define SLOW_MS 2000u

struct plug plug;
char sweep_cache[4096];
static const struct sweep_subject *subject;
static char label[512];
static const char *part_name;
static uint64_t cases, delivered, failures;
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

/* ---- sets of numbers ---- */

#define SET_SIZE (1u << 18)

struct set {
    uint64_t members[SET_SIZE]; /* open addressing; 0 is free */
};

/* Returns true if the number, which is not 0, was not in the set. */
static bool set_add(struct set *set, uint64_t number)
{
    uint32_t at = (uint32_t)(number >> 16) % SET_SIZE;

    while (set->members[at] != 0 && set->members[at] != number)
        at = (at + 1) % SET_SIZE;
    if (set->members[at] == number)
        return false;
    set->members[at] = number;
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t number)
{
    return ((hash ^ number) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

/* ---- the calls of a part ---- */

#define MAX_CALLS (1u << 14)
/* The number of calls from a site that fail. */
#define OCCURRENCES 2u

/* The nth call from a call site. */
struct call {
    const char *function;
    uint64_t site, nth;
};

static struct call calls[MAX_CALLS];
static uint64_t call_count;

static void case_run(const struct layer_script *script)
{
    const uint64_t start_ms = now_ms();

    alarm(300);
    cases++;
    subject->one_case(script);
    alarm(0);
    delivered += delivered_last;
    if (now_ms() - start_ms >= SLOW_MS)
        printf("%s: %" PRIu64 " ms\n", label, now_ms() - start_ms);
}

void sweep_fault_ends(void)
{
    delivered_last = plug_counts(&plug).faults > 0;
    plug.script_set(NULL);
}

/* Records the first calls from each site. */
static void calls_record(void)
{
    static const struct layer_script record = {.fault = LAYER_FAULT_RECORD};
    static struct set found;
    uint64_t site;
    const char *function;

    snprintf(label, sizeof label, "%s without a fault", part_name);
    for (int i = 0; i < 2; i++) /* The second pass compiles nothing. */
        case_run(&record);
    subject->pass(&record);
    memset(&found, 0, sizeof found);
    call_count = 0;
    for (uint64_t n = 1; (function = plug.call(n, &site)) != NULL; n++) {
        uint64_t nth = 1;

        while (nth <= OCCURRENCES && !set_add(&found, mix(site, nth)))
            nth++;
        if (nth <= OCCURRENCES && call_count < MAX_CALLS)
            calls[call_count++] = (struct call){function, site, nth};
    }
    plug.script_set(NULL);
}

/* ---- cases ---- */

/* A kind of fault, and what its cases met. */
struct sweep {
    const char *name;
    enum layer_fault fault;
    const char *functions; /* The prefix of their names. */
    uint64_t times;
    /* The number of cases for each part in a subset (struct sweep_subject). */
    size_t random_count;
    uint64_t cases, delivered;
};

#define COUNT_OF(member) offsetof(struct sweep_subject, member)
static struct sweep sweeps[] = {
    {"once", LAYER_FAULT_CALL, "cl", 1, COUNT_OF(once), 0, 0},
    {"ever", LAYER_FAULT_CALL, "cl", UINT64_MAX, COUNT_OF(ever), 0, 0},
    {"later", LAYER_FAULT_AFTER_ENQUEUE, "clEnqueue", 1, COUNT_OF(later), 0, 0},
    {"lazy", LAYER_FAULT_LAZY, "clCreateBuffer", 1, COUNT_OF(lazy), 0, 0},
    {"lazy for ever", LAYER_FAULT_LAZY, "clCreateBuffer", UINT64_MAX,
     COUNT_OF(lazy), 0, 0},
    {"lazy later", LAYER_FAULT_LAZY_LATER, "clCreateBuffer", 1, COUNT_OF(lazy),
     0, 0}};
#define SWEEPS (sizeof sweeps / sizeof *sweeps)

/* Lets the call fail with all errors of its function, or with one. */
static void call_fails(const struct sweep *sweep, const struct call *call,
                       bool all)
{
    static uint32_t turn;
    const uint32_t codes = plug.codes(call->function);
    struct layer_script script = {.fault = sweep->fault,
                                  .site = call->site,
                                  .nth = call->nth,
                                  .times = sweep->times,
                                  .pick = turn++,
                                  .spare_releases = sweep->times > 1,
                                  .build_log = "scripted failure"};

    for (uint32_t i = 0; i < (all ? codes : 1); i++, script.pick++) {
        snprintf(label, sizeof label,
                 "%s %s: %s, case %d %#" PRIx64 " %" PRIu64 " %u %" PRIu64,
                 part_name, sweep->name, call->function, (int)sweep->fault,
                 call->site, call->nth, script.pick % codes, sweep->times);
        case_run(&script);
    }
}

/* Returns true if calls of the function do not fail for ever (layer.h). */
static bool is_spared(const char *function)
{
    return strncmp(function, "clRelease", 9) == 0 ||
           strncmp(function, "clRetain", 8) == 0 ||
           strcmp(function, "clEnqueueUnmapMemObject") == 0;
}

/* Removes the calls that a case of this group tests already. */
static uint64_t calls_select(const struct sweep *sweep, uint64_t group,
                             struct call *out)
{
    static struct set tested;
    uint64_t count = 0;

    for (uint64_t i = 0; i < call_count; i++) {
        uint64_t key = mix(calls[i].site, calls[i].nth);

        key = mix(mix(key, group), (uint64_t)sweep->fault);
        if (strncmp(calls[i].function, sweep->functions,
                    strlen(sweep->functions)) == 0 &&
            (sweep->times == 1 || !is_spared(calls[i].function)) &&
            set_add(&tested, mix(key, sweep->times)))
            out[count++] = calls[i];
    }
    return count;
}

/*
 * Lets the selected calls fail, or random ones: the first of each function that
 * no case has tested, and random_count others.
 */
static void sweep_run(struct sweep *sweep, uint64_t group)
{
    static struct set sites, functions;
    static struct call selected[MAX_CALLS];
    const uint64_t count = calls_select(sweep, group, selected);
    const uint64_t start = cases, start_ms = now_ms(), occurred = delivered;
    uint64_t random_count =
        *(const uint64_t *)((const char *)subject + sweep->random_count);

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = i + (all_cases ? 0 : sweep_random(count - i));
        const struct call call = selected[at];
        const bool is_new =
            sweep->times == 1 &&
            set_add(all_cases ? &sites : &functions,
                    all_cases ? mix(call.site, (uint64_t)sweep->fault)
                              : mix((uintptr_t)call.function, 1));

        selected[at] = selected[i];
        if (!all_cases && !is_new && random_count-- == 0)
            break;
        call_fails(sweep, &call, all_cases && is_new);
    }
    sweep->cases += cases - start;
    sweep->delivered += delivered - occurred;
    if (all_cases)
        printf("%s %s: %" PRIu64 " cases, %" PRIu64 " s\n", part_name,
               sweep->name, cases - start, (now_ms() - start_ms) / 1000);
    fflush(stdout);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (write(2, "HANG ", 5) < 0 || write(2, label, strlen(label)) < 0)
        _exit(98);
    _exit(99);
}

/* Runs the case of the command line: FAULT SITE NTH PICK TIMES. */
static void command_line_case(char **from)
{
    const struct layer_script script = {
        .fault = (enum layer_fault)atoi(from[0]),
        .site = strtoull(from[1], NULL, 0),
        .nth = strtoull(from[2], NULL, 10),
        .pick = (uint32_t)atoi(from[3]),
        .times = strtoull(from[4], NULL, 10),
        .spare_releases = strcmp(from[4], "1") != 0,
        .build_log = "scripted failure"};

    snprintf(label, sizeof label, "%s by hand", part_name);
    case_run(&script);
    printf("%s: %s\n", label, delivered_last ? "failed" : "no fault occurred");
}

static void sweep_parts(int argc, char **argv)
{
    const char *text = "";
    uint64_t group = 0;

    if (argc >= 3 && strcmp(argv[1], "part") == 0) {
        text = argv[2];
        argc -= 2;
        argv += 2;
    }
    for (uint64_t i = 0; (part_name = subject->part_select(i, &group)); i++) {
        if (!strstr(part_name, text))
            continue;
        calls_record();
        if (argc >= 7 && strcmp(argv[1], "case") == 0) {
            command_line_case(argv + 2);
            continue;
        }
        for (size_t k = 0; k < SWEEPS; k++)
            sweep_run(&sweeps[k], group);
    }
}

/*
 * A sweep whose faults do not occur tests nothing. A few calls, like the
 * queries of a wait, depend on the machine's load.
 */
static void deliveries_check(void)
{
    for (const struct sweep *sweep = sweeps; sweep < sweeps + SWEEPS; sweep++)
        if (sweep->delivered * 2 < sweep->cases) {
            failures++;
            fprintf(stderr,
                    "FAIL %s: %" PRIu64 " of %" PRIu64 " cases met a fault\n",
                    sweep->name, sweep->delivered, sweep->cases);
        }
}

int sweep_main(int argc, char **argv, const struct sweep_subject *of)
{
    const char *text = getenv("TANDEM_TEST_LONG");
    const uint64_t start_ms = now_ms();
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
    sweep_parts(argc, argv);
    deliveries_check();
    plug_cache_remove(sweep_cache);
    printf("%" PRIu64 " cases, %" PRIu64 " of them with a fault, %" PRIu64
           " failures, %" PRIu64 " s\n",
           cases, delivered, failures, (now_ms() - start_ms) / 1000);
    return case_summary(delivered > failures ? delivered - failures : 0,
                        failures);
}
