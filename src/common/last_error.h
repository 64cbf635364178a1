/* SPDX-License-Identifier: Apache-2.0 */
/* Last error message of the calling thread. Each shared object that links this
 * file stores a message of its own. */
#ifndef TANDEM_COMMON_LAST_ERROR_H
#define TANDEM_COMMON_LAST_ERROR_H

#include <tandem/backend.h>

/* Sets the message, truncated to 511 bytes, and returns `status`. */
enum tandem_status last_error_set(enum tandem_status status, const char *format,
                                  ...) __attribute__((format(printf, 2, 3)));
#define argument_error(...) last_error_set(TANDEM_INVALID_ARGUMENT, __VA_ARGS__)
/* Returns the calling thread's message, "" if none was set. The text is valid
 * until the thread's next call of last_error_set. */
const char *last_error_get(void);
/* Returns a status's name, as in "invalid argument", or "unknown status". */
const char *status_name(enum tandem_status status);

#endif
