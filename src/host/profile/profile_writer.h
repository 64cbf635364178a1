/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile that is being written: collects measurements, judged one by one
 * (profile_entries.c), until it is saved.  One thread uses one at a time.
 */
#ifndef TANDEM_HOST_PROFILE_PROFILE_WRITER_H
#define TANDEM_HOST_PROFILE_PROFILE_WRITER_H

#include "host/profile/profile_reader.h"

struct tandem_profile {
    struct handle handle;
    struct tandem_context *context;
    json_t *root; /* owns those below */
    json_t *scalars, *curves, *gemm, *tuning, *rejected;
    json_t *begun; /* root as it was at first, or saved */
    bool revised;  /* costs that did not change need not be this draft's */
    struct profile_key key;
    char file[PROFILE_NAME_BYTES];
};

/* A live handle, or a status with its message set. */
enum tandem_status draft_check(const struct tandem_profile *profile);

/* TANDEM_OUT_OF_MEMORY, with its message. */
enum tandem_status draft_memory_fail(void);

/* A new member of an object, which takes value; NULL when memory is out. */
json_t *draft_member_add(json_t *object, const char *key, json_t *value);

#endif
