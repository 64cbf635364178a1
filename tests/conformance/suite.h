/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the conformance suite against one device of one plugin: the
 * options, the plugin's table, the case under way and the counts.  The cases
 * run one after the other on the main thread.
 *
 * A case is
 *     if (case_begin(suite, group, "what it shows")) {
 *         ... case_fail(suite, "...") for each thing that is wrong
 *         case_end(suite);
 *     }
 */
#ifndef TANDEM_CONFORMANCE_SUITE_H
#define TANDEM_CONFORMANCE_SUITE_H

#include <tandem/backend.h>

#include "random.h"

/* No wait of the suite is longer: an operator that is not done by then counts
 * as hung. */
#define SUITE_TIMEOUT_NS (300ull * 1000u * 1000u * 1000u)

#define SUITE_MAX_OPTIONS 32u

struct suite_options {
    const char *plugin; /* path */
    const char *only;   /* a group's name, or NULL for all */
    const char *filter; /* a part of the case's name, or NULL */
    uint32_t device;
    uint64_t seed;
    bool full, list, json, verbose;
    bool smoke;     /* few kernels: for drivers whose compiler takes long */
    bool operators; /* these alone, not the other groups */
    bool exact_buffers;  /* nothing lies behind an operand in its buffer */
    uint32_t open_count; /* key=value for open */
    const char *open_keys[SUITE_MAX_OPTIONS];
    const char *open_values[SUITE_MAX_OPTIONS];
};

struct suite {
    const struct suite_options *options;
    tandem_backend_query_fn query;
    struct tandem_backend api; /* entries that the plugin lacks are NULL */
    struct tandem_device_info info;
    struct tandem_device *device;
    struct tandem_stream *stream;
    uint64_t passed, failed, skipped;
    uint64_t listed; /* with options->list, instead */

    /* The case under way. */
    struct random random; /* seeded by the run's seed and the case's name */
    char group[40], name[200];
    bool case_failed, case_skipped;
    uint32_t reports; /* failures printed for this case */
    char note[512];   /* why it was skipped, or its first failure */
    bool terminal;    /* stderr shows progress */
};

/* False where the case is not to be run (not selected, or only listed). */
bool case_begin(struct suite *suite, const char *group, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void case_end(struct suite *suite);
/* Counts as skipped unless something fails as well. */
void case_skip(struct suite *suite, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The first few of a case are printed. */
void case_fail(struct suite *suite, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether more failures of this case would be printed. */
bool case_reports(const struct suite *suite);

/* Whether the group is selected at all. */
bool group_selected(const struct suite *suite, const char *group);
/* Names of statuses, for messages. */
const char *status_text(enum tandem_status status);
/* The plugin's message, never NULL. */
const char *plugin_message(const struct suite *suite);

/* True where got is want; else the case fails, with what was called. */
bool expect(struct suite *suite, enum tandem_status got,
            enum tandem_status want, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* expect TANDEM_OK. */
#define EXPECT_OK(suite, call) expect(suite, call, TANDEM_OK, "%s", #call)
/* Fails the case where the condition does not hold. */
#define EXPECT(suite, condition)                                               \
    ((condition) ? true : (case_fail(suite, "not so: %s", #condition), false))

/* Opens another device of the same index, with the run's options and, where
 * key is not NULL, one more. */
enum tandem_status suite_open(struct suite *suite, const char *key,
                              const char *value,
                              struct tandem_device **out_device);
/* Whether the device has a capability (enum tandem_device_caps). */
bool suite_has(const struct suite *suite, uint32_t cap);

/* The groups, in the order in which they run. */
void cases_elementwise(struct suite *suite);
void cases_move(struct suite *suite);
void cases_reduce(struct suite *suite);
void cases_softmax(struct suite *suite);
void cases_norm(struct suite *suite);
void cases_magnitude(struct suite *suite);
void cases_single(struct suite *suite);
void cases_optimizer(struct suite *suite);
void cases_gemm(struct suite *suite);
void contract_device(struct suite *suite);
void contract_memory(struct suite *suite);
void contract_transfer(struct suite *suite);
void contract_stream(struct suite *suite);
void contract_alias(struct suite *suite);
void contract_ready(struct suite *suite);
void contract_fault(struct suite *suite);
void contract_capture(struct suite *suite);
void invalid_memory_run(struct suite *suite);
void invalid_launch_run(struct suite *suite);
void invalid_gemm_run(struct suite *suite);

#endif
