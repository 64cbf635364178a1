/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same training on three contexts of one process: chosen placement, all
 * CPU, all OpenCL.  Owns the contexts while it runs.  One thread at a time.
 */
#include "compare.h"
#include "network.h"
#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHOSEN, CPU, OPENCL, CONTENDERS, ROUNDS = 15, MIN_ROUNDS = 3 };

/* No more rounds, and no more warming up, after as many seconds; and as many
 * epochs a round as take this long, so that a round outlasts what else the
 * machine does. */
static const double rounds_seconds = 40.0, warm_seconds = 90.0,
                    round_seconds = 0.1;

struct contender {
    const char *name, *device; /* as TANDEM_DEVICE; NULL: chosen */
    FILE *report;
    struct tandem_context *context;
    struct network *network;
    double seconds[ROUNDS]; /* of an epoch */
    double warm_seconds;
    uint32_t rounds, epochs; /* epochs a round */
};

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool succeeded(const struct contender *one, enum tandem_status status)
{
    if (status != TANDEM_OK)
        fprintf(stderr, "digits: %s: %s: %s\n", one->name,
                tandem_status_name(status), tandem_last_error());
    return status == TANDEM_OK;
}

/* Returns false on failure.  If there is no such device, context stays NULL. */
static bool contender_open(struct contender *one, const struct table *train,
                           const struct table *held, uint32_t batch,
                           uint64_t seed)
{
    enum tandem_status status = tandem_context_create(NULL, &one->context);
    uint32_t device = TANDEM_ANY_DEVICE;

    if (!succeeded(one, status))
        return false;
    if (one->device != NULL) {
        status = tandem_device_find(one->context, one->device, &device);
        if (status == TANDEM_NO_DEVICE) {
            fprintf(one->report, "  %-12s not compared: %s\n", one->name,
                    tandem_last_error());
            tandem_context_destroy(one->context);
            one->context = NULL;
            return true;
        }
    }
    if (status == TANDEM_OK && one->device != NULL)
        status = tandem_context_force_device(one->context, device);
    if (status == TANDEM_OK)
        status = network_create(one->context, train, held, batch, ROUNDS, seed,
                                &one->network);
    return succeeded(one, status);
}

/* Trains until every kernel that the chooser wants is compiled. */
static bool contender_warm(struct contender *one)
{
    double start = now_seconds(), epoch_start;
    struct tally tally;
    float loss;

    if (one->context == NULL)
        return true;
    tandem_context_set_observer(one->context, tally_observe, &tally);
    do {
        memset(&tally, 0, sizeof(tally));
        if (!succeeded(one, network_train(one->network, &loss)))
            return false;
        one->warm_seconds = now_seconds() - start;
    } while (tally.waiting > 0 && one->warm_seconds < warm_seconds);
    tandem_context_set_observer(one->context, NULL, NULL);
    epoch_start = now_seconds();
    if (!succeeded(one, network_train(one->network, &loss)))
        return false;
    one->epochs = 1 + (uint32_t)(round_seconds / (now_seconds() - epoch_start));
    if (tally.waiting > 0)
        fprintf(one->report,
                "  %-12s %llu operators of an epoch still wait for a"
                " compiler\n",
                one->name, (unsigned long long)tally.waiting);
    return true;
}

static bool contender_run(struct contender *one)
{
    double start = now_seconds();
    float loss;

    if (one->context == NULL)
        return true;
    for (uint32_t i = 0; i < one->epochs; i++)
        if (!succeeded(one, network_train(one->network, &loss)))
            return false;
    one->seconds[one->rounds++] = (now_seconds() - start) / one->epochs;
    return true;
}

static int seconds_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void contender_print(struct contender *one, const struct contender *base)
{
    double median = one->seconds[one->rounds / 2];
    char range[48];

    if (one->context == NULL)
        return;
    snprintf(range, sizeof(range), "%.3f to %.3f", one->seconds[0] * 1e3,
             one->seconds[one->rounds - 1] * 1e3);
    fprintf(one->report, "  %-12s %9.3f   %-22s %9.1f", one->name,
            median * 1e3, range, one->warm_seconds * 1e3);
    if (one != base)
        fprintf(one->report, "  %.3f",
                base->seconds[base->rounds / 2] / median);
    fprintf(one->report, "\n");
}

