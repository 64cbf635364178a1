/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: the files of measured costs, one a device.  Reading: locked.
 *
 * A file's name is <backend>-<device name>-<hash>.json, the name with every
 * character but letters and digits made a dash, the hash one of what makes the
 * device what it is: its UUID or PCI address, its driver, the plugin's version
 * and the host's processor.  A profile fits exactly where all of these are the
 * same, and serves where the backend, the device's name and its driver are.
 */
#ifndef TANDEM_HOST_PROFILE_PROFILE_READER_H
#define TANDEM_HOST_PROFILE_PROFILE_READER_H

#include "host/device/device.h"

#include <jansson.h>

#define PROFILE_FORMAT 1
#define PROFILE_BYTES_MAX (1u << 20)
#define PROFILE_NAME_BYTES 256u
#define PROFILE_TUNING_MAX 4096u /* pairs, and bytes of one value */

/* What a profile is for. */
struct profile_key {
    char backend[BACKEND_NAME_BYTES];
    char name[128];
    char uuid[33]; /* hexadecimal, "" where unknown */
    char pci[24];
    char driver[128];
    char plugin_version[64];
    char host_cpu[128];
};

void profile_key_make(const struct device *device, struct profile_key *out);
/* The file's name without a directory; prefix: up to and with the dash before
 * the hash. */
void profile_file_name(const struct profile_key *key, char *out, size_t bytes,
                       size_t *out_prefix);

/* The content of the file of this name, which must be a profile for key, to be
 * released; NULL, with why, where it is none, and without, where it is not
 * there.  exact: see profile_parse. */
json_t *profile_content(int directory, const char *name,
                        const struct profile_key *key, bool exact,
                        char *out_why, size_t why_bytes);
/* The content of the file that the device's costs were read from, judged once
 * more, to be released; NULL, with why, where it is no longer good. */
json_t *profile_read(const struct device *device, char *out_why,
                     size_t why_bytes);

/* Looks for the device's profile and, where there is one, takes its costs.
 * Anything wrong with a file is logged, and the defaults stay. */
void profile_load(struct device *device);

enum profile_fit {
    PROFILE_FITS,    /* its costs were taken, all of them */
    PROFILE_MISMATCH, /* well-formed, but made for something else */
    PROFILE_WRONG
};

/* profile_parser.c, pure: judges a file's bytes and, where they are a profile
 * for key, takes its costs; exact: for the very device, plugin and host, else
 * for the same model and driver.  out_tuning: the plugin's section, to be
 * freed, or NULL.  Where it does not fit, nothing is taken and out_why says
 * what is wrong. */
enum profile_fit profile_parse(const char *text, size_t bytes,
                               const struct profile_key *key, bool exact,
                               struct cost_model *model, char **out_tuning,
                               char *out_why, size_t why_bytes);

#endif
