/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates drafts of profiles, either empty or from the existing file, and saves
 * them; see profile_writer.h.
 */
#include <config.h>

#include "host/profile/profile_writer.h"
#include "common/directory_lock.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/thread_state_guard.h"
#include "host/context/directories.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct handle_pool profile_pool =
    HANDLE_POOL(struct tandem_profile, 0x5450524f);

enum tandem_status draft_check(const struct tandem_profile *profile)
{
    if (!handle_live(&profile_pool, profile))
        return last_error_set(TANDEM_INVALID_ARGUMENT, "profile: %s",
                              profile == NULL ? "NULL"
                                              : "a freed or foreign handle");
    return TANDEM_OK;
}

enum tandem_status draft_memory_fail(void)
{
    return last_error_set(TANDEM_OUT_OF_MEMORY, "no memory for a profile");
}

json_t *draft_member_add(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0 ? value : NULL;
}

static json_t *key_json(const struct profile_key *key)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "backend",
                     key->backend, "name", key->name, "uuid", key->uuid, "pci",
                     key->pci, "driver", key->driver, "plugin_version",
                     key->plugin_version, "host_cpu", key->host_cpu);
}

/* Adds the operators that are blocked now.  They stay blocked until the caller
 * of tandem_profile_set_op_blocked unblocks them. */
static bool rejected_fill(json_t *names, const struct cost_model *model)
{
    bool good = names != NULL;

    for (uint32_t op = 0; op < TANDEM_OP_ID_END && good; op++) {
        if (cost_rejects(model, op))
            good = json_array_append_new(names,
                                         json_string(operator_name(op))) == 0;
    }
    return good;
}

static bool profile_fill(struct tandem_profile *profile,
                         const struct device *device)
{
    char now[32] = "";
    const time_t seconds = time(NULL);
    struct tm parts;
    size_t prefix;
    json_t *root;

    profile_key_make(device, &profile->key);
    profile_file_name(&profile->key, profile->file, sizeof(profile->file),
                      &prefix);
    if (gmtime_r(&seconds, &parts) != NULL)
        strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &parts);
    root =
        json_pack("{s:i, s:s}", "format", PROFILE_FORMAT, "measured_at", now);
    profile->root = root;
    profile->scalars = draft_member_add(root, "scalars", json_object());
    profile->curves = draft_member_add(root, "curves", json_object());
    profile->gemm = draft_member_add(root, "gemm", json_array());
    profile->tuning = draft_member_add(root, "tuning", json_object());
    profile->rejected = draft_member_add(root, "rejected", json_array());
    return draft_member_add(root, "device", key_json(&profile->key)) != NULL &&
           rejected_fill(profile->rejected, &device->cost) &&
           profile->scalars != NULL && profile->curves != NULL &&
           profile->gemm != NULL && profile->tuning != NULL;
}

/* Copies measurements from the file that the device's costs came from: all of
 * them if all is true, otherwise only the plugin's section.  If the file is no
 * longer valid, fails if all is true, otherwise copies nothing. */
static enum tandem_status profile_adopt(struct tandem_profile *profile,
                                        const struct device *device, bool all)
{
    static const char *const members[] = {"tuning", "measured_at", "scalars",
                                          "curves", "gemm"};
    const size_t count = all ? sizeof(members) / sizeof(members[0]) : 1;
    char why[TRUST_WHY_BYTES];
    json_t *before;

    if (device->profile == NULL)
        return TANDEM_OK;
    before = profile_read(device, why, sizeof(why));
    if (before == NULL && !all)
        return TANDEM_OK;
    if (before == NULL)
        return last_error_set(TANDEM_FAILED,
                              "%.256s: the profile cannot be "
                              "revised: %.200s",
                              device->profile, why);
    for (size_t i = 0; i < count; i++) {
        json_t *member = json_object_get(before, members[i]);

        if (member != NULL &&
            json_object_set(profile->root, members[i], member) != 0) {
            json_decref(before);
            return draft_memory_fail();
        }
    }
    json_decref(before);
    profile->scalars = json_object_get(profile->root, "scalars");
    profile->curves = json_object_get(profile->root, "curves");
    profile->gemm = json_object_get(profile->root, "gemm");
    profile->tuning = json_object_get(profile->root, "tuning");
    return TANDEM_OK;
}

/* Copies a value.  Returns NULL if memory runs out.  Checks the copy, because
 * Jansson may silently leave members out if memory runs out. */
