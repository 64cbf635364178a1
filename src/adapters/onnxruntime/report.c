/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the placement report; see report.h. */
#include <config.h>

#include "adapters/onnxruntime/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void report_write(struct runtime *runtime,
                  const struct provider_options *options, const char *format,
                  ...)
{
    va_list arguments;
    FILE *file;

    if (options->explain[0] == '\0')
        return;
    pthread_mutex_lock(&runtime->mutex);
    file = fopen(options->explain, "ae");
    if (file == NULL) {
        log_write(runtime, runtime->logger, ORT_LOG_WARNING,
                  "the placement report %s cannot be written: %s",
                  options->explain, strerror(errno));
    } else {
        va_start(arguments, format);
        vfprintf(file, format, arguments);
        va_end(arguments);
        fputc('\n', file);
        fclose(file);
    }
    pthread_mutex_unlock(&runtime->mutex);
}

void report_step(struct runtime *runtime,
                 const struct provider_options *options,
                 const struct form_step *step)
{
    struct tandem_explanation explanation = {.struct_size =
                                                 sizeof(explanation)};
    const struct tandem_op_info *op = tandem_op_by_id(step->op);
    char device[DEVICE_LABEL_BYTES];
    double ns = 0;

    if (tandem_explain_last(runtime->context, &explanation) != TANDEM_OK)
        return;
    device_label(runtime->context, explanation.chosen, device);
    for (uint32_t i = 0; i < explanation.candidate_count; i++) {
        if (explanation.candidates[i].device == explanation.chosen)
            ns = explanation.candidates[i].predicted_ns;
    }
    report_write(runtime, options, "  %-18s %-9s %9.1f us  %-22s %.60s",
                 op != NULL ? op->name : "?", device, ns / 1e3,
                 step->node->type, node_label(step->node));
}
