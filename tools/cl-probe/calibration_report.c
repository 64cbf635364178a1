/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the results of a calibration, and the sizes from which another device
 * is faster than the CPU; see calibration_report.h. */
#include <config.h>

#include "calibration_report.h"
#include "calibration_save.h"

#include "../common/text_table.h"
#include "../common/text_wrap.h"
#include "device_list.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCAN_STEP 1.05
/* Bytes per element of an f32 addition: two are read, one is written. */
#define ADD_BYTES 12.0

/* A measured curve: times in ns over x, sorted by x. */
#define CURVE_POINTS 64
struct curve {
    size_t count;
    double x[CURVE_POINTS], ns[CURVE_POINTS];
};

/* Appends a point, or drops it if the curve has CURVE_POINTS points. */
static void curve_add(struct curve *curve, double x, double ns)
{
    if (curve->count == CURVE_POINTS)
        return;
    curve->x[curve->count] = x;
    curve->ns[curve->count++] = ns;
}

/* Returns the curve's value at x: interpolated linearly between two points,
 * the first value below the first point, and the last value scaled with x above
 * the last point.  Returns 0 for an empty curve. */
static double curve_at(const struct curve *curve, double x)
{
    size_t last = curve->count - 1;
    double part;

    if (curve->count == 0)
        return 0;
    if (x <= curve->x[0])
        return curve->ns[0];
    if (x >= curve->x[last])
        return curve->ns[last] * x / curve->x[last];
    for (size_t i = 1;; i++) {
        if (x > curve->x[i])
            continue;
        part = (x - curve->x[i - 1]) / (curve->x[i] - curve->x[i - 1]);
        return curve->ns[i - 1] + part * (curve->ns[i] - curve->ns[i - 1]);
    }
}

static void curve_read(const json_t *result, const char *name,
                       struct curve *out)
{
    const json_t *points =
        json_object_get(json_object_get(result, "curves"), name);

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *point = json_array_get(points, i);

        curve_add(out, json_number_value(json_array_get(point, 0)),
                  json_number_value(json_array_get(point, 1)));
    }
}

/* Reads m, n, k and the time of GEMM number i, or returns false. */
static bool gemm_read(const json_t *result, size_t i, double out[4])
{
    const json_t *point = json_array_get(json_object_get(result, "gemm"), i);

    for (size_t j = 0; j < 4; j++)
        out[j] = json_number_value(json_array_get(point, j));
    return point != NULL;
}

/* Reads the times of n x n x n GEMMs as a curve over n. */
static void squares_read(const json_t *result, struct curve *out)
{
    double p[4];

    memset(out, 0, sizeof *out);
    for (size_t i = 0; gemm_read(result, i, p); i++)
        if (p[0] == p[1] && p[1] == p[2])
            curve_add(out, p[0], p[3]);
}

/* Adds a cell for a cost that the result lacks: "failed" if the device or this
 * measurement failed, else "-". */
static void cell_missing(struct table *table, const json_t *result,
                         const char *name)
{
    const json_t *skipped = json_object_get(result, "skipped");
    const size_t length = strlen(name);
    bool failed = json_object_get(result, "error") != NULL;

    /* Each text is "NAME: REASON". */
    for (size_t i = 0; i < json_array_size(skipped); i++) {
        const char *text = json_string_value(json_array_get(skipped, i));

        failed |= strncmp(text, name, length) == 0 && text[length] == ':';
    }
    table_cell(table, failed ? "failed" : "-");
}

static double gemm_peak_gflops(const json_t *result)
{
    double best = 0, p[4];

    for (size_t i = 0; gemm_read(result, i, p); i++)
        best = fmax(best, 2 * p[0] * p[1] * p[2] / p[3]);
    return best;
}

static void cell_scalar(struct table *table, const json_t *result,
                        const char *name)
{
    const json_t *value =
        json_object_get(json_object_get(result, "scalars"), name);
    char text[TEXT_BYTES];

    if (value == NULL)
        cell_missing(table, result, name);
    else
        table_cell(table, "%s", text_ns(text, json_number_value(value)));
}