static json_t *content_copy(json_t *content, bool deep)
{
    json_t *copy = deep ? json_deep_copy(content) : json_copy(content);

    if (copy != NULL && !json_equal(copy, content)) {
        json_decref(copy);
        copy = NULL;
    }
    return copy;
}

static enum tandem_status profile_make(struct tandem_context *context,
                                       uint32_t device, bool adopt,
                                       struct tandem_profile **out_profile)
{
    struct tandem_profile *profile = NULL;
    struct device *found;
    enum tandem_status status = context_check(context);

    if (out_profile != NULL)
        *out_profile = NULL;
    if (status != TANDEM_OK)
        return status;
    if (out_profile == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT, "out_profile: NULL");
    context_lock(context);
    status = device_get(context, device, &found);
    if (status == TANDEM_OK) {
        profile = handle_new(&profile_pool);
        if (profile != NULL)
            profile->context = context;
        if (profile == NULL || !profile_fill(profile, found))
            status = draft_memory_fail();
        else
            status = profile_adopt(profile, found, adopt);
    }
    if (status == TANDEM_OK) {
        profile->revised = adopt;
        profile->begun = content_copy(profile->root, true);
        if (profile->begun == NULL)
            status = draft_memory_fail();
    }
    context_unlock(context);
    if (status != TANDEM_OK) {
        tandem_profile_destroy(profile);
        return status;
    }
    *out_profile = profile;
    return TANDEM_OK;
}

enum tandem_status tandem_profile_create(struct tandem_context *context,
                                         uint32_t device,
                                         struct tandem_profile **out_profile)
{
    return profile_make(context, device, false, out_profile);
}

enum tandem_status tandem_profile_edit(struct tandem_context *context,
                                       uint32_t device,
                                       struct tandem_profile **out_profile)
{
    return profile_make(context, device, true, out_profile);
}

void tandem_profile_destroy(struct tandem_profile *profile)
{
    if (!handle_live(&profile_pool, profile))
        return;
    json_decref(profile->root);
    json_decref(profile->begun);
    handle_free(&profile_pool, profile);
}

/* ---- merge with concurrent saves ---- */

/* Timeout for the directory lock, which other processes hold only briefly.
 * Without the lock, a concurrent save may overwrite this one. */
#define LOCK_MS 5000u

/* Returns true if the draft did not change this member. */
static bool member_kept(const json_t *begun, const json_t *draft,
                        const char *key)
{
    const json_t *before = json_object_get(begun, key);
    const json_t *after = json_object_get(draft, key);

    return before == after || json_equal(before, after);
}

/* Takes the costs from the file if the draft did not change any cost.  A draft
 * that began empty always keeps its own costs. */
static bool costs_merge(const struct tandem_profile *profile, const json_t *now,
                        json_t *out)
{
    static const char *const members[] = {"scalars", "curves", "gemm",
                                          "measured_at"};
    bool good = true;

    for (size_t i = 0; i < 3; i++) {
        if (!profile->revised ||
            !member_kept(profile->begun, profile->root, members[i]))
            return true;
    }
    for (size_t i = 0; i < 4 && good; i++) {
        json_t *member = json_object_get(now, members[i]);

        if (member != NULL)
            good = json_object_set(out, members[i], member) == 0;
    }
    return good;
}

static bool tuning_merge(const struct tandem_profile *profile,
                         const json_t *now, json_t *out)
{
    const json_t *begun = json_object_get(profile->begun, "tuning");
    json_t *others = json_object_get(now, "tuning");
    json_t *tuning = content_copy(profile->tuning, false);
    const char *key;
    json_t *value;
    bool good = tuning != NULL;

    json_object_foreach(others, key, value)
    {
        if (good && member_kept(begun, profile->tuning, key))
            good = json_object_set(tuning, key, value) == 0;
    }
    return json_object_set_new(out, "tuning", tuning) == 0 && good;
}

static bool names_have(const json_t *names, const json_t *name)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        if (json_equal(json_array_get(names, i), name))
            return true;
    }
    return false;
}

