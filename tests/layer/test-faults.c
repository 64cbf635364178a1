/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin while OpenCL fails: for each call of a workload that
 * touches the whole plugin, with each error that the function may return,
 * the plugin gives a status and no wrong number, holds no object and no heap
 * block afterwards, and either works again on the same device or says that it
 * is lost.
 *
 * By default a subset that CONFORMANCE_SEED picks; TANDEM_TEST_LONG=1: all,
 * but for failures that last, which have one code for each call.  With an
 * argument, that sweep alone (or "all"); "case FAULT NTH PICK TIMES
 * [FUNCTION]" (FAULT a number of enum layer_fault): that case alone.  One
 * process: OpenCL does not survive a fork.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "heap.h"
#include "plug.h"
#include "workload.h"

/* Of a case: that it took so long is told. */
#define SLOW_MS 2000u

static struct plug plug;
static struct workload work;
static char cache[4096];
static char label[512];
static uint64_t cases, delivered, failures;
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

static void report(const char *what)
{
    int32_t code;
    const char *function = plug.failed(&code);

    failures++;
    fprintf(stderr, "FAIL %s (%s gave %d): %s\n", label, function, code, what);
    if (work.failed[0])
        fprintf(stderr, "  the first failure: %s\n", work.failed);
    if (work.wrong[0])
        fprintf(stderr, "  wrong: %s\n", work.wrong);
}

static uint64_t faults_before;
static bool once;

/* Whatever follows the section in which the only fault was must hold. */
static void section_done(struct workload *on, bool held)
{
    const uint64_t faults = plug_counts(&plug).faults;

    if (once && !held && !on->lost && faults_before > 0) {
        char text[WORKLOAD_TEXT];

        snprintf(text, sizeof text, "section %s fails after the fault: %s: %d",
                 on->section, on->call ? on->call : "wrong result",
                 (int)on->status);
        report(text);
    }
    faults_before = faults;
}

/* The same device, without a fault. */
static void work_again(void)
{
    work.failures = 0;
    work.failed[0] = '\0';
    workload_run(&work, NULL);
    if (work.lost || work.failures > 0)
        report("the device does not work afterwards, nor is it lost");
}

/* Every call says so; step notes what does not. */
static void still_lost(void)
{
    workload_run(&work, NULL);
    if (!work.lost)
        report("a lost device came back");
}

/* What a lost device may still use is kept until the driver says that it does
 * not: it is asked whenever a device is opened. */
static void kept_settle(const struct layer_counts *before,
                        const char *const *pairs)
{
    const struct timespec pause = {0, 5000000};

    for (int i = 0; i < 12000; i++) {
        const struct layer_counts now = plug_counts(&plug);

        if (plug_alive(&now, LAYER_QUEUE) -
                plug_alive(before, LAYER_QUEUE) ==
            now.unreleased[LAYER_QUEUE] - before->unreleased[LAYER_QUEUE])
            break;
        nanosleep(&pause, NULL);
        if (workload_open(&work, pairs))
            workload_close(&work);
    }
}

static void leaks_check(const struct layer_counts *before)
{
    const struct layer_counts after = plug_counts(&plug);

    for (int i = 0; i < LAYER_OBJECTS; i++) {
        const uint64_t leaked = plug_alive(&after, i) - plug_alive(before, i),
                       excused = after.unreleased[i] - before->unreleased[i];
        char text[128];

        if (leaked == excused)
            continue;
        snprintf(text, sizeof text, "%" PRIu64 " %s left, %" PRIu64
                                    " releases failed",
                 leaked, plug_objects[i], excused);
        report(text);
    }
}

static void heap_check(uint64_t blocks, uint64_t bytes)
{
    char text[128];

    if (heap_blocks() == blocks && heap_bytes() == bytes)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " heap blocks became %" PRIu64
                                ", %" PRIu64 " bytes %" PRIu64,
             blocks, heap_blocks(), bytes, heap_bytes());
    report(text);
    heap_print();
}

static void open_anew(const char *const *pairs)
{
    char first[WORKLOAD_TEXT];

    memcpy(first, work.failed, sizeof first);
    work.failed[0] = '\0';
    if (!workload_open(&work, pairs)) {
        report("no device can be opened afterwards");
        return;
    }
    workload_run(&work, NULL);
    if (work.failures > 0)
        report("a device opened anew does not work");
    workload_close(&work);
}

