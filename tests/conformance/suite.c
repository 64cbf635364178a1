/* SPDX-License-Identifier: Apache-2.0 */
/* Selects, counts and reports test cases; see suite.h. */
#include "workers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPORTS_PER_CASE 4u
/* Failed random calls that are reported; there may be thousands. */
#define REPORTED_RANDOM_CALLS 20u
/* Timeout of a case, generous because some compilers are slow. */
#define CASE_SECONDS 900u

bool group_selected(const struct suite *suite, const char *group)
{
    const char *only = suite->options->only;

    return only == NULL || strcmp(only, group) == 0;
}

void suite_show_progress(struct suite *suite)
{
    const uint64_t done = suite->passed + suite->failed + suite->skipped;
    char step[64] = "";

    if (!suite->progress.terminal || suite->cases == 0)
        return;
    if (suite->failed != 0)
        snprintf(step, sizeof(step), "%llu failed, ",
                 (unsigned long long)suite->failed);
    snprintf(step + strlen(step), sizeof(step) - strlen(step), "%s",
             suite->group);
    progress_show(&suite->progress, (double)done / (double)suite->cases, step);
}

static bool name_excluded(const struct suite *suite)
{
    const struct suite_options *options = suite->options;
    for (uint32_t i = 0; i < options->excluded_count; i++)
        if (strstr(suite->name, options->excluded[i]) != NULL)
            return true;
    return false;
}

bool case_begin(struct suite *suite, const char *group, const char *format, ...)
{
    va_list arguments;

    if (!group_selected(suite, group))
        return false;
    snprintf(suite->group, sizeof(suite->group), "%s", group);
    va_start(arguments, format);
    vsnprintf(suite->name, sizeof(suite->name), format, arguments);
    va_end(arguments);
    if ((suite->options->filter != NULL &&
         strstr(suite->name, suite->options->filter) == NULL) ||
        name_excluded(suite))
        return false;
    if (suite->counts_only || suite->options->list) {
        suite->listed++;
        if (!suite->counts_only)
            printf("%s: %s\n", suite->group, suite->name);
        return false;
    }
    if (suite->worker != NULL && !worker_claims_case(suite))
        return false;
    suite->case_failed = false;
    suite->case_skipped = false;
    suite->reports = 0;
    suite->note[0] = '\0';
    random_seed(&suite->random, suite->options->seed, suite->name);
    suite_show_progress(suite);
    alarm(CASE_SECONDS);
    return true;
}

