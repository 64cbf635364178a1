/* SPDX-License-Identifier: Apache-2.0 */
/* Creates empty profiles, edits saved profiles, and saves profiles. */
#include <config.h>

#include "host/profile/profile_writer.h"
#include "common/directory_lock.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/thread_state_guard.h"
#include "host/context/directories.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct handle_pool profile_pool =
    HANDLE_POOL(struct tandem_profile, 0x5450524f);

enum tandem_status profile_check(const struct tandem_profile *profile)
{
    if (!handle_live(&profile_pool, profile))
        return argument_error("profile: %s",
                              profile == NULL ? "NULL"
                                              : "destroyed or invalid handle");
    return TANDEM_OK;
}

enum tandem_status profile_memory_fail(void)
{
    return last_error_set(TANDEM_OUT_OF_MEMORY, "no memory for a profile");
}

json_t *json_member_add(json_t *object, const char *key, json_t *value)
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

/* Adds the operators that the cost model blocks to the profile.  They stay
 * blocked until tandem_profile_set_op_blocked unblocks them. */
static bool blocked_ops_fill(json_t *names, const struct cost_model *model)
{
    bool ok = names != NULL;

    for (uint32_t op = 0; op < TANDEM_OP_ID_END && ok; op++) {
        if (cost_is_op_blocked(model, op))
            ok = json_array_append_new(names, json_string(operator_name(op))) ==
                 0;
    }
    return ok;
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
    profile->scalars = json_member_add(root, "scalars", json_object());
    profile->curves = json_member_add(root, "curves", json_object());
    profile->gemm = json_member_add(root, "gemm", json_array());
    profile->tuning = json_member_add(root, "tuning", json_object());
    profile->blocked_ops =
        json_member_add(root, "blocked_operators", json_array());
    return json_member_add(root, "device", key_json(&profile->key)) != NULL &&
           blocked_ops_fill(profile->blocked_ops, &device->cost) &&
           profile->scalars != NULL && profile->curves != NULL &&
           profile->gemm != NULL && profile->tuning != NULL;
}

/* Copies measurements from the file device->profile_path, if there is one.  If
 * `all` is true, copies all of them, and fails if the file is no longer valid.
 * Otherwise copies only the tuning section, if the file is still valid. */
static enum tandem_status measurements_copy(struct tandem_profile *profile,
                                            const struct device *device,
                                            bool all)
{
    static const char *const members[] = {"tuning", "measured_at", "scalars",
                                          "curves", "gemm"};
    const size_t count = all ? sizeof(members) / sizeof(members[0]) : 1;
    char why[SECURE_WHY_BYTES];
    json_t *saved;

    if (device->profile_path == NULL)
        return TANDEM_OK;
    saved = profile_reload_json(device, why);
    if (saved == NULL && !all)
        return TANDEM_OK;
    if (saved == NULL)
        return last_error_set(TANDEM_FAILED,
                              "%.256s: the profile cannot be edited: %.200s",
                              device->profile_path, why);
    for (size_t i = 0; i < count; i++) {
        json_t *member = json_object_get(saved, members[i]);

        if (member != NULL &&
            json_object_set(profile->root, members[i], member) != 0) {
            json_decref(saved);
            return profile_memory_fail();
        }
    }
    json_decref(saved);
    profile->scalars = json_object_get(profile->root, "scalars");
    profile->curves = json_object_get(profile->root, "curves");
    profile->gemm = json_object_get(profile->root, "gemm");
    profile->tuning = json_object_get(profile->root, "tuning");
    return TANDEM_OK;
}

/* Copies a JSON value.  Returns NULL if memory runs out.  Checks the copy,
 * because Jansson may silently leave members out if memory runs out. */
static json_t *json_copy_checked(json_t *content, bool deep)
{
    json_t *copy = deep ? json_deep_copy(content) : json_copy(content);

    if (copy != NULL && !json_equal(copy, content)) {
        json_decref(copy);
        copy = NULL;
    }
    return copy;
}

