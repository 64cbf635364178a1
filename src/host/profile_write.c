/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing profiles: collects measurements and puts them in place of the file
 * that was there.  One thread uses one profile at a time.
 */
#include <config.h>

#include "common/message.h"
#include "common/operator.h"
#include "common/shelter.h"
#include "host/path.h"
#include "host/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tandem_profile {
    struct handle handle;
    struct tandem_context *context;
    json_t *root; /* owns those below */
    json_t *scalars, *curves, *gemm, *tuning, *rejected;
    char file[PROFILE_NAME_BYTES];
};

struct handle_pool profile_pool = HANDLE_POOL(struct tandem_profile,
                                              0x5450524f);

static enum tandem_status profile_check(const struct tandem_profile *profile)
{
    if (!handle_live(&profile_pool, profile))
        return message_set(TANDEM_INVALID_ARGUMENT, "profile: %s",
                           profile == NULL ? "NULL"
                                           : "a freed or foreign handle");
    return TANDEM_OK;
}

static enum tandem_status memory_fail(void)
{
    return message_set(TANDEM_OUT_OF_MEMORY, "no memory for a profile");
}

static json_t *key_json(const struct profile_key *key)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "backend",
                     key->backend, "name", key->name, "uuid", key->uuid, "pci",
                     key->pci, "driver", key->driver, "plugin_version",
                     key->plugin_version, "host_cpu", key->host_cpu);
}

/* A new member; NULL when memory is out. */
static json_t *member_add(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0 ? value : NULL;
}

/* What was found wrong stays so until it is found right. */
static bool rejected_fill(json_t *names, const struct cost_model *model)
{
    bool good = names != NULL;

    for (uint32_t op = 0; op < TANDEM_OP_LIMIT && good; op++) {
        if (cost_rejects(model, op))
            good = json_array_append_new(
                       names, json_string(operator_name(op))) == 0;
    }
    return good;
}

static bool profile_fill(struct tandem_profile *profile,
                         const struct device *device)
{
    struct profile_key key;
    char now[32] = "";
    const time_t seconds = time(NULL);
    struct tm parts;
    size_t prefix;

    profile_key_make(device, &key);
    profile_file_name(&key, profile->file, sizeof(profile->file), &prefix);
    if (gmtime_r(&seconds, &parts) != NULL)
        strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &parts);
    profile->root = json_pack("{s:i, s:s}", "format", PROFILE_FORMAT,
                              "measured_at", now);
    profile->scalars = member_add(profile->root, "scalars", json_object());
    profile->curves = member_add(profile->root, "curves", json_object());
    profile->gemm = member_add(profile->root, "gemm", json_array());
    profile->tuning = member_add(profile->root, "tuning", json_object());
    profile->rejected = member_add(profile->root, "rejected", json_array());
    return member_add(profile->root, "device", key_json(&key)) != NULL &&
           rejected_fill(profile->rejected, &device->cost) &&
           profile->scalars != NULL && profile->curves != NULL &&
           profile->gemm != NULL && profile->tuning != NULL;
}

/* Takes over what was measured from the file that the device's costs came
 * from. */