/* Adds a cell with the rate at the curve's largest size, or of GEMM. */
static void cell_rate(struct table *table, const json_t *result,
                      const char *name)
{
    struct curve curve;
    char text[TEXT_BYTES];

    curve_read(result, name, &curve);
    if (strcmp(name, "gemm") == 0 && gemm_peak_gflops(result) > 0)
        table_cell(table, "%.0f GFLOP/s", gemm_peak_gflops(result));
    else if (curve.count == 0)
        cell_missing(table, result, name);
    else
        table_cell(table, "%s",
                   text_rate(text, curve.x[curve.count - 1],
                             curve.ns[curve.count - 1]));
}

/* Prints a row for each device, with a cell for each of the names. */
static void print_devices(const json_t *results, const char *const *headings,
                          const char *const *names,
                          void (*cell)(struct table *table,
                                       const json_t *result, const char *name))
{
    struct table table = {0};

    table_heading(&table, headings);
    for (size_t r = 0; r < json_array_size(results); r++) {
        const json_t *result = json_array_get(results, r);

        table_row(&table);
        table_cell(&table, "%s", device_text(result, "device"));
        for (size_t i = 0; names[i] != NULL; i++)
            cell(&table, result, names[i]);
    }
    table_print(&table, stdout);
    table_destroy(&table);
    printf("\n");
}

/* Costs of one device as functions of a size. */
struct device_cost {
    struct curve run, upload, download;
    double bytes_up, bytes_down; /* moved for each byte of x */
};

static double contender_ns(const struct device_cost *c, double x)
{
    double ns = curve_at(&c->run, x);

    if (c->bytes_up > 0)
        ns += curve_at(&c->upload, x * c->bytes_up) +
              curve_at(&c->download, x * c->bytes_down);
    return ns;
}

/* Adds a cell with the smallest size from which `device` is faster than `cpu`
 * at all sizes that both measured, or else the largest of these sizes.  Prints
 * sizes in units of x. */
static void cell_crossover(struct table *table, const struct device_cost *cpu,
                           const struct device_cost *device, double unit)
{
    double found = 0, last, size;

    if (cpu->run.count == 0 || device->run.count == 0) {
        table_cell(table, "-");
        return;
    }
    last = fmin(cpu->run.x[cpu->run.count - 1],
                device->run.x[device->run.count - 1]);
    for (double x = cpu->run.x[0]; x <= last; x *= SCAN_STEP) {
        if (contender_ns(device, x) >= contender_ns(cpu, x))
            found = 0;
        else if (found == 0)
            found = x;
    }
    size = (found > 0 ? found : last) / unit;
    table_cell(table, size < 1e5 ? "%s %.0f" : "%s %.3g",
               found > 0 ? "from" : "not up to", size);
}

static void row_crossover(struct table *table, const json_t *cpu,
                          const json_t *device)
{
    struct device_cost a = {.bytes_up = 0}, b = {.bytes_up = 0};

    curve_read(cpu, "elementwise", &a.run);
    curve_read(device, "elementwise", &b.run);
    curve_read(device, "upload", &b.upload);
    curve_read(device, "download", &b.download);
    table_row(table);
    table_cell(table, "%s", device_text(device, "device"));
    cell_crossover(table, &a, &b, ADD_BYTES);
    b.bytes_up = 2.0 / 3;
    b.bytes_down = 1.0 / 3;
    cell_crossover(table, &a, &b, ADD_BYTES);
    b.bytes_up = 0;
    squares_read(cpu, &a.run);
    squares_read(device, &b.run);
    cell_crossover(table, &a, &b, 1);
}

static const json_t *cpu_result(const json_t *results)
{
    for (size_t r = 0; r < json_array_size(results); r++) {
        const json_t *result = json_array_get(results, r);

        if (strcmp(device_text(result, "device"), "cpu") == 0 &&
            json_object_get(result, "error") == NULL)
            return result;
    }
    return NULL;
}

static void print_crossovers(const json_t *results)
{
    static const char *const headings[] = {"faster than cpu", "add, resident",
                                           "add, from the host", "square gemm",
                                           NULL};
    const json_t *cpu = cpu_result(results);
    struct table table = {0};

    table_heading(&table, headings);
    for (size_t r = 0; cpu != NULL && r < json_array_size(results); r++) {
        const json_t *result = json_array_get(results, r);

        if (result != cpu && json_object_get(result, "error") == NULL)
            row_crossover(&table, cpu, result);
    }
    if (table.rows > 1) {
        table_print(&table, stdout);
        printf("  (elements of an addition; n of an n x n x n product)\n\n");
    }
    table_destroy(&table);
}

