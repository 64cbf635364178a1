/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plugin's tune function and stores the results in a profile. */
#include <config.h>

#include "calibration_run.h"

#include "../common/clock.h"

/* Time limits of the tuning step of --calibrate, with and without --quick. */
#define QUICK_NS (2500 * NS_PER_MS)
#define LONG_NS (4500 * NS_PER_MS)

struct tuning_sink {
    struct tandem_profile *profile;
    bool save;
    json_t *found;
    enum tandem_status status; /* of the last save */
    char path[4096];
};

static void tuning_sink_add(void *user, const char *key, const char *value)
{
    struct tuning_sink *sink = user;

    if (tandem_profile_set_tuning(sink->profile, key, value) != TANDEM_OK)
        return;
    json_object_set_new(sink->found, key, json_string(value));
    if (sink->save)
        sink->status = tandem_profile_save(sink->profile, NULL, sink->path,
                                           sizeof sink->path);
}

enum tandem_status tune_run(struct device_session *session,
                            struct tandem_profile *profile, uint64_t budget_ns,
                            bool save, json_t *out_found)
{
    struct tuning_sink sink = {
        .profile = profile, .save = save, .found = out_found};
    enum tandem_status status = TANDEM_UNSUPPORTED;

    if (session->backend->tune != NULL)
        status = session->backend->tune(session->device, budget_ns,
                                        tuning_sink_add, &sink);
    if (sink.status != TANDEM_OK)
        return sink.status;
    return status == TANDEM_UNSUPPORTED ? TANDEM_OK : status;
}

enum tandem_status measure_tuning(struct calibration_run *calibration)
{
    enum tandem_status status;

    child_progress(calibration->link, 0.99, "tuning");
    status = tune_run(&calibration->session, calibration->profile,
                      calibration->quick ? QUICK_NS : LONG_NS, false,
                      json_object_get(calibration->result, "tuning"));
    if (status == TANDEM_OK || status == TANDEM_DEVICE_LOST)
        return status;
    calibration_skip(calibration, "tuning");
    return TANDEM_OK;
}
