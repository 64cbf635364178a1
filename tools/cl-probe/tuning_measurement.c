/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plugin's tune function and stores the results in a profile. */
#include <config.h>

#include "calibration_timing.h"

#include "../common/clock.h"

#include <tandem/extensions.h>

/* Time limits of the tuning step of --calibrate, with and without --quick. */
#define QUICK_NS (2500 * NS_PER_MS)
#define LONG_NS (4500 * NS_PER_MS)

struct tuning_sink {
    json_t *found;
    tune_found_fn on_found;
    void *user;
};

static void tuning_sink_add(void *user, const char *key, const char *value)
{
    const struct tuning_sink *sink = user;

    json_object_set_new(sink->found, key, json_string(value));
    sink->on_found(sink->user, key, value);
}

enum tandem_status tune_run(struct device_session *session, uint64_t budget_ns,
                            json_t *out_found, tune_found_fn on_found,
                            void *user)
{
    struct tuning_sink sink = {out_found, on_found, user};
    const struct tandem_tune_extension *extension =
        session->backend->extension(TANDEM_EXTENSION_TUNE);

    enum tandem_status status = TANDEM_UNSUPPORTED;

    if (extension != NULL)
        status =
            extension->tune(session->device, budget_ns, tuning_sink_add, &sink);
    return status == TANDEM_UNSUPPORTED ? TANDEM_OK : status;
}

struct tuning_save {
    struct tandem_profile *profile;
    enum tandem_status status; /* of the last save */
};

static void tuning_save_add(void *user, const char *key, const char *value)
{
    struct tuning_save *save = user;

    if (tandem_profile_set_tuning(save->profile, key, value) == TANDEM_OK)
        save->status = tandem_profile_save(save->profile, NULL, NULL, 0);
}

enum tandem_status tune_and_save(struct device_session *session,
                                 struct tandem_profile *profile,
                                 uint64_t budget_ns, json_t *out_found)
{
    struct tuning_save save = {profile, TANDEM_OK};
    const enum tandem_status status =
        tune_run(session, budget_ns, out_found, tuning_save_add, &save);

    return save.status != TANDEM_OK ? save.status : status;
}

/* Sends the result with the values that were found so far. */
static void tuning_found(void *user, const char *key, const char *value)
{
    const struct calibration_run *calibration = user;

    (void)key;
    (void)value;
    child_partial(calibration->link, calibration->result);
}

enum tandem_status measure_tuning(struct calibration_run *calibration)
{
    enum tandem_status status;

    child_progress(calibration->link, 0.99, PART_TUNING);
    status =
        tune_run(&calibration->session, calibration->quick ? QUICK_NS : LONG_NS,
                 json_object_get(calibration->result, "tuning"), tuning_found,
                 calibration);
    if (status != TANDEM_OK && status != TANDEM_DEVICE_LOST) {
        calibration_skip(calibration, "tuning");
        status = TANDEM_OK;
    }
    if (status == TANDEM_OK)
        calibration_finish_part(calibration, PART_TUNING);
    return status;
}
