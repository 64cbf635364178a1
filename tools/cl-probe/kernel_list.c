/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles kernels in advance; see kernel_list.h. */
#include <config.h>

#include "child_process.h"
#include "kernel_list.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAILURES_KEPT 50u

struct kernel_item {
    struct resident_op work;
    bool done;
};

void kernels_start(struct kernel_list *list, struct device_session *session)
{
    memset(list, 0, sizeof *list);
    list->session = session;
    list->failures = json_array();
}

void kernels_finish(struct kernel_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    json_decref(list->failures);
}

static void item_fail(struct kernel_list *list, const struct kernel_item *item)
{
    if (json_array_size(list->failures) < FAILURES_KEPT)
        json_array_append_new(list->failures,
                              child_text("%s: %s", item->work.c.info->name,
                                         list->session->backend->last_error()));
}

/* Applies the forms to the case of a GEMM. */
static void gemm_form(struct op_case *c, uint32_t forms)
{
    struct tandem_tensor_desc *b = &c->in[1];

    if ((forms & KERNEL_TRANSPOSED) != 0) {
        b->strides[b->rank - 2] = 1;
        b->strides[b->rank - 1] = c->k;
    }
    if ((forms & KERNEL_BIAS) != 0)
        c->in[c->inputs++] =
            (struct tandem_tensor_desc){.dtype = c->out[0].dtype,
                                        .rank = 1,
                                        .shape = {c->n},
                                        .strides = {1}};
    if ((forms & KERNEL_RELU) != 0)
        c->ints[0] = TANDEM_OP_RELU;
    if ((forms & KERNEL_GELU) != 0) {
        c->ints[0] = TANDEM_OP_GELU;
        c->floats[2] = 0; /* the formula with erf */
    }
}

/* Returns false if the operator or the device does not support the call. */
static bool item_describe(struct kernel_list *list, struct kernel_item *item,
                          const char *op, const char *shape, uint32_t forms)
{
    struct op_case *c = &item->work.c;
    char error[OPCASE_ERROR_BYTES];
    int64_t extents[TANDEM_MAX_RANK];
    uint32_t rank;

    if (!shape_parse(shape, &rank, extents) ||
        !op_case_build(c, op, rank, extents, error))
        return false;
    if ((forms & KERNEL_REPEATED) != 0 && c->inputs > 0)
        c->in[c->inputs - 1].strides[0] = 0;
    if (c->op.id == TANDEM_OP_GEMM)
        gemm_form(c, forms);
    return resident_op_describe(&item->work, list->session) == TANDEM_OK;
}

void kernels_add(struct kernel_list *list, const char *op, const char *shape,
                 uint32_t forms)
{
    struct kernel_item *item = calloc(1, sizeof *item);
    void *items = realloc(list->items, (list->count + 1) * sizeof *list->items);

    if (item == NULL || items == NULL)
        abort();
    list->items = items;
    if (!item_describe(list, item, op, shape, forms)) {
        free(item);
        return;
    }
    list->items[list->count++] = item;
    if (resident_op_prepare(&item->work) != TANDEM_OK) {
        item_fail(list, item);
        item->done = true;
        list->done++;
    }
}

/* Queries all items once.  Sets *out_name to the first that still compiles. */
static enum tandem_status items_ask(struct kernel_list *list,
                                    const char **out_name)
{
    *out_name = NULL;
    for (size_t i = 0; i < list->count; i++) {
        struct kernel_item *item = list->items[i];
        enum tandem_status status;

        if (item->done)
            continue;
        status = resident_op_query_ready(&item->work);
        if (status == TANDEM_DEVICE_LOST)
            return status;
        if (status == TANDEM_NOT_READY) {
            if (*out_name == NULL)
                *out_name = item->work.c.info->name;
            continue;
        }
        if (status != TANDEM_OK)
            item_fail(list, item);
        item->done = true;
        list->done++;
    }
    return TANDEM_OK;
}

bool kernels_await(struct kernel_list *list,
                   void (*told)(void *user, double fraction, const char *name),
                   void *user)
{
    const struct timespec pause = {0, 5000000};
    const char *name;

    while (list->done < list->count) {
        const size_t before = list->done;

        if (items_ask(list, &name) != TANDEM_OK)
            return false;
        if (list->done == before)
            nanosleep(&pause, NULL);
        else if (told != NULL && name != NULL)
            told(user, (double)list->done / (double)list->count, name);
    }
    return true;
}
