/* SPDX-License-Identifier: Apache-2.0 */
/* Includes tandem/host.h with default visibility, so that the library exports
 * only the functions of this header.  Every file of the host library includes
 * it. */
#ifndef TANDEM_HOST_EXPORTED_API_H
#define TANDEM_HOST_EXPORTED_API_H

#include <tandem/backend.h>

#pragma GCC visibility push(default)
#include <tandem/host.h>
#pragma GCC visibility pop

#endif
