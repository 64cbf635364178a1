/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large transfers of the OpenCL plugin through its ring of pinned memory, and
 * by the driver's own commands, while OpenCL calls fail: the data is correct or
 * the call returns an error, nothing leaks, and afterwards the device works or
 * reports that it is lost. See fault_sweep.h for the arguments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_sweep.h"
#include "opencl_workload.h"

/* More than the ring, and not a multiple of the size of its commands. */
#define COUNT ((17u << 18) + 321u)
#define BYTES ((uint64_t)COUNT * sizeof(float))
/* A part of several commands. */
#define PART_FIRST 1003u
#define PART_COUNT (300000u)

static struct workload work;
static float in[COUNT], out[COUNT];

static const char *const transfer_paths[][5] = {
    {"cache_dir", sweep_cache, "test.transfer_path", "ring", NULL},
    {"cache_dir", sweep_cache, "test.transfer_path", "driver", NULL}};
#define TRANSFER_PATHS (sizeof transfer_paths / sizeof *transfer_paths)

static bool download(struct tandem_buffer *buffer, uint32_t first,
                     uint32_t count)
{
    memset(out, 0xff, count * sizeof(float));
    return CALL(&work, download, work.stream, buffer, first * sizeof(float),
                out, count * sizeof(float), 0, TANDEM_TIMEOUT_INFINITE) &&
           (memcmp(out, in + first, count * sizeof(float)) == 0 ||
            record_violation(&work, "what comes back is not what was sent"));
}

static bool transfers(struct tandem_buffer *buffer)
{
    bool passed;

    fill_ramp(in, COUNT, 1.0f, 0.25f);
    passed = upload(&work, buffer, in, BYTES) && download(buffer, 0, COUNT);
    if (!passed)
        return false;
    fill_ramp(in + PART_FIRST, PART_COUNT, -5.0f, 1.0f);
    if (!CALL(&work, trim, work.device, 0))
        return false;
    return call_succeeded(
               &work,
               work.api->upload(work.stream, buffer, PART_FIRST * sizeof(float),
                                in + PART_FIRST, PART_COUNT * sizeof(float), 0),
               "upload of a part") &&
           download(buffer, PART_FIRST - 3, PART_COUNT + 7) &&
           download(buffer, 0, COUNT);
}

/* Runs the transfers on a new stream, and reports its errors. */
static bool transfers_run(void)
{
    struct tandem_buffer *buffer = NULL;
    bool passed;

    work.section = "transfers";
    work.status = TANDEM_OK;
    work.stream = NULL;
    passed = CALL(&work, stream_create, work.device, 0, &work.stream);
    if (passed) {
        passed = buffer_new(&work, BYTES, &buffer) && transfers(buffer);
        work.api->free(buffer);
        passed &= stream_wait(&work, work.stream);
    }
    work.api->stream_destroy(work.stream);
    return passed;
}

/*
 * Runs the transfers again, on a new device if this one is lost. stream_destroy
 * can lose a device and returns no status, so the next call may be the first to
 * tell.
 */
static void expect_transfers_pass(const char *const *pairs, bool lost)
{
    bool passed;

    work.failed[0] = '\0';
    passed = !lost && transfers_run();
    if (!passed && work.lost) {
        workload_close(&work);
        work.lost = false;
        if (!workload_open(&work, pairs)) {
            sweep_report("no device can be opened afterwards");
            return;
        }
        passed = transfers_run();
    }
    if (!passed)
        sweep_report("transfers fail after the fault");
    workload_close(&work);
}

static void device_open(void)
{
    if (workload_open(&work, transfer_paths[0]))
        workload_close(&work);
}

/* The script counts the calls of all paths, so one path has the fault. */
static void one_case(const struct layer_script *script)
{
    const struct sweep_state before = sweep_state_take();
    bool opened[TRANSFER_PATHS], passed, lost = false;

    memset(&work, 0, sizeof work);
    work.api = plug.api;
    plug.script_set(script);
    for (size_t i = 0; i < TRANSFER_PATHS; i++) {
        const uint64_t faults = plug_counts(&plug).faults;

        opened[i] = workload_open(&work, transfer_paths[i]);
        if (!opened[i])
            continue;
        passed = transfers_run();
        if (!passed && plug_counts(&plug).faults == faults)
            sweep_report("transfers fail by themselves");
        lost = work.lost;
        if (i + 1 < TRANSFER_PATHS)
            workload_close(&work);
        work.lost &= i + 1 == TRANSFER_PATHS;
    }
    sweep_fault_ends();
    if (opened[TRANSFER_PATHS - 1])
        expect_transfers_pass(transfer_paths[TRANSFER_PATHS - 1], lost);
    sweep_queues_wait(&before, device_open);
    sweep_state_check(&before, true);
    if (work.wrong[0])
        sweep_report("what must never be");
}

static void pass(void)
{
    for (size_t i = 0; i < TRANSFER_PATHS; i++) {
        if (!workload_open(&work, transfer_paths[i]))
            continue;
        transfers_run();
        workload_close(&work);
    }
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "ring transfer",
                                                 .one_case = one_case,
                                                 .pass = pass,
                                                 .failed = work.failed,
                                                 .wrong = work.wrong,
                                                 .once = 30,
                                                 .ever = 10,
                                                 .later = 25,
                                                 .lazy = 4};

    setenv("TANDEM_LAYER_GPU", "1", 1);
    return sweep_main(argc, argv, &subject);
}
