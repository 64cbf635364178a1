/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once; see arena.h. */
#include <config.h>

#include "adapters/onnxruntime/arena.h"

#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    max_align_t memory[];
};

void *arena_allocate(struct arena *arena, size_t count, size_t object_bytes)
{
    struct arena_block *block = NULL;
    size_t bytes;

    if (!__builtin_mul_overflow(count, object_bytes, &bytes) &&
        !__builtin_add_overflow(bytes, sizeof(*block), &bytes))
        block = calloc(1, bytes);
    if (block == NULL) {
        arena->exhausted = true;
        return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->memory;
}

char *arena_copy_string(struct arena *arena, const char *string)
{
    const size_t bytes = strlen(string) + 1;
    char *copy = arena_allocate(arena, bytes, 1);

    if (copy != NULL)
        memcpy(copy, string, bytes);
    return copy;
}

void arena_free(struct arena *arena)
{
    struct arena_block *block = arena->blocks;

    while (block != NULL) {
        struct arena_block *next = block->next;

        free(block);
        block = next;
    }
    *arena = (struct arena){.blocks = NULL};
}
