/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct_size that a caller sets in a struct that crosses by pointer.  A
 * size of 0 is one that was forgotten: every field after it would count as
 * absent, so it is an error everywhere.  Any thread.
 */
#ifndef TANDEM_COMMON_STRUCT_SIZE_H
#define TANDEM_COMMON_STRUCT_SIZE_H

#include <tandem/backend.h>

/* TANDEM_OK where bytes, what `what`.struct_size holds, is least or more; else
 * TANDEM_INVALID_ARGUMENT, and the message names the field and says to set it
 * to sizeof(struct `type`).  what: "matmul: options". */
enum tandem_status struct_size_check(const char *what, const char *type,
                                     size_t bytes, size_t least);

/* Copies into *out, whose struct_size its caller set and which
 * struct_size_check accepted, what of *from fits; from_bytes: sizeof *from.
 * out's struct_size stays, and bytes beyond from_bytes too. */
void struct_size_fill(void *out, const void *from, size_t from_bytes);

#endif
