/* SPDX-License-Identifier: Apache-2.0 */
/* The format of the program cache's files: a header, the key of the program and
 * the binary of the program.  Any thread may call these pure functions. */
#ifndef TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_ENTRY_H
#define TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_FORMAT 1u
/* Maximum size of a cache file.  Larger files are neither written nor read. */
#define MAX_CACHE_FILE_BYTES ((size_t)64 << 20)

struct cache_header {
    char magic[8];
    uint32_t format, key_bytes;
    uint64_t binary_bytes, checksum;
};

void cache_header_make(struct cache_header *out, const char *key,
                       const void *binary, size_t binary_bytes);

/* Returns the binary in the contents of a cache file, or NULL if the file is
 * corrupt or has another key. */
const unsigned char *cache_binary_find(const unsigned char *data, size_t bytes,
                                       const char *key,
                                       size_t *out_binary_bytes);

#define CACHE_NAME_BYTES 48u

/* Writes the name of the cache file for `key`. */
void cache_name_make(char out[CACHE_NAME_BYTES], const char *key);
/* Returns true if the name has the form of a cache file's name. */
bool cache_name_is_valid(const char *name);

/* Returns the FNV-1a hash of `text` and its final NUL.  `seed` is
 * CACHE_HASH_SEED or the hash of the preceding text. */
uint64_t cache_hash(uint64_t seed, const char *text);
#define CACHE_HASH_SEED 0xcbf29ce484222325u

#endif
