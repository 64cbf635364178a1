/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a profile and checks each of its values; see profile_search.h.
 * Any thread may call the functions. */
#include <config.h>

#include "common/operator_table.h"
#include "host/profile/profile_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool parse_error_set(char *why, const char *what, const char *name)
{
    snprintf(why, SECURE_WHY_BYTES, "%s \"%.64s\"", what, name);
    return false;
}

/* Reads a JSON number.  Returns false if it is not from `low` to `high`. */
static bool number_read(const json_t *value, double low, double high,
                        double *out)
{
    if (!json_is_number(value))
        return false;
    *out = json_number_value(value);
    return isfinite(*out) && *out >= low && *out <= high;
}

/* Reads a JSON number and rounds it down to an integer.  Different integers
 * differ by at least 1, which keeps the slopes between curve points finite. */
static bool integer_read(const json_t *value, double low, double high,
                         double *out)
{
    if (!number_read(value, low, high, out))
        return false;
    *out = floor(*out);
    return true;
}

static bool scalars_parse(json_t *scalars, struct cost_model *model, char *why)
{
    const char *name;
    json_t *value;

    if (scalars != NULL && !json_is_object(scalars))
        return parse_error_set(why, "expected an object for", "scalars");
    json_object_foreach (scalars, name, value) {
        const uint32_t index = cost_scalar_find(name);
        double ns;

        if (!number_read(value, 0, MAX_COST_NS, &ns))
            return parse_error_set(why, "invalid number for the scalar", name);
        if (index < COST_SCALAR_COUNT) {
            model->scalars[index] = ns;
            model->calibrated = true;
        }
    }
    return true;
}

static bool curve_parse(const json_t *array, struct cost_curve *curve)
{
    struct curve_point points[MAX_CURVE_POINTS];
    const size_t count = json_array_size(array);

    if (!json_is_array(array) || count == 0 || count > MAX_CURVE_POINTS)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(array, i);

        if (json_array_size(pair) != 2 ||
            !integer_read(json_array_get(pair, 0), 0, MAX_COST_X,
                          &points[i].x) ||
            !number_read(json_array_get(pair, 1), 0, MAX_COST_NS,
                         &points[i].ns))
            return false;
    }
    cost_curve_build(curve, points, (uint32_t)count);
    return true;
}

static bool curves_parse(json_t *curves, struct cost_model *model, char *why)
{
    const char *name;
    json_t *value;

    if (curves != NULL && !json_is_object(curves))
        return parse_error_set(why, "expected an object for", "curves");
    json_object_foreach (curves, name, value) {
        const uint32_t index = cost_curve_find(name);

        if (index == COST_CURVE_COUNT)
            continue;
        if (!curve_parse(value, &model->curves[index]))
            return parse_error_set(why, "invalid points for the curve", name);
        model->calibrated = true;
        if (index < TANDEM_COST_CLASS_COUNT)
            model->calibrated_classes |= 1u << index;
    }
    return true;
}

static bool gemm_point_parse(const json_t *row, struct gemm_point *out)
{
    for (uint32_t axis = 0; axis < 3; axis++) {
        if (!integer_read(json_array_get(row, axis), 1, MAX_GEMM_SIZE,
                          &out->size[axis]))
            return false;
    }
    return json_array_size(row) == 4 &&
           number_read(json_array_get(row, 3), 1e-3, MAX_COST_NS, &out->ns);
}

static bool gemm_parse(const json_t *array, struct cost_model *model, char *why)
{
    const size_t count = json_array_size(array);
    struct gemm_point *points;
    bool ok = true;

    if (array != NULL && !json_is_array(array))
        return parse_error_set(why, "expected an array for", "gemm");
    if (count == 0)
        return true;
    if (count > MAX_GEMM_POINTS)
        return parse_error_set(why, "too many points for", "gemm");
    points = calloc(count, sizeof(*points));
    if (points == NULL)
        return parse_error_set(why, "no memory for", "gemm");
    for (size_t i = 0; i < count && ok; i++)
        ok = gemm_point_parse(json_array_get(array, i), &points[i]);
    ok = ok && gemm_cost_grid_build(&model->gemm, points, (uint32_t)count);
    free(points);
    if (!ok)
        return parse_error_set(why, "invalid points for", "gemm");
    model->calibrated = true;
    model->calibrated_classes |= 1u << TANDEM_COST_GEMM;
    return true;
}

/* Parses the names of blocked operators.  Ignores unknown names, because a
 * later version of the library may have added the operators. */
