/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache of compiled programs.  It has two directories: that of the
 * user (option "cache_dir") and that of the system (option "system_cache_dir").
 * The plugin only reads the latter; cl-probe --warm-cache --system fills it.
 *
 * Each program has its own file.  The name of the file is a hash of the
 * program's key: the format, the hash of the source, the options, the device,
 * the driver and the platform.  Hashes can be equal, so the file also contains
 * the key, which program_cache_load() compares.  Files are replaced atomically.
 * If the files exceed the size limit, the least recently used are deleted.
 *
 * The user's directory is not used with PoCL, which takes three times as long
 * to return a binary as to compile the program.
 * Neither directory is used with rusticl, because rusticl ends the process when
 * it loads an unknown binary.  docs/kernels.md describes both.
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

#include "common/secure_file.h"
#include "opencl/program/program_cache_entry.h"
#include "opencl/device/device.h"
#include "opencl/program/nvidia/ptx_rewrite.h"
#include "opencl/device/quirks.h"

#include <installed_directories.h>

/* Size of a cache key: the compiler options, six texts of at most 127 bytes
 * that describe the device, and 256 bytes for everything else. */
#define KEY_BYTES (6u * 128u + KERNEL_OPTION_BYTES + 256u)

void program_cache_init(struct program_cache *cache)
{
    *cache = (struct program_cache){.directory = -1,
                                    .system = -1,
                                    .system_path = strdup(STATEDIR),
                                    .limit_bytes = DEFAULT_CACHE_LIMIT_BYTES,
                                    .compile_lock_timeout_ms =
                                        DEFAULT_COMPILE_LOCK_TIMEOUT_MS};
}

static void user_directory_open(struct tandem_device *device)
{
    char why[SECURE_WHY_BYTES];
    struct program_cache *cache = &device->cache;
    cache->directory = secure_directory_open(
        cache->path, cache->world_readable ? SECURE_PUBLISH : SECURE_WRITE,
        why);
    if (cache->directory < 0)
        device_log(device, TANDEM_LOG_WARNING,
                   "cache_dir %s is not used: %s; programs are not cached",
                   cache->path, why[0] != '\0' ? why : "it cannot be created");
}

/* Opens the system's cache directory.  A missing directory is not an error. */
static void system_directory_open(struct tandem_device *device)
{
    char why[SECURE_WHY_BYTES];
    struct program_cache *cache = &device->cache;
    cache->system = secure_directory_open(cache->system_path, SECURE_READ, why);
    if (cache->system < 0 && why[0] != '\0')
        device_log(device, TANDEM_LOG_WARNING,
                   "compiled programs in %s are not used: %s",
                   cache->system_path, why);
}

void program_cache_open(struct tandem_device *device)
{
    struct program_cache *cache = &device->cache;
    const struct platform_device *hardware = device->hardware;
    bool binaries_load = (hardware->quirks & QUIRK_BINARY_FATAL) == 0;
    bool binaries_are_fast = (hardware->quirks & QUIRK_BINARY_SLOW) == 0;
    if (cache->path != NULL &&
        ((binaries_load && (cache->world_readable || binaries_are_fast)) ||
         cache->is_forced))
        user_directory_open(device);
    if (cache->system_path != NULL && !cache->world_readable &&
        (binaries_load || cache->is_forced))
        system_directory_open(device);
}

void program_cache_close(struct tandem_device *device)
{
    struct program_cache *cache = &device->cache;
    if (cache->directory >= 0)
        close(cache->directory);
    if (cache->system >= 0)
        close(cache->system);
    free(cache->path);
    free(cache->system_path);
}

/* The cache key of a program, and the name of the cache file for this key. */
struct cache_key {
    char text[KEY_BYTES];
    char name[CACHE_NAME_BYTES];
};

