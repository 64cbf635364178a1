/* SPDX-License-Identifier: Apache-2.0 */
/* Adds entries to a profile.  The functions accept only values that
 * profile_parser.c accepts.  Only one thread at a time may use a profile. */
#include <config.h>

#include "host/profile/profile_writer.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "host/loader/plugin_reply.h"

#include <string.h>

static enum tandem_status number_check(const char *what, double value,
                                       double low, double high)
{
    if (value >= low && value <= high)
        return TANDEM_OK;
    return argument_error("%s: %g is out of range; expected %g to %g", what,
                          value, low, high);
}

enum tandem_status tandem_profile_set_scalar(struct tandem_profile *profile,
                                             const char *name, double value)
{
    enum tandem_status status = profile_check(profile);

    if (status == TANDEM_OK && name == NULL)
        status = argument_error("name: NULL");
    if (status == TANDEM_OK && cost_scalar_find(name) == COST_SCALAR_COUNT)
        status = argument_error("name: unknown scalar \"%.64s\"", name);
    if (status == TANDEM_OK)
        status = number_check(name, value, 0, MAX_COST_NS);
    if (status == TANDEM_OK)
        status = profile_memory_check(
            json_object_set_new(json_object_get(profile->root, "scalars"), name,
                                json_real(value)) == 0);
    return status;
}

/* Returns the index at which a point with this x belongs among a curve's sorted
 * points.  *out_same is true if a point with this x already exists. */
static size_t point_index(const json_t *points, double x, bool *out_same)
{
    const size_t count = json_array_size(points);

    *out_same = false;
    for (size_t i = 0; i < count; i++) {
        const double at =
            json_number_value(json_array_get(json_array_get(points, i), 0));

        *out_same = at == x;
        if (at >= x)
            return i;
    }
    return count;
}

enum tandem_status
tandem_profile_add_curve_point(struct tandem_profile *profile,
                               const char *curve, double x, double ns)
{
    enum tandem_status status = profile_check(profile);
    json_t *curves, *points, *pair;
    size_t index;
    bool same, ok;

    if (status == TANDEM_OK && curve == NULL)
        status = argument_error("curve: NULL");
    if (status == TANDEM_OK && cost_curve_find(curve) == COST_CURVE_COUNT)
        status = argument_error("curve: unknown name \"%.64s\"", curve);
    if (status == TANDEM_OK)
        status = number_check("x", x, 0, MAX_COST_X);
    if (status == TANDEM_OK)
        status = number_check("ns", ns, 0, MAX_COST_NS);
    if (status != TANDEM_OK)
        return status;
    curves = json_object_get(profile->root, "curves");
    points = json_object_get(curves, curve);
    index = point_index(points, x, &same);
    if (!same && json_array_size(points) == MAX_CURVE_POINTS)
        return argument_error("curve: %s has the maximum of %u points", curve,
                              MAX_CURVE_POINTS);
    pair = json_pack("[f, f]", x, ns);
    if (points == NULL)
        ok = json_object_set_new(curves, curve, json_pack("[o]", pair)) == 0;
    else if (same)
        ok = json_array_set_new(points, index, pair) == 0;
    else
        ok = json_array_insert_new(points, index, pair) == 0;
    return profile_memory_check(ok);
}

enum tandem_status tandem_profile_add_gemm_point(struct tandem_profile *profile,
                                                 int64_t m, int64_t n,
                                                 int64_t k, double ns)
{
    enum tandem_status status = profile_check(profile);
    json_t *points;

    if (status == TANDEM_OK)
        status = number_check("m", (double)m, 1, MAX_GEMM_SIZE);
    if (status == TANDEM_OK)
        status = number_check("n", (double)n, 1, MAX_GEMM_SIZE);
    if (status == TANDEM_OK)
        status = number_check("k", (double)k, 1, MAX_GEMM_SIZE);
    if (status == TANDEM_OK)
        status = number_check("ns", ns, 1e-3, MAX_COST_NS);
    if (status != TANDEM_OK)
        return status;
    points = json_object_get(profile->root, "gemm");
    if (json_array_size(points) == MAX_GEMM_POINTS)
        return argument_error("gemm: the profile has the maximum of %u points",
                              MAX_GEMM_POINTS);
    return profile_memory_check(
        json_array_append_new(points, json_pack("[I, I, I, f]", (json_int_t)m,
                                                (json_int_t)n, (json_int_t)k,
                                                ns)) == 0);
}

/* Returns true if the text is valid UTF-8.  Jansson's own check would report
 * invalid text and lack of memory with the same error. */
static bool text_is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at != '\0') {
        const size_t bytes = *at < 0x80 ? 1 : utf8_character_bytes(at);

        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

/* Sets a key of the object `member` of the profile, which contains only texts,
 * or removes the key if `value` is NULL. */
static enum tandem_status text_set(struct tandem_profile *profile,
                                   const char *member, const char *key,
                                   const char *value)
{
    json_t *texts = json_object_get(profile->root, member);

    if (value == NULL) {
        json_object_del(texts, key);
        return TANDEM_OK;
    }
    if (strlen(value) > MAX_PROFILE_TUNING ||
        json_object_size(texts) >= MAX_PROFILE_TUNING)
        return argument_error("%s value \"%.64s\": longer than %u bytes, "
                              "or more than %u values",
                              member, key, MAX_PROFILE_TUNING,
                              MAX_PROFILE_TUNING);
    if (!text_is_utf8(key) || !text_is_utf8(value))
        return argument_error("%s value \"%.64s\": key or value is not UTF-8",
                              member, key);
    return profile_memory_check(
        json_object_set_new(texts, key, json_string(value)) == 0);
}

enum tandem_status tandem_profile_set_tuning(struct tandem_profile *profile,
                                             const char *key, const char *value)
{
    const enum tandem_status status = profile_check(profile);

    if (status != TANDEM_OK)
        return status;
    if (key == NULL || value == NULL)
        return argument_error("%s: NULL", key == NULL ? "key" : "value");
    return text_set(profile, "tuning", key, value);
}

enum tandem_status tandem_profile_set_note(struct tandem_profile *profile,
                                           const char *key, const char *text)
{
    const enum tandem_status status = profile_check(profile);

    if (status != TANDEM_OK)
        return status;
    if (key == NULL)
        return argument_error("key: NULL");
    return text_set(profile, "notes", key, text);
}

enum tandem_status tandem_profile_set_op_blocked(struct tandem_profile *profile,
                                                 uint32_t op, uint32_t blocked)
{
    const struct operator_info *row = operator_lookup(op);
    enum tandem_status status = profile_check(profile);
    json_t *names, *name;
    size_t i;

    if (status == TANDEM_OK && row == NULL)
        status = argument_error("op: %u is not an operator id", op);
    if (status != TANDEM_OK)
        return status;
    names = json_object_get(profile->root, "blocked_operators");
    json_array_foreach (names, i, name) {
        if (strcmp(json_string_value(name), row->name) == 0) {
            if (blocked == 0)
                json_array_remove(names, i);
            return TANDEM_OK;
        }
    }
    if (blocked == 0)
        return TANDEM_OK;
    return profile_memory_check(
        json_array_append_new(names, json_string(row->name)) == 0);
}
