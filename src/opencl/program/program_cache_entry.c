/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and checks the files of the program cache. */
#include "opencl/program/program_cache_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "TandemCL"
#define NAME_DIGITS 32u
#define NAME_SUFFIX ".clbin"

/* Returns the FNV-1a hash.  The hash changes if any single byte changes. */
static uint64_t hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        seed = (seed ^ at[i]) * 0x100000001b3u;
    return seed;
}

uint64_t cache_hash(uint64_t seed, const char *text)
{
    return hash(seed, text, strlen(text) + 1);
}

void cache_header_make(struct cache_header *out, const char *key,
                       const void *binary, size_t binary_bytes)
{
    memcpy(out->magic, MAGIC, sizeof(out->magic));
    out->format = CACHE_FORMAT;
    out->key_bytes = (uint32_t)strlen(key);
    out->binary_bytes = binary_bytes;
    out->checksum = hash(CACHE_HASH_SEED, binary, binary_bytes);
}

const unsigned char *cache_binary_find(const unsigned char *data, size_t bytes,
                                       const char *key,
                                       size_t *out_binary_bytes)
{
    struct cache_header header;
    size_t key_bytes = strlen(key);
    *out_binary_bytes = 0;
    if (bytes < sizeof(header) || bytes - sizeof(header) < key_bytes)
        return NULL;
    memcpy(&header, data, sizeof(header));
    if (memcmp(header.magic, MAGIC, sizeof(header.magic)) != 0 ||
        header.format != CACHE_FORMAT || header.key_bytes != key_bytes ||
        header.binary_bytes != bytes - sizeof(header) - key_bytes ||
        header.binary_bytes == 0 ||
        memcmp(data + sizeof(header), key, key_bytes) != 0)
        return NULL;
    const unsigned char *binary = data + sizeof(header) + key_bytes;
    if (hash(CACHE_HASH_SEED, binary, (size_t)header.binary_bytes) !=
        header.checksum)
        return NULL;
    *out_binary_bytes = (size_t)header.binary_bytes;
    return binary;
}

void cache_name_make(char out[CACHE_NAME_BYTES], const char *key)
{
    uint64_t low = cache_hash(CACHE_HASH_SEED, key);
    uint64_t high = cache_hash(low ^ 0x9e3779b97f4a7c15u, key);
    snprintf(out, CACHE_NAME_BYTES, "%016" PRIx64 "%016" PRIx64 NAME_SUFFIX,
             high, low);
}

bool cache_name_is_valid(const char *name)
{
    return strspn(name, "0123456789abcdef") == NAME_DIGITS &&
           strcmp(name + NAME_DIGITS, NAME_SUFFIX) == 0;
}
