/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of OpenCL drivers that crashed or hung when cl-probe asked them
 * for their devices, in a process that it could spare.  The OpenCL plugin,
 * whose process is its host's, reads it before the first OpenCL call and then
 * makes none.  Any thread.
 *
 * A file of lines, for a reader without a library:
 *
 *     tandem-opencl-drivers 1
 *     TIME <tab> WHAT HAPPENED <tab> FILE <tab> LIBRARY [<tab> FILE ...]
 *
 * with one pair of an .icd file and the library that it names for each driver:
 * one that failed alone, or several that failed only together.  All of a file
 * counts or nothing; docs/drivers.md says where it lies, who writes it when.
 */
#ifndef TANDEM_COMMON_DRIVER_BLOCKLIST_H
#define TANDEM_COMMON_DRIVER_BLOCKLIST_H

#include "common/icd_list.h"

#include <stddef.h>

#define DRIVER_RECORD_NAME "opencl-drivers"
#define DRIVER_RECORD_HEAD "tandem-opencl-drivers 1"
#define DRIVER_RECORD_BYTES_MAX 65536u
#define DRIVER_RECORDS_MAX 64u

struct driver_record {
    char *when; /* UTC, ISO 8601 */
    char *what; /* as in "crashed: Segmentation fault" */
    struct icd_list drivers;
};

struct driver_records {
    struct driver_record *records;
    uint32_t count;
};

enum driver_record_end {
    DRIVER_RECORD_READ,
    DRIVER_RECORD_ABSENT,
    DRIVER_RECORD_REFUSED /* it is there, and not trusted or not understood */
};

/* Takes the text of a record, which a zero follows, apart in place and adds
 * what it says to out; NULL, or what is wrong with it. */
const char *driver_records_parse(char *text, size_t bytes,
                                 struct driver_records *out);

/* Reads the record of one directory.  Unless it was read, out is empty; where
 * it was refused out_why says why (TRUST_WHY_BYTES). */
enum driver_record_end driver_records_read(const char *directory,
                                           struct driver_records *out,
                                           char *out_why);

/* The record that counts for this user: that of his cache directory (NULL: he
 * has none), where it is absent the system's. */
enum driver_record_end driver_records_find(const char *cache,
                                           const char *system,
                                           struct driver_records *out,
                                           char *out_why);

/* The first record of drivers that are all among those of list; or NULL. */
const struct driver_record *
driver_records_match(const struct driver_records *records,
                     const struct icd_list *list);

/* Adds a record of copies; false: out of memory, or too many. */
bool driver_records_add(struct driver_records *records, const char *when,
                        const char *what, const struct icd_list *drivers);

void driver_records_finish(struct driver_records *records);

#endif
