/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that were judged good: a program repeats its operators on the same
 * tensors, and a tensor's dtype, shape and strides never change, so neither
 * does the verdict, nor what the chooser needs to know of shapes.  A context
 * has one table.  Locked.
 */
#ifndef TANDEM_HOST_RUN_CALL_CACHE_H
#define TANDEM_HOST_RUN_CALL_CACHE_H

#include "host/run/run.h"

#define JUDGED_ENTRIES 128u /* call_cache_find takes 7 bits of a hash */
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
    double product[4]; /* as of struct query */
    /* Its operands; where they are is not known here. */
    uint32_t operand_count;
    struct operand operands[JUDGED_OPERANDS];
    /* The device that computes in host memory, if none of the context's usable
     * devices (a mask, as it was then) could beat it with what is read already
     * there; else NULL. */
    struct device *home;
    uint32_t usable;
    uint32_t good; /* bit d: device d said that it serves it and is ready */
    double launch_ns, run_ns; /* at home */
    struct work work;
};

struct judged_table {
    struct judged entries[JUDGED_ENTRIES];
};

/* The entry where the call is or belongs; NULL where such calls are not kept
 * (or where there is no memory for the table).  *out_found: it was judged
 * good before; else the entry is another's, and becomes this call's when its
 * key is made. */
struct judged *call_cache_find(const struct call *call, bool *out_found);
void judged_key_make(const struct call *call, struct judged_key *out);

/* Fills all of a query but its operands. */
void judged_query(struct judged *judged, struct query *out);

/* Finds the home of a judged call, anew where devices came or went. */
struct device *judged_home(struct tandem_context *context,
                           struct judged *judged);

#endif
