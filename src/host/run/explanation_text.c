/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an explanation as text for people.  Any thread may call the public
 * function. */
#include <config.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/struct_size.h"
#include "host/device/device.h"

#include <stdarg.h>
#include <stdio.h>

struct text {
    char *out;
    size_t bytes, used; /* used >= bytes: it is too long */
};

static void append(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    if (text->used >= text->bytes)
        return;
    va_start(arguments, format);
    length = vsnprintf(text->out + text->used, text->bytes - text->used, format,
                       arguments);
    va_end(arguments);
    text->used = length < 0 ? text->bytes : text->used + (size_t)length;
}

static void append_time(struct text *text, double ns)
{
    if (ns < 1e3)
        append(text, "%.0f ns", ns);
    else if (ns < 1e6)
        append(text, "%.3g us", ns / 1e3);
    else
        append(text, "%.3g ms", ns / 1e6);
}

/* Appends the parts of the predicted time that are not 0. */
static void append_parts(struct text *text,
                         const struct tandem_candidate *candidate)
{
    const struct {
        const char *name;
        double ns;
    } parts[] = {{"wait", candidate->wait_ns},
                 {"transfer", candidate->transfer_ns},
                 {"launch", candidate->launch_ns},
                 {"execute", candidate->execute_ns},
                 {"download", candidate->download_ns}};
    const char *separator = ": ";

    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].ns == 0)
            continue;
        append(text, "%s%s ", separator, parts[i].name);
        append_time(text, parts[i].ns);
        separator = ", ";
    }
}

static void append_candidate(struct text *text,
                             const struct tandem_explanation *explanation,
                             const struct tandem_candidate *candidate,
                             const char *label)
{
    append(text, "%c %-8s ",
           candidate->device == explanation->chosen ? '*' : ' ', label);
    if (candidate->status != TANDEM_OK) {
        append(text, "%s\n",
               status_name((enum tandem_status)candidate->status));
        return;
    }
    append_time(text, candidate->predicted_ns);
    append_parts(text, candidate);
    append(text, "%s%s\n", candidate->ready ? "" : "; not compiled",
           candidate->calibrated ? "" : "; default costs");
}

static void explanation_append(struct text *text,
                               const struct tandem_context *context,
                               const struct tandem_explanation *explanation)
{
    append(text, "%s: %.0f elements, %.0f bytes read and written%s\n",
           operator_name(explanation->op), explanation->elements,
           explanation->bytes,
           explanation->forced ? "; the program chose the device" : "");
    for (uint32_t i = 0; i < explanation->candidate_count; i++) {
        const struct tandem_candidate *candidate = &explanation->candidates[i];

        if (candidate->device < context->device_count)
            append_candidate(text, explanation, candidate,
                             context->devices[candidate->device]->label);
    }
    if (explanation->measured_ns > 0) {
        append(text, "measured: ");
        append_time(text, explanation->measured_ns);
        append(text, "\n");
    }
}

enum tandem_status
tandem_explanation_text(struct tandem_context *context,
                        const struct tandem_explanation *explanation,
                        char *out_text, size_t bytes)
{
    struct text text = {out_text, bytes, 0};
    struct float_env host;
    enum tandem_status status = context_check(context);

    if (status == TANDEM_OK && explanation == NULL)
        status = argument_error("explanation: NULL");
    if (status == TANDEM_OK && (out_text == NULL || bytes == 0))
        status = argument_error("out_text: no memory");
    if (status == TANDEM_OK)
        status =
            struct_size_check("explanation", "tandem_explanation",
                              explanation->struct_size, sizeof(*explanation));
    if (status == TANDEM_OK &&
        explanation->candidate_count > TANDEM_MAX_DEVICES)
        status =
            argument_error("explanation: %u candidates; expected at most "
                           "%u",
                           explanation->candidate_count, TANDEM_MAX_DEVICES);
    if (status != TANDEM_OK)
        return status;
    host = float_env_enter();
    explanation_append(&text, context, explanation);
    float_env_leave(host);
    if (text.used < bytes)
        return TANDEM_OK;
    out_text[0] = '\0';
    return argument_error("out_text: %zu bytes are too few; expected "
                          "TANDEM_EXPLANATION_TEXT_BYTES",
                          bytes);
}
