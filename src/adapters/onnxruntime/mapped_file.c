/* SPDX-License-Identifier: Apache-2.0 */
/* Maps files into memory; see mapped_file.h. */
#include <config.h>

#include "adapters/onnxruntime/mapped_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns true if both are the same version of the same file.  Each change of
 * the content sets the time of the last change of the status. */
static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_size == b->st_size && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Maps an open file.  Returns NULL if this fails. */
static struct mapped_file *file_map(int descriptor, const struct stat *identity)
{
    struct mapped_file *file = calloc(1, sizeof(*file));
    void *memory;

    if (file == NULL)
        return NULL;
    memory = mmap(NULL, (size_t)identity->st_size, PROT_READ, MAP_PRIVATE,
                  descriptor, 0);
    if (memory == MAP_FAILED) {
        free(file);
        return NULL;
    }
    file->memory = memory;
    file->bytes = (size_t)identity->st_size;
    file->identity = *identity;
    return file;
}

struct mapped_file *mapped_file_open(struct mapped_files *files,
                                     const char *path)
{
    /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct mapped_file *file = NULL;
    struct stat identity;

    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &identity) != 0 || !S_ISREG(identity.st_mode) ||
        identity.st_size <= 0) {
        close(descriptor);
        return NULL;
    }
    pthread_mutex_lock(&files->mutex);
    for (file = files->first; file != NULL; file = file->next) {
        if (is_same_file(&file->identity, &identity))
            break;
    }
    if (file == NULL) {
        file = file_map(descriptor, &identity);
        if (file != NULL) {
            file->owner = files;
            file->next = files->first;
            files->first = file;
        }
    }
    if (file != NULL)
        file->users++;
    pthread_mutex_unlock(&files->mutex);
    close(descriptor);
    return file;
}

void mapped_file_unload(const struct mapped_file *file, const void *content,
                        size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t begin = (size_t)((const char *)content - file->memory);
    const size_t first = begin / page * page;

    madvise((char *)file->memory + first, begin + bytes - first, MADV_DONTNEED);
}

void mapped_file_retain(struct mapped_file *file)
{
    if (file == NULL)
        return;
    pthread_mutex_lock(&file->owner->mutex);
    file->users++;
    pthread_mutex_unlock(&file->owner->mutex);
}

void mapped_file_release(struct mapped_file *file)
{
    struct mapped_files *owner;
    struct mapped_file **link;

    if (file == NULL)
        return;
    owner = file->owner;
    pthread_mutex_lock(&owner->mutex);
    if (--file->users == 0) {
        link = &owner->first;
        while (*link != file)
            link = &(*link)->next;
        *link = file->next;
        munmap((void *)file->memory, file->bytes);
        free(file);
    }
    pthread_mutex_unlock(&owner->mutex);
}
