/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of a context: the caller's options, with environment
 * variables as defaults; see context.h. */
#include <config.h>

#include "host/context/context.h"
#include "common/decimal.h"
#include "common/environment.h"
#include "common/last_error.h"
#include "common/struct_size.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Default timeout after which a device counts as hung. */
#define DEFAULT_HANG_SECONDS 60u

/* Duplicates `text`, which may be NULL.  Returns false if memory runs out. */
static bool text_duplicate(char **out, const char *text)
{
    *out = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out != NULL;
}

static bool open_pairs_copy(struct tandem_context *context,
                            const struct tandem_context_options *options)
{
    context->open_pairs =
        calloc(options->open_count, sizeof(*context->open_pairs));
    if (context->open_pairs == NULL)
        return options->open_count == 0;
    context->open_count = options->open_count;
    for (uint32_t i = 0; i < options->open_count; i++) {
        if (!text_duplicate(&context->open_pairs[i].key,
                            options->open_keys[i]) ||
            !text_duplicate(&context->open_pairs[i].value,
                            options->open_values[i]))
            return false;
    }
    return true;
}

static enum tandem_status
options_check(const struct tandem_context_options *options)
{
    if (options->open_count > MAX_OPEN_OPTIONS)
        return argument_error("options: open_count is %u; expected at most %u",
                              options->open_count, MAX_OPEN_OPTIONS);
    if (options->open_count > 0 &&
        (options->open_keys == NULL || options->open_values == NULL))
        return argument_error(
            "options: open_count is %u, but open_keys or open_values is NULL",
            options->open_count);
    for (uint32_t i = 0; i < options->open_count; i++) {
        if (options->open_keys[i] == NULL || options->open_values[i] == NULL)
            return argument_error("options: open key or value %u is NULL", i);
    }
    if (options->reserved != 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "options: reserved is %u; expected 0",
                              options->reserved);
    return TANDEM_OK;
}

enum tandem_status
context_options_read(const struct tandem_context_options *options,
                     struct tandem_context_options *out)
{
    enum tandem_status status;

    *out = (struct tandem_context_options){.struct_size = sizeof(*out)};
    if (options == NULL)
        return TANDEM_OK;
    status = input_struct_check("options", "tandem_context_options", options,
                                sizeof(*options),
                                TANDEM_CONTEXT_OPTIONS_MIN_SIZE_0_1);
    if (status != TANDEM_OK)
        return status;
    struct_size_fill(out, options, options->struct_size);
    return options_check(out);
}

static void hang_timeout_read(struct tandem_context *context,
                              const struct tandem_context_options *options)
{
    const char *text = environment_get_valid("TANDEM_HANG_TIMEOUT_SECONDS");
    uint64_t seconds = DEFAULT_HANG_SECONDS;

    if (text != NULL)
        decimal_read(text, &seconds);
    context->hang_timeout_ns =
        seconds != 0 ? seconds * UINT64_C(1000000000) : TANDEM_TIMEOUT_INFINITE;
    if (options->hang_timeout_ms == UINT32_MAX)
        context->hang_timeout_ns = TANDEM_TIMEOUT_INFINITE;
    else if (options->hang_timeout_ms != 0)
        context->hang_timeout_ns = options->hang_timeout_ms * UINT64_C(1000000);
}

/* Returns the list of the plugins to load, or NULL for all, and stores the name
 * of its source.  context->forced_name must be set. */
static const char *backends_read(struct tandem_context *context,
                                 const struct tandem_context_options *options)
{
    const char *list = environment_get("TANDEM_BACKENDS");

    context->backends_setting = "TANDEM_BACKENDS";
    if (options->backends != NULL) {
        context->backends_setting = "the option backends";
        return options->backends;
    }
    if (list != NULL || context->forced_name == NULL ||
        strcmp(context->forced_name, "cpu") != 0)
        return list;
    /* Load no GPU libraries for a program that uses only the CPU. */
    context->backends_setting = "the device cpu";
    return "cpu";
}

/* Returns the level that TANDEM_LOG names, 0 for "none", or TANDEM_LOG_WARNING
 * if TANDEM_LOG is unset or has another value. */
static uint32_t log_level_read(void)
{
    static const char *const names[TANDEM_LOG_DEBUG + 1] = {
        "none", "error", "warning", "info", "debug"};
    const char *text = environment_get_valid("TANDEM_LOG");

    for (uint32_t i = 0; text != NULL && i <= TANDEM_LOG_DEBUG; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
    }
    return TANDEM_LOG_WARNING;
}

static void variable_log(void *user, const char *message)
{
    log_message(user, TANDEM_LOG_WARNING, "%s", message);
}

/* Logs which environment variables are ignored: those with a value that is not
 * allowed and, if the program has extra privileges (setuid), all TANDEM_
 * variables. */
static void ignored_variables_log(struct log *log)
{
    char name[64];

    environment_check(variable_log, log);
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        const size_t length = strcspn(*at, "=");

        if ((strncmp(*at, "TANDEM_", 7) != 0 &&
             strncmp(*at, "XDG_CACHE_HOME=", 15) != 0) ||
            length >= sizeof(name) || (*at)[length] == '\0' ||
            (*at)[length + 1] == '\0')
            continue;
        memcpy(name, *at, length);
        name[length] = '\0';
        if (environment_get(name) == NULL)
            log_message(
                log, TANDEM_LOG_WARNING,
                "%s ignored: this program has more privileges than its user",
                name);
    }
}

enum tandem_status
context_options_apply(struct tandem_context *context,
                      const struct tandem_context_options *options)
{
    const char *deterministic = environment_get_valid("TANDEM_DETERMINISTIC");
    const char *device = options->device;
    const char *profiles = options->profile_path;

    context->log.function = options->log;
    context->log.user = options->log_user;
    context->log.level =
        options->log_level != 0 ? options->log_level : log_level_read();
    context->deterministic =
        options->deterministic == 1 ||
        (deterministic != NULL && strcmp(deterministic, "1") == 0);
    context->time_operators = options->time_operators == 1;
    context->forced_by_environment = device == NULL;
    if (device == NULL)
        device = environment_get("TANDEM_DEVICE");
    if (profiles == NULL)
        profiles = environment_get_valid("TANDEM_PROFILE_DIR");
    if (profiles != NULL && profiles[0] != '/') {
        log_message(
            &context->log, TANDEM_LOG_WARNING,
            "profile directory \"%.256s\" ignored: expected an absolute path",
            profiles);
        profiles = NULL;
    }
    hang_timeout_read(context, options);
    if (!text_duplicate(&context->forced_name, device) ||
        !text_duplicate(&context->backends_option,
                        backends_read(context, options)) ||
        !text_duplicate(&context->profile_path, profiles) ||
        !text_duplicate(&context->num_threads,
                        environment_get_valid("TANDEM_NUM_THREADS")) ||
        !text_duplicate(&context->compile_processes,
                        environment_get_valid("TANDEM_COMPILE_PROCESSES")) ||
        !open_pairs_copy(context, options))
        return memory_error("no memory for a context");
    ignored_variables_log(&context->log);
    return TANDEM_OK;
}

void context_options_free(struct tandem_context *context)
{
    for (uint32_t i = 0; i < context->open_count; i++) {
        free(context->open_pairs[i].key);
        free(context->open_pairs[i].value);
    }
    free(context->open_pairs);
    free(context->profile_path);
    free(context->num_threads);
    free(context->compile_processes);
    free(context->forced_name);
    free(context->backends_option);
}