static enum tandem_status profile_adopt(struct tandem_profile *profile,
                                        const struct device *device)
{
    static const char *const members[] = {"measured_at", "scalars", "curves",
                                          "gemm", "tuning"};
    char why[TRUST_WHY_BYTES];
    json_t *before;

    if (device->profile == NULL)
        return TANDEM_OK;
    before = profile_read(device, why, sizeof(why));
    if (before == NULL)
        return message_set(TANDEM_FAILED, "%.256s: the profile cannot be "
                                          "revised: %.200s",
                           device->profile, why);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *member = json_object_get(before, members[i]);

        if (member != NULL &&
            json_object_set(profile->root, members[i], member) != 0) {
            json_decref(before);
            return memory_fail();
        }
    }
    json_decref(before);
    profile->scalars = json_object_get(profile->root, "scalars");
    profile->curves = json_object_get(profile->root, "curves");
    profile->gemm = json_object_get(profile->root, "gemm");
    profile->tuning = json_object_get(profile->root, "tuning");
    return TANDEM_OK;
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
        return message_set(TANDEM_INVALID_ARGUMENT, "out_profile: NULL");
    context_lock(context);
    status = device_get(context, device, &found);
    if (status == TANDEM_OK) {
        profile = handle_new(&profile_pool);
        if (profile != NULL)
            profile->context = context;
        if (profile == NULL || !profile_fill(profile, found))
            status = memory_fail();
        else if (adopt)
            status = profile_adopt(profile, found);
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

enum tandem_status tandem_profile_revise(struct tandem_context *context,
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
    handle_free(&profile_pool, profile);
}

static enum tandem_status number_check(const char *what, double value,
                                       double low, double high)
{
    if (value >= low && value <= high)
        return TANDEM_OK;
    return message_set(TANDEM_INVALID_ARGUMENT, "%s: %g is not from %g to %g",
                       what, value, low, high);
}

enum tandem_status tandem_profile_scalar(struct tandem_profile *profile,
                                         const char *name, double value)
{
    enum tandem_status status = profile_check(profile);

    if (status == TANDEM_OK && name == NULL)
        status = message_set(TANDEM_INVALID_ARGUMENT, "name: NULL");
    if (status == TANDEM_OK && cost_scalar_find(name) == COST_SCALARS)
        status = message_set(TANDEM_INVALID_ARGUMENT,
                             "name: there is no scalar \"%.64s\"", name);
    if (status == TANDEM_OK)
        status = number_check(name, value, 0, COST_NS_MAX);
    if (status == TANDEM_OK &&
        json_object_set_new(profile->scalars, name, json_real(value)) != 0)
        status = memory_fail();
    return status;
}

/* The place of x in a curve's rising points; *out_same: it is taken. */
static size_t point_place(const json_t *points, double x, bool *out_same)
{
    const size_t count = json_array_size(points);

    *out_same = false;
    for (size_t i = 0; i < count; i++) {
        const double at = json_number_value(
            json_array_get(json_array_get(points, i), 0));

        *out_same = at == x;
        if (at >= x)
            return i;
    }
    return count;
}

/* Puts a point in its place among those of a curve, or first where points is
 * NULL.  false: no memory, nothing changed. */
static bool point_put(struct tandem_profile *profile, const char *curve,
                      json_t *points, size_t place, bool same, json_t *pair)
{
    if (pair == NULL)
        return false;
    if (same)
        return json_array_set_new(points, place, pair) == 0;
    if (points != NULL)
        return json_array_insert_new(points, place, pair) == 0;
    points = json_array();
    if (json_array_append_new(points, pair) != 0) {
        json_decref(points);
        return false;
    }
    return member_add(profile->curves, curve, points) != NULL;
}

enum tandem_status tandem_profile_point(struct tandem_profile *profile,
                                        const char *curve, double x, double ns)
{
    enum tandem_status status = profile_check(profile);
    json_t *points;
    size_t place;
    bool same;

    if (status == TANDEM_OK && curve == NULL)
        status = message_set(TANDEM_INVALID_ARGUMENT, "curve: NULL");
    if (status == TANDEM_OK && cost_curve_find(curve) == COST_CURVES)
        status = message_set(TANDEM_INVALID_ARGUMENT,
                             "curve: there is none named \"%.64s\"", curve);
    if (status == TANDEM_OK)
        status = number_check("x", x, 0, COST_X_MAX);
    if (status == TANDEM_OK)
        status = number_check("ns", ns, 0, COST_NS_MAX);
    if (status != TANDEM_OK)
        return status;
    points = json_object_get(profile->curves, curve);
    place = point_place(points, x, &same);
    if (!same && json_array_size(points) == CURVE_POINTS)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "curve: %s has %u points already", curve,
                           CURVE_POINTS);
    if (!point_put(profile, curve, points, place, same,
                   json_pack("[f, f]", x, ns)))
        return memory_fail();
    return TANDEM_OK;
}

enum tandem_status tandem_profile_gemm(struct tandem_profile *profile,
                                       int64_t m, int64_t n, int64_t k,
                                       double ns)
{
    enum tandem_status status = profile_check(profile);

    if (status == TANDEM_OK)
        status = number_check("m", (double)m, 1, COST_SIZE_MAX);
    if (status == TANDEM_OK)
        status = number_check("n", (double)n, 1, COST_SIZE_MAX);
    if (status == TANDEM_OK)
        status = number_check("k", (double)k, 1, COST_SIZE_MAX);
    if (status == TANDEM_OK)
        status = number_check("ns", ns, 1e-3, COST_NS_MAX);
    if (status == TANDEM_OK && json_array_size(profile->gemm) == GEMM_POINTS)
        status = message_set(TANDEM_INVALID_ARGUMENT,
                             "gemm: it has %u points already", GEMM_POINTS);
    if (status == TANDEM_OK &&
        json_array_append_new(profile->gemm,
                              json_pack("[I, I, I, f]", (json_int_t)m,
                                        (json_int_t)n, (json_int_t)k, ns)) != 0)
        status = memory_fail();
    return status;
}

