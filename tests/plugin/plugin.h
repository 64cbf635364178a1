/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin under test, two of its devices and their objects. The tests load
 * the plugins from .libs of the build directory, which is their working
 * directory. Call these functions from one thread.
 */
#ifndef TANDEM_TESTS_PLUGIN_PLUGIN_H
#define TANDEM_TESTS_PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <tandem/backend.h>

#include "conformance/suite_class.h"
#include "../../tools/common/tensor_call.h"
#include "support/test_list.h"

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

/* The number of plugins that were loaded. */
extern uint32_t plugin_count;
/* Defines a test that runs for each plugin, whose index is `_i`. */
#define PLUGIN_TEST(name) LOOP_TEST(name, plugin_count)

/*
 * Loads the plugins that were built and have a device. Returns false, with the
 * reason on stderr, if another plugin was skipped.
 */
bool plugins_load(void);
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

/* Add the tests of the other files. */
void invalid_calls_add(TCase *tests);
void invalid_memory_add(TCase *tests);

/* ---- messages of rejected calls ---- */

#define MAX_MESSAGES 512u

/* The messages so far, which the next one must differ from. */
struct messages {
    uint32_t count;
    enum tandem_status statuses[MAX_MESSAGES];
    const char *functions[MAX_MESSAGES]; /* The caller keeps them alive. */
    char calls[MAX_MESSAGES][100];
    char messages[MAX_MESSAGES][512];
};

/* Fails the test unless the plugin's last message is not empty and differs from
 * the messages of the earlier mistakes in calls of the same function or
 * operator. Adds the message and the status. */
void message_check(struct messages *messages, const struct bench *bench,
                   enum tandem_status status, const char *function,
                   const char *call);

/* Makes invalid calls and passes each message to message_check. */
typedef void (*invalid_calls_fn)(const struct bench *bench,
                                 struct messages *messages);
/* Makes the calls on a plugin. */
void invalid_calls_run(uint32_t plugin, invalid_calls_fn calls,
                       struct messages *messages);
/*
 * Makes the calls on the CPU and the OpenCL plugin and fails the test unless
 * both return the same statuses and messages. Calls that only one of them makes
 * are not compared. Does nothing if a plugin was not loaded.
 */
void messages_compare(invalid_calls_fn calls);

#endif
