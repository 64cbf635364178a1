/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin while OpenCL fails to list and to describe devices. Each
 * call between the first query and an open device fails in a child process
 * that was forked before OpenCL was used. The plugin returns an error or
 * describes the same device. Afterwards the device is found and works, unless
 * the driver reported a permanent error.
 *
 * Each call fails with one code that CONFORMANCE_SEED selects, or with all
 * codes if TANDEM_TEST_LONG=1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/seed.h"
#include "plugin_under_layer.h"
#include "opencl_workload.h"
#include "support/case_summary.h"

#define OUT_OF_RESOURCES (-5)
#define OUT_OF_HOST_MEMORY (-6)
/* Drivers that do not exist. The layer cuts the variable. */
#define DRIVERS "no-such-driver.so:nor-this-one.so"

/* Report of a child process to its parent. */
struct report {
    /* The device information without a fault. */
    struct tandem_device_info info;
    uint64_t calls;
    /* The number of codes that the failed function may return. */
    uint32_t codes;
    uint64_t faults;
    char violation[WORKLOAD_TEXT];
};

static struct plug plug;
static struct workload work;
static struct report
    *report; /* Memory that is shared with the child processes. */
static char label[256];
static uint64_t cases, delivered, failures;

static void violation_report(const char *what)
{
    if (!report->violation[0])
        snprintf(report->violation, sizeof report->violation, "%s (%s)", what,
                 plug.api->last_error());
}

/* Returns true if device 0 exists and is described as without a fault. */
static bool device_found(enum tandem_status *out_status)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    uint32_t count = 99;

    *out_status = plug.api->device_count(&count);
    if (strcmp(getenv("OCL_ICD_FILENAMES"), DRIVERS) != 0)
        violation_report("OCL_ICD_FILENAMES has changed");
    if (*out_status == TANDEM_OK)
        *out_status = plug.api->device_describe(0, &info);
    else if (count != 0)
        violation_report("device_count failed and gave a count");
    if (*out_status == TANDEM_OK && report->info.struct_size != 0 &&
        memcmp(&info, &report->info, sizeof info) != 0)
        violation_report(
            "a device is described otherwise than without a fault");
    if (*out_status == TANDEM_OK && report->info.struct_size == 0)
        report->info = info;
    return *out_status == TANDEM_OK;
}

static bool device_works(void)
{
    memset(&work, 0, sizeof work);
    work.api = plug.api;
    if (!workload_open(&work, (const char *const[]){"cache_dir", "", NULL}))
        return false;
    work.section = "calls";
    sequence_run(&work, 1000, 1);
    workload_close(&work);
    if (work.wrong[0])
        violation_report(work.wrong);
    return !work.failed[0];
}

/* Returns true if the code is a temporary failure of one call. */
static bool is_temporary(int32_t code)
{
    return report->faults == 1 &&
           (code == OUT_OF_RESOURCES || code == OUT_OF_HOST_MEMORY);
}

static void child(const struct layer_script *script)
{
    enum tandem_status status;
    const char *function;
    int32_t code = 0;

    alarm(120);
    plug.script_set(script);
    if (!device_found(&status) &&
        (status > TANDEM_FAILED || plug.api->last_error()[0] == '\0'))
        violation_report("no clear status");
    report->calls = plug_counts(&plug).calls;
    report->faults = plug_counts(&plug).faults;
    function = plug.failed(&code);
    report->codes = plug.codes(function);
    plug.script_set(NULL);
    if (device_found(&status) ? !device_works()
                              : report->faults == 0 || is_temporary(code))
        violation_report(
            "the device is not found afterwards, or does not work");
    if (report->faults > 0 && report->violation[0])
        fprintf(stderr, "%s gave %d\n", function, code);
}

static void one_case(const struct layer_script *script)
{
    int state = 0;
    pid_t pid;

    report->violation[0] = '\0';
    report->faults = 0;
    cases++;
    pid = fork();
    if (pid == 0) {
        child(script);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &state, 0) != pid || state != 0)
        snprintf(report->violation, sizeof report->violation,
                 "the process ended by %d", state);
    delivered += report->faults > 0;
    if (!report->violation[0])
        return;
    failures++;
    fprintf(stderr, "FAIL %s: %s\n", label, report->violation);
}

/* Lets call nth fail with all codes or a random one, once or for good. */
static void call_fails(uint64_t nth, uint64_t times, uint32_t first, bool all)
{
    struct layer_script script = {
        .fault = LAYER_FAULT_CALL, .nth = nth, .times = times, .pick = first};
    const uint32_t last = first;

    do {
        snprintf(label, sizeof label,
                 "call %" PRIu64 ", pick %u, times %" PRIu64, nth, script.pick,
                 times);
        one_case(&script);
        script.pick++;
    } while (all && report->faults > 0 && script.pick < last + report->codes);
}

int main(void)
{
    const char *text = getenv("TANDEM_TEST_LONG");
    const bool all = text && strcmp(text, "1") == 0;
    const struct layer_script nothing = {.fault = LAYER_FAULT_CALL};
    uint64_t calls;

    const uint32_t seed = (uint32_t)test_seed();

    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return 99;
    setenv("OCL_ICD_FILENAMES", DRIVERS, 1);
    setenv("TANDEM_LAYER_CUT_DRIVERS", "1", 1);
    plug_load(&plug);
    snprintf(label, sizeof label, "without a fault");
    one_case(&nothing);
    calls = report->calls;
    if (failures > 0)
        return 1;
    for (uint64_t n = 1; n <= calls; n++) {
        call_fails(n, 1, seed + (uint32_t)n, all);
        if (all || n % 8 == seed % 8)
            call_fails(n, UINT64_MAX, seed + (uint32_t)n, all);
    }
    printf("%" PRIu64 " calls, %" PRIu64 " cases, %" PRIu64
           " of them with a fault, %" PRIu64 " failures\n",
           calls, cases, delivered, failures);
    if (delivered * 2 < cases) {
        fprintf(stderr, "FAIL: most cases met no fault\n");
        return 1;
    }
    return case_summary(delivered - failures, failures);
}
