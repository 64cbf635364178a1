/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin while OpenCL fails to list and to describe its devices.
 * Each call between the first question and an open device fails in a process
 * of its own, forked before OpenCL is touched: there is a status, or the same
 * device as ever; and afterwards the device is found and works, unless the
 * driver said that it never will.
 *
 * Each call with one code that CONFORMANCE_SEED picks; TANDEM_TEST_LONG=1:
 * with all.
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

#define OUT_OF_RESOURCES (-5)
#define OUT_OF_HOST_MEMORY (-6)

/* What a child tells its parent. */
struct told {
    struct tandem_device_info info; /* without a fault */
    uint64_t calls;
    uint32_t codes; /* that the failed function may give */
    uint64_t faults;
    char wrong[WORKLOAD_TEXT];
};

static struct plug plug;
static struct workload work;
static struct told *told; /* shared with the children */
static char label[256];
static uint64_t cases, delivered, failures;

static void wrong(const char *what)
{
    if (!told->wrong[0])
        snprintf(told->wrong, sizeof told->wrong, "%s (%s)", what,
                 plug.api->last_error());
}

/* Whether device 0 is there, as it was described without a fault. */
static bool found(enum tandem_status *out_status)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    uint32_t count = 99;

    *out_status = plug.api->device_count(&count);
    if (*out_status == TANDEM_OK)
        *out_status = plug.api->device_describe(0, &info);
    else if (count != 0)
        wrong("device_count failed and gave a count");
    if (*out_status == TANDEM_OK && told->info.struct_size != 0 &&
        memcmp(&info, &told->info, sizeof info) != 0)
        wrong("a device is described otherwise than without a fault");
    if (*out_status == TANDEM_OK && told->info.struct_size == 0)
        told->info = info;
    return *out_status == TANDEM_OK;
}

static bool works(void)
{
    memset(&work, 0, sizeof work);
    work.api = plug.api;
    if (!workload_open(&work, (const char *const[]){"cache_dir", "", NULL}))
        return false;
    work.section = "memory";
    if (!step(&work, work.api->stream_create(work.device, 0, &work.stream),
              "stream_create"))
        return false;
    section_memory(&work);
    work.api->stream_destroy(work.stream);
    workload_close(&work);
    if (work.wrong[0])
        wrong(work.wrong);
    return !work.failed[0];
}

/* Whether what failed was one call, which said "not now". */
static bool passes(int32_t code)
{
    return told->faults == 1 &&
           (code == OUT_OF_RESOURCES || code == OUT_OF_HOST_MEMORY);
}

static void child(const struct layer_script *script)
{
    enum tandem_status status;
    const char *function;
    int32_t code = 0;

    alarm(120);
    plug.script_set(script);
    if (!found(&status) &&
        (status > TANDEM_FAILED || plug.api->last_error()[0] == '\0'))
        wrong("no clear status");
    told->calls = plug_counts(&plug).calls;
    told->faults = plug_counts(&plug).faults;
    function = plug.failed(&code);
    told->codes = plug.codes(function);
    plug.script_set(NULL);
    if (found(&status) ? !works() : told->faults == 0 || passes(code))
        wrong("the device is not found afterwards, or does not work");
    if (told->faults > 0 && told->wrong[0])
        fprintf(stderr, "%s gave %d\n", function, code);
}

static void one_case(const struct layer_script *script)
{
    int state = 0;
    pid_t pid;

    told->wrong[0] = '\0';
    told->faults = 0;
    cases++;
    pid = fork();
    if (pid == 0) {
        child(script);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &state, 0) != pid || state != 0)
        snprintf(told->wrong, sizeof told->wrong, "the process ended by %d",
                 state);
    delivered += told->faults > 0;
    if (!told->wrong[0])
        return;
    failures++;
    fprintf(stderr, "FAIL %s: %s\n", label, told->wrong);
}

/* Call nth with all codes, or one by chance; for ever if lasting. */
static void call_fails(uint64_t nth, uint64_t times, uint32_t first, bool all)
{
    struct layer_script script = {.fault = LAYER_FAULT_CALL,
                                  .nth = nth,
                                  .times = times,
                                  .pick = first};
    const uint32_t last = first;

    do {
        snprintf(label, sizeof label,
                 "call %" PRIu64 ", pick %u, times %" PRIu64, nth, script.pick,
                 times);
        one_case(&script);
        script.pick++;
    } while (all && told->faults > 0 && script.pick < last + told->codes);
}

int main(void)
{
    const char *text = getenv("TANDEM_TEST_LONG");
    const bool all = text && strcmp(text, "1") == 0;
    const struct layer_script nothing = {.fault = LAYER_FAULT_CALL};
    uint64_t calls;

    const uint32_t seed = (uint32_t)test_seed();

    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 99;
    plug_load(&plug);
    snprintf(label, sizeof label, "without a fault");
    one_case(&nothing);
    calls = told->calls;
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
    return failures > 0;
}
