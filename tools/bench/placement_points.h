/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random points of operator, size and place of the data, with the predicted and
 * the measured time of each device.
 */
#ifndef TANDEM_BENCH_PLACEMENT_POINTS_H
#define TANDEM_BENCH_PLACEMENT_POINTS_H

#include "bench.h"

#define POINT_DEVICES TANDEM_MAX_DEVICES

struct point {
    const char *op;
    uint32_t rank;
    int64_t shape[3];
    /* Device that holds the inputs, or TANDEM_ANY_DEVICE for the host. */
    uint32_t resident;
    uint32_t chosen; /* device that the library chose */
    double predicted_ns[POINT_DEVICES];
    double measured_ns[POINT_DEVICES]; /* 0 if not measured */
    /* Part of measured_ns that an empty wait takes; the prediction excludes it.
     */
    double waited_ns[POINT_DEVICES];
};

/* Draws a random point.  The data is on one of the devices or on the host.
 * `state` is the state of the random generator. */
void point_draw(struct point *point, uint64_t *state, const uint32_t *devices,
                uint32_t device_count, enum scale scale);

/* Reads the predictions, then measures on every device.  wait_ns[d] is the time
 * of an empty wait for device d.  On failure fails the run and returns false.
 */
bool point_measure(struct bench *bench, struct point *point,
                   uint32_t device_count, const double *wait_ns);

#endif
