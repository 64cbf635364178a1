/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the script of the simulated GPU from the environment and the options
 * of open (see simulated_device.h). Any thread may call these functions.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "internal.h"

uint32_t script_device_count(void)
{
    const char *text = secure_getenv("TANDEM_SIM_DEVICES");
    const long count = text ? strtol(text, NULL, 10) : 1;

    return count < 0 ? 0
                     : (count > (long)SIM_MAX_DEVICES ? SIM_MAX_DEVICES
                                                      : (uint32_t)count);
}

int32_t script_duplicate(uint32_t device)
{
    const char *text = secure_getenv("TANDEM_SIM_DUPLICATES");
    unsigned index, of;
    int length;

    while (text && sscanf(text, "%u:%u%n", &index, &of, &length) == 2) {
        if (index == device)
            return (int32_t)of;
        text += length + (text[length] == ',');
    }
    return -1;
}

const char *script_driver(void)
{
    const char *text = secure_getenv("TANDEM_SIM_DRIVER");

    return text ? text : "1";
}

enum tandem_status script_open(uint32_t device)
{
    const char *text = secure_getenv("TANDEM_SIM_OPEN");
    const char *only = text ? strchr(text, ':') : NULL;

    if (!text || (only && strtoul(only + 1, NULL, 10) != device))
        return TANDEM_OK;
    return (enum tandem_status)strtol(text, NULL, 10);
}

const char *option_get(const struct tandem_open_options *options,
                       const char *key)
{
    const char *found = NULL;

    if (!options)
        return NULL;
    for (uint32_t i = 0; i < options->count; i++)
        if (strcmp(options->keys[i], key) == 0)
            found = options->values[i];
    return found;
}

/* Returns the option, or else the environment variable, or else NULL. */
static const char *setting(const struct tandem_open_options *options,
                           const char *key, const char *variable)
{
    const char *value = option_get(options, key);

    return value ? value : secure_getenv(variable);
}

static enum tandem_status fault_parse(struct sim_script *out, const char *text)
{
    uint64_t ordinal;
    unsigned status;
    int end = 0;

    if (sscanf(text, "launch:%" SCNu64 ":%u%n", &ordinal, &status, &end) == 2 &&
        !text[end] && ordinal > 0 && status > TANDEM_OK &&
        status <= TANDEM_FAILED) {
        out->fault_launch = ordinal;
        out->fault_status = (enum tandem_status)status;
        return TANDEM_OK;
    }
    end = 0;
    if (sscanf(text, "wait:%" SCNu64 "%n", &ordinal, &end) == 1 && !text[end] &&
        ordinal > 0) {
        out->fault_wait = ordinal;
        return TANDEM_OK;
    }
    return argument_error("open: test.fault is \"%s\"; it must be "
                          "launch:N:STATUS or wait:N",
                          text);
}

static enum tandem_status decline_parse(struct sim_script *out,
                                        const char *text)
{
    while (*text) {
        const size_t length = strcspn(text, ",");
        const struct operator_info *row;
        char name[64];

        snprintf(name, sizeof name, "%.*s", (int)length, text);
        row = operator_row_by_name(name);
        if (!row)
            return argument_error(
                "open: simulated.decline names no operator \"%s\"", name);
        out->decline[row->id] = true;
        text += length + (text[length] == ',');
    }
    return TANDEM_OK;
}

static uint32_t ready_parse(const char *text)
{
    if (strcmp(text, "always") == 0)
        return SIM_READY_ALWAYS;
    if (strcmp(text, "never") == 0)
        return SIM_READY_NEVER;
    return (uint32_t)strtoul(text, NULL, 10);
}

/* Returns true if the options restrict the fault to another device. */
static bool is_other_device(const struct tandem_open_options *options,
                            const char *key, uint32_t device)
{
    const char *only = option_get(options, key);

    return only && strtoul(only, NULL, 10) != device;
}

enum tandem_status script_read(struct sim_script *out, uint32_t device,
                               const struct tandem_open_options *options)
{
    const char *text;
    enum tandem_status status = TANDEM_OK;

    memset(out, 0, sizeof *out);
    out->elapsed_ns = 1000;
    if ((text = setting(options, "simulated.ready", "TANDEM_SIM_READY")))
        out->ready = ready_parse(text);
    if ((text = setting(options, "simulated.elapsed_ns", "TANDEM_SIM_ELAPSED")))
        out->elapsed_ns = strtoull(text, NULL, 10);
    text = setting(options, "test.fault", "TANDEM_SIM_FAULT");
    if (text && !is_other_device(options, "simulated.fault_device", device))
        status = fault_parse(out, text);
    text = setting(options, "simulated.hang", "TANDEM_SIM_HANG");
    if (text && !is_other_device(options, "simulated.hang_device", device))
        out->hang_launch = strtoull(text, NULL, 10);
    text = setting(options, "simulated.decline", "TANDEM_SIM_DECLINE");
    if (status == TANDEM_OK && text)
        status = decline_parse(out, text);
    return status;
}
