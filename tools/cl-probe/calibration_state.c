/* SPDX-License-Identifier: Apache-2.0 */
/* Tells if a device is calibrated; see calibration_state.h. */
#include <config.h>

#include "calibration_state.h"
#include "calibration_run.h"

#include <stdio.h>
#include <string.h>

/* Returns true if the profile has tuning results.  cl-probe --tune can add them
 * after a calibration that ended early. */
static bool has_tuning(const json_t *profile)
{
    return json_object_size(json_object_get(profile, "tuning")) > 0;
}

json_t *calibration_missing(const json_t *profile)
{
    static const char separator[] = ", ";
    /* "PART, PART, ..."; see calibration_save.c. */
    const char *part =
        device_text(json_object_get(profile, "notes"), "missing");
    json_t *missing = json_array();

    while (*part != '\0') {
        const char *end = strstr(part, separator);
        const size_t length = end != NULL ? (size_t)(end - part) : strlen(part);
        const bool is_tuning = length == strlen(PART_TUNING) &&
                               strncmp(part, PART_TUNING, length) == 0;

        if (!is_tuning || !has_tuning(profile))
            json_array_append_new(missing, json_stringn(part, length));
        part += end != NULL ? length + strlen(separator) : length;
    }
    return missing;
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
    const json_t *missing = json_object_get(device, "missing");

    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const size_t used = strlen(out);

        snprintf(out + used, CALIBRATION_STATE_BYTES - used, "%s%s",
                 i == 0 ? "" : ", ",
                 json_string_value(json_array_get(missing, i)));
    }
    return out;
}

const char *calibration_state_text(const json_t *device,
                                   char out[CALIBRATION_STATE_BYTES])
{
    char missing[CALIBRATION_STATE_BYTES];

    switch (calibration_state(device)) {
    case CALIBRATED:
        snprintf(out, CALIBRATION_STATE_BYTES, "calibrated");
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

bool calibration_is_needed(const json_t *device)
{
    return calibration_state(device) != CALIBRATED &&
           device_text(device, "duplicate_of")[0] == '\0';
}
