/* SPDX-License-Identifier: Apache-2.0 */
/* Checks struct_size and flags, the fields that let the public ABI grow.
 * Input that this version does not know is TANDEM_UNSUPPORTED, so that a host
 * can tell it from a mistake. A struct_size of 0 is always an error: the caller
 * forgot to set the field, and all other fields would count as absent. May be
 * called from any thread. */
#ifndef TANDEM_COMMON_STRUCT_SIZE_H
#define TANDEM_COMMON_STRUCT_SIZE_H

#include <tandem/backend.h>

/* Returns TANDEM_OK if `bytes`, a caller's struct_size, is at least `least`.
 * Otherwise sets the last error, which says to set the field to sizeof(struct
 * `type`), and returns TANDEM_INVALID_ARGUMENT. `what` names the struct in the
 * message, as in "matmul: options". */
enum tandem_status struct_size_check(const char *what, const char *type,
                                     size_t bytes, size_t least);

/* Checks a struct that a call reads, and whose first member is struct_size:
 * struct_size as struct_size_check, and that all bytes from `known` on, which
 * a later version added, are 0. Otherwise sets the last error and returns
 * TANDEM_UNSUPPORTED. `known` is the struct's size in this version. */
enum tandem_status input_struct_check(const char *what, const char *type,
                                      const void *in, size_t known,
                                      size_t least);

/* Checks a struct that a call fills: `out` must not be NULL, and its first
 * member, struct_size, at least the size of that member. Otherwise sets the
 * last error and returns TANDEM_INVALID_ARGUMENT. `what` and `type` are those
 * of struct_size_check. */
enum tandem_status out_struct_check(const char *what, const char *type,
                                    const void *out);

/* Checks the options of a device, which may be NULL: their size, that no key
 * and no value is NULL, and that nothing in them is unknown except keys. */
enum tandem_status
open_options_check(const struct tandem_open_options *options);

/* Checks the options of alloc: their size, and that the alignment and the
 * reserved field are valid. Otherwise sets the last error and returns its
 * status. */
enum tandem_status
alloc_options_check(const struct tandem_alloc_options *options);

/* Sets the last error of an alignment above `most`, that of the plugin, and
 * returns TANDEM_UNSUPPORTED. */
enum tandem_status
alloc_alignment_unsupported(const struct tandem_alloc_options *options,
                            uint32_t most);

/* Copies *from into *out, truncated to out's struct_size, which the caller set
 * and struct_size_check accepted. from_bytes is sizeof *from. Keeps out's
 * struct_size and its bytes beyond from_bytes. */
void struct_size_fill(void *out, const void *from, size_t from_bytes);

/* Returns TANDEM_UNSUPPORTED and sets the last error if `flags` has a bit that
 * is not in `known`. `what` names the call in messages, as in "upload". */
enum tandem_status check_flags(const char *what, uint32_t flags,
                               uint32_t known);

#endif
