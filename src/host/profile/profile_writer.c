/* SPDX-License-Identifier: Apache-2.0 */
/* Creates profiles, merges them with saved profiles, and saves them. */
#include <config.h>

#include "host/profile/profile_writer.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/secure_file.h"
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

enum tandem_status profile_memory_check(bool ok)
{
    return ok ? TANDEM_OK : memory_error("no memory for a profile");
}

/* Adds to `names` the names of the operators that the cost model blocks.  They
 * stay blocked until tandem_profile_set_op_blocked unblocks them. */
static bool blocked_ops_fill(json_t *names, const struct cost_model *model)
{
    bool ok = true;

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
    struct profile_key *key = &profile->key;
    char now[32] = "";
    const time_t seconds = time(NULL);
    struct tm parts;

    profile->context = device->context;
    profile_key_make(device, key);
    profile_file_name(key, profile->file);
    if (gmtime_r(&seconds, &parts) != NULL)
        strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &parts);
    profile->root = json_pack(
        "{s:i, s:s, s:{}, s:{}, s:{}, s:[], s:{}, s:[],"
        " s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s}}",
        "format", PROFILE_FORMAT, "measured_at", now, "notes", "scalars",
        "curves", "gemm", "tuning", "blocked_operators", "device", "backend",
        key->backend, "name", key->name, "uuid", key->uuid, "pci", key->pci,
        "driver", key->driver, "plugin_version", key->plugin_version,
        "host_cpu", key->host_cpu);
    return profile->root != NULL &&
           blocked_ops_fill(json_object_get(profile->root, "blocked_operators"),
                            &device->cost);
}

/* Returns the content of the profile `name` in `directory` if profile_parse
 * accepts it for `key` and `exact`.  The caller releases the content with
 * json_decref.  Otherwise returns NULL and writes the reason to `why`, which is
 * empty if there is no file, and can be empty if memory runs out. */
static json_t *profile_load_json(int directory, const char *name,
                                 const struct profile_key *key, bool exact,
                                 char *why)
{
    struct cost_model *scratch = calloc(1, sizeof(*scratch));
    struct thread_state host;
    json_t *root = NULL;
    char *tuning = NULL;
    size_t bytes;
    char *text =
        secure_file_read(directory, name, MAX_PROFILE_BYTES, &bytes, why);

    if (text != NULL && scratch != NULL) {
        thread_state_guard_enter(&host);
        if (profile_parse(text, bytes, key, exact, scratch, &tuning, why) ==
            PROFILE_MATCH) {
            gemm_cost_grid_free(&scratch->gemm);
            root = json_loadb(text, bytes, 0, NULL);
        }
        thread_state_guard_leave(&host);
    }
    free(tuning);
    free(text);
    free(scratch);
    return root;
}

/* Works like profile_load_json, but takes an absolute path and accepts a
 * profile of any device with the same model and driver. */
static json_t *profile_reload_json(const char *path,
                                   const struct profile_key *key, char *why)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_BYTES];
    json_t *root = NULL;
    int fd;

    snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
    fd = secure_directory_open(directory, SECURE_READ, why);
    if (fd >= 0) {
        root = profile_load_json(fd, slash + 1, key, false, why);
        close(fd);
    }
    return root;
}

/* Members of a profile that contain measurements.  The first COST_MEMBERS of
 * them contain costs, notes about them, and the time at which the costs were
 * measured. */
static const char *const measured_members[] = {
    "scalars", "curves", "gemm", "notes", "measured_at", "tuning"};
#define MEASURED_MEMBERS 6u
#define COST_MEMBERS 5u

/* Copies measured_members[first] to measured_members[end - 1] from `from` to
 * `to`.  Skips members that `from` lacks.  Returns false if memory runs out. */
static bool members_copy(const json_t *from, json_t *to, size_t first,
                         size_t end)
{
    bool ok = true;

    for (size_t i = first; i < end && ok; i++) {
        const char *name = measured_members[i];
        json_t *member = json_object_get(from, name);

        ok = member == NULL || json_object_set(to, name, member) == 0;
    }
    return ok;
}

/* Copies measurements from the file device->profile_path, if there is one.  If
 * `all` is true, copies all of them, and fails if the file is no longer valid.
 * Otherwise copies only the tuning section, if the file is still valid. */