/* Makes the key.  Returns false if the key is longer than KEY_BYTES. */
static bool cache_key_make(struct cache_key *out,
                           const struct tandem_device *device,
                           const struct kernel_source *text)
{
    const struct tandem_device_info *info = &device->hardware->info;
    uint64_t source = cache_hash(CACHE_HASH_SEED, text->kernel->source);
    int length = snprintf(out->text, KEY_BYTES,
                          "%u\n%s%s\n%016" PRIx64 "\n%s\n%s\n%s\n%s\n%s\n%s",
                          CACHE_FORMAT, text->kernel->file,
                          (text->kernel->flags & KERNEL_PTX_REWRITE) != 0
                              ? " " PTX_REWRITE_REVISION
                              : "",
                          source, text->options, info->name, info->vendor,
                          info->driver_version, info->platform,
                          device->hardware->version);
    cache_name_make(out->name, out->text);
    return length > 0 && length < (int)KEY_BYTES;
}

/* ---- reading ---- */

cl_int program_from_binary(struct tandem_device *device, const void *binary,
                           size_t bytes, const char *options,
                           cl_program *out_program)
{
    const cl_device_id *id = &device->hardware->id;
    const unsigned char *start = binary;
    cl_int code = CL_SUCCESS, binary_status = CL_SUCCESS;
    *out_program = clCreateProgramWithBinary(device->context, 1, id, &bytes,
                                             &start, &binary_status, &code);
    if (code == CL_SUCCESS)
        code = binary_status;
    if (code == CL_SUCCESS)
        code = clBuildProgram(*out_program, 1, id, options, NULL, NULL);
    if (code != CL_SUCCESS && *out_program != NULL) {
        clReleaseProgram(*out_program);
        *out_program = NULL;
    }
    return code;
}

/* Loads the program of `key` from a cache directory.  `path` is the name of the
 * directory in log messages.  Returns NULL if there is no valid file. */
static cl_program cache_file_load(struct tandem_device *device,
                                  const struct kernel_source *text,
                                  const struct cache_key *key, int directory,
                                  const char *path)
{
    char why[SECURE_WHY_BYTES];
    size_t bytes, binary_bytes;
    cl_program program = NULL;
    const unsigned char *binary = NULL;
    void *data = secure_file_read(directory, key->name, MAX_CACHE_FILE_BYTES,
                                  &bytes, why);
    if (data != NULL)
        binary = cache_binary_find(data, bytes, key->text, &binary_bytes);
    if (binary != NULL)
        program_from_binary(device, binary, binary_bytes, text->options,
                            &program);
    if (program == NULL && (data != NULL || why[0] != '\0'))
        device_log(device, TANDEM_LOG_WARNING,
                   "%s/%s is ignored, %s is compiled: %s", path, key->name,
                   text->kernel->file,
                   data == NULL     ? why
                   : binary == NULL ? "the file is corrupt"
                                    : "the driver rejects the binary");
    free(data);
    return program;
}

cl_program program_cache_load(struct tandem_device *device,
                              const struct kernel_source *text)
{
    struct cache_key key;
    const struct program_cache *cache = &device->cache;
    cl_program program = NULL;
    if ((cache->directory < 0 && cache->system < 0) ||
        !cache_key_make(&key, device, text))
        return NULL;
    if (cache->directory >= 0)
        program =
            cache_file_load(device, text, &key, cache->directory, cache->path);
    if (program != NULL) /* records the last use */
        utimensat(cache->directory, key.name, NULL, AT_SYMLINK_NOFOLLOW);
    else if (cache->system >= 0)
        program = cache_file_load(device, text, &key, cache->system,
                                  cache->system_path);
    return program;
}

/* ---- writing ---- */

struct cache_entry {
    char name[CACHE_NAME_BYTES];
    struct timespec used;
    uint64_t bytes;
};

