/* SPDX-License-Identifier: Apache-2.0 */
/* A profile that a program creates or edits in memory and then saves.  Only one
 * thread at a time may use it. */
#ifndef TANDEM_HOST_PROFILE_PROFILE_WRITER_H
#define TANDEM_HOST_PROFILE_PROFILE_WRITER_H

#include "host/profile/profile_search.h"

struct tandem_profile {
    struct handle handle;
    struct tandem_context *context;
    json_t *root;        /* content of the profile file */
    json_t *baseline;    /* copy of `root` at creation or at the last save */
    bool edits_existing; /* the profile was created from an existing file */
    struct profile_key key;
    char file[PROFILE_NAME_BYTES];
};

/* Creates a profile for a device.  Copies the current measurements to it or, if
 * `edit` is false, only the tuning. */
enum tandem_status profile_new_for_device(const struct device *device,
                                          bool edit,
                                          struct tandem_profile **out_profile);

/* Returns TANDEM_OK for a valid handle.  Otherwise sets the error message. */
enum tandem_status profile_check(const struct tandem_profile *profile);

/* Returns TANDEM_OK if `ok` is true.  Otherwise sets the error message and
 * returns TANDEM_OUT_OF_MEMORY. */
enum tandem_status profile_memory_check(bool ok);

#endif
