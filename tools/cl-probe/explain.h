/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the library which device it would choose for an operator.  Parent
 * process only; a child process opens the devices. */
#ifndef CL_PROBE_EXPLAIN_H
#define CL_PROBE_EXPLAIN_H

#include "cl_probe.h"

/* [blocks] Returns the answer for options->op of options->shape with data on
 * the host, as --explain --json prints it, or an object { "op", "shape",
 * "error" }.  Loads the plugins that `backends` names, separated by commas. */
json_t *explain_choice(const struct probe_options *options,
                       const char *backends);

#endif
