/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "cold-start": the time a new process takes to open a device, to its
 * first result and to its first GEMM, with empty and with filled caches,
 * compared with a process that calls OpenCL and CLBlast directly.
 */
#include <config.h>

#include "bench.h"

#include "../common/clock.h"
#include "cold_start_process.h"
#ifdef BENCH_OPENCL
#include "opencl_device_match.h"
#endif

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Approximate time limit for all processes of a row, in ns.  If a process takes
 * seconds, fewer are started; the result has their number. */
static const double whole_ns[SCALES] = {2e8, 15e9, 15e9};

/* Environment variables with the cache directories of drivers and Tandem. */
static const char *const cache_variables[] = {
    "XDG_CACHE_HOME",
    "POCL_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "HOME",
};
#define VARIABLES (sizeof cache_variables / sizeof cache_variables[0])

void cold_start_list(struct list *list)
{
    list_add(list, "first result", "", "cold caches", "process");
    list_add(list, "first result", "", "warm caches", "process");
}

/* ---- a place for caches ---- */

struct temporary_caches {
    char directory[256];
    char *saved[VARIABLES]; /* the environment's values */
    char *profile;
};

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void empty(const char *directory)
{
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Keeps the profile in use, since it is not a cache of compiled programs. */
static void keep_profile(struct temporary_caches *caches)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[512];

    caches->profile = getenv("TANDEM_PROFILE_DIR");
    if (caches->profile != NULL)
        return;
    if (cache != NULL && cache[0] == '/')
        snprintf(path, sizeof path, "%s/tandem", cache);
    else
        snprintf(path, sizeof path, "%s/.cache/tandem",
                 home == NULL ? "" : home);
    if (access(path, R_OK) == 0)
        setenv("TANDEM_PROFILE_DIR", path, 1);
}

static bool temporary_caches_open(struct temporary_caches *caches)
{
    const char *temporary = getenv("TMPDIR");

    memset(caches, 0, sizeof *caches);
    snprintf(caches->directory, sizeof caches->directory,
             "%s/tandem-bench-XXXXXX",
             temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
    if (mkdtemp(caches->directory) == NULL)
        return false;
    keep_profile(caches);
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(cache_variables[i]);

        caches->saved[i] = value == NULL ? NULL : strdup(value);
        setenv(cache_variables[i], caches->directory, 1);
    }
    return true;
}

static void temporary_caches_close(struct temporary_caches *caches)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        if (caches->saved[i] != NULL)
            setenv(cache_variables[i], caches->saved[i], 1);
        else
            unsetenv(cache_variables[i]);
        free(caches->saved[i]);
    }
    if (caches->profile == NULL)
        unsetenv("TANDEM_PROFILE_DIR");
    empty(caches->directory);
}

/* ---- processes ---- */

/* Times of the processes of one kind: between successive points, and from the
 * start to the first result. */
enum { STEPS = 4, KINDS = 2 };
struct starts {
    const char *who, *name;
    size_t count;
    double ns[STEPS][MAX_SAMPLES];
};

static bool start_once(struct bench *bench, struct starts *starts,
                       const char *cache)
{
    struct first_device device = {.text = bench->device_text,
                                  .platform = bench->session.info.platform,
                                  .name = bench->session.info.name};
    double ns[FIRST_POINTS];
    char error[256];

#ifdef BENCH_OPENCL
    device.equals = reference_equals(bench->context, bench->session.index);
#endif
    if (cache != NULL) {
        empty(cache);
        mkdir(cache, 0700);
    }
    if (cold_start_process_spawn(starts->who, &device, &bench->open_options, ns,
                                 error) != 0) {
        bench_fail(bench, "%s", error);
        return false;
    }
    starts->ns[0][starts->count] = ns[FIRST_OPENED];
    starts->ns[1][starts->count] = ns[FIRST_RESULT] - ns[FIRST_OPENED];
    starts->ns[2][starts->count] = ns[FIRST_PRODUCT] - ns[FIRST_RESULT];
    starts->ns[3][starts->count++] = ns[FIRST_RESULT];
    return true;
}

static void report(struct bench *bench, struct starts *starts, size_t kinds)
{
    static const char *const steps[STEPS] = {
        "open a device", "then a first result", "then a first product",
        "first result of all"};

    for (int step = 0; step < STEPS; step++) {
        struct times times[KINDS];
        char name[96];

        for (size_t i = 0; i < kinds; i++)
            times[i] = (struct times){starts[i].name, starts[i].ns[step],
                                      starts[i].count};
        snprintf(name, sizeof name, "%s, %s", steps[step], bench->row->detail);
        bench_times(bench, name, kinds > 1 ? starts[1].name : NULL, times,
                    kinds);
    }
}

static bool start_all(struct bench *bench, struct starts *starts, size_t kinds,
                      const char *directory)
{
    bool cold = row_has(bench->row, "cold"), ok = true;
    uint64_t start;

    for (size_t i = 0; ok && !cold && i < kinds; i++) {
        ok = start_once(bench, &starts[i], NULL);
        starts[i].count = 0;
    }
    start = clock_now_ns();
    for (uint32_t n = 0; ok && n < bench->samples; n++) {
        for (size_t i = 0; ok && i < kinds; i++)
            ok = start_once(bench, &starts[i], cold ? directory : NULL);
        if ((double)(clock_now_ns() - start) > whole_ns[bench->scale])
            break;
    }
    return ok;
}

void cold_start_run(struct bench *bench)
{
    static struct starts starts[KINDS];
    struct temporary_caches caches;

    memset(starts, 0, sizeof starts);
    starts[0] = (struct starts){.who = "tandem", .name = "Tandem"};
    if (bench->device == TANDEM_ANY_DEVICE)
        starts[0].who = "chosen";
    starts[1] = (struct starts){.who = "raw", .name = "OpenCL, CLBlast"};
    if (!temporary_caches_open(&caches)) {
        bench_fail(bench, "no temporary directory");
        return;
    }
    if (start_all(bench, starts, bench_on_opencl(bench) ? 2 : 1,
                  caches.directory))
        report(bench, starts, bench_on_opencl(bench) ? 2 : 1);
    temporary_caches_close(&caches);
}
