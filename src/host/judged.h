/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that were judged good: a program repeats its operators on the same
 * tensors, and a tensor's dtype, shape and strides never change, so neither
 * does the verdict, nor what the chooser needs to know of shapes.  A context
 * has one table.  Locked.
 */
#ifndef TANDEM_HOST_JUDGED_H
#define TANDEM_HOST_JUDGED_H

#include "host/run.h"

#define JUDGED_ENTRIES 128u /* judged_find takes 7 bits of a hash */
#define JUDGED_OPERANDS 7u
#define JUDGED_INTS 2u

/* The call; all of it decides. */
struct judged_key {
    uint32_t op, int_count;
    uint32_t float_count;
    uint16_t input_count, output_count;
    uint64_t tensors[JUDGED_OPERANDS]; /* serials; 0: a scalar */
    int64_t ints[JUDGED_INTS];
};

struct judged {
    struct judged_key key;
    uint32_t cost_class;
    double elements, bytes;
};

struct judged_table {
    struct judged entries[JUDGED_ENTRIES];
};

/* The entry where the call is or belongs; NULL where such calls are not kept
 * (or where there is no memory for the table).  *out_found: it was judged
 * good before; else the entry is another's, and becomes this call's by
 * setting its key to out_key. */
struct judged *judged_find(const struct call *call, struct judged_key *out_key,
                           bool *out_found);

#endif