static bool blocked_ops_parse(json_t *names, struct cost_model *model,
                              char *why)
{
    const size_t count = json_array_size(names);

    if (names != NULL && (!json_is_array(names) || count > TANDEM_OP_ID_END))
        return parse_error_set(why, "expected an array of operator names for",
                               "blocked_operators");
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const struct operator_info *row;

        if (name == NULL)
            return parse_error_set(why, "expected operator names in",
                                   "blocked_operators");
        row = operator_row_by_name(name);
        if (row != NULL)
            model->blocked_ops[row->id / 64] |= UINT64_C(1) << row->id % 64;
    }
    return true;
}

/* Returns true if the member `name` of a profile is missing or is an object
 * that contains only texts. */
static bool texts_check(json_t *texts, const char *name, char *why)
{
    const char *key;
    json_t *value;

    if (texts == NULL)
        return true;
    if (!json_is_object(texts))
        return parse_error_set(why, "expected an object for", name);
    if (json_object_size(texts) > MAX_PROFILE_TUNING)
        return parse_error_set(why, "too many values in", name);
    json_object_foreach (texts, key, value) {
        if (!json_is_string(value) ||
            json_string_length(value) > MAX_PROFILE_TUNING)
            return parse_error_set(why, "invalid text for the value", key);
    }
    return true;
}

/* Checks the tuning section, which may be missing.  Sets *out_text to the
 * section as JSON text, which the caller frees. */
static bool tuning_parse(json_t *tuning, char **out_text, char *why)
{
    if (!texts_check(tuning, "tuning", why))
        return false;
    if (tuning == NULL)
        return true;
    *out_text = json_dumps(tuning, JSON_COMPACT | JSON_SORT_KEYS);
    return *out_text != NULL || parse_error_set(why, "no memory for", "tuning");
}

/* Parses all sections of a profile into a copy of the cost model, so that an
 * invalid profile leaves the model unchanged. */
static bool model_parse(const json_t *root, struct cost_model *model,
                        char **out_tuning, char *why)
{
    struct cost_model *fresh = malloc(sizeof(*fresh));
    bool ok;

    if (fresh == NULL)
        return parse_error_set(why, "no memory for", "profile");
    *fresh = *model;
    ok = scalars_parse(json_object_get(root, "scalars"), fresh, why) &&
         curves_parse(json_object_get(root, "curves"), fresh, why) &&
         gemm_parse(json_object_get(root, "gemm"), fresh, why) &&
         blocked_ops_parse(json_object_get(root, "blocked_operators"), fresh,
                           why) &&
         texts_check(json_object_get(root, "notes"), "notes", why) &&
         tuning_parse(json_object_get(root, "tuning"), out_tuning, why);
    if (ok)
        *model = *fresh;
    else
        gemm_cost_grid_free(&fresh->gemm);
    free(fresh);
    return ok;
}

static bool text_equal(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL && strcmp(value, text) == 0;
}

/* Returns true if the profile is for the device model and driver in `key`.  If
 * `exact` is true, the device, plugin version and CPU must also be equal. */
static bool key_matches(const struct profile_key *key, const json_t *root,
                        bool exact)
{
    const json_t *device = json_object_get(root, "device");

    return text_equal(device, "backend", key->backend) &&
           text_equal(device, "name", key->name) &&
           text_equal(device, "driver", key->driver) &&
           (!exact ||
            (text_equal(device, "uuid", key->uuid) &&
             text_equal(device, "pci", key->pci) &&
             text_equal(device, "plugin_version", key->plugin_version) &&
             text_equal(device, "host_cpu", key->host_cpu)));
}

static void mismatch_describe(const struct profile_key *key, const json_t *root,
                              bool exact, char *why)
{
    const json_t *device = json_object_get(root, "device");
    const char *driver = json_string_value(json_object_get(device, "driver"));

    if (exact || driver == NULL || strcmp(driver, key->driver) == 0)
        snprintf(
            why, SECURE_WHY_BYTES,
            "it was measured on another device, or with another CPU or plugin");
    else
        snprintf(why, SECURE_WHY_BYTES,
                 "it was measured with driver \"%.128s\", not \"%.128s\"",
                 driver, key->driver);
}

enum profile_match profile_parse(const char *text, size_t bytes,
                                 const struct profile_key *key, bool exact,
                                 struct cost_model *model, char **out_tuning,
                                 char *why)
{
    enum profile_match fit = PROFILE_MALFORMED;
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);

    *out_tuning = NULL;
    if (root == NULL) {
        snprintf(why, SECURE_WHY_BYTES, "line %d: %s", error.line, error.text);
    } else if (json_integer_value(json_object_get(root, "format")) !=
               PROFILE_FORMAT) {
        snprintf(why, SECURE_WHY_BYTES, "its format is not %d", PROFILE_FORMAT);
    } else if (!key_matches(key, root, exact)) {
        fit = PROFILE_MISMATCH;
        mismatch_describe(key, root, exact, why);
    } else if (model_parse(root, model, out_tuning, why)) {
        fit = PROFILE_MATCH;
    }
    json_decref(root);
    return fit;
}
