/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files and directories that only root and the effective user can modify
 * or replace. Each check applies to the open descriptor, so a name cannot be
 * exchanged between check and use. The functions may be called from any thread
 * and do not set the last error. docs/options.md gives the reasons. If a
 * function fails, out_why holds the reason, or "" if the file or directory does
 * not exist. For a directory that others can write, the reason names the
 * command that changes this. */
#ifndef TANDEM_COMMON_SECURE_FILE_H
#define TANDEM_COMMON_SECURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size, in bytes, of the buffer to which every out_why points. */
#define SECURE_WHY_BYTES 512u

enum secure_use {
    SECURE_READ, /* allows world-writable sticky directories (/tmp) */
    /* Allows no directory that others can write, even if it is sticky. Creates
     * a missing directory with mode 0700 regardless of the umask. */
    SECURE_WRITE,
    SECURE_PUBLISH, /* like SECURE_WRITE, but a new directory gets mode 0755 */
};

/* Opens a directory by its absolute path. Returns a descriptor that the caller
 * closes, or -1 if any part of the path, including links, is not secure. */
int secure_directory_open(const char *path, enum secure_use use, char *out_why);

/* Opens a regular file for reading in a directory from secure_directory_open.
 * name must not contain a slash. Returns -1 if the file is not secure. */
int secure_file_open(int directory, const char *name, char *out_why);

/* Returns the zero-terminated content of a file, which the caller frees.
 * Returns NULL if secure_file_open rejects the file, if the file cannot be
 * read, or if it is larger than `most` bytes. */
char *secure_file_read(int directory, const char *name, size_t most,
                       size_t *out_bytes, char *out_why);

/* One of several byte ranges that are written to a file one after another. */
struct file_part {
    const void *data;
    size_t bytes;
};

enum replace_option {
    REPLACE_DURABLE = 1, /* sync the file to disk before returning */
    REPLACE_PUBLIC = 2   /* file mode 0644 (not 0600), ignoring the umask */
};

/* Writes the parts to a temporary file and renames it to `name`. `how` combines
 * bits of enum replace_option. On failure, returns false and leaves the old
 * file unchanged. If the file exceeds the size limit, fails without a signal.
 * Also removes the temporary files of killed writers. */
bool file_replace_atomically(int directory, const char *name,
                             const struct file_part *parts, size_t count,
                             unsigned how, char *out_why);

/* Locks an open directory exclusively, against other processes and other
 * threads. Returns a descriptor for lock_release, or -1 if the directory stays
 * locked for most_ms milliseconds or the file system does not support locks. */
int lock_take(int directory, uint32_t most_ms);
/* Unlocks the directory and closes `lock`. Does nothing if lock is -1. */
void lock_release(int lock);

#endif
