/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits - trains a perceptron on handwritten digits through libtandem and
 * shows where its operators ran.  One thread.
 */
#include "compare.h"
#include "network.h"
#include "table.h"
#include "tally.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The file that is read without --data. Tandem's build defines its path. */
#ifndef DIGITS_DATA
#define DIGITS_DATA "digits.csv"
#endif

enum { EXIT_INACCURATE = 1, EXIT_USAGE = 2, EXIT_ERROR = 3, MAX_SEEDS = 16 };

#define MAX_BATCH (1u << 20)
#define MAX_EPOCHS 100000u

static const double least_accuracy = 0.96;

struct options {
    const char *data, *device, *report;
    uint32_t batch, epochs, seed_count;
    bool compare;
    uint64_t seeds[MAX_SEEDS];
};

/* Results of the trainings. */
struct results {
    FILE *report;
    double accuracy; /* the lowest */
    struct tally runs;
    bool only_cpu; /* the CPU ran every operator */
    struct epoch_times times;
};

static void usage_print(void)
{
    printf(
        "Usage: digits [OPTION]...\n"
        "Trains a perceptron of 64-256-128-10 units on handwritten digits and"
        " prints the\naccuracy on the fifth of the images that was held out,"
        " and which device ran what.\n\n"
        "  --batch N       images a batch (64); more than there are repeats"
        " them\n"
        "  --epochs N      epochs for each seed (30)\n"
        "  --seeds A,B,C   a training for each seed (1,2,3)\n"
        "  --device NAME   run everything on cpu, opencl, opencl:1, ...\n"
        "  --data FILE     the table of digits (%s)\n"
        "  --no-compare    leave out the comparison with one device alone\n"
        "  --report FILE   write the results to FILE, and print a summary\n"
        "  -h, --help      this text\n"
        "  -V, --version   the version\n\n"
        "Exit status: 0, every accuracy is %.2f or more; %d, one is not;"
        " %d, a bad option\nor table; %d, Tandem failed.\n",
        DIGITS_DATA, least_accuracy, EXIT_INACCURATE, EXIT_USAGE, EXIT_ERROR);
}

/* A whole number from 1 to most, up to end or a comma. */
static bool number_parse(const char **text, uint64_t most, uint64_t *out)
{
    char *end;

    errno = 0;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoull(*text, &end, 10);
    *text = *end == ',' ? end + 1 : end;
    return errno == 0 && *out >= 1 && *out <= most &&
           (*end == '\0' || *end == ',');
}

