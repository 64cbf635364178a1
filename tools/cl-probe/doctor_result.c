/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of checks; see doctor.h. */
#include <config.h>

#include "child_process.h"
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX_BYTES 2048

bool result_is_problem(const json_t *result)
{
    return strcmp(device_text(result, "state"), "problem") == 0;
}

static void result_set(json_t *result, const char *state, const char *format,
                       va_list arguments)
{
    char text[TEXT_MAX_BYTES];

    if (result_is_problem(result))
        return;
    vsnprintf(text, sizeof text, format, arguments);
    json_object_set_new(result, "state", json_string(state));
    json_object_set_new(result, "text", child_text("%s", text));
}

void result_ok(json_t *result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    result_set(result, "ok", format, arguments);
    va_end(arguments);
}

void result_not_applicable(json_t *result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    result_set(result, "not applicable", format, arguments);
    va_end(arguments);
}

void result_problem(json_t *result, const char *advice, const char *format, ...)
{
    json_t *problems = json_object_get(result, "problems");
    char text[TEXT_MAX_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(problems, json_pack("{s:o, s:o}", "text",
                                              child_text("%s", text), "advice",
                                              child_text("%s", advice)));
    if (json_array_size(problems) == 1)
        json_object_set_new(result, "text", child_text("%s", text));
    json_object_set_new(result, "state", json_string("problem"));
}
