/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a network in plain C with float64, one element after the other.  Needs
 * no device.
 */
#ifndef TANDEM_BENCH_NETWORK_REFERENCE_H
#define TANDEM_BENCH_NETWORK_REFERENCE_H

#include "network.h"

/* Sets `out` to the output of the network.  Returns false if memory is
 * exhausted or the reference lacks an operator of the network. */
bool network_reference(const struct network *network, double *out);

#endif
