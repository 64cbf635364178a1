/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin while OpenCL calls fail: for each call of a workload that
 * uses the whole plugin, and for each error that the function may return, the
 * plugin returns an error and no wrong number, holds no object and no heap
 * block afterwards, and works again on the same device or reports that it is
 * lost. See fault_sweep.h for the arguments.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_sweep.h"
#include "opencl_workload.h"

static struct workload work;

/* On a GPU, reductions are combined as on NVIDIA devices. */
static const char *const cpu_options[] = {"cache_dir", sweep_cache, NULL};
static const char *const gpu_options[] = {
    "cache_dir", sweep_cache, "test.device_scope_visibility", "1", NULL};
static const char *const *pairs = cpu_options;

static uint64_t faults_before;
static bool once;

/* All sections after the one with the single fault must pass. */
static void section_done(struct workload *on, bool passed)
{
    const uint64_t faults = plug_counts(&plug).faults;

    if (once && !passed && !on->lost && faults_before > 0) {
        char text[WORKLOAD_TEXT];

        snprintf(text, sizeof text, "section %s fails after the fault: %s: %d",
                 on->section, on->call ? on->call : "wrong result",
                 (int)on->status);
        sweep_report(text);
    }
    faults_before = faults;
}

/* Runs the workload on the same device without a fault. */
static void expect_workload_passes(void)
{
    work.failures = 0;
    work.failed[0] = '\0';
    workload_run(&work, NULL);
    if (work.lost || work.failures > 0)
        sweep_report("the device does not work afterwards, nor is it lost");
}

/*
 * Checks that no memory counts as allocated, because all sections have freed
 * their buffers. when: for the message, the point in the case.
 */
static void expect_nothing_allocated(const char *when)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};
    char text[WORKLOAD_TEXT];

    if (work.lost || work.api->memory_stats(work.device, &stats) != TANDEM_OK ||
        (stats.allocated_bytes == 0 && stats.buffer_count == 0))
        return;
    snprintf(text, sizeof text,
             "%" PRIu64 " bytes of %" PRIu64 " buffers are in use %s",
             stats.allocated_bytes, stats.buffer_count, when);
    sweep_report(text);
}

/* Checks that every call returns TANDEM_DEVICE_LOST; see step(). */
static void expect_device_lost(void)
{
    workload_run(&work, NULL);
    if (!work.lost)
        sweep_report("a lost device came back");
}

static void device_open(void)
{
    if (workload_open(&work, pairs))
        workload_close(&work);
}

static void device_reopen(void)
{
    char first[WORKLOAD_TEXT];

    memcpy(first, work.failed, sizeof first);
    work.failed[0] = '\0';
    if (!workload_open(&work, pairs)) {
        sweep_report("no device can be opened afterwards");
        return;
    }
    workload_run(&work, NULL);
    if (work.failures > 0)
        sweep_report("a device opened anew does not work");
    workload_close(&work);
}

static void one_case(const struct layer_script *script)
{
    const struct sweep_state before = sweep_state_take();
    bool opened, lost = false, early;

    memset(&work, 0, sizeof work);
    work.api = plug.api;
    faults_before = 0;
    once = script->times == 1;
    plug.script_set(script);
    opened = workload_open(&work, pairs);
    faults_before = plug_counts(&plug).faults;
    if (opened)
        workload_run(&work, section_done);
    if (opened)
        expect_nothing_allocated("under the fault");
    if (script->nth == 0 && work.failures > 0)
        sweep_report("the workload fails by itself");
    lost = opened && work.lost;
    /* Half of the devices are closed while calls still fail. */
    early = opened && !once && sweep_case() % 2 == 0;
    if (early)
        workload_close(&work);
    sweep_fault_ends();
    if (opened && work.device) {
        lost ? expect_device_lost() : expect_workload_passes();
        expect_nothing_allocated("afterwards");
        workload_close(&work);
    }
    if (lost || early || !opened) {
        work.failures = 0;
        device_reopen();
        sweep_queues_wait(&before, device_open);
    }
    sweep_state_check(&before, true);
    if (work.wrong[0])
        sweep_report("what must never be");
}

static void pass(void)
{
    workload_open(&work, pairs);
    workload_run(&work, NULL);
    workload_close(&work);
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "faults",
                                                 .one_case = one_case,
                                                 .pass = pass,
                                                 .failed = work.failed,
                                                 .wrong = work.wrong,
                                                 .once = 40,
                                                 .ever = 20,
                                                 .later = 30,
                                                 .lazy = 10};

    if (getenv("TANDEM_LAYER_GPU") != NULL)
        pairs = gpu_options;
    return sweep_main(argc, argv, &subject);
}