static void json_string(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void json_case(const struct suite *suite, const char *result)
{
    printf("{\"group\": ");
    json_string(suite->group);
    printf(", \"case\": ");
    json_string(suite->name);
    printf(", \"result\": \"%s\"", result);
    if (suite->note[0] != '\0') {
        printf(", \"note\": ");
        json_string(suite->note);
    }
    printf("}\n");
}

void case_end(struct suite *suite)
{
    const char *result = "passed";

    alarm(0);
    if (suite->case_failed) {
        suite->failed++;
        result = "failed";
    } else if (suite->case_skipped) {
        suite->skipped++;
        result = "skipped";
    } else {
        suite->passed++;
    }
    if (suite->options->json) {
        json_case(suite, result);
    } else if (suite->options->verbose) {
        progress_end(&suite->progress);
        printf("%s: %s: %s%s%s\n", result, suite->group, suite->name,
               suite->note[0] != '\0' && !suite->case_failed ? ": " : "",
               suite->case_failed ? "" : suite->note);
    }
    if (suite->worker != NULL)
        worker_report_case(suite, result);
}

void case_skip(struct suite *suite, const char *format, ...)
{
    va_list arguments;

    suite->case_skipped = true;
    if (suite->note[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(suite->note, sizeof(suite->note), format, arguments);
    va_end(arguments);
}

void case_note(struct suite *suite, const char *format, ...)
{
    va_list arguments;

    if (suite->note[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(suite->note, sizeof(suite->note), format, arguments);
    va_end(arguments);
}

bool suite_prints_case(const struct suite *suite)
{
    return suite->options->random_calls == 0 ||
           suite->failed < REPORTED_RANDOM_CALLS;
}

bool case_prints_failures(const struct suite *suite)
{
    return suite->reports < REPORTS_PER_CASE && suite_prints_case(suite);
}

static void reproduce_print(const struct suite *suite)
{
    const struct suite_options *options = suite->options;
    const bool random = options->random_calls != 0;
    const char *number = strrchr(suite->name, ' ');

    printf("  again: tandem-conformance %s%s%s -k %u --seed %llu --level %s",
           options->plugin, random && options->only == NULL ? "" : " ",
           !random                 ? suite->group
           : options->only != NULL ? options->only
                                   : "",
           options->device, (unsigned long long)options->seed,
           options->full    ? "full"
           : options->smoke ? "smoke"
                            : "standard");
    for (uint32_t i = 0; i < options->open_count; i++)
        printf(" --open-option %s=%s", options->open_keys[i],
               options->open_values[i]);
    if (random)
        printf(" --random 1 --first%s --block %llu%s%s\n", number,
               (unsigned long long)options->block_calls,
               options->compare != NULL ? " --compare " : "",
               options->compare != NULL ? options->compare : "");
    else
        printf(" --filter '%s'\n", suite->name);
}

void case_fail(struct suite *suite, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!suite->case_failed)
        memcpy(suite->note, text, sizeof(text));
    if (!suite->options->json && case_prints_failures(suite)) {
        progress_end(&suite->progress);
        if (suite->reports == 0) {
            printf("FAILED %s: %s\n", suite->group, suite->name);
            reproduce_print(suite);
        }
        printf("  %s\n", text);
        fflush(stdout);
    }
    suite->case_failed = true;
    suite->reports++;
}

const char *status_text(enum tandem_status status)
{
    static const char *const names[] = {
        [TANDEM_OK] = "ok",
        [TANDEM_INVALID_ARGUMENT] = "invalid argument",
        [TANDEM_UNSUPPORTED] = "unsupported",
        [TANDEM_NO_DEVICE] = "no device",
        [TANDEM_OUT_OF_MEMORY] = "out of memory",
        [TANDEM_NOT_READY] = "not ready",
        [TANDEM_DEVICE_LOST] = "device lost",
        [TANDEM_FAILED] = "failed",
    };

    if ((unsigned)status < sizeof(names) / sizeof(names[0]))
        return names[status];
    return "an unknown status";
}

const char *plugin_message(const struct suite *suite)
{
    const char *message = suite->api.last_error();

    return message != NULL ? message : "";
}

bool expect(struct suite *suite, enum tandem_status got,
            enum tandem_status want, const char *format, ...)
{
    char call[256], message[200];
    va_list arguments;

    if (got == want)
        return true;
    snprintf(message, sizeof(message), "%s", plugin_message(suite));
    va_start(arguments, format);
    vsnprintf(call, sizeof(call), format, arguments);
    va_end(arguments);
    case_fail(suite, "%s: %s, expected %s (%s)", call, status_text(got),
              status_text(want), message);
    return false;
}

/*
 * Prints warnings, and with --log all messages. A warning is not a failure, but
 * it may explain a later one in the report, for example that a kernel was
 * disabled and another one was tested.
 */
static void message_print(void *user, enum tandem_log_level level,
                          const char *message)
{
    static const char *const levels[] = {"error", "warning", "info"};
    const struct suite *suite = user;

    /* Each worker opens the device, and would print the same. */
    if (suite->worker != NULL && !suite->worker->is_first &&
        suite->group[0] == '\0')
        return;
    if (level <= TANDEM_LOG_WARNING || suite->options->log)
        fprintf(stderr, "%s: %s\n",
                level >= TANDEM_LOG_ERROR && level <= TANDEM_LOG_INFO
                    ? levels[level - TANDEM_LOG_ERROR]
                    : "debug",
                message);
}

enum tandem_status suite_open(struct suite *suite, const char *key,
                              const char *value,
                              struct tandem_device **out_device)
{
    const struct suite_options *options = suite->options;
    const char *keys[SUITE_MAX_OPTIONS + 2];
    const char *values[SUITE_MAX_OPTIONS + 2];
    uint32_t count = 0;
    enum tandem_status status;
    struct tandem_open_options open = {.struct_size = sizeof(open),
                                       .keys = keys,
                                       .values = values,
                                       .log = message_print,
                                       .log_user = suite};

    /* The suite's own processes already use all CPUs. */
    keys[count] = "compile_processes";
    values[count++] = "0";
    for (uint32_t i = 0; i < options->open_count; i++) {
        keys[count] = options->open_keys[i];
        values[count++] = options->open_values[i];
    }
    if (key != NULL) {
        keys[count] = key;
        values[count++] = value;
    }
    open.count = count;
    status = suite->api.open(options->device, &open, out_device);
    if (status != TANDEM_OK)
        *out_device = NULL;
    return status;
}

bool suite_has_capability(const struct suite *suite, uint32_t cap)
{
    return (suite->info.caps & cap) != 0;
}
