/* SPDX-License-Identifier: Apache-2.0 */
/* Reads environment variables; see environment.h. */
#include <config.h>

#include "common/environment.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the variable's value. Returns NULL if the variable is unset or if the
 * program has more rights than its user. */
static const char *value_get(const char *name)
{
#ifdef HAVE_SECURE_GETENV
    return secure_getenv(name);
#else
    /* Without secure_getenv, the program's rights are not known. */
    (void)name;
    return NULL;
#endif
}

const char *environment_get(const char *name)
{
    const char *value = value_get(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool environment_is_empty(const char *name)
{
    const char *value = value_get(name);

    return value != NULL && value[0] == '\0';
}

bool environment_cache(char *out_path, size_t bytes)
{
    const char *base = environment_get("XDG_CACHE_HOME");
    const char *below = "/tandem";
    int length;

    if (base == NULL || base[0] != '/') {
        base = environment_get("HOME");
        below = "/.cache/tandem";
    }
    if (base == NULL || base[0] != '/')
        return false;
    length = snprintf(out_path, bytes, "%s%s", base, below);
    return length > 0 && (size_t)length < bytes;
}