/* Jansson does not say whether text or memory was what it wanted. */
static bool text_utf8(const char *text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

    while (*text != '\0') {
        const unsigned char first = (unsigned char)*text++;
        const uint32_t more =
            first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
        uint32_t code = more == 0 ? first : first & (0x3fu >> more);

        if ((first >= 0x80 && first < 0xc0) || first >= 0xf8)
            return false;
        for (uint32_t i = 0; i < more; i++, text++) {
            if (((unsigned char)*text & 0xc0u) != 0x80)
                return false;
            code = code << 6 | ((unsigned char)*text & 0x3fu);
        }
        if (code < least[more] || code > 0x10ffff ||
            (code >= 0xd800 && code < 0xe000))
            return false;
    }
    return true;
}

enum tandem_status tandem_profile_tuning(struct tandem_profile *profile,
                                         const char *key, const char *value)
{
    enum tandem_status status = profile_check(profile);

    if (status == TANDEM_OK && (key == NULL || value == NULL))
        status = message_set(TANDEM_INVALID_ARGUMENT, "%s: NULL",
                             key == NULL ? "key" : "value");
    if (status == TANDEM_OK && (strlen(value) > PROFILE_TUNING_MAX ||
                                json_object_size(profile->tuning) >=
                                    PROFILE_TUNING_MAX))
        status = message_set(TANDEM_INVALID_ARGUMENT,
                             "value of \"%.64s\": too long, or too many", key);
    if (status == TANDEM_OK && !(text_utf8(key) && text_utf8(value)))
        status = message_set(TANDEM_INVALID_ARGUMENT,
                             "\"%.64s\": key or value is not UTF-8", key);
    if (status == TANDEM_OK &&
        json_object_set_new(profile->tuning, key, json_string(value)) != 0)
        status = memory_fail();
    return status;
}

enum tandem_status tandem_profile_reject(struct tandem_profile *profile,
                                         uint32_t op, uint32_t rejected)
{
    const struct operator_row *row = operator_row(op);
    enum tandem_status status = profile_check(profile);
    size_t place = 0;

    if (status == TANDEM_OK && row == NULL)
        status = message_set(TANDEM_INVALID_ARGUMENT,
                             "op: there is no operator %u", op);
    if (status != TANDEM_OK)
        return status;
    while (place < json_array_size(profile->rejected) &&
           strcmp(json_string_value(json_array_get(profile->rejected, place)),
                  row->name) != 0)
        place++;
    if (place < json_array_size(profile->rejected)) {
        if (rejected == 0)
            json_array_remove(profile->rejected, place);
    } else if (rejected != 0 &&
               json_array_append_new(profile->rejected,
                                     json_string(row->name)) != 0) {
        status = memory_fail();
    }
    return status;
}

/* ---- saving ------------------------------------------------------------------ */

/* Writes text to the file of this name, made anew, in directory. */
static enum tandem_status text_save(const char *path, const char *name,
                                    const char *text)
{
    const struct trust_part whole = {text, strlen(text)};
    char why[TRUST_WHY_BYTES];
    bool good;
    int directory;

    if (whole.bytes > PROFILE_BYTES_MAX)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "the profile has %zu bytes, at most %u are read",
                           whole.bytes, PROFILE_BYTES_MAX);
    directory = path_writable(path, why, sizeof(why));
    if (directory < 0)
        return message_set(TANDEM_FAILED,
                           "%s: no profile can be written there: %s", path,
                           why);
    good = trust_replace(directory, name, &whole, 1, true, why, sizeof(why));
    close(directory);
    if (!good)
        return message_set(TANDEM_FAILED, "%s/%s: %s", path, name, why);
    return TANDEM_OK;
}

enum tandem_status tandem_profile_save(struct tandem_profile *profile,
                                       const char *directory, char *out_path,
                                       size_t path_bytes)
{
    char path[PATH_BYTES];
    struct shelter host;
    char *text;
    int length;
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
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "directory: NULL, and neither TANDEM_PROFILE, "
                           "XDG_CACHE_HOME nor HOME names one");
    if (directory[0] != '/')
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "directory: \"%.256s\" is relative", directory);
    length = snprintf(path, sizeof(path), "%s/%s", directory, profile->file);
    if (length < 0 || (size_t)length >= sizeof(path) ||
        (out_path != NULL && (size_t)length >= path_bytes))
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "path_bytes: %zu is too little for %s/%s",
                           path_bytes, directory, profile->file);
    shelter_enter(&host);
    text = json_dumps(profile->root, JSON_INDENT(1) | JSON_SORT_KEYS |
                                         JSON_REAL_PRECISION(17));
    shelter_leave(&host);
    if (text == NULL)
        return memory_fail();
    status = text_save(directory, profile->file, text);
    free(text);
    if (status != TANDEM_OK)
        return status;
    if (out_path != NULL)
        memcpy(out_path, path, (size_t)length + 1);
    return TANDEM_OK;
}
