/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin with an invalid function table, as TANDEM_TEST_PLUGIN says: "null",
 * "major", "newer", "size=N", "name=TEXT", "noname", "missing=ENTRY",
 * "count=STATUS", "good". It has no devices.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/backend.h>

#include "../required_entries.h"

static const char *last_error(void)
{
    return "the test plugin has no device";
}

static enum tandem_status device_count(uint32_t *out_count)
{
    const char *script = secure_getenv("TANDEM_TEST_PLUGIN");

    *out_count = 0;
    return script && strncmp(script, "count=", 6) == 0
               ? (enum tandem_status)atoi(script + 6)
               : TANDEM_NO_DEVICE;
}

static void never_called(void)
{
}

/* The table of a later minor version, which is longer. */
static struct {
    struct tandem_backend table;
    void (*later[4])(void);
} backend;
static char name[64];

#define ENTRY_SET(entry)                                                     \
    table->entry = (__typeof__(table->entry))never_called;
#define ENTRY_DROP(entry)                                                    \
    if (strcmp(which, #entry) == 0)                                          \
        table->entry = NULL;

static void table_fill(struct tandem_backend *table)
{
    memset(&backend, 0, sizeof backend);
    REQUIRED_ENTRIES(ENTRY_SET)
    OPTIONAL_ENTRIES(ENTRY_SET)
    table->struct_size = sizeof *table;
    table->abi_major = TANDEM_ABI_MAJOR;
    table->abi_minor = TANDEM_ABI_MINOR;
    strcpy(name, "test");
    table->name = name;
    table->version = "1";
    table->last_error = last_error;
    table->device_count = device_count;
}

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    struct tandem_backend *table = &backend.table;
    const char *script = secure_getenv("TANDEM_TEST_PLUGIN");
    const char *which;

    table_fill(table);
    if (!script || strcmp(script, "null") == 0 ||
        host_abi_major != TANDEM_ABI_MAJOR)
        return NULL;
    which = strchr(script, '=') ? strchr(script, '=') + 1 : "";
    if (strcmp(script, "major") == 0)
        table->abi_major = TANDEM_ABI_MAJOR + 1;
    if (strcmp(script, "newer") == 0) {
        table->abi_minor = TANDEM_ABI_MINOR + 7;
        table->struct_size = sizeof backend;
    }
    if (strncmp(script, "size=", 5) == 0)
        table->struct_size = strtoul(which, NULL, 10);
    if (strncmp(script, "name=", 5) == 0)
        snprintf(name, sizeof name, "%s", which);
    if (strcmp(script, "noname") == 0)
        table->name = NULL;
    if (strncmp(script, "missing=", 8) == 0) {
        REQUIRED_ENTRIES(ENTRY_DROP)
        OPTIONAL_ENTRIES(ENTRY_DROP)
    }
    return table;
}
