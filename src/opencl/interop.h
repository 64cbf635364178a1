/* SPDX-License-Identifier: Apache-2.0 */
/* The extension "opencl-interop.1" (extensions.h). */
#ifndef TANDEM_OPENCL_INTEROP_H
#define TANDEM_OPENCL_INTEROP_H

#include <tandem/extensions.h>

extern const struct tandem_opencl_interop_extension interop_extension;

#endif
