/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is not a plugin, because it lacks the query function. */
#include <tandem/backend.h>

TANDEM_EXPORT int tandem_test_nothing(void);

int tandem_test_nothing(void)
{
    return 0;
}
