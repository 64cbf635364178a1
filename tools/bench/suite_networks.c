/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "networks": forward passes of published networks, with inputs, weights
 * and results on the device, and without a wait between operators.  A row's
 * shape is that of the network's input (network_models.h).  Words of the
 * detail: pastP, P earlier tokens whose keys and values are given; tiny, few
 * and narrow layers.
 *
 * The output is checked once before it is timed: against plain C with float64
 * if the network has few operations, else against the CPU plugin, or a GPU if
 * the CPU plugin itself is measured.  If there is neither, the output only has
 * to be finite.
 */
#include <config.h>

#include "bench.h"
#include "network_models.h"
#include "network_reference.h"
#include "network_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Plain C takes about 5 s for this number of operations. */
#define MAX_REFERENCE_OPERATIONS 7e8

static const struct {
    const char *op, *shape, *detail;
    enum scale scale; /* the smallest scale that has the row */
} network_rows[] = {
    {"resnet50", "2x3x32x32", "tiny", SCALE_TINY},
    {"resnet50", "1x3x224x224", "", SCALE_SMALL},
    {"resnet50", "32x3x224x224", "", SCALE_FULL},
    {"mobilenet_v2", "2x3x32x32", "tiny", SCALE_TINY},
    {"mobilenet_v2", "1x3x224x224", "", SCALE_SMALL},
    {"mobilenet_v2", "32x3x224x224", "", SCALE_FULL},
    {"mobilenet_v3", "2x3x32x32", "tiny", SCALE_TINY},
    {"mobilenet_v3", "1x3x224x224", "", SCALE_SMALL},
    {"mobilenet_v3", "32x3x224x224", "", SCALE_FULL},
    {"yolov8n", "1x3x64x64", "tiny", SCALE_TINY},
    {"yolov8n", "1x3x640x640", "", SCALE_SMALL},
    {"bert", "2x9", "tiny", SCALE_TINY},
    {"bert", "1x128", "", SCALE_SMALL},
    {"bert", "8x128", "", SCALE_FULL},
    {"bert", "1x384", "", SCALE_SMALL},
    {"gpt2", "1x1", "past5 tiny", SCALE_TINY},
    {"gpt2", "2x7", "tiny", SCALE_TINY},
    {"gpt2", "1x1", "past64", SCALE_SMALL},
    {"gpt2", "1x1", "past512", SCALE_SMALL},
    {"gpt2", "1x128", "", SCALE_SMALL},
    {"whisper_encoder", "1x80x24", "tiny", SCALE_TINY},
    {"whisper_encoder", "1x80x3000", "", SCALE_SMALL},
    {"whisper_decoder", "1x1", "past5 tiny", SCALE_TINY},
    {"whisper_decoder", "1x1", "past64", SCALE_SMALL},
};

void networks_list(struct list *list)
{
    for (size_t i = 0; i < COUNT(network_rows); i++)
        if (network_rows[i].scale <= list->scale)
            list_add(list, network_rows[i].op, network_rows[i].shape,
                     network_rows[i].detail, "stream");
        else
            list->skipped_rows++;
}

/* Returns the network of a row, or NULL if memory is exhausted. */
static struct network *row_network(const struct row *row)
{
    struct network *network = network_create();
    const bool tiny = row_has(row, "tiny");
    int past = 0;

    if (network == NULL)
        return NULL;
    sscanf(row->detail, "past%d", &past);
    if (strcmp(row->op, "resnet50") == 0)
        resnet50_build(network, row->shape, tiny);
    else if (strcmp(row->op, "mobilenet_v2") == 0)
        mobilenet_v2_build(network, row->shape, tiny);
    else if (strcmp(row->op, "mobilenet_v3") == 0)
        mobilenet_v3_build(network, row->shape, tiny);
    else if (strcmp(row->op, "yolov8n") == 0)
        yolov8n_build(network, row->shape, tiny);
    else if (strcmp(row->op, "bert") == 0)
        bert_build(network, row->shape, tiny);
    else if (strcmp(row->op, "gpt2") == 0)
        gpt2_build(network, row->shape, past, tiny);
    else if (strcmp(row->op, "whisper_encoder") == 0)
        whisper_encoder_build(network, row->shape, tiny);
    else
        whisper_decoder_build(network, row->shape, past, tiny);
    if (!network->failed)
        return network;
    network_destroy(network);
    return NULL;
}

/* ---- the check ---- */

/* Finds another device whose output is the expected one: that of the CPU
 * plugin, or a GPU. */
static bool find_other_device(const struct bench *bench,
                              struct tandem_context *context, uint32_t *out)
{
    uint32_t count = 0;

    tandem_device_count(context, &count);
    for (*out = 0; *out < count; ++*out) {
        struct tandem_device_info info = {.struct_size = sizeof info};
        const char *backend;
        uint32_t index;

        if (*out != bench->device &&
            tandem_device_name(context, *out, &backend, &index) == TANDEM_OK &&
            tandem_device_describe(context, *out, &info) == TANDEM_OK &&
            (strcmp(backend, "cpu") == 0 || info.kind == TANDEM_DEVICE_GPU))
            return true;
    }
    return false;
}

