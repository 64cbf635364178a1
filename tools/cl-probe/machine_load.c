/* SPDX-License-Identifier: Apache-2.0 */
/* Detects that other programs disturb measurements; see machine_load.h. */
#include <config.h>

#include "machine_load.h"

#include "../common/clock.h"
#include "../common/statistics.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Limits above which the machine counts as busy.  Measured with the CPU plugin
 * on two cores of an AMD EPYC, 2026-11-29: the spread was 4% and the fraction
 * of waiting 3% when cl-probe had real-time priority, and 19% to 45% and 58% to
 * 79% when it shared the cores with ten other threads. */
#define MAX_CPU_WAIT 0.2
#define MAX_SPREAD 0.3
#define MAX_LOAD 0.25
/* A CPU's time in /proc/stat advances in steps of 10 ms or less. */
#define LOAD_SAMPLE_NS (200 * NS_PER_MS)

struct cpu_delay cpu_delay_now(void)
{
    struct cpu_delay sum = {0, 0};
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;

    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        unsigned long long run_ns, wait_ns;
        char path[300];
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat",
                 entry->d_name);
        file = entry->d_name[0] != '.' ? fopen(path, "re") : NULL;
        if (file == NULL)
            continue;
        if (fscanf(file, "%llu %llu", &run_ns, &wait_ns) == 2) {
            sum.run_ns += (double)run_ns;
            sum.wait_ns += (double)wait_ns;
        }
        fclose(file);
    }
    if (tasks != NULL)
        closedir(tasks);
    return sum;
}

void machine_load_note(const struct cpu_delay *start, double *spreads,
                       size_t count, json_t *result)
{
    const struct cpu_delay now = cpu_delay_now();
    const double run_ns = now.run_ns - start->run_ns;
    const double wait_ns = now.wait_ns - start->wait_ns;
    const double spread = quantile(spreads, count, 0.5);
    /* Threads that ended are no longer counted. */
    const double wait =
        run_ns > 0 && wait_ns > 0 ? wait_ns / (run_ns + wait_ns) : 0;

    json_object_set_new(result, "spread", json_real(spread));
    json_object_set_new(result, "cpu_wait", json_real(wait));
    json_object_set_new(
        result, "busy",
        json_boolean(wait > MAX_CPU_WAIT || spread > MAX_SPREAD));
}

/* The time of the CPUs in the affinity mask, in the unit of /proc/stat. */
struct cpu_time {
    double idle, all;
};

static struct cpu_time cpu_time_now(void)
{
    struct cpu_time sum = {0, 0};
    FILE *file = fopen("/proc/stat", "re");
    char line[512];
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        memset(&set, 0xff, sizeof set);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        /* user, nice, system, idle, iowait, irq, softirq, steal */
        double t[8] = {0};
        unsigned cpu;

        /* The first line is that of all CPUs, without a number. */
        if (strncmp(line, "cpu ", 4) == 0)
            continue;
        if (sscanf(line, "cpu%u %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &t[0],
                   &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 5 ||
            cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set))
            continue;
        sum.idle += t[3] + t[4];
        for (size_t i = 0; i < 8; i++)
            sum.all += t[i];
    }
    if (file != NULL)
        fclose(file);
    return sum;
}

bool machine_wait_idle(unsigned limit_s)
{
    const struct timespec pause = {0, LOAD_SAMPLE_NS};
    const uint64_t deadline_ns = clock_now_ns() + limit_s * NS_PER_S;
    struct cpu_time before = cpu_time_now(), now;

    while (clock_now_ns() < deadline_ns) {
        nanosleep(&pause, NULL);
        now = cpu_time_now();
        if (now.idle - before.idle >= (1 - MAX_LOAD) * (now.all - before.all))
            return true;
        before = now;
    }
    return false;
}
