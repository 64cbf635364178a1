/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device as a backend plugin: its function table and its query
 * function. The loader supplies fallbacks for the missing optional entries.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include <tandem/extensions.h>

#include "internal.h"
#include "unit/host/required_entries.h"

/* plugin.c of the example plugin is compiled with this name for its query. */
#undef tandem_backend_query
TANDEM_EXPORT const struct tandem_backend *
tandem_backend_query(uint32_t host_abi_major);

static const char *last_error(void)
{
    const char *message = last_error_get();

    if (setting("noerror"))
        return NULL;
    return setting("terse") && message[0] != '\0' ? "no" : message;
}

/* Like the OpenCL plugin, reports that the self-test starts, and then its
 * result. */
static enum tandem_status tune(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn sink, void *user)
{
    (void)budget_ns;
    if (!((struct sim_device *)device)->is_for_self_test)
        return TANDEM_OK;
    sink(user, "sm90a_self_test", "started");
    misbehave("self-test");
    sink(user, "sm90a_self_test", "passed");
    return TANDEM_OK;
}

static const void *extension(const char *name)
{
    static const char *const keys[] = {"test.fault", NULL};
    static const struct tandem_test_extension test_table = {sizeof test_table,
                                                            keys};
    static const struct tandem_tune_extension tune_table = {sizeof tune_table,
                                                            tune};

    if (name && strcmp(name, TANDEM_EXTENSION_TEST) == 0)
        return &test_table;
    return name && setting("self-test") &&
                   strcmp(name, TANDEM_EXTENSION_TUNE) == 0
               ? &tune_table
               : NULL;
}

static const struct tandem_backend usual = {
    .struct_size = sizeof usual,
    .abi_major = TANDEM_ABI_MAJOR,
    .abi_minor = TANDEM_ABI_MINOR,
    .version = "0.1.0",
    .last_error = last_error,
    .device_count = device_count,
    .device_describe = device_describe,
    .open = device_open,
    .close = device_close,
    .extension = extension,
    .alloc = buffer_alloc,
    .free = buffer_free,
    .upload = transfer_upload,
    .download = transfer_download,
    .copy = transfer_copy,
    .fill = transfer_fill,
    .buffer_seal = buffer_seal,
    .memory_stats = device_memory_stats,
    .gemm = operator_gemm,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_record = event_record,
    .event_destroy = event_destroy,
    .event_wait = event_wait,
    .prepare = sim_prepare,
    .prepared_wait = sim_prepared_wait,
    .prepared_release = sim_prepared_release,
    .launch = sim_prepared_launch,
};

/* The table of a later minor version, which is longer. */
struct longer_table {
    struct tandem_backend table;
    void (*later[4])(void);
};

static void never_called(void)
{
}

#define ENTRY_SET(entry) table->entry = (__typeof__(table->entry))never_called;
#define ENTRY_DROP(entry)                                                      \
    if (strcmp(missing, #entry) == 0)                                          \
        table->entry = NULL;

static void table_fill(struct longer_table *out, const char *name)
{
    struct tandem_backend *table = &out->table;
    const char *missing = setting("missing");

    *table = usual;
    table->name = setting("noname") ? NULL : name;
    if (setting("major"))
        table->abi_major = TANDEM_ABI_MAJOR + 1;
    if (setting("newer")) {
        table->abi_minor = TANDEM_ABI_MINOR + 7;
        table->struct_size = sizeof *out;
    }
    table->struct_size = setting_number("size", table->struct_size);
    if (missing) {
        OPTIONAL_ENTRIES(ENTRY_SET)
        REQUIRED_ENTRIES(ENTRY_DROP)
        OPTIONAL_ENTRIES(ENTRY_DROP)
    }
}

/* Writes the table only if the script changed since the last query, because
 * other threads may read it. */
const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct longer_table result;
    static char result_name[64];
    struct longer_table table = {0};
    char name[64] = {0};

    if (host_abi_major != TANDEM_ABI_MAJOR || setting("null"))
        return NULL;
    snprintf(name, sizeof name, "%s", inner_name);
    setting_copy("name", name, sizeof name);
    table_fill(&table, result_name);
    pthread_mutex_lock(&lock);
    if (memcmp(name, result_name, sizeof name) != 0)
        memcpy(result_name, name, sizeof name);
    if (memcmp(&table, &result, sizeof table) != 0)
        memcpy(&result, &table, sizeof table);
    pthread_mutex_unlock(&lock);
    return &result.table;
}
