/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache of compiled programs, in the directory of the open key
 * "cache_dir", and one for all users of the machine, "system_cache_dir", which
 * is only read, unless cl-probe --warm --system fills it.
 *
 * One file a program, named by a hash of its key; the key (format, source's
 * hash, options, device, driver, platform) stands in the file whole and is
 * compared.  Writers put whole files in place, and two of them write the same.
 * Whatever is wrong with a file, the program is built from source and the file
 * replaced.  Past the cap, those not used for longest go.
 *
 * No files of a user's where the driver keeps its own: NVIDIA's keeps PTX, and
 * its program binaries are PTX too, which would be assembled again; to fetch a
 * binary from PoCL costs three times the compile, which only pays where it is
 * done once for all; rusticl ends the process over a binary that it does not
 * know (docs/secure-files.md has the figures).
 */
#include "opencl/program/program_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/directory_lock.h"
#include "common/secure_file.h"
#include "opencl/program/program_cache_file.h"
#include "opencl/device/device.h"
#include "opencl/program/nvidia/ptx_rewrite.h"
#include "opencl/device/quirks.h"

/* Room for the longest of each part: six texts of a device's description, the
 * options, the numbers and line ends. */
#define KEY_BYTES (6u * 128u + VARIANT_OPTION_BYTES + 256u)

void program_cache_init(struct cache *cache)
{
    *cache = (struct cache){.directory = -1,
                            .system = -1,
                            .system_path = strdup(STATEDIR),
                            .limit_bytes = DEFAULT_CACHE_LIMIT_BYTES,
                            .turn_ms = DEFAULT_COMPILE_LOCK_TIMEOUT_MS};
}

static void own_open(struct tandem_device *device)
{
    char why[TRUST_WHY_BYTES];
    struct cache *cache = &device->cache;
    cache->directory =
        secure_directory_open(cache->path,
                        cache->shared ? TRUST_PUBLISH : TRUST_WRITE, why,
                        sizeof(why));
    if (cache->directory < 0)
        device_log(device, TANDEM_LOG_WARNING,
                   "cache_dir %s is not used: %s; programs are compiled anew",
                   cache->path, why[0] != '\0' ? why : "it cannot be made");
}

/* It need not be there. */
static void system_open(struct tandem_device *device)
{
    char why[TRUST_WHY_BYTES];
    struct cache *cache = &device->cache;
    cache->system =
        secure_directory_open(cache->system_path, TRUST_READ, why, sizeof(why));
    if (cache->system < 0 && why[0] != '\0')
        device_log(device, TANDEM_LOG_WARNING,
                   "compiled programs in %s are not used: %s",
                   cache->system_path, why);
}

void program_cache_open(struct tandem_device *device)
{
    struct cache *cache = &device->cache;
    const struct platform_device *hardware = device->hardware;
    bool loadable = (hardware->quirks & QUIRK_BINARY_FATAL) == 0;
    bool cheap = (hardware->quirks & QUIRK_BINARY_SLOW) == 0;
    if (cache->path != NULL &&
        ((loadable && (cache->shared || cheap)) || cache->forced))
        own_open(device);
    if (cache->system_path != NULL && !cache->shared &&
        (loadable || cache->forced))
        system_open(device);
}

void program_cache_close(struct tandem_device *device)
{
    struct cache *cache = &device->cache;
    if (cache->directory >= 0)
        close(cache->directory);
    if (cache->system >= 0)
        close(cache->system);
    cache->directory = cache->system = -1;
    free(cache->path);
    free(cache->system_path);
    cache->path = cache->system_path = NULL;
}

/* false: it does not fit, which no device's texts let happen. */
static bool key_make(char out[KEY_BYTES], const struct tandem_device *device,
                     const struct variant_text *text)
{
    const struct tandem_device_info *info = &device->hardware->info;
    uint64_t source = cache_hash(CACHE_HASH_SEED, text->source);
    int length = snprintf(
        out, KEY_BYTES, "%u\n%s%s\n%016" PRIx64 "\n%s\n%s\n%s\n%s\n%s\n%s",
        CACHE_FORMAT, text->file, text->patched ? " " PTX_REWRITE_REVISION : "",
        source, text->options, info->name, info->vendor, info->driver_version,
        info->platform, device->hardware->version);
    return length > 0 && length < (int)KEY_BYTES;
}

/* ---- reading ---- */

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

/* From one directory, of that path. */
static cl_program file_load(struct tandem_device *device,
                            const struct variant_text *text, const char *key,
                            int directory, const char *path)
{
    char name[CACHE_NAME_BYTES], why[TRUST_WHY_BYTES];
    size_t bytes, binary_bytes;
    cache_name_make(name, key);
    void *data = trust_read(directory, name, CACHE_FILE_BYTES_MAX, &bytes, why,
                            sizeof(why));
    const unsigned char *binary =
        data != NULL ? cache_binary_find(data, bytes, key, &binary_bytes)
                     : NULL;
    cl_program program = binary != NULL
                             ? program_load(device, text, binary, binary_bytes)
                             : NULL;
    if (program == NULL && (data != NULL || why[0] != '\0'))
        device_log(device, TANDEM_LOG_WARNING,
                   "%s/%s is not used, %s is built anew: %s", path, name,
                   text->file,
                   data == NULL     ? why
                   : binary == NULL ? "it is not what was written"
                                    : "the driver does not take it");
    free(data);
    return program;
}