/* Prints which GEMM kernels the profile chooses for some sizes. */
static void print_routes(const json_t *result)
{
    static const char *const dtypes[] = {"f32", "tf32", "f16"};
    const json_t *tuning = json_object_get(result, "tuning");

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        char key[32];
        const char *chosen;

        snprintf(key, sizeof key, "gemm.selected.%s", dtypes[i]);
        chosen = json_string_value(json_object_get(tuning, key));
        if (chosen != NULL)
            printf("  products of %s: %s\n", dtypes[i], chosen);
    }
}

/* Prints a line that is indented by two columns, and breaks it if necessary. */
__attribute__((format(printf, 1, 2))) static void print_line(const char *format,
                                                             ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("  ");
    text_wrap(stdout, text, 2, 4, output_columns(stdout));
}

/* Prints the array of texts in a line, or nothing if it is empty. */
static void print_list(const char *before, const json_t *texts,
                       const char *after)
{
    char list[1024] = "";

    for (size_t i = 0; i < json_array_size(texts); i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 i > 0 ? ", " : "",
                 json_string_value(json_array_get(texts, i)));
    if (list[0] != '\0')
        print_line("%s: %s%s", before, list, after);
}

/* Prints how the calibration of a device ended. */
static void print_end(const json_t *result)
{
    const char *name = device_text(result, "device");
    const char *error = device_text(result, "error");
    const char *path = device_text(result, "profile");
    const bool written = json_is_true(json_object_get(result, "written"));

    if (error[0] != '\0') {
        printf("%s: FAILED: %s\n", name, error);
        if (written)
            print_line("what was measured before is written to %s", path);
        return;
    }
    printf("%s: %.1f s", name, device_number(result, "seconds"));
    if (device_number(result, "compile_seconds") >= 0.1)
        printf(" and %.1f s for compilers",
               device_number(result, "compile_seconds"));
    printf(written ? ", written to %s\n" : "; the earlier profile %s stays\n",
           path);
}

/* Prints what is wrong with the measurements, and which of the earlier ones
 * stay. */
static void print_quality(const json_t *result)
{
    char text[256];

    if (json_object_get(result, "profile") == NULL)
        return;
    if (json_is_true(json_object_get(result, "busy"))) {
        calibration_spread_text(result, text, sizeof text);
        print_line("the machine was busy: %s", text);
    }
    print_list("missing", json_object_get(result, "missing"), "");
    if (json_is_true(json_object_get(result, "written")))
        print_list("kept from the earlier profile",
                   json_object_get(result, "kept"),
                   "; --replace discards them");
    else
        print_line("the earlier profile was measured on a quiet machine; "
                   "--replace replaces it");
}

static void print_paths(const json_t *results)
{
    for (size_t r = 0; r < json_array_size(results); r++) {
        const json_t *result = json_array_get(results, r);

        print_end(result);
        print_quality(result);
        if (json_object_get(result, "error") != NULL)
            continue;
        print_routes(result);
        probe_print_texts("  not served: ",
                          json_object_get(result, "unsupported"), ", ", "\n");
        probe_print_texts(
            "  not measured: ", json_object_get(result, "skipped"),
            "\n  not measured: ", "\n");
        if (device_text(result, "warning")[0] != '\0')
            printf("  warning: %s\n", device_text(result, "warning"));
    }
}

void summary_print(const json_t *results)
{
    static const char *const costs[] = {
        "device", "alloc", "launch", "sync", "compile", "gemm_compile", NULL};
    static const char *const rates[] = {
        "device", "upload",  "download",  "pinned up", "pinned down", "add",
        "exp",    "softmax", "transpose", "gemm",      NULL};
    static const char *const curves[] = {"upload",        "download",
                                         "upload_pinned", "download_pinned",
                                         "elementwise",   "transcendental",
                                         "softmax",       "strided",
                                         "gemm",          NULL};

    print_devices(results, costs, costs + 1, cell_scalar);
    print_devices(results, rates, curves, cell_rate);
    print_crossovers(results);
    print_paths(results);
}
