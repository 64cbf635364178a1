/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a file of the program cache: a header, the key of the program
 * and its binary.  Pure; knows nothing of OpenCL.
 */
#ifndef TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_FILE_H
#define TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_FORMAT 1u
/* No file is larger, and no larger one is read. */
#define CACHE_FILE_BYTES_MAX ((size_t)64 << 20)

struct cache_header {
    char magic[8];
    uint32_t format, key_bytes;
    uint64_t binary_bytes, checksum;
};

void cache_header_make(struct cache_header *out, const char *key,
                       const void *binary, size_t binary_bytes);

/* The binary within a file's bytes; NULL where they are not, to the last bit,
 * what was written for key. */
const unsigned char *cache_binary_find(const unsigned char *data, size_t bytes,
                                       const char *key,
                                       size_t *out_binary_bytes);

#define CACHE_NAME_BYTES 48u

/* The name of the file for key. */
void cache_name_make(char out[CACHE_NAME_BYTES], const char *key);
/* Whether a file of this name is the cache's. */
bool cache_name_known(const char *name);

/* FNV-1a of a text and its end. */
uint64_t cache_hash(uint64_t seed, const char *text);
#define CACHE_HASH_SEED 0xcbf29ce484222325u

#endif