cl_program program_cache_load(struct tandem_device *device,
                              const struct variant_text *text)
{
    char key[KEY_BYTES], name[CACHE_NAME_BYTES];
    const struct cache *cache = &device->cache;
    cl_program program = NULL;
    if ((cache->directory < 0 && cache->system < 0) ||
        !key_make(key, device, text))
        return NULL;
    if (cache->directory >= 0)
        program = file_load(device, text, key, cache->directory, cache->path);
    if (program != NULL) { /* it was of use today */
        cache_name_make(name, key);
        utimensat(cache->directory, name, NULL, AT_SYMLINK_NOFOLLOW);
    } else if (cache->system >= 0) {
        program =
            file_load(device, text, key, cache->system, cache->system_path);
    }
    return program;
}

/* ---- writing ---- */

struct kept {
    char name[CACHE_NAME_BYTES];
    struct timespec used;
    uint64_t bytes;
};

static int cache_entry_compare(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Adds a file to the list, if it is the cache's; false: no memory. */
static bool cache_entry_add(struct kept **list, size_t *count, int directory,
                            const char *name)
{
    struct stat status;
    if (!cache_name_known(name) ||
        fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    if ((*count & (*count - 1)) == 0) { /* full at each power of two */
        size_t room = *count > 0 ? 2 * *count : 1;
        struct kept *grown = realloc(*list, room * sizeof(**list));
        if (grown == NULL)
            return false;
        *list = grown;
    }
    struct kept *kept = &(*list)[(*count)++];
    memcpy(kept->name, name, strlen(name) + 1);
    kept->used = status.st_mtim;
    kept->bytes = (uint64_t)status.st_size;
    return true;
}

/* Removes what was not used for longest until the rest is within the cap. */
static void program_cache_evict(const struct cache *cache)
{
    struct kept *list = NULL;
    size_t count = 0;
    uint64_t bytes = 0;
    int own = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own >= 0 ? fdopendir(own) : NULL;
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL &&
           cache_entry_add(&list, &count, cache->directory, entry->d_name))
        continue;
    if (stream != NULL)
        closedir(stream);
    else if (own >= 0)
        close(own);
    for (size_t i = 0; i < count; i++)
        bytes += list[i].bytes;
    if (bytes > cache->limit_bytes)
        qsort(list, count, sizeof(*list), cache_entry_compare);
    for (size_t i = 0; i < count && bytes > cache->limit_bytes; i++) {
        unlinkat(cache->directory, list[i].name, 0);
        bytes -= list[i].bytes;
    }
    free(list);
}

/* As PoCL gives a program's binary, it reads a directory of its cache that
 * another process's compiler may have moved away, and dies of it (3.1: of 64
 * processes that begin with empty caches, up to 15); builds fail as well. */
int compile_lock_acquire(struct tandem_device *device, bool *out_waited)
{
    char why[TRUST_WHY_BYTES];
    struct cache *cache = &device->cache;
    *out_waited = false;
    if ((device->hardware->quirks & QUIRK_BINARY_RACE) == 0 ||
        cache->path == NULL)
        return -1;
    int directory = secure_directory_open(
        cache->path, cache->shared ? TRUST_PUBLISH : TRUST_WRITE, why,
        sizeof(why));
    if (directory < 0)
        return -1;
    int turn = lock_take(directory, 0);
    if (turn < 0 && !atomic_load(&cache->late)) {
        turn = lock_take(directory, cache->turn_ms);
        *out_waited = turn >= 0;
    }
    close(directory);
    if (turn < 0 && !atomic_exchange(&cache->late, true))
        device_log(device, TANDEM_LOG_INFO,
                   "%s: another process compiles, or there are no locks: what "
                   "is compiled now is not kept",
                   cache->path);
    return turn;
}

void compile_lock_release(int turn)
{
    lock_release(turn);
}

bool compile_lock_permits_binary(const struct tandem_device *device, int turn)
{
    return (device->hardware->quirks & QUIRK_BINARY_RACE) == 0 || turn >= 0;
}

unsigned char *cache_binary_fetch(cl_program program, size_t most,
                                  size_t *out_bytes)
{
    unsigned char *binary = NULL;
    *out_bytes = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(*out_bytes),
                         out_bytes, NULL) != CL_SUCCESS ||
        *out_bytes == 0 || *out_bytes > most)
        return NULL;
    binary = malloc(*out_bytes);
    if (binary != NULL &&
        clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary,
                         NULL) == CL_SUCCESS)
        return binary;
    free(binary);
    return NULL;
}

void program_cache_store(struct tandem_device *device,
                         const struct variant_text *text, cl_program program)
{
    const struct cache *cache = &device->cache;
    char key[KEY_BYTES], name[CACHE_NAME_BYTES], why[TRUST_WHY_BYTES];
    struct cache_header header;
    size_t most = CACHE_FILE_BYTES_MAX, bytes;
    if (cache->directory < 0 || !key_make(key, device, text))
        return;
    if (cache->limit_bytes < most)
        most = (size_t)cache->limit_bytes;
    if (most < sizeof(header) + KEY_BYTES)
        return;
    unsigned char *binary =
        cache_binary_fetch(program, most - sizeof(header) - KEY_BYTES, &bytes);
    if (binary == NULL)
        return;
    cache_header_make(&header, key, binary, bytes);
    cache_name_make(name, key);
    const struct trust_part parts[] = {
        {&header, sizeof(header)}, {key, strlen(key)}, {binary, bytes}};
    if (file_replace_atomically(cache->directory, name, parts, 3,
                      cache->shared ? TRUST_PUBLIC : 0, why, sizeof(why)))
        program_cache_evict(cache);
    else
        device_log(device, TANDEM_LOG_WARNING, "%s/%s is not kept: %s",
                   cache->path, name, why);
    free(binary);
}
