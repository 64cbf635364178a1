/* SPDX-License-Identifier: Apache-2.0 */
/* Reads environment variables; see environment.h. */
#include <config.h>

#include "common/environment.h"
#include "common/decimal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The variables with a limited set of values: some words, a number, or else an
 * absolute path. */
static const struct variable {
    const char *name;
    const char *expected; /* the allowed values, for messages */
    const char *words[8]; /* the allowed words, with a NULL at the end */
    uint64_t maximum;     /* the largest allowed number, or 0 */
} variables[] = {
    {"TANDEM_COMPILE_PROCESSES",
     "a number of processes from 0 to 6",
     {"0", "1", "2", "3", "4", "5", "6"},
     0},
    {"TANDEM_DETERMINISTIC", "0 or 1", {"0", "1"}, 0},
    {"TANDEM_HANG_TIMEOUT_SECONDS",
     "a number from 0 to 1000000000",
     {NULL},
     1000000000},
    {"TANDEM_LOG",
     "none, error, warning, info or debug",
     {"none", "error", "warning", "info", "debug"},
     0},
    {"TANDEM_NUM_THREADS",
     "a number of threads, or 0 for all available CPUs",
     {NULL},
     UINT64_MAX},
    {"TANDEM_OPENCL_BLOCKLIST", "ignore", {"ignore"}, 0},
    {"TANDEM_PROFILE_DIR", "an absolute path", {NULL}, 0},
    {"XDG_CACHE_HOME", "an absolute path", {NULL}, 0},
};

/* Returns the variable's value. Returns NULL if the variable is unset or if the
 * program has more rights than its user. */
static const char *value_get(const char *name)
{
#ifdef HAVE_SECURE_GETENV
    return secure_getenv(name);
#else
    /* Without secure_getenv, the program's rights are not known. */
    (void)name;
    return NULL;
#endif
}

const char *environment_get(const char *name)
{
    const char *value = value_get(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_allowed(const struct variable *variable, const char *value)
{
    uint64_t number;

    for (size_t i = 0; variable->words[i] != NULL; i++) {
        if (strcmp(variable->words[i], value) == 0)
            return true;
    }
    if (variable->words[0] != NULL)
        return false;
    if (variable->maximum != 0)
        return decimal_read(value, &number) && number <= variable->maximum;
    return value[0] == '/';
}

const char *environment_get_valid(const char *name)
{
    const char *value = environment_get(name);

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (value != NULL && strcmp(variables[i].name, name) == 0 &&
            !is_allowed(&variables[i], value))
            return NULL;
    }
    return value;
}

void environment_check(environment_report_fn report, void *user)
{
    char message[512];

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const struct variable *variable = &variables[i];
        const char *value = environment_get(variable->name);

        if (value == NULL || is_allowed(variable, value))
            continue;
        snprintf(message, sizeof(message), "%s \"%.256s\" ignored: expected %s",
                 variable->name, value, variable->expected);
        report(user, message);
    }
}

bool environment_is_empty(const char *name)
{
    const char *value = value_get(name);

    return value != NULL && value[0] == '\0';
}

bool environment_cache(char *out_path, size_t bytes)
{
    const char *base = environment_get_valid("XDG_CACHE_HOME");
    const char *below = "/tandem";
    int length;

    if (base == NULL) {
        base = environment_get("HOME");
        below = "/.cache/tandem";
    }
    if (base == NULL || base[0] != '/')
        return false;
    length = snprintf(out_path, bytes, "%s%s", base, below);
    return length > 0 && (size_t)length < bytes;
}
