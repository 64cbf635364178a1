/* SPDX-License-Identifier: Apache-2.0 */
/* Builds lists of rows; see row_list.h. */
#include <config.h>

#include "row_list.h"

#include "../common/op_case.h"
#include "../common/text_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const scale_names[SCALES] = {"tiny", "small", "full"};

/* Returns the largest number of elements of a row at the list's scale. */
static double max_elements(const struct list *list)
{
    static const double elements[SCALES] = {0x1p14, 0x1p22, 0x1p28};

    return elements[list->scale];
}

double list_fitting_elements(const struct list *list)
{
    double elements = max_elements(list);

    if (list->device == NULL)
        return elements;
    while (elements > 0x1p14 &&
           (32 * elements > (double)list->device->memory_bytes ||
            8 * elements > (double)list->device->max_alloc_bytes))
        elements /= 4;
    return elements;
}

/* Returns the largest number of operations of a GEMM at the list's scale. */
static double max_flops(const struct list *list)
{
    static const double flops[SCALES] = {3e6, 4e9, 1.2e12};

    return flops[list->scale];
}

static bool too_large(const struct list *list, const char *op, uint32_t rank,
                      const int64_t *shape)
{
    double product = 1;

    for (uint32_t axis = 0; axis < rank; axis++)
        product *= (double)shape[axis];
    if (strcmp(op, "gemm") == 0)
        return 2 * product > max_flops(list);
    return product > max_elements(list);
}

static void row_name(struct row *row)
{
    char shape[160] = "";
    size_t used;

    if (strcmp(row->op, "transfer") == 0)
        text_bytes(shape, (double)row->shape[0]);
    else if (row->rank > 0)
        shape_text(shape, row->rank, row->shape);
    used = (size_t)snprintf(row->name, sizeof row->name, "%s%s%s", row->op,
                            shape[0] == '\0' ? "" : " ", shape);
    if (row->detail[0] != '\0')
        used += (size_t)snprintf(row->name + used, sizeof row->name - used,
                                 ", %s", row->detail);
    if (strcmp(row->mode, "stream") != 0 && row->mode[0] != '\0')
        snprintf(row->name + used, sizeof row->name - used, ", %s", row->mode);
}

void list_add_shape(struct list *list, const char *op, uint32_t rank,
                    const int64_t *shape, const char *detail, const char *mode)
{
    struct row *row;

    if (list->chosen && strcmp(mode, "stream") == 0)
        return;
    if (too_large(list, op, rank, shape)) {
        list->skipped_rows++;
        return;
    }
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 64 : 2 * list->room;

        row = realloc(list->rows, room * sizeof *row);
        if (row == NULL)
            return;
        list->rows = row;
        list->room = room;
    }
    row = &list->rows[list->count++];
    *row = (struct row){
        .suite = list->suite, .op = op, .mode = mode, .rank = rank};
    memcpy(row->shape, shape, rank * sizeof *shape);
    snprintf(row->detail, sizeof row->detail, "%s", detail);
    row_name(row);
}

void list_add(struct list *list, const char *op, const char *shape,
              const char *detail, const char *mode)
{
    int64_t extents[TANDEM_MAX_RANK];
    uint32_t rank;

    if (shape_parse(shape, &rank, extents))
        list_add_shape(list, op, rank, extents, detail, mode);
}

void list_destroy(struct list *list)
{
    free(list->rows);
    list->rows = NULL;
    list->count = list->room = 0;
}

bool row_has(const struct row *row, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = row->detail; (at = strstr(at, word)) != NULL; at++)
        if ((at == row->detail || strchr("+ ", at[-1]) != NULL) &&
            strchr("+ ", at[length]) != NULL)
            return true;
    return false;
}

json_t *row_json(const struct row *row)
{
    json_t *shape = json_array();

    for (uint32_t axis = 0; axis < row->rank; axis++)
        json_array_append_new(shape, json_integer(row->shape[axis]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "suite", row->suite,
                     "name", row->name, "op", row->op, "mode", row->mode,
                     "detail", row->detail, "shape", shape);
}
