/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential: makes random calls of all operators on several plugins and
 * compares the results with each other and with a reference in float64. The
 * last line is "N cases, M failures, K refused".
 */
#include "config.h"

#include "result_check.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum exit_code {
    EXIT_PASSED = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOTHING_COMPUTED = 4,
    EXIT_SKIPPED = 77
};

#define BACKENDS 8u
/* Timeout of a case, generous because some compilers are slow. */
#define CASE_SECONDS 600u
#define REPORTS 20u

struct options {
    uint64_t seed, first, cases;
    uint64_t block_cases; /* Consecutive cases that use the same operators and
                             dtypes. */
    const struct op_row *only;
    bool verbose;
    struct backend_options open;
};

struct run {
    struct options options;
    struct backend backends[BACKENDS];
    uint32_t count;
    uint64_t done, failures, refused;
    uint64_t valid;    /* Cases whose call is valid and must be supported. */
    uint64_t computed; /* Cases that at least one plugin computed. */
    bool terminal;
};

static volatile sig_atomic_t watched_high, watched_low;

static void usage_print(FILE *file)
{
    fprintf(file,
            "Usage: differential [OPTION]... PLUGIN.so...\n"
            "Makes random calls, valid and invalid, of every operator on "
            "device 0 of each\nplugin; statuses must be what the header says "
            "and numbers what float64 gives.\n\n"
            "      --seed NUMBER       of all cases, 1 where not given\n"
            "      --cases NUMBER      how many, 1000 where not given\n"
            "      --first NUMBER      the first one's number, 0 where not "
            "given: a case\n"
            "                          depends on the seed, its number and "
            "--block alone\n"
            "      --block CASES       how many cases in a row share their few "
            "operators\n"
            "                          and dtypes, %u where not given\n"
            "      --op NAME           this operator alone\n"
            "      --open-option KEY=VALUE\n"
            "                          passed to open; may be repeated\n"
            "  -v, --verbose           one line for each case\n"
            "  -h, --help              this text\n"
            "  -V, --version           the version\n\n"
            "Exit status: 0 no case failed, 1 some did, 2 usage, 4 there were "
            "valid calls and\nthe plugins computed none of them, 77 there is "
            "no such device.\n",
            DEFAULT_BLOCK_CASES);
}

static bool number_parse(const char *text, uint64_t *out_number)
{
    char *end;

    errno = 0;
    *out_number = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

static bool pair_add(struct backend_options *open, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text || open->count == BACKEND_OPTIONS)
        return false;
    *equals = '\0';
    open->keys[open->count] = text;
    open->values[open->count++] = equals + 1;
    return true;
}

