/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache of compiled programs, in the directory of the open key
 * "cache_dir".
 *
 * One file a program, named by a hash of its key; the key (format, source's
 * hash, options, device, driver, platform) stands in the file whole and is
 * compared.  File: struct header, key, binary.  Written under a temporary
 * name and renamed, so that a reader sees all of it or nothing; two writers
 * write the same.  Whatever is wrong with a file, the program is built from
 * source and the file replaced.
 *
 * NVIDIA's driver keeps PTX in a cache of its own, and its program binaries
 * are PTX too, which would be assembled again: no files for it.
 */
#include "opencl/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opencl/device.h"
#include "opencl/kernels.h"

#define CACHE_FORMAT 1u
#define CACHE_MAGIC "TandemCL"
#define KEY_BYTES 2048u
#define LARGEST_FILE_BYTES ((size_t)64 << 20)

struct header {
    char magic[8];
    uint32_t format, key_bytes;
    uint64_t binary_bytes, checksum;
};

/* FNV-1a. */
static uint64_t hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        seed = (seed ^ at[i]) * 0x100000001b3u;
    return seed;
}

static uint64_t hash_text(uint64_t seed, const char *text)
{
    return hash(seed, text, strlen(text) + 1);
}

#define HASH_SEED 0xcbf29ce484222325u

static bool enabled(const struct tandem_device *device)
{
    return device->cache_dir != NULL && !device->hardware->nvidia;
}

static size_t key_make(char *out, const struct tandem_device *device,
                       const struct variant_text *text)
{
    const struct tandem_device_info *info = &device->hardware->info;
    uint64_t source =
        hash_text(hash_text(HASH_SEED, kernel_common), text->source);
    int length = snprintf(
        out, KEY_BYTES, "%u\n%s\n%016" PRIx64 "\n%s\n%s\n%s\n%s\n%s\n%s",
        CACHE_FORMAT, text->file, source, text->options, info->name,
        info->vendor, info->driver, info->platform, device->hardware->version);
    return length < 0 || length >= (int)KEY_BYTES ? KEY_BYTES - 1
                                                  : (size_t)length;
}

static bool path_make(char *out, const struct tandem_device *device,
                      const char *key)
{
    uint64_t low = hash_text(HASH_SEED, key);
    uint64_t high = hash_text(low ^ 0x9e3779b97f4a7c15u, key);
    return snprintf(out, PATH_MAX, "%s/%016" PRIx64 "%016" PRIx64 ".clbin",
                    device->cache_dir, high, low) < PATH_MAX;
}

/* A file that nobody but this user, or root, can have made. */
static bool trusted(const struct stat *status)
{
    return S_ISREG(status->st_mode) &&
           (status->st_uid == geteuid() || status->st_uid == 0) &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Whether nobody else can put another directory in the place of path, or, of
 * its last part, files into it. */
static bool directory_trusted(const char *path, bool last)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode) ||
        (status.st_uid != geteuid() && status.st_uid != 0))
        return false;
    return (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
           (!last && (status.st_mode & S_ISVTX) != 0);
}

bool cache_directory(const char *path)
{
    char part[PATH_MAX];
    if (path[0] != '/' || strlen(path) >= sizeof(part))
        return false;
    snprintf(part, sizeof(part), "%s", path);
    for (char *at = part + 1; *at != '\0'; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(part, 0700);
            if (!directory_trusted(part, false))
                return false;
            *at = '/';
        }
    mkdir(part, 0700);
    return directory_trusted(part, true);
}

/* The whole file, or NULL. */
static unsigned char *file_read(const char *path, size_t *out_bytes)
{
    struct stat status;
    unsigned char *data = NULL;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return NULL;
    if (fstat(file, &status) == 0 && trusted(&status) &&
        status.st_size > (off_t)sizeof(struct header) &&
        (uint64_t)status.st_size <= LARGEST_FILE_BYTES)
        data = malloc((size_t)status.st_size);
    size_t done = 0;
    while (data != NULL && done < (size_t)status.st_size) {
        ssize_t got = read(file, data + done, (size_t)status.st_size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(data);
            data = NULL;
        } else {
            done += (size_t)got;
        }
    }
    close(file);
    *out_bytes = done;
    return data;
}

