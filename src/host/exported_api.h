/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public header with its functions exported: everything else in this
 * library stays hidden.  Every file of the host library includes this one.
 */
#ifndef TANDEM_HOST_EXPORTED_API_H
#define TANDEM_HOST_EXPORTED_API_H

#include <tandem/backend.h>

#pragma GCC visibility push(default)
#include <tandem/host.h>
#pragma GCC visibility pop

#endif