static bool count_parse(const char *text, uint32_t most, uint32_t *out)
{
    uint64_t value;

    if (strchr(text, ',') != NULL || !number_parse(&text, most, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool seeds_parse(const char *text, struct options *options)
{
    options->seed_count = 0;
    do {
        if (options->seed_count == MAX_SEEDS ||
            !number_parse(&text, UINT64_MAX,
                          &options->seeds[options->seed_count++]))
            return false;
    } while (*text != '\0');
    return true;
}

static bool option_parse(int option, struct options *options)
{
    switch (option) {
    case 'b':
        return count_parse(optarg, MAX_BATCH, &options->batch);
    case 'e':
        return count_parse(optarg, MAX_EPOCHS, &options->epochs);
    case 's':
        return seeds_parse(optarg, options);
    case 'd':
        options->device = optarg;
        return true;
    case 'f':
        options->data = optarg;
        return true;
    case 'r':
        options->report = optarg;
        return true;
    case 'n':
        options->compare = false;
        return true;
    default:
        return false;
    }
}

/* Prints what is wrong with an option's value. */
static void value_complain(int option, const char *name)
{
    fprintf(stderr, "digits: '%s' is no value for --%s: ", optarg, name);
    if (option == 'b')
        fprintf(stderr, "a whole number from 1 to %u\n", MAX_BATCH);
    else if (option == 'e')
        fprintf(stderr, "a whole number from 1 to %u\n", MAX_EPOCHS);
    else
        fprintf(stderr, "1 to %d whole numbers with commas, none of them 0\n",
                MAX_SEEDS);
}

/* Returns true if the last option that getopt_long read is not an abbreviation
 * of the long option `name`.  Otherwise prints a message. */
static bool is_full_name(const char *name, char **argv)
{
    const char *word = argv[optind - 1];

    if (optarg == word)
        word = argv[optind - 2];
    if (strcspn(word + 2, "=") == strlen(name))
        return true;
    fprintf(stderr, "digits: there is no option '%s'; did you mean '--%s'?\n",
            word, name);
    return false;
}

/* 0: go on; else the exit status plus one. */
static int options_parse(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        {"batch", required_argument, NULL, 'b'},
        {"epochs", required_argument, NULL, 'e'},
        {"seeds", required_argument, NULL, 's'},
        {"device", required_argument, NULL, 'd'},
        {"data", required_argument, NULL, 'f'},
        {"no-compare", no_argument, NULL, 'n'},
        {"report", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option, index;

    /* getopt_long prints this name in its messages. */
    argv[0] = (char *)"digits";
    for (;;) {
        index = -1; /* getopt_long sets it for long options only */
        option = getopt_long(argc, argv, "hV", table, &index);
        if (option == -1)
            break;
        if (option != '?' && index >= 0 &&
            !is_full_name(table[index].name, argv))
            option = '?';
        if (option == 'h') {
            usage_print();
            return 1 + EXIT_SUCCESS;
        }
        if (option == 'V') {
            printf("digits (Tandem) %s\n", tandem_version());
            return 1 + EXIT_SUCCESS;
        }
        if (option_parse(option, options))
            continue;
        if (option != '?')
            value_complain(option, table[index].name);
        fprintf(stderr, "Try 'digits --help'.\n");
        return 1 + EXIT_USAGE;
    }
    if (optind == argc)
        return 0;
    fprintf(stderr, "digits: '%s' is no option\nTry 'digits --help'.\n",
            argv[optind]);
    return 1 + EXIT_USAGE;
}

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool succeeded(const char *what, enum tandem_status status)
{
    if (status != TANDEM_OK)
        fprintf(stderr, "digits: %s: %s: %s\n", what,
                tandem_status_name(status), tandem_last_error());
    return status == TANDEM_OK;
}

static void message_print(void *user, enum tandem_log_level level,
                          const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "digits: %s\n", message);
}

static struct tandem_context *context_open(const struct options *options)
{
    const struct tandem_context_options settings = {.struct_size =
                                                        sizeof(settings),
                                                    .device = options->device,
                                                    .log = message_print};
    struct tandem_context *context;
    uint32_t count;

    if (!succeeded("the context", tandem_context_create(&settings, &context)))
        return NULL;
    if (succeeded("the devices", tandem_device_count(context, &count)))
        return context;
    tandem_context_destroy(context);
    return NULL;
}

static void devices_print(FILE *report, struct tandem_context *context)
{
    uint32_t count = 0;

    tandem_device_count(context, &count);
    fprintf(report, "Devices\n");
    for (uint32_t i = 0; i < count; i++) {
        struct tandem_device_info info = {.struct_size = sizeof(info)};
        const char *backend = "?", *path = NULL;
        uint32_t index = 0, calibrated = 0;

        tandem_device_name(context, i, &backend, &index);
        tandem_device_describe(context, i, &info);
        tandem_device_is_calibrated(context, i, &calibrated);
        tandem_device_profile_path(context, i, &path);
        fprintf(report, "  %s:%u  %s, %s%s\n", backend, index, info.name,
                calibrated ? "costs from " : "all costs are guessed",
                calibrated ? path : " (cl-probe --calibrate --quick)");
    }
    for (uint32_t i = 0; tandem_context_load_error(context, i) != NULL; i++)
        fprintf(report, "  not used: %s\n",
                tandem_context_load_error(context, i));
}

/* One training; the network is the caller's to destroy. */
static bool seed_train(FILE *report, struct tandem_context *context,
                       const struct options *options, const struct table *train,
                       const struct table *held, uint64_t seed,
                       struct network **out_network, double *out_accuracy)
{
    double start = now_seconds();
    float loss = 0.0f;

    if (!succeeded("the network",
                   network_create(context, train, held, options->batch,
                                  options->epochs, seed, out_network)))
        return false;
    for (uint32_t epoch = 0; epoch < options->epochs; epoch++)
        if (!succeeded("training", network_train(*out_network, &loss)))
            return false;
    if (!succeeded("the held-out images",
                   network_accuracy(*out_network, out_accuracy)))
        return false;
    fprintf(report,
            "  seed %llu: loss %.5f, accuracy %.4f (%u of %u), %.2f s\n",
            (unsigned long long)seed, (double)loss, *out_accuracy,
            (unsigned)(*out_accuracy * held->count + 0.5), held->count,
            now_seconds() - start);
    fflush(report);
    return true;
}

static bool epoch_measure(struct tandem_context *context,
                          struct network *network, struct tally *timed)
{
    float loss;
    double accuracy;

    memset(timed, 0, sizeof(*timed));
    tandem_context_set_observer(context, tally_observe, timed);
    return succeeded("measuring", tandem_context_set_timing(context, 1)) &&
           succeeded("measuring", network_train(network, &loss)) &&
           succeeded("measuring", network_accuracy(network, &accuracy)) &&
           succeeded("measuring", tandem_context_set_timing(context, 0));
}

/* Splits by seed, trains, and keeps the lowest accuracy. */
static bool seed_run(struct tandem_context *context,
                     const struct options *options, const struct table *table,
                     uint64_t seed, struct tally *timed,
                     struct results *results)
{
    struct table train, held;
    struct network *network = NULL;
    double accuracy = 0.0;
    bool done = table_split(table, seed, &train, &held) &&
                seed_train(results->report, context, options, &train, &held,
                           seed, &network, &accuracy);

    if (done && timed != NULL)
        done = epoch_measure(context, network, timed);
    if (accuracy < results->accuracy)
        results->accuracy = accuracy;
    network_destroy(network);
    table_clear(&train);
    table_clear(&held);
    return done;
}

static bool seeds_run(struct tandem_context *context,
                      const struct options *options, const struct table *table,
                      struct results *results)
{
    FILE *report = results->report;
    struct tally timed;

    results->accuracy = 1.0;
    fprintf(
        report, "Training: %u epochs of %u batches of %u\n", options->epochs,
        network_batches(table->count - (table->count + 2) / 5, options->batch),
        options->batch);
    tandem_context_set_observer(context, tally_observe, &results->runs);
    for (uint32_t i = 0; i < options->seed_count; i++)
        if (!seed_run(context, options, table, options->seeds[i],
                      i + 1 == options->seed_count ? &timed : NULL, results))
            return false;
    tandem_context_set_observer(context, NULL, NULL);
    fprintf(report,
            "Placement: where the operators ran in all trainings, and in one"
            " more epoch, in which\neach operator is waited for and timed."
            " Times are means in us\n");
    tally_print(report, context, &results->runs, &timed);
    results->only_cpu = tally_has_only(context, &results->runs, "cpu");
    return true;
}

static bool comparison_run(const struct options *options,
                           const struct table *table, struct results *results)
{
    struct table train, held;
    bool done;

    if (options->device != NULL || !options->compare)
        return true;
    done = table_split(table, options->seeds[0], &train, &held) &&
           compare_print(results->report, &train, &held, options->batch,
                         options->seeds[0], &results->times);
    table_clear(&train);
    table_clear(&held);
    return done;
}

/* Prints the first part of the summary. */
static void training_summary_print(struct tandem_context *context,
                                   const struct results *results)
{
    printf(
        "Accuracy    %.1f %% or more of the images that were held out, in each"
        " training%s\n",
        100.0 * results->accuracy,
        results->accuracy >= least_accuracy ? "" : ": FAILED");
    tally_summary_print(context, &results->runs);
}

/* Trains, compares and prints.  Returns the exit status. */
static int table_run(const struct options *options, const struct table *table,
                     struct results *results)
{
    struct tandem_context *context = context_open(options);
    bool done = context != NULL, passed;

    if (done) {
        devices_print(results->report, context);
        done = seeds_run(context, options, table, results);
    }
    if (done && options->report != NULL)
        training_summary_print(context, results);
    tandem_context_destroy(context);
    done = done && comparison_run(options, table, results);
    if (!done)
        return EXIT_ERROR;
    passed = results->accuracy >= least_accuracy;
    fprintf(results->report, "Accuracy: at least %.4f, %.2f asked: %s\n",
            results->accuracy, least_accuracy, passed ? "passed" : "FAILED");
    if (options->report != NULL)
        epoch_times_print(&results->times, results->only_cpu);
    return passed ? EXIT_SUCCESS : EXIT_INACCURATE;
}

/* Returns false, with errno set or 0, if something could not be written. */
static bool report_close(FILE *report)
{
    const bool lost = ferror(report);

    errno = 0;
    return fclose(report) == 0 && !lost;
}

static int run(int argc, char **argv)
{
    struct options options = {.data = DIGITS_DATA,
                              .batch = 64,
                              .epochs = 30,
                              .seed_count = 3,
                              .compare = true,
                              .seeds = {1, 2, 3}};
    struct results results = {.report = stdout};
    int status = options_parse(argc, argv, &options);
    struct table table;

    if (status != 0)
        return status - 1;
    if (!table_read(options.data, &table))
        return EXIT_USAGE;
    if (options.report != NULL)
        results.report = fopen(options.report, "we");
    if (results.report == NULL)
        fprintf(stderr, "digits: %s: %s\n", options.report, strerror(errno));
    status = results.report != NULL ? table_run(&options, &table, &results)
                                    : EXIT_ERROR;
    table_clear(&table);
    if (options.report == NULL || results.report == NULL)
        return status;
    if (report_close(results.report))
        return status;
    fprintf(stderr, "digits: %s: %s\n", options.report,
            errno != 0 ? strerror(errno) : "some of it is lost");
    return EXIT_ERROR;
}

int main(int argc, char **argv)
{
    int status;

    /* Else a driver's file would take its number, and what is printed. */
    if (fcntl(STDOUT_FILENO, F_GETFD) < 0 &&
        freopen("/dev/null", "r", stdout) == NULL)
        return EXIT_ERROR;
    status = run(argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "digits: standard output: %s\n",
            errno != 0 ? strerror(errno) : "some of it is lost");
    return status != EXIT_SUCCESS ? status : EXIT_ERROR;
}
