/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the tests of the host library share: a scratch directory with
 * the CPU plugin and the simulated GPU, contexts, scripted profiles, counters,
 * captured log messages. Call them from one thread, except log_capture.
 */
#ifndef TANDEM_TESTS_HOST_SUPPORT_H
#define TANDEM_TESTS_HOST_SUPPORT_H

#include <tandem/host.h>

#include "simulated-device/simulated_device.h"
#include "support/scratch_directory.h"
#include "support/test_list.h"

/* Fails the test with the library's message unless the call succeeds. */
#define OK(call)                                                               \
    do {                                                                       \
        const enum tandem_status status_ = (call);                             \
        ck_assert_msg(status_ == TANDEM_OK, "%s: %s: %s", #call,               \
                      tandem_status_name(status_), tandem_last_error());       \
    } while (0)

/* Fails the test unless the call returns this status and leaves a message. */
#define FAILS(expected, call)                                                  \
    do {                                                                       \
        const enum tandem_status status_ = (call);                             \
        ck_assert_msg(status_ == (expected), "%s: %s, not %s: %s", #call,      \
                      tandem_status_name(status_),                             \
                      tandem_status_name(expected), tandem_last_error());      \
        ck_assert_msg(tandem_last_error()[0] != '\0', "%s: no message",        \
                      #call);                                                  \
    } while (0)

#define BAD(call) FAILS(TANDEM_INVALID_ARGUMENT, call)

/* Fails the test unless the last error message contains text. */
void expect_last_error(const char *text);

/* ---- scratch directory: unchecked fixtures ---- */

/*
 * Creates the directory, links the plugins into its "plugins", and removes all
 * environment variables that affect the library.
 */
void scratch_setup(void);
/* Returns a path in the build directory's plugins. */
const char *build_path(const char *name);
/* Returns the content of a file with a terminating NUL. The caller frees it. */
char *file_read(const char *path);
void file_copy(const char *to, const char *from);
void directory_make(const char *path);

/* ---- contexts ---- */

/*
 * Unsets every TANDEM_ variable and removes log messages and profiles. A
 * checked fixture that runs before each test.
 */
void environment_setup(void);

/*
 * Creates a context with the plugins and profiles of the scratch directory and
 * a captured log. options may be NULL. Its plugin_path, profile_path and log
 * are used if they are set. The context is destroyed after the test, unless the
 * test destroys it or has created MAX_CONTEXTS others since.
 */
#define MAX_CONTEXTS 64
struct tandem_context *
context_new(const struct tandem_context_options *options);
/* Leaves all contexts to the end of the process, because their threads hang. */
void contexts_leave(void);
/* Creates a context with pairs of open keys and values that end with NULL. */
struct tandem_context *context_with(const char *const *pairs);
uint32_t device_named(struct tandem_context *context, const char *name);

/* ---- log ---- */

void log_capture(void *user, enum tandem_log_level level, const char *message);
void log_forget(void);
/*
 * Returns the number of messages of this level that contain text (NULL: any).
 */
uint32_t log_count(enum tandem_log_level level, const char *text);

/* Fails the test unless the log has this number of warnings with text. */
void expect_warnings(uint32_t number, const char *text);

/* ---- explanations ---- */

/* Returns the explanation of the last operator. */
struct tandem_explanation last_explanation(struct tandem_context *context);
/* Returns the device that ran the last operator. */
uint32_t last_device(struct tandem_context *context);
const struct tandem_candidate *
candidate_of(const struct tandem_explanation *explanation, uint32_t device);

/* ---- costs and profiles ---- */

/* Call tandem_device_predict_cost and _is_calibrated; both must succeed. */
double cost(struct tandem_context *context, uint32_t device, const char *curve,
            double x);
uint32_t calibrated(struct tandem_context *context, uint32_t device);
/*
 * Create a new profile of the named device, and one with the content of its
 * file. Profiles are destroyed after the test, like contexts.
 */
struct tandem_profile *profile_new(struct tandem_context *context,
                                   const char *device);
struct tandem_profile *profile_edit(struct tandem_context *context,
                                    const char *device);
/* Returns true if the device's profile blocks the operator. */
bool op_is_blocked(struct tandem_context *context, uint32_t device,
                   uint32_t op);

/* ---- counters of the simulated GPU ---- */

struct sim_counters counters_read(uint32_t device);
/* Returns after - before for each field. */
struct sim_counters counters_since(uint32_t device,
                                   const struct sim_counters *before);

/* Completes the launches that hang. */
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
/* Runs a unary operator on a device. */
enum tandem_status unary_status(struct tandem_context *context, uint32_t device,
                                uint32_t op, struct tandem_tensor *x,
                                struct tandem_tensor *y);
/* Runs a unary operator on a device; it must succeed. */
void unary_on(struct tandem_context *context, uint32_t device, uint32_t op,
              struct tandem_tensor *x, struct tandem_tensor *y);
/* Waits for the tensor's content in the host's memory, without a timeout. */
enum tandem_status tensor_wait(struct tandem_tensor *tensor);
/* Sets the elements to 1, 2, 3, ... */
void count_up(float *data, int64_t elements);
/* Runs an operator on one element, on the device that the context selects. */
void context_works(struct tandem_context *context);

/* ---- scripted profiles ---- */

/* The names of all curves; those of the cost classes come first. */
#define CURVES 13
extern const char *const curve_names[CURVES];

/* Costs of a device. Norms have those of softmax. Each curve is a + b x ns with
 * x in bytes. */
struct script_line {
    double a, b;
};
struct script {
    double launch, sync;
    struct script_line curves[TANDEM_COST_GEMM]; /* Indexed by cost class. */
    struct script_line upload, download;
    /*
     * A GEMM costs gemm_fixed + gemm_base m n k ns, with m, n and k of 1, 16,
     * 256 or 4096. If gemm_base is 0, the profile has no GEMM costs.
     */
    double gemm_base, gemm_fixed;
};
/* Returns costs of 0. */
struct script script_free(void);
/* Sets the costs of every class to a + b x. */
void script_all(struct script *script, double a, double b);
/*
 * Saves the script as the profile of a device, with a temporary context. The
 * next context reads it.
 */
void script_save(const char *device, const struct script *script);
/* Returns the path of the device's saved profile in a static buffer. */
const char *script_path(const char *device);

double line_at(struct script_line line, double x);

/* ---- memory ---- */

/* Returns the resident memory, or 0 if a sanitizer keeps freed memory. */
uint64_t resident_bytes(void);

/* ---- programs ---- */

/* Creates a test case with the fixtures above. */
TCase *case_new(const char *name);
/* Like case_new, with the CPU plugin and the OpenCL plugin. */
TCase *opencl_case_new(const char *name);
/*
 * Runs the tests of this source file with the fixtures above, and with setup
 * before and teardown after each test. Both may be NULL.
 */
static inline int host_tests_run(const char *name, SFun setup, SFun teardown)
{
    TCase *tests = case_new(name);

    tcase_add_checked_fixture(tests, setup, teardown);
    tests_add(tests);
    return runner_run_case(name, tests);
}

/* Like host_tests_run, with the OpenCL plugin and without a teardown. */
static inline int host_opencl_tests_run(const char *name, SFun setup)
{
    TCase *tests = opencl_case_new(name);

    tcase_add_checked_fixture(tests, setup, NULL);
    tests_add(tests);
    return runner_run_case(name, tests);
}

#endif
