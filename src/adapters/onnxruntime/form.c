/* SPDX-License-Identifier: Apache-2.0 */
/* Storages, views and steps of a form, and the memory that temporaries share;
 * see form.h. */
#include <config.h>

#include "adapters/onnxruntime/form.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for one more element.  Returns false if memory is exhausted. */
static bool array_grow(struct form *form, void **array, uint32_t count,
                       uint32_t *capacity, size_t bytes)
{
    const uint32_t larger = *capacity == 0 ? 16 : 2 * *capacity;
    void *grown;

    if (count < *capacity)
        return true;
    grown = realloc(*array, larger * bytes);
    if (grown == NULL) {
        form->arena.exhausted = true;
        return false;
    }
    *array = grown;
    *capacity = larger;
    return true;
}

uint32_t form_add_storage(struct form *form)
{
    if (!array_grow(form, (void **)&form->storages, form->storage_count,
                    &form->storage_capacity, sizeof(form->storages[0])))
        return UINT32_MAX;
    form->storages[form->storage_count] = (struct form_storage){.input = -1};
    return form->storage_count++;
}

uint32_t form_add_view(struct form *form, const struct form_view *view)
{
    if (!array_grow(form, (void **)&form->views, form->view_count,
                    &form->view_capacity, sizeof(form->views[0])))
        return UINT32_MAX;
    form->views[form->view_count] = *view;
    return form->view_count++;
}

uint32_t form_add_step(struct form *form, const struct form_step *step)
{
    if (!array_grow(form, (void **)&form->steps, form->step_count,
                    &form->step_capacity, sizeof(form->steps[0])))
        return UINT32_MAX;
    form->steps[form->step_count] = *step;
    return form->step_count++;
}

/* Extends the lifetime of the view's storage to the step. */
static void view_use(struct form *form, uint32_t view, uint32_t step)
{
    struct form_storage *storage;

    if (view == NO_VIEW)
        return;
    storage = &form->storages[form->views[view].storage];
    if (!storage->used)
        storage->first_step = step;
    storage->used = true;
    storage->last_step = step;
}

static void find_lifetimes(struct form *form)
{
    for (uint32_t i = 0; i < form->step_count; i++) {
        const struct form_step *step = &form->steps[i];

        for (uint32_t k = 0; k < step->input_count; k++)
            view_use(form, step->inputs[k], i);
        for (uint32_t k = 0; k < step->output_count; k++)
            view_use(form, step->outputs[k], i);
    }
    for (uint32_t i = 0; i < form->output_count; i++)
        view_use(form, form->outputs[i].view, form->step_count);
}

/* Returns the best free slot for the storage: the smallest that is large
 * enough, else the largest, which then grows.  free_from[i] is the first step
 * that may use slot i.  Returns slot_count if no slot is free. */
static uint32_t find_slot(const struct form *form,
                          const struct form_storage *storage,
                          const uint32_t *free_from)
{
    uint32_t best = form->slot_count;

    for (uint32_t i = 0; i < form->slot_count; i++) {
        int64_t have, best_have;

        if (form->slot_dtypes[i] != storage->dtype ||
            free_from[i] > storage->first_step)
            continue;
        if (best == form->slot_count) {
            best = i;
            continue;
        }
        have = form->slot_elements[i];
        best_have = form->slot_elements[best];
        if (best_have < storage->elements
                ? have > best_have
                : have >= storage->elements && have < best_have)
            best = i;
    }
    return best;
}

bool form_assign_slots(struct form *form)
{
    const size_t count = form->storage_count;
    uint32_t *free_from = calloc(count + 1, sizeof(free_from[0]));

    form->slot_dtypes =
        arena_allocate(&form->arena, count + 1, sizeof(uint32_t));
    form->slot_elements =
        arena_allocate(&form->arena, count + 1, sizeof(int64_t));
    if (free_from == NULL || form->slot_dtypes == NULL ||
        form->slot_elements == NULL) {
        free(free_from);
        return false;
    }
    find_lifetimes(form);
    /* Storages are created in the order of the steps that write them first. */
    for (uint32_t i = 0; i < count; i++) {
        struct form_storage *storage = &form->storages[i];
        uint32_t slot;

        if (storage->kind != STORAGE_TEMPORARY || !storage->used)
            continue;
        slot = find_slot(form, storage, free_from);
        if (slot == form->slot_count)
            form->slot_dtypes[form->slot_count++] = storage->dtype;
        if (form->slot_elements[slot] < storage->elements)
            form->slot_elements[slot] = storage->elements;
        free_from[slot] = storage->last_step + 1;
        storage->slot = slot;
    }
    free(free_from);
    return true;
}

void form_free(struct form *form)
{
    free(form->storages);
    free(form->views);
    free(form->steps);
    arena_free(&form->arena);
    *form = (struct form){.storages = NULL};
}
