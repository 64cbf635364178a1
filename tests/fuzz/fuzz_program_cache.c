/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads arbitrary bytes as a file of the program cache. A binary must be found
 * only if it is complete and was written for the key. The first byte says if
 * the others are the whole file, the binary in a valid file, or a mask for the
 * first bytes of a valid file.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/program/program_cache_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define KEY "1\nelementwise.cl\n0123456789abcdef\n-DT=float\ndriver 1"

static void expect(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_any_file(const uint8_t *file, size_t bytes)
{
    struct cache_header header, again;
    size_t found;
    const unsigned char *binary = cache_binary_find(file, bytes, KEY, &found);

    if (binary == NULL) {
        expect(found == 0, "bytes of no binary");
        return;
    }
    expect(binary > file && binary + found == file + bytes, "not in the file");
    memcpy(&header, file, sizeof(header));
    cache_header_make(&again, KEY, binary, found);
    expect(memcmp(&header, &again, sizeof(header)) == 0, "another header");
}

/* overlay: bytes that are XORed into the file. */
static void check_modified_file(const uint8_t *body, size_t body_bytes,
                                const uint8_t *overlay, size_t overlay_bytes)
{
    const size_t start = sizeof(struct cache_header) + strlen(KEY);
    const size_t bytes = start + body_bytes;
    uint8_t *file = malloc(bytes);
    struct cache_header header;
    size_t found;
    int changed = 0;

    expect(file != NULL, "out of memory");
    cache_header_make(&header, KEY, body, body_bytes);
    memcpy(file, &header, sizeof(header));
    memcpy(file + sizeof(header), KEY, strlen(KEY));
    if (body_bytes > 0)
        memcpy(file + start, body, body_bytes);
    for (size_t i = 0; i < overlay_bytes && i < bytes; i++) {
        file[i] ^= overlay[i];
        changed |= overlay[i];
    }
    if (changed)
        check_any_file(file, bytes);
    else
        expect((cache_binary_find(file, bytes, KEY, &found) == file + start &&
                found == body_bytes) ||
                   body_bytes == 0,
               "a valid file was rejected");
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        check_any_file(data, 0);
    else if (data[0] == 'b')
        check_modified_file(data + 1, bytes - 1, NULL, 0);
    else if (data[0] == 'o')
        check_modified_file((const uint8_t *)"binary", 6, data + 1, bytes - 1);
    else
        check_any_file(data + 1, bytes - 1);
    return 0;
}
