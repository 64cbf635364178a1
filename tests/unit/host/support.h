/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the host library share: a scratch directory with the CPU
 * plugin and the simulated GPU in it, contexts, scripted profiles, counters,
 * captured log messages.  One thread, except log_capture.
 */
#ifndef TANDEM_TESTS_HOST_SUPPORT_H
#define TANDEM_TESTS_HOST_SUPPORT_H

#include <check.h>

#include <tandem/host.h>

#include "simulated-device/simulated_device.h"

/* The call must succeed; what the library says of it otherwise. */
#define OK(call)                                                             \
    do {                                                                     \
        const enum tandem_status status_ = (call);                           \
        ck_assert_msg(status_ == TANDEM_OK, "%s: %s: %s", #call,             \
                      tandem_status_name(status_), tandem_last_error());     \
    } while (0)

/* The call must fail with this status and leave a message. */
#define FAILS(expected, call)                                                \
    do {                                                                     \
        const enum tandem_status status_ = (call);                           \
        ck_assert_msg(status_ == (expected), "%s: %s, not %s: %s", #call,    \
                      tandem_status_name(status_),                           \
                      tandem_status_name(expected), tandem_last_error());    \
        ck_assert_msg(tandem_last_error()[0] != '\0', "%s: no message",      \
                      #call);                                                \
    } while (0)

/* ---- scratch directory: unchecked fixtures ---- */

/* Makes it, links the plugins into its "plugins", empties the environment of
 * everything that steers the library. */
void scratch_setup(void);
void scratch_teardown(void);
/* A path below it, in one of a few static buffers. */
const char *scratch_path(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* Where the plugins of the build lie. */
const char *build_path(const char *name);
void file_write(const char *path, const char *text);
/* The whole file, to be freed, with a NUL behind it. */
char *file_read(const char *path);
void file_copy(const char *to, const char *from);
void directory_make(const char *path);
void directory_remove(const char *path);
/* How many entries it has. */
uint32_t directory_count(const char *path);

/* ---- contexts ---- */

/* Unsets every TANDEM_ variable and forgets log messages and profiles:
 * a checked fixture, before each test. */
void environment_setup(void);

/* The context of a test: plugins and profiles from the scratch directory, log
 * captured.  options may be NULL; its own plugin_path, profile_path and log
 * stay where they are set. */
struct tandem_context *
context_new(const struct tandem_context_options *options);
/* With these keys and values for open, ended by NULL. */
struct tandem_context *context_with(const char *const *pairs);
uint32_t device_named(struct tandem_context *context, const char *name);

/* ---- log ---- */

void log_capture(void *user, enum tandem_log_level level, const char *message);
void log_forget(void);
/* How many messages of this level have text in them (NULL: any). */
uint32_t log_count(enum tandem_log_level level, const char *text);

/* ---- costs and profiles ---- */

/* tandem_device_predict_cost and tandem_device_is_calibrated, which must
 * succeed. */
double cost(struct tandem_context *context, uint32_t device, const char *curve,
            double x);
uint32_t calibrated(struct tandem_context *context, uint32_t device);
/* A new profile of the named device. */
struct tandem_profile *profile_new(struct tandem_context *context,
                                   const char *device);

/* ---- counters of the simulated GPU ---- */

struct sim_counters counters_read(uint32_t device);
/* after - before, field by field. */
struct sim_counters counters_since(uint32_t device,
                                   const struct sim_counters *before);

/* Ends its launches that never end. */
void hangs_release(void);

/* ---- tensors ---- */

struct tandem_tensor *vector_wrap(struct tandem_context *context, float *data,
                                  int64_t elements);
struct tandem_tensor *vector_new(struct tandem_context *context,
                                 int64_t elements);
struct tandem_tensor *matrix_wrap(struct tandem_context *context, float *data,
                                  int64_t rows, int64_t columns);
struct tandem_tensor *matrix_new(struct tandem_context *context, int64_t rows,
                                 int64_t columns);
uint32_t residency(const struct tandem_tensor *tensor);
/* 1, 2, 3, ... */
void count_up(float *data, int64_t elements);
/* An operator on one element, wherever the context chooses. */
void context_works(struct tandem_context *context);

/* ---- scripted profiles ---- */

/* Costs of a device.  Every curve is a + b x ns, x in bytes. */
struct script_line {
    double a, b;
};
struct script {
    double launch, sync, alloc, compile, gemm_compile;
    struct script_line curves[TANDEM_COST_GEMM]; /* by cost class */
    struct script_line upload, download;
    /* ns of a product: gemm_fixed + gemm_base m n k, where m, n and k are 1,
     * 16, 256 or 4096; base 0: no products */
    double gemm_base, gemm_fixed;
};
/* Everything free. */
struct script script_free(void);
/* Every class costs a + b x. */
void script_all(struct script *script, double a, double b);
/* Saves it as the profile of a device (a context of its own is made and
 * destroyed): the next context reads it. */
void script_save(const char *device, const struct script *script);
/* Where the profile of the device is, or would be, in a static buffer. */
const char *script_path(const char *device);

double line_at(struct script_line line, double x);

/* ---- memory ---- */

/* Of this process; 0 where a sanitizer keeps what was freed. */
uint64_t resident_bytes(void);

/* ---- programs ---- */

/* Runs the suite; the status for exit. */
int suite_run(Suite *suite);
/* A case with the fixtures above. */
TCase *case_new(Suite *suite, const char *name);

#endif
