/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are mapped into memory, for the weights that a model keeps in
 * files of their own.  A file is mapped once for all sessions of the process.
 * Any thread may call these functions. */
#ifndef TANDEM_ONNXRUNTIME_MAPPED_FILE_H
#define TANDEM_ONNXRUNTIME_MAPPED_FILE_H

#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>

/* A file, which is mapped completely and read-only. */
struct mapped_file {
    struct mapped_file *next;
    struct mapped_files *owner;
    unsigned int users; /* guarded by the owner's mutex */
    const char *memory;
    size_t bytes;
    struct stat identity;
};

/* All mapped files of a process. */
struct mapped_files {
    pthread_mutex_t mutex; /* guards what follows */
    struct mapped_file *first;
};

/* Maps the file, or finds its mapping.  Returns NULL if the path does not name
 * a regular file that can be mapped.  The caller releases the file. */
struct mapped_file *mapped_file_open(struct mapped_files *files,
                                     const char *path);
/* Says that a part of the content is not needed for now.  Frees its memory,
 * into which the system reads the file again if the part is used. */
void mapped_file_unload(const struct mapped_file *file, const void *content,
                        size_t bytes);
/* Adds a user, who releases the file, too.  Accepts NULL. */
void mapped_file_retain(struct mapped_file *file);
/* Removes a user, and unmaps the file with the last one.  Accepts NULL. */
void mapped_file_release(struct mapped_file *file);

#endif