/* Sets `out` to the output of the network on another device. */
static bool device_output(const struct network *network,
                          struct tandem_context *context, uint32_t device,
                          double *out)
{
    const int64_t elements = value_elements(&network->output);
    struct network_run *run = malloc(sizeof *run);
    float *output = malloc((size_t)elements * sizeof *output);
    bool ok = false;

    if (run != NULL && output != NULL) {
        ok = network_run_open(run, network, context, device) == TANDEM_OK &&
             network_run_output(run, output) == TANDEM_OK;
        for (int64_t i = 0; i < elements && ok; i++)
            out[i] = (double)output[i];
        network_run_close(run);
    }
    free(run);
    free(output);
    return ok;
}

/* Compares an output with the expected one, which is NULL if it is not known.
 * If they differ, fails the row and returns false. */
static bool outputs_agree(struct bench *bench, const struct network *network,
                          const double *expected, const float *actual)
{
    const int64_t elements = value_elements(&network->output);
    const double bound = network_error_bound(network);
    double largest = 0, difference = 0;

    for (int64_t i = 0; i < elements; i++) {
        if (!isfinite(actual[i])) {
            bench_fail(bench, "wrong: element %lld is %g", (long long)i,
                       (double)actual[i]);
            return false;
        }
        if (expected == NULL)
            continue;
        largest = fmax(largest, fabs(expected[i]));
        difference = fmax(difference, fabs((double)actual[i] - expected[i]));
    }
    if (expected == NULL || difference <= bound * largest)
        return true;
    bench_fail(bench,
               "wrong: the largest difference is %.2g of the largest magnitude "
               "%g; expected at most %.2g",
               difference / largest, largest, bound);
    return false;
}

/* The sources of the expected output. */
enum expectation { EXPECTATION_FAILED, EXPECTATION_NONE, EXPECTATION_KNOWN };

static enum expectation expected_output(const struct bench *bench,
                                        const struct network_run *run,
                                        double *out)
{
    uint32_t other;
    bool ok;

    if (run->network->operations <= MAX_REFERENCE_OPERATIONS)
        ok = network_reference(run->network, out);
    else if (find_other_device(bench, run->context, &other))
        ok = device_output(run->network, run->context, other, out);
    else
        return EXPECTATION_NONE;
    return ok ? EXPECTATION_KNOWN : EXPECTATION_FAILED;
}

/* Runs the network once and checks its output.  If it is wrong, fails the row
 * and returns false. */
static bool output_check(struct bench *bench, struct network_run *run)
{
    const size_t elements = (size_t)value_elements(&run->network->output);
    double *expected = malloc(elements * sizeof *expected);
    float *actual = malloc(elements * sizeof *actual);
    enum expectation expectation = EXPECTATION_FAILED;
    bool ok = false;

    if (expected != NULL && actual != NULL)
        expectation = expected_output(bench, run, expected);
    if (expectation == EXPECTATION_FAILED)
        bench_fail(bench, "there is no expected output: %s",
                   tandem_last_error());
    else if (network_run_output(run, actual) != TANDEM_OK)
        bench_fail(bench, "%s", tandem_last_error());
    else
        ok = outputs_agree(bench, run->network,
                           expectation == EXPECTATION_KNOWN ? expected : NULL,
                           actual);
    free(expected);
    free(actual);
    return ok;
}

/* ---- the measurement ---- */

static void measure(struct bench *bench, const struct network *network,
                    struct tandem_context *context)
{
    struct comparison comparison = {.unit = "ns"};
    struct network_run *run = malloc(sizeof *run);

    if (run == NULL) {
        bench_fail(bench, "out of host memory");
    } else if (network_run_open(run, network, context, bench->device) !=
               TANDEM_OK) {
        bench_fail(bench, "%s", tandem_last_error());
    } else if (output_check(bench, run)) {
        comparison_add(&comparison, "Tandem", network_run_stream, run);
        bench_compare(bench, &comparison);
    }
    if (run != NULL)
        network_run_close(run);
    free(run);
}

/* Creates a context with the options of the command line.  Unlike
 * bench->context, its devices may keep packed copies of the weights, as in
 * other programs. */
static enum tandem_status context_create(const struct bench *bench,
                                         struct tandem_context **out)
{
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .open_keys = bench->open_options.keys,
        .open_values = bench->open_options.values,
        .open_count = bench->open_options.count};

    return tandem_context_create(&options, out);
}

void networks_run(struct bench *bench)
{
    struct network *network = row_network(bench->row);
    struct tandem_context *context = NULL;

    if (network == NULL)
        bench_fail(bench, "no memory for its description");
    else if (context_create(bench, &context) != TANDEM_OK)
        bench_fail(bench, "%s", tandem_last_error());
    else
        measure(bench, network, context);
    tandem_context_destroy(context);
    network_destroy(network);
}