static enum tandem_status measurements_copy(struct tandem_profile *profile,
                                            const struct device *device,
                                            bool all)
{
    char why[SECURE_WHY_BYTES];
    json_t *saved;
    bool ok;

    if (device->profile_path == NULL)
        return TANDEM_OK;
    saved = profile_reload_json(device->profile_path, &profile->key, why);
    if (saved == NULL && !all)
        return TANDEM_OK;
    if (saved == NULL)
        return last_error_set(TANDEM_FAILED,
                              "%.256s: the profile cannot be edited: %.200s",
                              device->profile_path, why);
    ok = members_copy(saved, profile->root, all ? 0 : COST_MEMBERS,
                      MEASURED_MEMBERS);
    json_decref(saved);
    return profile_memory_check(ok);
}

/* Returns a copy of a JSON value, or NULL if memory runs out.  Checks the copy,
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
    status =
        profile_memory_check(profile != NULL && profile_fill(profile, device));
    if (status == TANDEM_OK)
        status = measurements_copy(profile, device, edit);
    if (status == TANDEM_OK) {
        profile->edits_existing = edit;
        profile->baseline = json_copy_checked(profile->root, true);
        status = profile_memory_check(profile->baseline != NULL);
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
 * only briefly.  If the timeout expires, the profile is saved without the lock,
 * and a concurrent save can overwrite it. */
#define LOCK_MS 5000u

static bool member_is_unchanged(const json_t *baseline, const json_t *edited,
                                const char *key)
{
    const json_t *before = json_object_get(baseline, key);
    const json_t *after = json_object_get(edited, key);

    return before == after || json_equal(before, after);
}

/* Copies the costs of the saved file to `out` if this profile was created from
 * a file and its costs were not changed.  Otherwise `out` stays unchanged. */
static bool costs_merge(const struct tandem_profile *profile,
                        const json_t *saved, json_t *out)
{
    bool unchanged = profile->edits_existing;

    for (size_t i = 0; i < COST_MEMBERS - 1; i++)
        unchanged =
            unchanged && member_is_unchanged(profile->baseline, profile->root,
                                             measured_members[i]);
    return !unchanged || members_copy(saved, out, 0, COST_MEMBERS);
}

static bool tuning_merge(const struct tandem_profile *profile,
                         const json_t *saved, json_t *out)
{
    const json_t *baseline = json_object_get(profile->baseline, "tuning");
    json_t *edited = json_object_get(profile->root, "tuning");
    json_t *others = json_object_get(saved, "tuning");
    json_t *tuning = json_copy_checked(edited, false);
    const char *key;
    json_t *value;
    bool ok = tuning != NULL;

    json_object_foreach (others, key, value) {
        if (ok && member_is_unchanged(baseline, edited, key))
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
    const json_t *edited = json_object_get(profile->root, "blocked_operators");
    const json_t *others = json_object_get(saved, "blocked_operators");
    json_t *names = json_array(), *name;
    bool ok = names != NULL;
    size_t i;

    /* Keep the operator names in the saved file except those that this profile
     * unblocked, and add the names that this profile blocked. */
    json_array_foreach (others, i, name) {
        if (ok &&
            (!array_contains(baseline, name) || array_contains(edited, name)))
            ok = json_array_append(names, name) == 0;
    }
    json_array_foreach (edited, i, name) {
        if (ok && !array_contains(baseline, name) &&
            !array_contains(names, name))
            ok = json_array_append(names, name) == 0;
    }
    return json_object_set_new(out, "blocked_operators", names) == 0 && ok;
}

/* Returns the profile to write.  JSON members that the program changed come
 * from this profile.  Other members come from the saved file, because another
 * process may have saved it since.  Returns NULL if memory runs out. */
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
    char *text;

    thread_state_guard_enter(&host);
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
    const int lock = lock_take(directory, LOCK_MS);
    char *text = profile_text(profile, directory);
    const struct file_part whole = {text, text != NULL ? strlen(text) : 0};
    char why[SECURE_WHY_BYTES];
    enum tandem_status status = profile_memory_check(text != NULL);

    if (whole.bytes > MAX_PROFILE_BYTES)
        status =
            argument_error("the profile has %zu bytes; expected at most %u",
                           whole.bytes, MAX_PROFILE_BYTES);
    else if (text != NULL &&
             !file_replace_atomically(directory, profile->file, &whole, 1,
                                      REPLACE_DURABLE, why))
        status = last_error_set(TANDEM_FAILED, "%s: %s", path, why);
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
    status = profile_write(profile, path, directory_fd);
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
