/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions that create a profile for a device.  Any
 * thread may call them. */
#include <config.h>

#include "common/last_error.h"
#include "host/device/device.h"
#include "host/profile/profile_writer.h"

static enum tandem_status profile_for(struct tandem_context *context,
                                      uint32_t device, bool edit,
                                      struct tandem_profile **out_profile)
{
    struct device *found;
    enum tandem_status status = context_check(context);

    if (out_profile != NULL)
        *out_profile = NULL;
    if (status != TANDEM_OK)
        return status;
    if (out_profile == NULL)
        return argument_error("out_profile: NULL");
    context_lock(context);
    status = device_get(context, device, &found);
    if (status == TANDEM_OK)
        status = profile_new_for_device(found, edit, out_profile);
    context_unlock(context);
    return status;
}

enum tandem_status tandem_profile_create(struct tandem_context *context,
                                         uint32_t device,
                                         struct tandem_profile **out_profile)
{
    return profile_for(context, device, false, out_profile);
}

enum tandem_status tandem_profile_edit(struct tandem_context *context,
                                       uint32_t device,
                                       struct tandem_profile **out_profile)
{
    return profile_for(context, device, true, out_profile);
}
