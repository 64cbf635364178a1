/* SPDX-License-Identifier: Apache-2.0 */
/* Blocklist of OpenCL drivers that crashed or hung when cl-probe queried their
 * devices in a child process. The OpenCL plugin runs in the host's process, so
 * it reads the blocklist first and makes no OpenCL call if all drivers of a
 * record are installed. Callable from any thread.
 *
 * The blocklist is a text file with a record on each line:
 *
 *     tandem-opencl-driver-blocklist 1
 *     TIME <tab> WHAT HAPPENED <tab> FILE <tab> LIBRARY [<tab> FILE ...]
 *
 * FILE is an .icd file and LIBRARY the library that it names. Drivers in the
 * same record failed only together. A file with a bad line is rejected as a
 * whole. docs/troubleshooting.md says where the file is stored and who writes
 * it. */
#ifndef TANDEM_COMMON_DRIVER_BLOCKLIST_H
#define TANDEM_COMMON_DRIVER_BLOCKLIST_H

#include "common/icd_list.h"

#include <stddef.h>

#define DRIVER_RECORD_NAME "opencl-driver-blocklist"
#define DRIVER_RECORD_HEAD "tandem-opencl-driver-blocklist 1"
#define DRIVER_RECORD_BYTES_MAX 65536u
#define DRIVER_RECORDS_MAX 64u

struct driver_record {
    char *when; /* time of the failure, UTC in ISO 8601 format */
    char *what; /* what happened, such as "crashed: Segmentation fault" */
    struct icd_list drivers;
};

struct driver_records {
    struct driver_record *records;
    uint32_t count;
};

enum driver_record_end {
    DRIVER_RECORD_READ,
    DRIVER_RECORD_ABSENT,
    DRIVER_RECORD_REFUSED /* the blocklist exists, but is insecure or invalid */
};

/* Parses a zero-terminated blocklist in place and adds its records to out.
 * Returns NULL, or a static text that says what is wrong with the blocklist. */
const char *driver_records_parse(char *text, size_t bytes,
                                 struct driver_records *out);

/* Reads the blocklist in one directory. Unless the result is
 * DRIVER_RECORD_READ, out is empty. If the result is DRIVER_RECORD_REFUSED,
 * out_why (SECURE_WHY_BYTES bytes) holds the reason. */
enum driver_record_end driver_records_read(const char *directory,
                                           struct driver_records *out,
                                           char *out_why);

/* Reads the blocklist in `cache`, the user's cache directory (may be NULL). If
 * it has no blocklist, reads the one in the directory `system`. */
enum driver_record_end driver_records_find(const char *cache,
                                           const char *system,
                                           struct driver_records *out,
                                           char *out_why);

/* Returns the first record whose drivers are all in `list`, or else NULL. */
const struct driver_record *
driver_records_match(const struct driver_records *records,
                     const struct icd_list *list);

/* Adds a record with copies of the arguments to the blocklist. Returns false if
 * memory is out or the blocklist has DRIVER_RECORDS_MAX records. */
bool driver_records_add(struct driver_records *records, const char *when,
                        const char *what, const struct icd_list *drivers);

void driver_records_finish(struct driver_records *records);

#endif
