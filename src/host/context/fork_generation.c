/* SPDX-License-Identifier: Apache-2.0 */
/* Fork detection; see fork_generation.h. */
#include <config.h>

#include "host/context/fork_generation.h"
#include "common/atfork.h"

#include <stddef.h>

volatile uint32_t fork_generation = 1;

static struct atfork once = ATFORK;

static void child_started(void)
{
    fork_generation = fork_generation + 1;
}

bool fork_watch(void)
{
    return atfork_once(&once, NULL, NULL, child_started);
}
