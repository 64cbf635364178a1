/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads profiles.  A profile is a file of measured costs for one
 * device.
 *
 * Profiles are called <backend>-<device name>-<hash>.json.  A dash replaces
 * each character of the device name that is not an ASCII letter or digit.  The
 * hash covers the UUID (or the PCI address), the driver, the plugin's version
 * and the host's CPU.  A profile matches a device exactly if the backend, the
 * device name and all parts of the hash are equal.  Without an exact match, a
 * profile is used if its backend, device name and driver are equal. */
#ifndef TANDEM_HOST_PROFILE_PROFILE_SEARCH_H
#define TANDEM_HOST_PROFILE_PROFILE_SEARCH_H

#include "common/secure_file.h"
#include "host/device/device.h"

#include <jansson.h>

#define PROFILE_FORMAT 2
#define MAX_PROFILE_BYTES (1u << 20)
#define PROFILE_NAME_BYTES 256u
/* Maximum number of tuning values in a profile, and maximum length of each. */
#define MAX_PROFILE_TUNING 4096u

/* Identifies the device and host on which a profile was measured. */
struct profile_key {
    char backend[BACKEND_NAME_BYTES];
    char name[128];
    char uuid[33]; /* hexadecimal, "" if unknown */
    char pci[24];
    char driver[128];
    char plugin_version[64];
    char host_cpu[128];
};

void profile_key_make(const struct device *device, struct profile_key *out);
/* Writes the profile's file name without a directory to `out`, which has
 * PROFILE_NAME_BYTES bytes.  Returns the number of bytes before the hash. */
size_t profile_file_name(const struct profile_key *key, char *out);

/* Searches for the device's profile and loads its costs.  Adds the reasons why
 * files are not used to device->ignored_profiles, and logs them if another file
 * is used.  Without a valid profile, the device keeps the default costs. */
void profile_load(struct device *device);

enum profile_match {
    PROFILE_MATCH,    /* the profile matches; all its costs were loaded */
    PROFILE_MISMATCH, /* the profile is for another device or driver */
    PROFILE_MALFORMED /* the file is malformed, or memory ran out */
};

/* Checks the `text` of a profile file.  If the profile is for `key`, loads its
 * costs into `model`.  If `exact` is true, all fields of `key` must match,
 * otherwise only backend, name and driver.  *out_tuning gets the tuning section
 * as JSON text, which the caller frees, or NULL if the profile has none.  If
 * the result is not PROFILE_MATCH, `model` is unchanged and `why`
 * (SECURE_WHY_BYTES bytes) is the reason. */
enum profile_match profile_parse(const char *text, size_t bytes,
                                 const struct profile_key *key, bool exact,
                                 struct cost_model *model, char **out_tuning,
                                 char *why);

#endif
