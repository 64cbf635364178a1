/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of struct_size and flags; see struct_size.h. */
#include "common/struct_size.h"
#include "common/last_error.h"

#include <string.h>

/* A larger struct_size was never set, so the bytes are not read. */
#define MAX_STRUCT_BYTES 4096u

enum tandem_status struct_size_check(const char *what, const char *type,
                                     size_t bytes, size_t least)
{
    if (bytes >= least)
        return TANDEM_OK;
    return argument_error(
        "%s.struct_size is %zu, below %zu: set it to sizeof(struct %s)", what,
        bytes, least, type);
}

enum tandem_status input_struct_check(const char *what, const char *type,
                                      const void *in, size_t known,
                                      size_t least)
{
    size_t bytes;

    memcpy(&bytes, in, sizeof bytes);
    if (bytes > MAX_STRUCT_BYTES)
        return argument_error("%s.struct_size is %zu, above %u: set it to "
                              "sizeof(struct %s)",
                              what, bytes, MAX_STRUCT_BYTES, type);
    for (size_t i = known; i < bytes; i++)
        if (((const unsigned char *)in)[i] != 0)
            return last_error_set(
                TANDEM_UNSUPPORTED,
                "%s: byte %zu is not 0, but this version of struct %s has %zu "
                "bytes",
                what, i, type, known);
    return struct_size_check(what, type, bytes, least);
}

enum tandem_status out_struct_check(const char *what, const char *type,
                                    const void *out)
{
    size_t bytes;

    if (out == NULL)
        return argument_error("%s is NULL", what);
    memcpy(&bytes, out, sizeof bytes);
    return struct_size_check(what, type, bytes, sizeof bytes);
}

enum tandem_status open_options_check(const struct tandem_open_options *options)
{
    enum tandem_status status;

    if (options == NULL)
        return TANDEM_OK;
    status =
        input_struct_check("open: options", "tandem_open_options", options,
                           sizeof(*options), TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0);
    if (status != TANDEM_OK)
        return status;
    if (options->reserved != 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "open: options.reserved is %u; expected 0",
                              (unsigned)options->reserved);
    if (options->count > 0 &&
        (options->keys == NULL || options->values == NULL))
        return argument_error("open: keys or values is NULL, but count is %u",
                              (unsigned)options->count);
    for (uint32_t i = 0; i < options->count; i++)
        if (options->keys[i] == NULL || options->values[i] == NULL)
            return argument_error("open: key or value %u is NULL", (unsigned)i);
    return TANDEM_OK;
}

enum tandem_status
alloc_options_check(const struct tandem_alloc_options *options)
{
    enum tandem_status status;

    if (options == NULL)
        return argument_error("alloc: options is NULL");
    status =
        input_struct_check("alloc: options", "tandem_alloc_options", options,
                           sizeof(*options), TANDEM_ALLOC_OPTIONS_MIN_SIZE_1_0);
    if (status != TANDEM_OK)
        return status;
    if (options->reserved != 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "alloc: options.reserved is %u; expected 0",
                              (unsigned)options->reserved);
    if ((options->alignment & (options->alignment - 1)) != 0)
        return argument_error("alloc: the alignment of %u bytes is no power "
                              "of two",
                              (unsigned)options->alignment);
    return TANDEM_OK;
}

enum tandem_status
alloc_alignment_unsupported(const struct tandem_alloc_options *options,
                            uint32_t most)
{
    return last_error_set(TANDEM_UNSUPPORTED,
                          "alloc: an alignment of %u bytes is unsupported; "
                          "expected at most %u",
                          (unsigned)options->alignment, (unsigned)most);
}

enum tandem_status check_flags(const char *what, uint32_t flags, uint32_t known)
{
    if ((flags & ~known) == 0)
        return TANDEM_OK;
    return last_error_set(
        TANDEM_UNSUPPORTED,
        "%s: flags 0x%x has unknown bits; the known bits are 0x%x", what, flags,
        known);
}

void struct_size_fill(void *out, const void *from, size_t from_bytes)
{
    size_t bytes;

    memcpy(&bytes, out, sizeof bytes);
    memcpy(out, from, bytes < from_bytes ? bytes : from_bytes);
    memcpy(out, &bytes, sizeof bytes);
}
