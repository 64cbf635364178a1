/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses to atomic variables without an order. They are as fast as those to
 * other variables. */
#ifndef TANDEM_COMMON_RELAXED_H
#define TANDEM_COMMON_RELAXED_H

#include <stdatomic.h>

#define relaxed_load(from) atomic_load_explicit(from, memory_order_relaxed)
#define relaxed_store(to, value)                                               \
    atomic_store_explicit(to, value, memory_order_relaxed)
/* Stores only a new value, so that other processors keep their copies of the
 * cache line. */
#define relaxed_update(to, value)                                              \
    do {                                                                       \
        if (relaxed_load(to) != (value))                                       \
            relaxed_store(to, value);                                          \
    } while (0)

#endif
