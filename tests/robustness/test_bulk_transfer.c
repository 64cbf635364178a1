/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large transfers of the OpenCL plugin, through pinned memory, by a map and by
 * staging memory, while OpenCL fails: what arrives is right, or the call says
 * that it is not; nothing is left, and the device works afterwards or says that
 * it is lost.
 *
 * fault_sweep.h says how to call it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fault_sweep.h"
#include "opencl_workload.h"

/* More than all slots of the ring, and no whole number of any. */
#define COUNT ((17u << 18) + 321u)
#define BYTES ((uint64_t)COUNT * sizeof(float))
/* A part that is large enough, and begins between. */
#define PART_FIRST 1003u
#define PART_COUNT (300000u)

static struct workload work;
static float in[COUNT], out[COUNT];

static const char *const ways[][5] = {
    {"cache_dir", sweep_cache, "test.transfer_path", "ring", NULL},
    {"cache_dir", sweep_cache, "test.transfer_path", "mapped", NULL},
    {"cache_dir", sweep_cache, "test.transfer_path", "staged", NULL}};
#define WAYS (sizeof ways / sizeof *ways)

static void details(void)
{
    if (work.failed[0])
        fprintf(stderr, "  the first failure: %s\n", work.failed);
    if (work.wrong[0])
        fprintf(stderr, "  wrong: %s\n", work.wrong);
}

static bool download(struct tandem_buffer *buffer, uint32_t first,
                     uint32_t count)
{
    memset(out, 0xff, count * sizeof(float));
    return step(&work,
                work.api->download(work.stream, buffer, first * sizeof(float),
                                   out, count * sizeof(float), 0,
                                   TANDEM_TIMEOUT_INFINITE),
                "download") &&
           (memcmp(out, in + first, count * sizeof(float)) == 0 ||
            mistake(&work, "what comes back is not what was sent"));
}

static bool transfers(struct tandem_buffer *buffer)
{
    bool held;

    ramp(in, COUNT, 1.0f, 0.25f);
    held = upload(&work, buffer, in, BYTES) && download(buffer, 0, COUNT);
    if (!held)
        return false;
    ramp(in + PART_FIRST, PART_COUNT, -5.0f, 1.0f);
    if (!step(&work, work.api->trim(work.device, 0), "trim"))
        return false;
    return step(&work,
                work.api->upload(work.stream, buffer,
                                 PART_FIRST * sizeof(float), in + PART_FIRST,
                                 PART_COUNT * sizeof(float), 0),
                "upload of a part") &&
           download(buffer, PART_FIRST - 3, PART_COUNT + 7) &&
           download(buffer, 0, COUNT);
}

/* On a stream of its own; what it left there is told by the wait. */
static bool transfers_run(void)
{
    struct tandem_buffer *buffer = NULL;
    bool held;

    work.section = "transfers";
    work.status = TANDEM_OK;
    work.stream = NULL;
    held = step(&work, work.api->stream_create(work.device, 0, &work.stream),
                "stream_create");
    if (held) {
        held = buffer_new(&work, BYTES, &buffer) && transfers(buffer);
        work.api->free(buffer);
        held &= step(
            &work,
            work.api->stream_synchronize(work.stream, TANDEM_TIMEOUT_INFINITE),
            "stream_synchronize");
    }
    work.api->stream_destroy(work.stream);
    return held;
}

/* Without a fault, on the device or on another one. */
static void whole_again(const char *const *pairs, bool lost)
{
    work.failed[0] = '\0';
    if (lost) {
        workload_close(&work);
        work.lost = false;
        if (!workload_open(&work, pairs)) {
            sweep_report("no device can be opened afterwards");
            return;
        }
    }
    if (!transfers_run())
        sweep_report("transfers fail after the fault");
    workload_close(&work);
}

/* What a lost device may still use is given back when the next is opened. */
static void kept_settle(const struct sweep_state *before,
                        const char *const *pairs)
{
    const struct timespec pause = {0, 5000000};

    for (int i = 0; i < 12000 && sweep_queues_left(before); i++) {
        nanosleep(&pause, NULL);
        if (workload_open(&work, pairs))
            workload_close(&work);
    }
}

/* The script's n-th call is in one of the ways: the others see no fault. */
static void one_case(const struct layer_script *script)
{
    const struct sweep_state before = sweep_state_take();
    bool opened[WAYS], held, lost = false;

    memset(&work, 0, sizeof work);
    work.api = plug.api;
    plug.script_set(script);
    for (size_t i = 0; i < WAYS; i++) {
        const uint64_t faults = plug_counts(&plug).faults;

        opened[i] = workload_open(&work, ways[i]);
        if (!opened[i])
            continue;
        held = transfers_run();
        if (!held && plug_counts(&plug).faults == faults)
            sweep_report("transfers fail by themselves");
        lost = work.lost;
        if (i + 1 < WAYS)
            workload_close(&work);
        work.lost &= i + 1 == WAYS;
    }
    sweep_fault_ends();
    if (opened[WAYS - 1])
        whole_again(ways[WAYS - 1], lost);
    kept_settle(&before, ways[0]);
    sweep_state_check(&before, true);
    if (work.wrong[0])
        sweep_report("what must never be");
}

/* Without being told which way, until that is decided, and after the ring was
 * given back. */
static bool contest(void)
{
    static const char *const pairs[] = {"cache_dir", "", NULL};
    struct tandem_buffer *buffer = NULL;
    bool held = true;

    memset(&work, 0, sizeof work);
    work.api = plug.api;
    if (!workload_open(&work, pairs))
        return false;
    ramp(in, COUNT, 1.0f, 0.25f);
    held = step(&work, work.api->stream_create(work.device, 0, &work.stream),
                "stream_create") &&
           buffer_new(&work, BYTES, &buffer);
    for (uint32_t i = 0; i < 24 && held; i++) {
        in[i] = -1.0f;
        if (i >= 14)
            held = step(&work, work.api->trim(work.device, 0), "trim");
        held = held && upload(&work, buffer, in, BYTES) &&
               download(buffer, 0, COUNT);
    }
    work.api->free(buffer);
    work.api->stream_destroy(work.stream);
    workload_close(&work);
    if (!held)
        details();
    return held;
}

static void pass(void)
{
    for (size_t i = 0; i < WAYS; i++) {
        if (!workload_open(&work, ways[i]))
            continue;
        transfers_run();
        workload_close(&work);
    }
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "bulk transfer",
                                                 .one_case = one_case,
                                                 .pass = pass,
                                                 .details = details,
                                                 .once = 30,
                                                 .ever = 10,
                                                 .later = 25,
                                                 .lazy = 4};

    /* The ring is for GPUs. */
    setenv("TANDEM_LAYER_GPU", "1", 1);
    if (plug_start(&plug) && !contest())
        return 1;
    return sweep_main(argc, argv, &subject);
}