static bool rejected_merge(const struct tandem_profile *profile,
                           const json_t *now, json_t *out)
{
    const json_t *begun = json_object_get(profile->begun, "rejected");
    const json_t *others = json_object_get(now, "rejected");
    json_t *names = json_array(), *name;
    bool good = names != NULL;
    size_t i;

    /* Keep the file's names, except those that the draft unblocked, and add the
     * names that the draft blocked. */
    json_array_foreach(others, i, name)
    {
        if (good &&
            (!names_have(begun, name) || names_have(profile->rejected, name)))
            good = json_array_append(names, name) == 0;
    }
    json_array_foreach(profile->rejected, i, name)
    {
        if (good && !names_have(begun, name) && !names_have(names, name))
            good = json_array_append(names, name) == 0;
    }
    return json_object_set_new(out, "rejected", names) == 0 && good;
}

/* Returns the content to write: the draft's changes, and for unchanged members
 * the current content of the file, which another program may have saved.
 * Returns NULL if memory runs out. */
static json_t *draft_merge(const struct tandem_profile *profile, int directory)
{
    char why[TRUST_WHY_BYTES];
    json_t *now = profile_content(directory, profile->file, &profile->key, true,
                                  why, sizeof(why));
    json_t *out = content_copy(profile->root, false);

    if (now != NULL && out != NULL &&
        !(costs_merge(profile, now, out) && tuning_merge(profile, now, out) &&
          rejected_merge(profile, now, out))) {
        json_decref(out);
        out = NULL;
    }
    json_decref(now);
    return out;
}

/* ---- saving ---- */

/* Returns the merged draft as JSON text, which the caller frees, or NULL. */
static char *draft_text(const struct tandem_profile *profile, int directory)
{
    json_t *root = draft_merge(profile, directory);
    struct shelter host;
    char *text = NULL;

    thread_state_guard_enter(&host);
    if (root != NULL)
        text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS |
                                    JSON_REAL_PRECISION(17));
    shelter_leave(&host);
    json_decref(root);
    return text;
}

/* Replaces the draft's file in directory atomically and closes directory. */
static enum tandem_status draft_save(const struct tandem_profile *profile,
                                     const char *path, int directory)
{
    struct trust_part whole = {NULL, 0};
    char why[TRUST_WHY_BYTES];
    enum tandem_status status = TANDEM_OK;
    char *text;

    const int lock = lock_take(directory, LOCK_MS);

    text = draft_text(profile, directory);
    if (text != NULL)
        whole = (struct trust_part){text, strlen(text)};
    if (text == NULL)
        status = draft_memory_fail();
    else if (whole.bytes > PROFILE_BYTES_MAX)
        status =
            last_error_set(TANDEM_INVALID_ARGUMENT,
                           "the profile has %zu bytes, at most %u are read",
                           whole.bytes, PROFILE_BYTES_MAX);
    else if (!file_replace_atomically(directory, profile->file, &whole, 1,
                                      TRUST_DURABLE, why, sizeof(why)))
        status = last_error_set(TANDEM_FAILED, "%s/%s: %s", path, profile->file,
                                why);
    free(text);
    lock_release(lock);
    close(directory);
    return status;
}

enum tandem_status tandem_profile_save(struct tandem_profile *profile,
                                       const char *directory, char *out_path,
                                       size_t path_bytes)
{
    char path[PATH_BYTES], why[TRUST_WHY_BYTES];
    json_t *begun;
    int length, place;
    enum tandem_status status = draft_check(profile);

    if (status == TANDEM_OK)
        status = context_check(profile->context);
    if (status != TANDEM_OK)
        return status;
    if (directory == NULL)
        directory = profile->context->profile_path;
    if (directory == NULL)
        directory = profile->context->cache_path;
    if (directory == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "directory: NULL, and neither TANDEM_PROFILE, "
                              "XDG_CACHE_HOME nor HOME names one");
    if (directory[0] != '/')
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "directory: \"%.256s\" is relative", directory);
    length = snprintf(path, sizeof(path), "%s/%s", directory, profile->file);
    if (length < 0 || (size_t)length >= sizeof(path) ||
        (out_path != NULL && (size_t)length >= path_bytes))
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "path_bytes: %zu is too little for %s/%s",
                              path_bytes, directory, profile->file);
    place = path_writable(directory, why, sizeof(why));
    if (place < 0)
        return last_error_set(TANDEM_FAILED,
                              "%s: no profile can be written there: %s",
                              directory, why);
    status = draft_save(profile, directory, place);
    if (status != TANDEM_OK)
        return status;
    begun = content_copy(profile->root, true);
    if (begun != NULL) {
        json_decref(profile->begun);
        profile->begun = begun;
    }
    if (out_path != NULL)
        memcpy(out_path, path, (size_t)length + 1);
    return TANDEM_OK;
}
