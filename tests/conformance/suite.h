/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the conformance suite against one device of one plugin: the
 * options, the plugin's table, the current case and the counts. The cases run
 * in sequence on the main thread. A case is
 *
 *     if (case_begin(suite, group, "what it shows")) {
 *         ...
 *         case_fail(suite, "...") for each failure
 *         case_end(suite);
 *     }
 */
#ifndef TANDEM_CONFORMANCE_SUITE_H
#define TANDEM_CONFORMANCE_SUITE_H

#include <tandem/backend.h>

#include "../../tools/common/progress_bar.h"
#include "random.h"

/* Timeout of all waits. An operator that takes longer counts as hung. */
#define SUITE_TIMEOUT_NS (300ull * 1000u * 1000u * 1000u)

#define SUITE_MAX_OPTIONS 32u
#define SUITE_MAX_EXCLUDED 16u

/* When a row of a table of cases runs. */
enum level {
    SOME,   /* A standard run selects some by the seed. */
    ALWAYS, /* Every standard run; a smoke run selects some by the seed. */
    CORE,   /* Every run. */
    FULL    /* Only --level full. */
};

struct suite_options {
    const char *plugin;      /* A path. */
    const char *only;        /* The name of a group, or NULL for all groups. */
    const char *filter;      /* A part of the case's name, or NULL. */
    uint32_t excluded_count; /* Parts that the name must not have. */
    const char *excluded[SUITE_MAX_EXCLUDED];
    uint32_t device;
    uint32_t jobs; /* Processes; 0 lets the device decide. */
    uint64_t seed;
    bool full, list, json, verbose;
    bool smoke;     /* Few kernels, for drivers with a slow compiler. */
    bool operators; /* Only the operators, not the other groups. */
    /* A buffer ends directly after the operand's last element. */
    bool exact_buffers;
    bool log; /* Print all messages of the plugin, not only warnings. */
    /* If not 0, this number of random calls is made and nothing else. */
    uint64_t random_calls, first_call, block_calls;
    const char *compare; /* The path of another plugin for them, or NULL. */
    uint32_t open_count; /* Pairs of key and value for open. */
    const char *open_keys[SUITE_MAX_OPTIONS];
    const char *open_values[SUITE_MAX_OPTIONS];
};

struct suite {
    const struct suite_options *options;
    tandem_backend_query_fn query;
    struct tandem_backend api; /* Entries that the plugin lacks are NULL. */
    struct tandem_device_info info;
    struct tandem_device *device;
    struct tandem_stream *stream;
    const struct suite *other; /* Another plugin, or NULL. */
    uint64_t passed, failed, skipped;
    uint64_t computed; /* Random calls that returned TANDEM_OK. */
    uint64_t rejected; /* Invalid random calls. */
    uint64_t listed;   /* With options->list, cases are counted here instead. */
    uint64_t cases;    /* The number of selected cases, or 0 if not counted. */
    bool counts_only;  /* Only counts the cases in `listed`. */
    struct worker *worker; /* NULL if this is not a worker process. */

    /* The current case. */
    struct random random; /* Seeded by the run's seed and the case's name. */
    char group[40], name[200];
    bool case_failed, case_skipped;
    uint32_t reports; /* The number of failures printed for this case. */
    /* The reason why it was skipped, or its first failure. */
    char note[512];
    struct progress progress; /* Drawn if stderr is a terminal. */
};

/* Returns false if the case must not run (not selected, or only listed). */
bool case_begin(struct suite *suite, const char *group, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void case_end(struct suite *suite);
/* Counts the case as skipped unless it also fails. */
void case_skip(struct suite *suite, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a text that --verbose and --json print with the case. */
void case_note(struct suite *suite, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the first few failures of a case. */
void case_fail(struct suite *suite, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns false if so many cases failed that failures of another one are not
 * printed. */
bool suite_prints_case(const struct suite *suite);
/* Shows the counts and the current group. */
void suite_show_progress(struct suite *suite);
/* Returns true if more failures of this case would be printed. */
bool case_prints_failures(const struct suite *suite);

/* Returns true if the group is selected. */
bool group_selected(const struct suite *suite, const char *group);
/* Returns the name of a status, for messages. */
const char *status_text(enum tandem_status status);
/* Returns the plugin's message, never NULL. */
const char *plugin_message(const struct suite *suite);

/* Returns true if got is want; otherwise fails the case with the text. */
bool expect(struct suite *suite, enum tandem_status got,
            enum tandem_status want, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Expects TANDEM_OK. */
#define EXPECT_OK(suite, call) expect(suite, call, TANDEM_OK, "%s", #call)
/* Fails the case if the condition is false. */
#define EXPECT(suite, condition)                                               \
    ((condition) ? true : (case_fail(suite, "not so: %s", #condition), false))

/*
 * Opens another device of the same index with the run's options and, if key is
 * not NULL, one more.
 */
enum tandem_status suite_open(struct suite *suite, const char *key,
                              const char *value,
                              struct tandem_device **out_device);
/* Returns true if the device has a capability (enum tandem_device_caps). */
bool suite_has_capability(const struct suite *suite, uint32_t cap);

#endif
