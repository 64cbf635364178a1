/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once.  An arena belongs to one object (a graph, a
 * form) and may be used by one thread at a time. */
#ifndef TANDEM_ONNXRUNTIME_ARENA_H
#define TANDEM_ONNXRUNTIME_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

/* An arena that is filled with zeros is empty. */
struct arena {
    struct arena_block *blocks;
    bool exhausted; /* an allocation failed */
};

/* Returns memory filled with zeros for `count` objects, or NULL if memory is
 * exhausted or the size overflows.  The arena owns the memory. */
void *arena_allocate(struct arena *arena, size_t count, size_t object_bytes);
/* Returns a copy of the string, or NULL if memory is exhausted. */
char *arena_copy_string(struct arena *arena, const char *string);
/* Frees all memory of the arena and makes it empty. */
void arena_free(struct arena *arena);

#endif
