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

/* Copies the options and their defaults into the context.  Logs and ignores
 * invalid environment variables, because the caller may not control them. */
enum tandem_status
context_options_apply(struct tandem_context *context,
                      const struct tandem_context_options *options);

/* Frees the copied options, even after context_options_apply failed halfway. */
void context_options_free(struct tandem_context *context);

#endif
