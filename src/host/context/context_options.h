/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of a context: the caller's options, with environment
 * variables as defaults.  Called while no other thread knows the context. */
#ifndef TANDEM_HOST_CONTEXT_CONTEXT_OPTIONS_H
#define TANDEM_HOST_CONTEXT_CONTEXT_OPTIONS_H

#include "host/context/context.h"

/* Copies the caller's options into `out` and checks them.  `options` may be
 * NULL, or a shorter struct if the caller was compiled with an older header. On
 * failure sets the error message. */
enum tandem_status options_read(const struct tandem_context_options *options,
                                struct tandem_context_options *out);

/* Copies options and the defaults of missing ones into the context.  Ignores
 * and logs invalid environment variables, which the caller may not control. */
enum tandem_status
context_options_apply(struct tandem_context *context,
                      const struct tandem_context_options *options);

/* Frees the context's copied options, even if only some of them were copied. */
void context_options_free(struct tandem_context *context);

#endif