static int cache_entry_compare(const void *left, const void *right)
{
    const struct cache_entry *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Adds a file to the list of cache files if its name is valid.  Returns false
 * if host memory is exhausted. */
static bool cache_entry_add(struct cache_entry **list, size_t *count,
                            int directory, const char *name)
{
    struct stat status;
    if (!cache_name_is_valid(name) ||
        fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    if ((*count & (*count - 1)) == 0) { /* the array is full */
        size_t capacity = *count > 0 ? 2 * *count : 1;
        struct cache_entry *grown = realloc(*list, capacity * sizeof(**list));
        if (grown == NULL)
            return false;
        *list = grown;
    }
    struct cache_entry *entry = &(*list)[(*count)++];
    memcpy(entry->name, name, strlen(name) + 1);
    entry->used = status.st_mtim;
    entry->bytes = (uint64_t)status.st_size;
    return true;
}

/* Deletes the least recently used cache files to keep the size limit. */
static void program_cache_evict(const struct program_cache *cache)
{
    struct cache_entry *list = NULL;
    size_t count = 0;
    uint64_t bytes = 0;
    int duplicate =
        openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = duplicate >= 0 ? fdopendir(duplicate) : NULL;
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL &&
           cache_entry_add(&list, &count, cache->directory, entry->d_name))
        continue;
    if (stream != NULL)
        closedir(stream);
    else if (duplicate >= 0)
        close(duplicate);
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

unsigned char *program_binary_get(cl_program program, size_t max_bytes,
                                  size_t *out_bytes)
{
    unsigned char *binary = NULL;
    *out_bytes = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(*out_bytes),
                         out_bytes, NULL) != CL_SUCCESS ||
        *out_bytes == 0 || *out_bytes > max_bytes)
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
                         const struct kernel_source *text, cl_program program)
{
    const struct program_cache *cache = &device->cache;
    char why[SECURE_WHY_BYTES];
    struct cache_key key;
    struct cache_header header;
    size_t max_bytes = MAX_CACHE_FILE_BYTES, bytes;
    if (cache->directory < 0 || !cache_key_make(&key, device, text))
        return;
    if (cache->limit_bytes < max_bytes)
        max_bytes = (size_t)cache->limit_bytes;
    if (max_bytes < sizeof(header) + KEY_BYTES)
        return;
    unsigned char *binary = program_binary_get(
        program, max_bytes - sizeof(header) - KEY_BYTES, &bytes);
    if (binary == NULL)
        return;
    cache_header_make(&header, key.text, binary, bytes);
    const struct file_part parts[] = {{&header, sizeof(header)},
                                      {key.text, strlen(key.text)},
                                      {binary, bytes}};
    if (file_replace_atomically(cache->directory, key.name, parts, 3,
                                cache->world_readable ? REPLACE_PUBLIC : 0,
                                why))
        program_cache_evict(cache);
    else
        device_log(device, TANDEM_LOG_WARNING, "%s/%s is not cached: %s",
                   cache->path, key.name, why);
    free(binary);
}

/* ---- the compile lock ---- */

int compile_lock_acquire(struct tandem_device *device, bool *out_waited)
{
    char why[SECURE_WHY_BYTES];
    struct program_cache *cache = &device->cache;
    *out_waited = false;
    if ((device->hardware->quirks & QUIRK_BINARY_RACE) == 0 ||
        cache->path == NULL)
        return -1;
    int directory = secure_directory_open(
        cache->path, cache->world_readable ? SECURE_PUBLISH : SECURE_WRITE,
        why);
    if (directory < 0)
        return -1;
    int lock = lock_take(directory, 0);
    if (lock < 0 && !atomic_load(&cache->compile_lock_timed_out)) {
        lock = lock_take(directory, cache->compile_lock_timeout_ms);
        *out_waited = lock >= 0;
    }
    close(directory);
    if (lock < 0 && !atomic_exchange(&cache->compile_lock_timed_out, true))
        device_log(device, TANDEM_LOG_INFO,
                   "%s: programs are compiled but not cached, because the "
                   "compile lock was not acquired in %u ms",
                   cache->path, cache->compile_lock_timeout_ms);
    return lock;
}
