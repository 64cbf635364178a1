/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the plugin's section of a tuning profile with the library Jansson. */
#include "opencl/device/tuning_section.h"

#include <jansson.h>
#include <stdio.h>

static bool is_object_of_strings(json_t *root)
{
    const char *key;
    json_t *value;
    if (!json_is_object(root) || json_object_size(root) > MAX_TUNING_PAIRS)
        return false;
    json_object_foreach (root, key, value)
        if (!json_is_string(value))
            return false;
    return true;
}

bool tuning_section_read(const char *text, tuning_section_fn parse, void *user,
                         char *out_error, size_t error_bytes)
{
    json_error_t error;
    const char *key;
    json_t *value;
    unsigned invalid_count = 0;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!is_object_of_strings(root)) {
        snprintf(out_error, error_bytes, "it is not an object of strings");
        json_decref(root);
        return false;
    }
    json_object_foreach (root, key, value)
        if (!parse(user, key, json_string_value(value)) && invalid_count++ == 0)
            snprintf(out_error, error_bytes, "\"%.64s\": \"%.80s\"", key,
                     json_string_value(value));
    json_decref(root);
    return invalid_count == 0;
}
