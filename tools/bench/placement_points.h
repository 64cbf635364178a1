/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded (operator, size, residency) points that no calibration measured, and
 * what each device is predicted, and was measured, to take for one.
 */
#ifndef TANDEM_BENCH_PLACEMENT_POINTS_H
#define TANDEM_BENCH_PLACEMENT_POINTS_H

#include "bench.h"

#define POINT_DEVICES TANDEM_MAX_DEVICES

struct point {
    const char *op;
    uint32_t rank;
    int64_t shape[3];
    /* Where the inputs lie: a device, or the host (TANDEM_ANY_DEVICE). */
    uint32_t resident;
    uint32_t chosen; /* device */
    double predicted_ns[POINT_DEVICES];
    double measured_ns[POINT_DEVICES]; /* 0: not measured */
    /* What of it is an empty wait, of which the prediction knows nothing. */
    double waited_ns[POINT_DEVICES];
};

/* Draws a point of the scale, whose data lies on one of the devices or on the
 * host.  state is the generator's. */
void point_draw(struct point *point, uint64_t *state, const uint32_t *devices,
                uint32_t device_count, enum scale scale);

/* Asks for the prediction, then measures on every device.  wait_ns[d]: what
 * an empty wait for device d takes.  false, having failed the run. */
bool point_measure(struct bench *bench, struct point *point,
                   uint32_t device_count, const double *wait_ns);

#endif
