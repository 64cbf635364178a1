/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last error message of the calling thread.  Each shared object that
 * links this file has its own.
 */
#ifndef TANDEM_COMMON_LAST_ERROR_H
#define TANDEM_COMMON_LAST_ERROR_H

#include <tandem/backend.h>

/* Formats the message (cut at 511 bytes) and returns status. */
enum tandem_status last_error_set(enum tandem_status status, const char *format,
                               ...) __attribute__((format(printf, 2, 3)));
/* "" if none. */
const char *message_get(void);
/* "invalid argument", ...; "unknown status". */
const char *status_name(enum tandem_status status);

#endif
