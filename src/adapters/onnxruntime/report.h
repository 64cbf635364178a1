/* SPDX-License-Identifier: Apache-2.0 */
/* The placement report: a text file that says which nodes the provider took and
 * where their operators ran. Any thread may call these functions. */
#ifndef TANDEM_ONNXRUNTIME_REPORT_H
#define TANDEM_ONNXRUNTIME_REPORT_H

#include "adapters/onnxruntime/form.h"
#include "adapters/onnxruntime/options.h"
#include "adapters/onnxruntime/runtime.h"

/* Returns the plural ending of a noun after the number `count`. */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Appends a line to the session's report. Does nothing if the session has
 * none. */
void report_write(struct runtime *runtime,
                  const struct provider_options *options, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));
/* Appends a line with the time, the version, and the file of the model.  If the
 * model is not in a file, the line has the name of the graph, which may be a
 * body of the model. */
struct OrtStatus *report_session(struct runtime *runtime,
                                 const struct provider_options *options,
                                 const struct OrtGraph *ort_graph);
/* Appends a line that counts the nodes that the provider does not serve, by
 * operator and element type, if there are any. */
void report_unserved(struct runtime *runtime,
                     const struct provider_options *options,
                     const struct graph *graph);
/* Appends the device and the predicted time of the step that this thread ran
 * last. */
void report_step(struct runtime *runtime,
                 const struct provider_options *options,
                 const struct form_step *step);

#endif
