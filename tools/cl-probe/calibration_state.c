/* SPDX-License-Identifier: Apache-2.0 */
/* Tells if a device is calibrated; see calibration_state.h. */
#include <config.h>

#include "calibration_state.h"

#include <stdio.h>
#include <string.h>

/* Separates the parts in a profile's note "missing"; see calibration_save.c. */
static const char separator[] = ", ";

json_t *calibration_missing(const json_t *profile)
{
    const char *part =
        device_text(json_object_get(profile, "notes"), "missing");
    json_t *missing = json_array();

    while (*part != '\0') {
        const char *end = strstr(part, separator);
        const size_t length = end != NULL ? (size_t)(end - part) : strlen(part);

        json_array_append_new(missing, json_stringn(part, length));
        part += end != NULL ? length + strlen(separator) : length;
    }
    return missing;
}

/* Writes the texts with separators.  Returns `out`. */
static const char *missing_join(const json_t *missing,
                                char out[CALIBRATION_STATE_BYTES])
{
    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const size_t used = strlen(out);

        snprintf(out + used, CALIBRATION_STATE_BYTES - used, "%s%s",
                 i == 0 ? "" : separator,
                 json_string_value(json_array_get(missing, i)));
    }
    return out;
}

enum tandem_status calibration_missing_remove(struct tandem_profile *profile,
                                              const char *path,
                                              const char *part)
{
    char text[CALIBRATION_STATE_BYTES];
    json_t *content = json_load_file(path, 0, NULL),
           *missing = calibration_missing(content);
    bool is_found = false;

    for (size_t i = json_array_size(missing); i-- > 0;)
        if (strcmp(json_string_value(json_array_get(missing, i)), part) == 0)
            is_found = json_array_remove(missing, i) == 0;
    missing_join(missing, text);
    json_decref(missing);
    json_decref(content);
    if (!is_found)
        return TANDEM_OK;
    const enum tandem_status status = tandem_profile_set_note(
        profile, "missing", text[0] != '\0' ? text : NULL);
    return status == TANDEM_OK ? tandem_profile_save(profile, NULL, NULL, 0)
                               : status;
}

enum calibration_state calibration_state(const json_t *device)
{
    if (!json_is_true(json_object_get(device, "calibrated")))
        return NOT_CALIBRATED;
    return json_array_size(json_object_get(device, "missing")) > 0
               ? PARTLY_CALIBRATED
               : CALIBRATED;
}

const char *calibration_missing_text(const json_t *device,
                                     char out[CALIBRATION_STATE_BYTES])
{
    return missing_join(json_object_get(device, "missing"), out);
}

const char *calibration_state_text(const json_t *device,
                                   char out[CALIBRATION_STATE_BYTES])
{
    char missing[CALIBRATION_STATE_BYTES];

    switch (calibration_state(device)) {
    case CALIBRATED:
        snprintf(out, CALIBRATION_STATE_BYTES, "calibrated%s",
                 calibration_busy_note(device) != NULL ? " on a busy machine"
                                                       : "");
        break;
    case PARTLY_CALIBRATED:
        snprintf(out, CALIBRATION_STATE_BYTES,
                 "partly calibrated (missing: %.450s)",
                 calibration_missing_text(device, missing));
        break;
    default:
        snprintf(out, CALIBRATION_STATE_BYTES, "not calibrated%s",
                 device_text(device, "ignored_profiles")[0] != '\0'
                     ? " (profile ignored: see cl-probe --list)"
                     : "");
        break;
    }
    return out;
}

const char *calibration_busy_note(const json_t *device)
{
    static const char key[] = "busy: ";
    const json_t *notes = json_object_get(device, "profile_notes");

    for (size_t i = 0; i < json_array_size(notes); i++) {
        const char *note = json_string_value(json_array_get(notes, i));

        if (strncmp(note, key, sizeof key - 1) == 0)
            return note + sizeof key - 1;
    }
    return NULL;
}

bool calibration_is_needed(const json_t *device)
{
    return calibration_state(device) != CALIBRATED &&
           device_text(device, "duplicate_of")[0] == '\0';
}