enum tandem_status profile_new_for_device(const struct device *device,
                                          bool edit,
                                          struct tandem_profile **out_profile)
{
    struct tandem_profile *profile = handle_new(&profile_pool);
    enum tandem_status status;

    *out_profile = NULL;
    if (profile != NULL)
        profile->context = device->context;
    if (profile == NULL || !profile_fill(profile, device))
        status = profile_memory_fail();
    else
        status = measurements_copy(profile, device, edit);
    if (status == TANDEM_OK) {
        profile->edits_existing = edit;
        profile->baseline = json_copy_checked(profile->root, true);
        if (profile->baseline == NULL)
            status = profile_memory_fail();
    }
    if (status != TANDEM_OK)
        tandem_profile_destroy(profile);
    else
        *out_profile = profile;
    return status;
}

void tandem_profile_destroy(struct tandem_profile *profile)
{
    if (!handle_live(&profile_pool, profile))
        return;
    json_decref(profile->root);
    json_decref(profile->baseline);
    handle_free(&profile_pool, profile);
}

/* ---- merge with concurrent saves ---- */

/* Timeout for the lock of the profile directory, which other processes hold
 * only briefly.  Without the lock, a concurrent save may overwrite this one. */
#define LOCK_MS 5000u

static bool member_is_unchanged(const json_t *baseline, const json_t *edited,
                                const char *key)
{
    const json_t *before = json_object_get(baseline, key);
    const json_t *after = json_object_get(edited, key);

    return before == after || json_equal(before, after);
}

/* Copies the costs of the saved file to `out` if this profile was created from
 * a file and no cost was changed.  Other profiles keep their costs. */
static bool costs_merge(const struct tandem_profile *profile,
                        const json_t *saved, json_t *out)
{
    static const char *const members[] = {"scalars", "curves", "gemm",
                                          "measured_at"};
    bool ok = true;

    for (size_t i = 0; i < 3; i++) {
        if (!profile->edits_existing ||
            !member_is_unchanged(profile->baseline, profile->root, members[i]))
            return true;
    }
    for (size_t i = 0; i < 4 && ok; i++) {
        json_t *member = json_object_get(saved, members[i]);

        if (member != NULL)
            ok = json_object_set(out, members[i], member) == 0;
    }
    return ok;
}

static bool tuning_merge(const struct tandem_profile *profile,
                         const json_t *saved, json_t *out)
{
    const json_t *baseline = json_object_get(profile->baseline, "tuning");
    json_t *others = json_object_get(saved, "tuning");
    json_t *tuning = json_copy_checked(profile->tuning, false);
    const char *key;
    json_t *value;
    bool ok = tuning != NULL;

    json_object_foreach (others, key, value) {
        if (ok && member_is_unchanged(baseline, profile->tuning, key))
            ok = json_object_set(tuning, key, value) == 0;
    }
    return json_object_set_new(out, "tuning", tuning) == 0 && ok;
}

static bool array_contains(const json_t *array, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (json_equal(json_array_get(array, i), value))
            return true;
    }
    return false;
}

static bool blocked_ops_merge(const struct tandem_profile *profile,
                              const json_t *saved, json_t *out)
{
    const json_t *baseline =
        json_object_get(profile->baseline, "blocked_operators");
    const json_t *others = json_object_get(saved, "blocked_operators");
    json_t *names = json_array(), *name;
    bool ok = names != NULL;
    size_t i;

    /* Keep the operator names in the saved file except those that this profile
     * unblocked, and add the names that this profile blocked. */
    json_array_foreach (others, i, name) {
        if (ok && (!array_contains(baseline, name) ||
                   array_contains(profile->blocked_ops, name)))
            ok = json_array_append(names, name) == 0;
    }
    json_array_foreach (profile->blocked_ops, i, name) {
        if (ok && !array_contains(baseline, name) &&
            !array_contains(names, name))
            ok = json_array_append(names, name) == 0;
    }
    return json_object_set_new(out, "blocked_operators", names) == 0 && ok;
}

