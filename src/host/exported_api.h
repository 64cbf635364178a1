/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the public header with default visibility, so that only its
 * functions are exported.  Every file of the host library includes this
 * file. */
#ifndef TANDEM_HOST_EXPORTED_API_H
#define TANDEM_HOST_EXPORTED_API_H

#include <tandem/backend.h>

#pragma GCC visibility push(default)
#include <tandem/host.h>
#pragma GCC visibility pop

#endif