static void contenders_print(FILE *report, struct contender *all,
                             uint32_t batch)
{
    double best = 0.0;

    fprintf(report, "One epoch at batch %u: median of %u rounds, ms; ratio:"
            " the time of the\nchosen placement by this one's\n", batch,
            all[CHOSEN].rounds);
    fprintf(report, "  %-12s %9s   %-22s %9s  %s\n", "placement", "median",
            "least to most", "warm-up", "ratio");
    for (int i = 0; i < CONTENDERS; i++) {
        double median;

        qsort(all[i].seconds, all[i].rounds, sizeof(double), seconds_compare);
        contender_print(&all[i], &all[CHOSEN]);
        median = all[i].seconds[all[i].rounds / 2];
        if (i != CHOSEN && all[i].context != NULL &&
            (best == 0.0 || median < best))
            best = median;
    }
    if (best > 0.0)
        fprintf(report, "  chosen against the better of them: %.3f\n",
                all[CHOSEN].seconds[all[CHOSEN].rounds / 2] / best);
}

static bool contenders_run(struct contender *all)
{
    double start;

    for (int i = 0; i < CONTENDERS; i++)
        if (!contender_warm(&all[i]))
            return false;
    start = now_seconds();
    for (int round = 0; round < ROUNDS; round++) {
        if (round >= MIN_ROUNDS && now_seconds() - start > rounds_seconds)
            break;
        for (int i = 0; i < CONTENDERS; i++)
            if (!contender_run(&all[(round + i) % CONTENDERS]))
                return false;
    }
    return true;
}

/* Returns the median time of an epoch, or 0 if there is no such device.  The
 * times are sorted. */
static double contender_median(const struct contender *one)
{
    return one->context != NULL ? one->seconds[one->rounds / 2] : 0.0;
}

bool compare_print(FILE *report, const struct table *train,
                   const struct table *held, uint32_t batch, uint64_t seed,
                   struct epoch_times *out_times)
{
    struct contender all[CONTENDERS] = {
        [CHOSEN] = {.name = "chosen", .report = report},
        [CPU] = {.name = "all cpu", .device = "cpu", .report = report},
        [OPENCL] = {.name = "all opencl", .device = "opencl",
                    .report = report},
    };
    bool done = true;

    for (int i = 0; done && i < CONTENDERS; i++)
        done = contender_open(&all[i], train, held, batch, seed);
    done = done && contenders_run(all);
    if (done)
        contenders_print(report, all, batch);
    if (done)
        *out_times = (struct epoch_times){contender_median(&all[CHOSEN]),
                                          contender_median(&all[CPU]),
                                          contender_median(&all[OPENCL])};
    for (int i = 0; i < CONTENDERS; i++) {
        network_destroy(all[i].network);
        tandem_context_destroy(all[i].context);
    }
    return done;
}

void epoch_times_print(const struct epoch_times *times, bool only_cpu)
{
    if (times->chosen == 0.0)
        return;
    printf("One epoch   %.1f ms with the devices that Tandem chose\n",
           times->chosen * 1e3);
    if (times->cpu > 0.0 && only_cpu)
        printf("            %.1f ms with the CPU alone, which is the same: for"
               " a network\n            as small as this one, Tandem chose only"
               " the CPU. The times differ\n            by chance, or because"
               " other programs used the machine.\n",
               times->cpu * 1e3);
    else if (times->cpu > 0.0)
        printf("            %.1f ms with the CPU alone: Tandem is %.2f times"
               " as fast\n", times->cpu * 1e3, times->cpu / times->chosen);
    if (times->opencl > 0.0)
        printf("            %.1f ms with the OpenCL device alone\n",
               times->opencl * 1e3);
}