static void one_case(const struct layer_script *script)
{
    const uint64_t start_ms = now_ms();
    const char *const pairs[] = {"cache_dir", cache, NULL};
    const struct layer_counts before = plug_counts(&plug);
    const uint64_t blocks = heap_blocks(), bytes = heap_bytes();
    bool opened, lost = false, early;

    alarm(300);
    memset(&work, 0, sizeof work);
    work.api = plug.api;
    faults_before = 0;
    once = script->times == 1;
    cases++;
    plug.script_set(script);
    opened = workload_open(&work, pairs);
    faults_before = plug_counts(&plug).faults;
    if (opened)
        workload_run(&work, section_done);
    delivered_last = plug_counts(&plug).faults > 0;
    delivered += delivered_last;
    lost = opened && work.lost;
    /* Half of the devices are closed while the fault goes on. */
    early = opened && !once && cases % 2 == 0;
    if (early)
        workload_close(&work);
    plug.script_set(NULL);
    if (opened && work.device) {
        lost ? still_lost() : work_again();
        workload_close(&work);
    }
    if (lost || early || !opened) {
        work.failures = 0;
        open_anew(pairs);
        kept_settle(&before, pairs);
    }
    leaks_check(&before);
    heap_check(blocks, bytes);
    if (work.wrong[0])
        report("what must never be");
    if (thorough && now_ms() - start_ms >= SLOW_MS)
        printf("%s: %" PRIu64 " ms\n", label, now_ms() - start_ms);
}

/* ---- sweeps ---- */

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
    for (int i = 0; i < 2; i++) { /* the second compiles nothing */
        one_case(&nothing);
        if (work.failures > 0)
            report("the workload fails by itself");
    }
    plug.script_set(&nothing);
    workload_open(&work, (const char *const[]){"cache_dir", cache, NULL});
    workload_run(&work, NULL);
    workload_close(&work);
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
        one_case(&script);
        if (every && i == 0 && delivered_last)
            picks = plug.codes(plug.failed(&code));
    }
}

/* Each nth from 1 to most, or some of them by chance. */
static void sweep(const char *name, enum layer_fault fault, uint64_t most,
                  uint64_t times, uint64_t some)
{
    const uint64_t rounds = thorough || some > most ? most : some;
    const uint64_t start = cases, start_ms = now_ms();

    for (uint64_t i = 1; i <= rounds; i++) {
        call_fails(name, fault, NULL,
                   rounds == most ? i : 1 + random_below(most), times,
                   thorough && times == 1);
        if (i % 100 == 0 || i == rounds)
            printf("%s: call %" PRIu64 " of %" PRIu64 ", %" PRIu64
                   " cases, %" PRIu64 " s\n",
                   name, i, rounds, cases - start,
                   (now_ms() - start_ms) / 1000);
        fflush(stdout);
    }
}

/* Every function once at least. */
static void sweep_functions(const struct profile *profile)
{
    const char *name;
    uint64_t calls;

    for (uint32_t i = 0; (name = plug.function(i, &calls)); i++)
        if (profile->of[i] > 0)
            call_fails("function", LAYER_FAULT_CALL, name,
                       1 + random_below(profile->of[i]), 1, false);
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

    describe("by hand", &script);
    one_case(&script);
}

static int chosen(int count, char **names, const char *name)
{
    return count < 2 || strcmp(names[1], "all") == 0 ||
           strcmp(names[1], name) == 0;
}

int main(int argc, char **argv)
{
    const char *text = getenv("CONFORMANCE_SEED");
    struct profile profile;

    signal(SIGALRM, on_alarm);
    seed = text ? strtoull(text, NULL, 10) : 1;
    text = getenv("TANDEM_TEST_LONG");
    thorough = text && strcmp(text, "1") == 0;
    setenv("TANDEM_LAYER_MEMO", "1", 0);
    plug_cache(cache, sizeof cache,
               getenv("TANDEM_LAYER_GPU") ? "faults-gpu" : "faults");
    if (!plug_start(&plug))
        return 77;
    heap_watch(plug.api);
    profile = profile_take();
    if (argc >= 6 && strcmp(argv[1], "case") == 0)
        by_hand(argv + 2);
    if (chosen(argc, argv, "function"))
        sweep_functions(&profile);
    if (chosen(argc, argv, "once"))
        sweep("once", LAYER_FAULT_CALL, profile.calls, 1, 40);
    if (chosen(argc, argv, "ever"))
        sweep("ever", LAYER_FAULT_CALL, profile.calls, UINT64_MAX, 20);
    if (chosen(argc, argv, "later"))
        sweep("later", LAYER_FAULT_LATER, profile.commands, 1, 30);
    if (chosen(argc, argv, "lazy")) {
        sweep("lazy", LAYER_FAULT_LAZY, profile.buffers, 1, 10);
        sweep("lazy", LAYER_FAULT_LAZY, profile.buffers, UINT64_MAX, 5);
        sweep("lazy later", LAYER_FAULT_LAZY_LATER, profile.buffers, 1,
                   10);
    }
    plug_cache_remove(cache);
    printf("%" PRIu64 " calls, %" PRIu64 " cases, %" PRIu64
           " of them with a fault, %" PRIu64 " failures\n",
           profile.calls, cases, delivered, failures);
    return failures > 0;
}
