/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a context is to do: what its creator says, and where he says nothing,
 * the environment.  Before the context is shared.
 */
#ifndef TANDEM_HOST_CONTEXT_CONTEXT_OPTIONS_H
#define TANDEM_HOST_CONTEXT_CONTEXT_OPTIONS_H

#include "host/context/context.h"

/* Fills out with the caller's options, which may be NULL or of an older header;
 * TANDEM_OK, or what is wrong with them. */
enum tandem_status options_read(const struct tandem_context_options *options,
                                struct tandem_context_options *out);

/* Fills the context with copies.  What is wrong in the environment is logged
 * and ignored: it is not the caller's mistake. */
enum tandem_status options_keep(struct tandem_context *context,
                                const struct tandem_context_options *options);

/* Frees what was kept, also where not all was. */
void options_free(struct tandem_context *context);

#endif
