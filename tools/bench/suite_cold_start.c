/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "cold-start": the time a new process takes to open a device, to its
 * first result and to its first GEMM, with empty and with filled caches,
 * compared with a process that calls OpenCL and CLBlast directly.
 */
#include <config.h>

#include "cold_start_process.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Approximate time limit for all processes of a row, in ns.  If a process takes
 * seconds, fewer are started; the result has their number. */
static const double max_ns[SCALES] = {2e8, 15e9, 15e9};

void cold_start_list(struct list *list)
{
    list_add(list, "first result", "", "cold caches", "process");
    list_add(list, "first result", "", "warm caches", "process");
}

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void directory_remove(const char *directory)
{
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Times of the processes of one kind: between successive points, and from the
 * start to the first result. */
enum { STEPS = 4, KINDS = 2 };
struct starts {
    const char *who, *name;
    size_t count;
    double ns[STEPS][MAX_SAMPLES];
};

static bool start_once(struct bench *bench, struct starts *starts,
                       const char *caches)
{
    double ns[COLD_START_POINTS];
    char error[256];

    if (!cold_start_process_spawn(bench, starts->who, caches, ns, error)) {
        bench_fail(bench, "%s", error);
        return false;
    }
    starts->ns[0][starts->count] = ns[POINT_OPENED];
    starts->ns[1][starts->count] = ns[POINT_RESULT] - ns[POINT_OPENED];
    starts->ns[2][starts->count] = ns[POINT_GEMM] - ns[POINT_RESULT];
    starts->ns[3][starts->count++] = ns[POINT_RESULT];
    return true;
}

static bool start_all(struct bench *bench, struct starts *starts, size_t kinds,
                      const char *caches)
{
    bool cold = row_has(bench->row, "cold"), ok = true;
    uint64_t start;

    /* The first processes fill the caches. */
    for (size_t i = 0; ok && !cold && i < kinds; i++) {
        ok = start_once(bench, &starts[i], caches);
        starts[i].count = 0;
    }
    start = clock_now_ns();
    for (uint32_t n = 0; ok && n < bench->samples; n++) {
        for (size_t i = 0; ok && i < kinds; i++) {
            if (cold) {
                directory_remove(caches);
                mkdir(caches, 0700);
            }
            ok = start_once(bench, &starts[i], caches);
        }
        if ((double)(clock_now_ns() - start) > max_ns[bench->scale])
            break;
    }
    return ok;
}

static void add_rows(struct bench *bench, struct starts *starts, size_t kinds)
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

void cold_start_run(struct bench *bench)
{
    static struct starts starts[KINDS];
    bool any = bench->device == TANDEM_ANY_DEVICE;
    size_t kinds = bench_on(bench, "opencl") ? 2 : 1;
    const char *temporary = getenv("TMPDIR");
    char caches[256];

    starts[0] =
        (struct starts){.who = any ? "chosen" : "tandem", .name = "Tandem"};
    starts[1] = (struct starts){.who = "raw", .name = "OpenCL, CLBlast"};
    snprintf(caches, sizeof caches, "%s/tandem-bench-XXXXXX",
             temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
    if (mkdtemp(caches) == NULL) {
        bench_fail(bench, "%s cannot be created", caches);
        return;
    }
    if (start_all(bench, starts, kinds, caches))
        add_rows(bench, starts, kinds);
    directory_remove(caches);
}
