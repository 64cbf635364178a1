/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm, an operator of class CHANNEL_NORM.  Runs on the caller's thread
 * and on the thread pool. */
#ifndef TANDEM_CPU_KERNELS_BATCH_NORM_H
#define TANDEM_CPU_KERNELS_BATCH_NORM_H

#include "cpu/objects.h"

enum tandem_status batch_norm_run(const struct work *work);

#endif
