/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that all modes share; see cl_probe.h. */
#include <config.h>

#include "cl_probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void probe_complain(const char *format, ...)
{
    va_list arguments;

    fputs("cl-probe: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void probe_print_texts(const char *before, const json_t *texts,
                       const char *between, const char *after)
{
    for (size_t i = 0; i < json_array_size(texts); i++)
        printf("%s%s", i == 0 ? before : between,
               json_string_value(json_array_get(texts, i)));
    if (json_array_size(texts) > 0)
        fputs(after, stdout);
}

void probe_print_json(json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(json);
}

static void log_message(void *user, enum tandem_log_level level,
                        const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "tandem: %s\n", message);
}

enum tandem_status probe_context(const struct probe_options *options,
                                 const char *backends,
                                 struct tandem_context **out_context)
{
    const char *const keys[] = {"test.gemm_kernel", "cache_dir",
                                "cache_world_readable"};
    const char *const values[] = {"clblast", options->system, "1"};
    const uint32_t first = options->clblast ? 0 : 1;
    struct tandem_context_options context = {
        .struct_size = sizeof context,
        .log = options->verbose ? log_message : NULL,
        .open_keys = keys + first,
        .open_values = values + first,
        .open_count = (options->system != NULL ? 3 : 1) - first,
        .backends = backends,
    };

    return tandem_context_create(&context, out_context);
}

const char *device_text(const json_t *device, const char *key)
{
    const char *text = json_string_value(json_object_get(device, key));

    return text == NULL ? "" : text;
}

double device_number(const json_t *device, const char *key)
{
    return json_number_value(json_object_get(device, key));
}