/* The binary within a file's bytes, or NULL where they are not as written. */
static const unsigned char *binary_find(const unsigned char *data, size_t bytes,
                                        const char *key, size_t key_bytes,
                                        size_t *out_binary_bytes)
{
    struct header header;
    if (bytes < sizeof(header) + key_bytes)
        return NULL;
    memcpy(&header, data, sizeof(header));
    if (memcmp(header.magic, CACHE_MAGIC, sizeof(header.magic)) != 0 ||
        header.format != CACHE_FORMAT || header.key_bytes != key_bytes ||
        header.binary_bytes != bytes - sizeof(header) - key_bytes ||
        memcmp(data + sizeof(header), key, key_bytes) != 0)
        return NULL;
    const unsigned char *binary = data + sizeof(header) + key_bytes;
    *out_binary_bytes = (size_t)header.binary_bytes;
    return hash(HASH_SEED, binary, *out_binary_bytes) == header.checksum
               ? binary
               : NULL;
}

static cl_program program_load(struct tandem_device *device,
                               const struct variant_text *text,
                               const unsigned char *binary, size_t bytes)
{
    cl_int code = CL_SUCCESS, of_binary = CL_SUCCESS;
    cl_program program =
        clCreateProgramWithBinary(device->context, 1, &device->hardware->id,
                                  &bytes, &binary, &of_binary, &code);
    if (code == CL_SUCCESS && of_binary == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->hardware->id, text->options, NULL,
                       NULL) == CL_SUCCESS)
        return program;
    if (program != NULL)
        clReleaseProgram(program);
    return NULL;
}

cl_program cache_load(struct tandem_device *device,
                      const struct variant_text *text)
{
    char key[KEY_BYTES], path[PATH_MAX];
    if (!enabled(device))
        return NULL;
    size_t key_bytes = key_make(key, device, text);
    size_t bytes = 0, binary_bytes = 0;
    if (!path_make(path, device, key))
        return NULL;
    unsigned char *data = file_read(path, &bytes);
    if (data == NULL)
        return NULL;
    const unsigned char *binary =
        binary_find(data, bytes, key, key_bytes, &binary_bytes);
    cl_program program = binary != NULL
                             ? program_load(device, text, binary, binary_bytes)
                             : NULL;
    if (program == NULL)
        device_log(device, TANDEM_LOG_WARNING,
                   "%s is not usable: %s is built anew", path, text->file);
    free(data);
    return program;
}

static bool write_all(int file, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    while (bytes > 0) {
        ssize_t put = write(file, at, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}

static bool file_write(const char *path, const char *key, size_t key_bytes,
                       const unsigned char *binary, size_t bytes)
{
    char temporary[PATH_MAX];
    struct header header = {CACHE_MAGIC, CACHE_FORMAT, (uint32_t)key_bytes,
                            bytes, hash(HASH_SEED, binary, bytes)};
    if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >=
        (int)sizeof(temporary))
        return false;
    int file = mkstemp(temporary); /* mode 0600 */
    if (file < 0)
        return false;
    bool written = write_all(file, &header, sizeof(header)) &&
                   write_all(file, key, key_bytes) &&
                   write_all(file, binary, bytes);
    written = close(file) == 0 && written;
    if (written && rename(temporary, path) == 0)
        return true;
    unlink(temporary);
    return false;
}

/* The program's binary for its one device, or NULL. */
static unsigned char *binary_fetch(cl_program program, size_t *out_bytes)
{
    unsigned char *binary = NULL;
    *out_bytes = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(*out_bytes),
                         out_bytes, NULL) != CL_SUCCESS ||
        *out_bytes == 0 || *out_bytes > LARGEST_FILE_BYTES - KEY_BYTES * 2)
        return NULL;
    binary = malloc(*out_bytes);
    if (binary != NULL &&
        clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary,
                         NULL) == CL_SUCCESS)
        return binary;
    free(binary);
    return NULL;
}

void cache_store(struct tandem_device *device, const struct variant_text *text,
                 cl_program program)
{
    char key[KEY_BYTES], path[PATH_MAX];
    size_t bytes;
    if (!enabled(device))
        return;
    size_t key_bytes = key_make(key, device, text);
    if (!path_make(path, device, key))
        return;
    unsigned char *binary = binary_fetch(program, &bytes);
    if (binary == NULL)
        return;
    if (!file_write(path, key, key_bytes, binary, bytes))
        device_log(device, TANDEM_LOG_WARNING, "%s cannot be written", path);
    free(binary);
}
