/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "placement": compares predicted with measured times at random points
 * that the calibration did not measure, and counts how often the device with
 * the smallest prediction was the fastest.
 */
#include <config.h>

#include "placement_points.h"

#include <math.h>
#include <stdio.h>

#define POINTS 200
#define TINY_POINTS 12
#define CLEAR 1.1 /* devices whose times differ less are equally good */
#define WAIT_SAMPLES 33

/* Returns the time of a wait after a launch, without the launch. */
static double empty_wait(struct bench *bench, uint32_t device)
{
    const int64_t shape[] = {16};
    double samples[WAIT_SAMPLES], launch;
    struct device_session session;
    struct resident_op work;
    uint64_t ns = 0;
    bool ok;

    if (device_session_open(&session, bench->context, device) != TANDEM_OK)
        return 0;
    ok = resident_op_create(&work, &session, "add", 1, shape) == TANDEM_OK;
    if (!ok) {
        device_session_close(&session);
        return 0;
    }
    resident_op_stream(&work, 1, &ns);
    resident_op_stream(&work, 1000, &ns);
    launch = (double)ns / 1000;
    for (int i = 0; i < WAIT_SAMPLES; i++) {
        resident_op_stream(&work, 1, &ns);
        samples[i] = fmax((double)ns - launch, 0);
    }
    resident_op_destroy(&work);
    device_session_close(&session);
    return quantile(samples, WAIT_SAMPLES, 0.5);
}

static void report_errors(struct bench *bench, const struct point *points,
                          size_t count, uint32_t device)
{
    double errors[POINTS]; /* divided by the measured time */
    double bias[POINTS];   /* log2 of measured over predicted */
    size_t error_count = 0;
    char name[DEVICE_NAME_BYTES] = "", text[96];

    for (size_t i = 0; i < count; i++) {
        double p = points[i].predicted_ns[device];
        double m = points[i].measured_ns[device];

        if (p <= 0 || m <= 0)
            continue;
        p += points[i].waited_ns[device];
        errors[error_count] = fabs(p - m) / m;
        bias[error_count++] = log2(m / p);
    }
    if (error_count == 0)
        return;
    device_name(bench->context, device, name);
    snprintf(text, sizeof text, "%s: error, median", name);
    bench_scalar(bench, text, "%", 100 * quantile(errors, error_count, 0.5));
    snprintf(text, sizeof text, "%s: error, 95th part", name);
    bench_scalar(bench, text, "%", 100 * quantile(errors, error_count, 0.95));
    snprintf(text, sizeof text, "%s: measured/predicted", name);
    bench_scalar(bench, text, "median", exp2(quantile(bias, error_count, 0.5)));
}

/* Returns the measured time without the wait, which is the time that the
 * chooser minimises.  Noise may make the wait longer than the whole. */
static double own_time(const struct point *point, uint32_t device)
{
    double ns = point->measured_ns[device];

    return fmax(ns - point->waited_ns[device], ns / 10);
}

static void report_choice(struct bench *bench, const struct point *points,
                          size_t count, uint32_t device_count)
{
    double taken = 0, best = 0;
    size_t clear = 0, right = 0;

    for (size_t i = 0; i < count; i++) {
        double ns = own_time(&points[i], points[i].chosen);
        double least = ns, most = ns;

        for (uint32_t d = 0; d < device_count; d++) {
            double other = own_time(&points[i], d);

            least = other > 0 ? fmin(least, other) : least;
            most = fmax(most, other);
        }
        taken += ns;
        best += least;
        if (most <= CLEAR * least)
            continue;
        clear++;
        right += ns <= CLEAR * least;
    }
    bench_scalar(bench, "points where it matters", "", (double)clear);
    if (clear > 0)
        bench_scalar(bench, "of these, right", "%",
                     100.0 * (double)right / (double)clear);
    bench_scalar(bench, "total against the best", "times", taken / best);
}

/* Adds the points to the document; see result_document.h. */
static void add_points(struct bench *bench, const struct point *points,
                       size_t count, uint32_t device_count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct point *p = &points[i];
        json_t *shape = json_array(), *devices = json_array();
        char data[DEVICE_NAME_BYTES] = "host", name[DEVICE_NAME_BYTES];

        for (uint32_t axis = 0; axis < p->rank; axis++)
            json_array_append_new(shape, json_integer(p->shape[axis]));
        for (uint32_t d = 0; d < device_count; d++) {
            device_name(bench->context, d, name);
            json_array_append_new(devices,
                                  json_pack("{s:s, s:f, s:f}", "device", name,
                                            "predicted_ns", p->predicted_ns[d],
                                            "ns", own_time(p, d)));
        }
        if (p->resident != TANDEM_ANY_DEVICE)
            device_name(bench->context, p->resident, data);
        device_name(bench->context, p->chosen, name);
        json_array_append_new(array,
                              json_pack("{s:s, s:o, s:s, s:s, s:o}", "op",
                                        p->op, "shape", shape, "data", data,
                                        "chosen", name, "devices", devices));
    }
    json_object_set_new(bench->document, "placement_points", array);
}

void placement_list(struct list *list)
{
    list_add(list, "placement", "", "", "");
}

/* Lists the devices that support operators, and returns their number. */
static uint32_t serving_devices(struct bench *bench,
                                uint32_t devices[POINT_DEVICES])
{
    uint32_t device_count = 0, count = 0;

    tandem_device_count(bench->context, &device_count);
    for (uint32_t d = 0; d < device_count && d < POINT_DEVICES; d++) {
        struct tandem_device_info info = {.struct_size = sizeof info};

        if (tandem_device_describe(bench->context, d, &info) == TANDEM_OK &&
            (info.caps & TANDEM_CAP_CORE_OPERATORS) != 0)
            devices[count++] = d;
    }
    return count;
}

void placement_run(struct bench *bench)
{
    static struct point points[POINTS];
    size_t count = bench->scale == SCALE_TINY ? TINY_POINTS : POINTS;
    double wait_ns[POINT_DEVICES] = {0};
    uint64_t state = bench->seed;
    uint32_t serving[POINT_DEVICES], device_count = 0;
    uint32_t serving_count = serving_devices(bench, serving);

    tandem_device_count(bench->context, &device_count);
    device_count = device_count < POINT_DEVICES ? device_count : POINT_DEVICES;
    for (uint32_t d = 0; d < device_count; d++)
        wait_ns[d] = empty_wait(bench, d);
    for (size_t i = 0; i < count; i++) {
        point_draw(&points[i], &state, serving, serving_count, bench->scale);
        if (!point_measure(bench, &points[i], device_count, wait_ns))
            return;
    }
    add_points(bench, points, count, device_count);
    for (uint32_t d = 0; d < device_count; d++)
        report_errors(bench, points, count, d);
    if (serving_count > 1)
        report_choice(bench, points, count, device_count);
}
