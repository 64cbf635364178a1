/* SPDX-License-Identifier: Apache-2.0 */
/* Updates the list of wrong operators; see op_blocklist_update.h. */
#include <config.h>

#include "op_blocklist_update.h"

#include "child_process.h"

#include <stdio.h>

struct blocklist_update {
    struct tandem_context *context;
    uint32_t device;
    struct tandem_profile *profile;
    json_t *blocked, *unblocked;
    bool changed;
};

/* Updates one operator with its counts of passed and failed cases. */
static enum tandem_status judge(struct blocklist_update *update, uint32_t op,
                                const char *name, const json_t *counts)
{
    const uint32_t wrong = device_number(counts, "failed") > 0;
    uint32_t before = 0;
    enum tandem_status status = tandem_device_is_op_blocked(
        update->context, update->device, op, &before);

    if (status != TANDEM_OK || (!wrong && device_number(counts, "passed") == 0))
        return status;
    if (wrong)
        json_array_append_new(update->blocked, json_string(name));
    else if (before)
        json_array_append_new(update->unblocked, json_string(name));
    update->changed |= wrong != before;
    return tandem_profile_set_op_blocked(update->profile, op, wrong);
}

static enum tandem_status judge_all(struct blocklist_update *update,
                                    json_t *groups)
{
    enum tandem_status status = TANDEM_OK;
    const char *name;
    json_t *counts;

    json_object_foreach (groups, name, counts) {
        const struct tandem_op_info *op = tandem_op_by_name(name);

        if (op != NULL && status == TANDEM_OK)
            status = judge(update, op->id, name, counts);
    }
    return status;
}

static bool has_operators(json_t *groups)
{
    const char *name;
    json_t *counts;

    json_object_foreach (groups, name, counts) {
        if (tandem_op_by_name(name) != NULL)
            return true;
    }
    return false;
}

void op_blocklist_update(const struct probe_options *options,
                         const char *backend, uint32_t device, json_t *result)
{
    json_t *groups = json_object_get(result, "groups");
    struct blocklist_update update = {.device = device};
    char path[4096] = "";
    enum tandem_status status;

    if (!has_operators(groups))
        return;
    update.blocked = json_array();
    update.unblocked = json_array();
    status = probe_context(options, backend, &update.context);
    if (status == TANDEM_OK)
        status =
            tandem_profile_edit(update.context, update.device, &update.profile);
    if (status == TANDEM_OK)
        status = judge_all(&update, groups);
    if (status == TANDEM_OK && update.changed)
        status = tandem_profile_save(update.profile, NULL, path, sizeof path);
    if (status != TANDEM_OK) {
        json_object_set_new(result, "blocklist_error",
                            child_text("%s", tandem_last_error()));
    } else {
        json_object_set(result, "blocked", update.blocked);
        json_object_set(result, "unblocked", update.unblocked);
        json_object_set_new(result, "profile",
                            path[0] != '\0' ? child_text("%s", path)
                                            : json_null());
    }
    json_decref(update.blocked);
    json_decref(update.unblocked);
    tandem_profile_destroy(update.profile);
    tandem_context_destroy(update.context);
}

/* ---- in the parent ---- */

void op_blocklist_print(const json_t *result)
{
    const char *path = device_text(result, "profile");

    if (json_object_get(result, "blocklist_error") != NULL)
        printf("  FAILED: programs are not kept from what is wrong, since the "
               "profile could\n  not be written: %s\n",
               device_text(result, "blocklist_error"));
    probe_print_texts(
        "  FAILED, and blocked on this device until --verify passes: ",
        json_object_get(result, "blocked"), ", ", "\n");
    probe_print_texts("  passed, and unblocked on this device: ",
                      json_object_get(result, "unblocked"), ", ", "\n");
    if (path[0] != '\0')
        printf("  noted in %s\n", path);
}