/* Returns the profile to write.  JSON members that the program changed come
 * from this profile.  Others come from the saved file, which another process
 * may have written meanwhile.  Returns NULL if memory runs out. */
static json_t *profile_merge(const struct tandem_profile *profile,
                             int directory)
{
    char why[SECURE_WHY_BYTES];
    json_t *saved =
        profile_load_json(directory, profile->file, &profile->key, true, why);
    json_t *out = json_copy_checked(profile->root, false);

    if (saved != NULL && out != NULL &&
        !(costs_merge(profile, saved, out) &&
          tuning_merge(profile, saved, out) &&
          blocked_ops_merge(profile, saved, out))) {
        json_decref(out);
        out = NULL;
    }
    json_decref(saved);
    return out;
}

/* ---- saving ---- */

/* Returns the JSON text to write, which the caller frees, or NULL. */
static char *profile_text(const struct tandem_profile *profile, int directory)
{
    json_t *root = profile_merge(profile, directory);
    struct thread_state host;
    char *text = NULL;

    thread_state_guard_enter(&host);
    if (root != NULL)
        text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS |
                                    JSON_REAL_PRECISION(17));
    thread_state_guard_leave(&host);
    json_decref(root);
    return text;
}

/* Replaces the profile's file atomically and closes `directory`. */
static enum tandem_status profile_write(const struct tandem_profile *profile,
                                        const char *path, int directory)
{
    struct file_part whole = {NULL, 0};
    char why[SECURE_WHY_BYTES];
    enum tandem_status status = TANDEM_OK;
    char *text;

    const int lock = lock_take(directory, LOCK_MS);

    text = profile_text(profile, directory);
    if (text != NULL)
        whole = (struct file_part){text, strlen(text)};
    if (text == NULL)
        status = profile_memory_fail();
    else if (whole.bytes > MAX_PROFILE_BYTES)
        status =
            argument_error("the profile has %zu bytes; expected at most %u",
                           whole.bytes, MAX_PROFILE_BYTES);
    else if (!file_replace_atomically(directory, profile->file, &whole, 1,
                                      REPLACE_DURABLE, why))
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
    char path[PATH_BYTES], why[SECURE_WHY_BYTES];
    json_t *baseline;
    int length, directory_fd;
    enum tandem_status status = profile_check(profile);

    if (status == TANDEM_OK)
        status = context_check(profile->context);
    if (status != TANDEM_OK)
        return status;
    if (directory == NULL)
        directory = profile->context->profile_path;
    if (directory == NULL)
        directory = profile->context->cache_path;
    if (directory == NULL)
        return argument_error(
            "directory: NULL, and neither TANDEM_PROFILE_DIR, "
            "XDG_CACHE_HOME nor HOME names one");
    if (directory[0] != '/')
        return argument_error(
            "directory: \"%.256s\" is relative; expected an absolute path",
            directory);
    length = snprintf(path, sizeof(path), "%s/%s", directory, profile->file);
    if (length < 0 || (size_t)length >= sizeof(path) ||
        (out_path != NULL && (size_t)length >= path_bytes))
        return argument_error("path_bytes: %zu is too small for %s/%s",
                              path_bytes, directory, profile->file);
    directory_fd = directory_open_writable(directory, why);
    if (directory_fd < 0)
        return last_error_set(TANDEM_FAILED,
                              "%s: no profile can be written there: %s",
                              directory, why);
    status = profile_write(profile, directory, directory_fd);
    if (status != TANDEM_OK)
        return status;
    baseline = json_copy_checked(profile->root, true);
    if (baseline != NULL) {
        json_decref(profile->baseline);
        profile->baseline = baseline;
    }
    if (out_path != NULL)
        memcpy(out_path, path, (size_t)length + 1);
    return TANDEM_OK;
}
