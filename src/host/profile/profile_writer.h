/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A draft of a profile: collects measurements, which profile_entries.c checks
 * one by one, until the draft is saved.  Only one thread at a time may use a
 * draft.
 */
#ifndef TANDEM_HOST_PROFILE_PROFILE_WRITER_H
#define TANDEM_HOST_PROFILE_PROFILE_WRITER_H

#include "host/profile/profile_reader.h"

struct tandem_profile {
    struct handle handle;
    struct tandem_context *context;
    json_t *root; /* owns the members on the next line */
    json_t *scalars, *curves, *gemm, *tuning, *rejected;
    json_t *begun; /* copy of root at creation or at the last save */
    bool revised;  /* true if the draft began with the existing costs */
    struct profile_key key;
    char file[PROFILE_NAME_BYTES];
};

/* Returns TANDEM_OK for a live handle, or an error with its message set. */
enum tandem_status draft_check(const struct tandem_profile *profile);

/* Sets the message and returns TANDEM_OUT_OF_MEMORY. */
enum tandem_status draft_memory_fail(void);

/* Adds a member to object, which takes ownership of value.  Returns value, or
 * NULL if memory runs out; value may be NULL then. */
json_t *draft_member_add(json_t *object, const char *key, json_t *value);

#endif