static const struct option long_options[] = {
    {"seed", required_argument, NULL, 's'},
    {"cases", required_argument, NULL, 'n'},
    {"first", required_argument, NULL, 'f'},
    {"block", required_argument, NULL, 'b'},
    {"op", required_argument, NULL, 'p'},
    {"open-option", required_argument, NULL, 'o'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static bool option_take(struct options *options, int option)
{
    switch (option) {
    case 's':
        return number_parse(optarg, &options->seed);
    case 'n':
        return number_parse(optarg, &options->cases) && options->cases > 0;
    case 'f':
        return number_parse(optarg, &options->first);
    case 'b':
        return number_parse(optarg, &options->block_cases) &&
               options->block_cases > 0;
    case 'p':
        options->only = op_find_name(optarg);
        return options->only != NULL;
    case 'o':
        return pair_add(&options->open, optarg);
    case 'v':
        options->verbose = true;
        return true;
    default:
        return false;
    }
}

/* Ends the program if an option is invalid. */
static void options_parse(int argc, char **argv, struct options *options)
{
    int option;

    *options = (struct options){
        .seed = 1, .cases = 1000, .block_cases = DEFAULT_BLOCK_CASES};
    while ((option = getopt_long(argc, argv, "vhV", long_options, NULL)) !=
           -1) {
        if (option == 'h') {
            usage_print(stdout);
            exit(EXIT_PASSED);
        }
        if (option == 'V') {
            printf("differential %s\n", PACKAGE_VERSION);
            exit(EXIT_PASSED);
        }
        if (!option_take(options, option)) {
            if (option != '?')
                fprintf(stderr, "differential: bad value: %s\n", optarg);
            usage_print(stderr);
            exit(EXIT_USAGE);
        }
    }
    if (optind == argc || argc - optind > (int)BACKENDS) {
        usage_print(stderr);
        exit(EXIT_USAGE);
    }
}

static void text_write(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written;
}

/*
 * Reports in which case a plugin crashed or hung. Uses only async-signal-safe
 * functions.
 */
static void crash_report(int number)
{
    uint64_t at = (uint64_t)(uint32_t)watched_high << 32 |
                  (uint64_t)(uint32_t)watched_low;
    char digits[24];
    uint32_t used = sizeof(digits) - 1u;

    digits[used] = '\0';
    do
        digits[--used] = (char)('0' + at % 10u);
    while ((at /= 10u) != 0);
    text_write(number == SIGALRM ? "\ndifferential: hangs in case "
                                 : "\ndifferential: crashed in case ");
    text_write(digits + used);
    text_write("\n");
    if (number == SIGALRM)
        _exit(EXIT_FAILED);
    signal(number, SIG_DFL);
    raise(number);
}

static void signals_watch(void)
{
    static const int numbers[] = {SIGALRM, SIGSEGV, SIGABRT,
                                  SIGFPE,  SIGBUS,  SIGILL};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        signal(numbers[i], crash_report);
}

static void progress_show(const struct run *run)
{
    if (run->terminal && run->done % 64u == 0)
        fprintf(stderr,
                "\r\033[K%" PRIu64 " of %" PRIu64 ", %" PRIu64 " failed",
                run->done, run->options.cases, run->failures);
}

static void failure_print(const struct run *run, const struct problem *problem,
                          const char *path, const char *text)
{
    char call[2000];

    if (run->failures >= REPORTS)
        return;
    if (run->terminal)
        fputs("\r\033[K", stderr);
    problem_text(problem, call, sizeof(call));
    printf("FAILED case %" PRIu64 ": %s\n  %s: %s\n  again: --seed=%" PRIu64
           " --first=%" PRIu64 " --block=%" PRIu64 " --cases=1%s%s\n",
           problem->number, call, path, text, run->options.seed,
           problem->number, run->options.block_cases,
           run->options.only != NULL ? " --op=" : "",
           run->options.only != NULL ? run->options.only->name : "");
}

/* Returns true if all plugins return the same status. */
static bool statuses_agree(const struct run *run, const struct problem *problem,
                           const struct call_outcome *attempts, char *text,
                           size_t size)
{
    for (uint32_t i = 1; i < run->count; i++) {
        uint32_t caps = run->backends[0].info.caps & run->backends[i].info.caps;

        if (attempts[i].launch == attempts[0].launch ||
            (problem->expected_status == EXPECT_OK_IF_SUPPORTED &&
             !(caps & TANDEM_CAP_CORE_OPERATORS)))
            continue;
        snprintf(text, size, "launch: %s here, %s on %s",
                 status_name(attempts[0].launch),
                 status_name(attempts[i].launch), run->backends[i].path);
        return false;
    }
    return true;
}

static bool check_problem(const struct run *run, const struct problem *problem,
                          const struct call_outcome *attempts)
{
    struct checker checker;
    char text[500] = "";
    uint32_t at;

    checker_init(&checker, problem);
    for (at = 0; at < run->count; at++) {
        check_outcome(&checker, &attempts[at], run->backends[at].info.caps,
                      text, sizeof(text));
        if (text[0] != '\0')
            break;
    }
    checker_finish(&checker);
    if (text[0] == '\0') {
        at = 0;
        statuses_agree(run, problem, attempts, text, sizeof(text));
    }
    if (text[0] == '\0')
        return true;
    failure_print(run, problem, run->backends[at].path, text);
    return false;
}

static void verbose_print(const struct problem *problem,
                          const struct call_outcome *call_outcome)
{
    char call[2000];

    problem_text(problem, call, sizeof(call));
    printf("case %" PRIu64 ": %s: %s\n", problem->number,
           status_name(call_outcome->launch), call);
}

static void case_run(struct run *run, uint64_t number)
{
    struct problem problem;
    struct call_outcome attempts[BACKENDS];

    watched_high = (sig_atomic_t)(number >> 32);
    watched_low = (sig_atomic_t)(number & UINT32_MAX);
    alarm(CASE_SECONDS);
    problem_make(&problem, run->options.seed, number,
                 number / run->options.block_cases, run->options.only);
    for (uint32_t i = 0; i < run->count; i++)
        call_outcome_run(&attempts[i], &run->backends[i], &problem);
    if (!check_problem(run, &problem, attempts))
        run->failures++;
    if (attempts[0].launch != TANDEM_OK)
        run->refused++;
    run->valid += problem.expected_status == EXPECT_OK_IF_SUPPORTED;
    for (uint32_t i = 0; i < run->count; i++) {
        if (attempts[i].launch == TANDEM_OK) {
            run->computed++;
            break;
        }
    }
    if (run->options.verbose)
        verbose_print(&problem, &attempts[0]);
    run->done++;
    for (uint32_t i = 0; i < run->count; i++)
        call_outcome_finish(&attempts[i]);
    problem_finish(&problem);
    alarm(0);
}

/* Returns EXIT_PASSED if all plugins are open. */
static enum exit_code backends_open(struct run *run, char **paths)
{
    for (; *paths != NULL; paths++) {
        struct backend *backend = &run->backends[run->count];

        switch (backend_open(backend, *paths, &run->options.open)) {
        case BACKEND_OPEN:
            run->count++;
            printf("%s: %s (%s)\n", *paths, backend->info.name,
                   backend->info.driver_version);
            break;
        case BACKEND_NO_DEVICE:
            return EXIT_SKIPPED;
        default:
            return EXIT_USAGE;
        }
    }
    return EXIT_PASSED;
}

/* Returns the exit status of the run.  A run of invalid calls alone is a test
 * of the statuses, as when one of them is repeated. */
static enum exit_code result_code(const struct run *run)
{
    if (run->failures > 0)
        return EXIT_FAILED;
    if (run->valid == 0 || run->computed > 0)
        return EXIT_PASSED;
    fprintf(stderr,
            "differential: nothing was computed: the plugins declined all "
            "%" PRIu64 " valid calls\n",
            run->valid);
    return EXIT_NOTHING_COMPUTED;
}

int main(int argc, char **argv)
{
    static struct run run;
    enum exit_code code;

    /* Line buffering, so that the output is complete if a plugin crashes. */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    options_parse(argc, argv, &run.options);
    run.terminal = isatty(STDERR_FILENO) != 0;
    code = backends_open(&run, argv + optind);
    if (code == EXIT_PASSED) {
        signals_watch();
        for (uint64_t i = 0; i < run.options.cases; i++) {
            progress_show(&run);
            case_run(&run, run.options.first + i);
        }
        if (run.terminal)
            fputs("\r\033[K", stderr);
        printf("seed %" PRIu64 ", from %" PRIu64 "\n%" PRIu64 " cases, %" PRIu64
               " failures, %" PRIu64 " refused\n",
               run.options.seed, run.options.first, run.done, run.failures,
               run.refused);
        code = result_code(&run);
    }
    for (uint32_t i = 0; i < run.count; i++)
        backend_close(&run.backends[i]);
    if (fflush(stdout) != 0 || ferror(stdout))
        return EXIT_FAILED;
    return (int)code;
}
