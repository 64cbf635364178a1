/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin under test, two of its devices and their objects. The tests load
 * the plugins from .libs of the build directory, which is their working
 * directory. Call these functions from one thread.
 */
#ifndef TANDEM_TESTS_PLUGIN_PLUGIN_H
#define TANDEM_TESTS_PLUGIN_PLUGIN_H

#include <check.h>
#include <stdbool.h>
#include <tandem/backend.h>

#include "conformance/suite_class.h"

/* A timeout of 5 minutes. */
#define TIMEOUT_NS (300ull * 1000u * 1000u * 1000u)
/* Size of each buffer of the bench. */
#define BENCH_BYTES MISTAKE_BYTES

struct plugin {
    const char *name;
    bool has_operators;
    const struct tandem_backend *api;
};

/* Two devices with the same index, each with a stream and a buffer, and the
 * handle of a buffer that was freed. */
struct bench {
    const struct plugin *plugin;
    const struct tandem_backend *api; /* The plugin's table. */
    struct tandem_device *device, *other;
    struct tandem_stream *stream, *other_stream;
    struct tandem_buffer *buffer, *other_device_object, *freed;
};

/*
 * Loads the plugins that were built and have a device, and returns their
 * number. Sets `*out_complete` to false, with the reason on stderr, if another
 * plugin was skipped.
 */
uint32_t plugins_load(bool *out_complete);
const struct plugin *plugin_at(uint32_t index);

/* Opens device 0 of the plugin twice and creates the objects. */
void bench_open(struct bench *bench, uint32_t plugin);
void bench_close(struct bench *bench);

/* The call must return TANDEM_OK; otherwise the test fails with the plugin's
 * message. */
#define OK(bench, call)                                                        \
    do {                                                                       \
        const enum tandem_status status_ = (call);                             \
        ck_assert_msg(status_ == TANDEM_OK, "%s: %s: status %d: %s",           \
                      (bench)->plugin->name, #call, (int)status_,              \
                      (bench)->api->last_error());                             \
    } while (0)

/* The test cases of the other files, each looping over `plugins` plugins. */
TCase *invalid_calls_case(uint32_t plugins);
TCase *invalid_memory_case(uint32_t plugins);

/* ---- messages of rejected calls ---- */

#define MAX_MESSAGES 128u

/* The messages so far, which the next one must differ from. */
struct messages {
    uint32_t count;
    const char *functions[MAX_MESSAGES]; /* The caller keeps them alive. */
    char calls[MAX_MESSAGES][100];
    char messages[MAX_MESSAGES][512];
};

/* Fails the test unless the plugin's last message is not empty and differs from
 * the messages of the earlier mistakes in calls of the same function or
 * operator. */
void message_check(struct messages *messages, const struct bench *bench,
                   const char *function, const char *call);

#endif
