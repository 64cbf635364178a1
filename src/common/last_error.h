/* SPDX-License-Identifier: Apache-2.0 */
/* Last error message of the calling thread. Each shared object that links this
 * file stores its own message. */
#ifndef TANDEM_COMMON_LAST_ERROR_H
#define TANDEM_COMMON_LAST_ERROR_H

#include <tandem/backend.h>

/* Bytes of the message that a thread keeps until it ends. An unusual number, by
 * which tests that count memory recognise it. */
#define LAST_ERROR_BYTES 509u

/* Sets the message, truncated to 508 bytes, and returns `status`. If there is
 * no memory for the thread's first message, the message says so. */
enum tandem_status last_error_set(enum tandem_status status, const char *format,
                                  ...) __attribute__((format(printf, 2, 3)));
#define argument_error(...) last_error_set(TANDEM_INVALID_ARGUMENT, __VA_ARGS__)
#define memory_error(...) last_error_set(TANDEM_OUT_OF_MEMORY, __VA_ARGS__)
/* Prepends `prefix` and a colon to the first 255 bytes of the message. Returns
 * `status`. */
enum tandem_status last_error_prefix(enum tandem_status status,
                                     const char *prefix);
/* Returns the calling thread's message, or "" if none was set. The text is
 * valid until the thread sets its next message. */
const char *last_error_get(void);
/* Returns the name of a status, as in "device lost", or "unknown status". */
const char *status_name(enum tandem_status status);

#endif
