/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl-probe: what its parts share.  The parent process is single-threaded and
 * never creates a context: everything that may touch a driver runs in a child
 * process (child_process.h) and answers in JSON.
 */
#ifndef CL_PROBE_H
#define CL_PROBE_H

#include <tandem/host.h>
#include <jansson.h>

enum probe_exit {
    PROBE_OK = 0,
    PROBE_FAILED = 1, /* a device or a check failed */
    PROBE_USAGE = 2,
    PROBE_NO_DEVICE = 3 /* there is none, or none of that name */
};

struct probe_options {
    const char *device;   /* restricts to one; NULL: all */
    const char *forced;   /* --explain: TANDEM_DEVICE, which main unsets */
    const char *resident; /* --explain: where the data lies; NULL: the host */
    const char *op,
        *shape; /* --explain; --verify, --warm-cache: op alone, or NULL */
    const char *system; /* --warm-cache: the directory for all users, or NULL */
    unsigned timeout_s; /* a child's; 0: the mode's own */
    unsigned budget_s;     /* --tune: a device's; 0: the default */
    unsigned driver_timeout_s; /* an OpenCL driver's; 0: the default */
    bool one_op; /* --operator was given */
    bool clblast; /* a context whose products are CLBlast's alone */
    bool json, quick, verbose;
};

/* Each mode prints its answer and returns the exit status. */
int probe_list(const struct probe_options *options);
int probe_calibrate(const struct probe_options *options);
int probe_tune(const struct probe_options *options);
int probe_verify(const struct probe_options *options);
int probe_explain(const struct probe_options *options);
int probe_clear_cache(const struct probe_options *options);
int probe_warm_cache(const struct probe_options *options);

/* A context for a child, of these backends alone (NULL: all), so that the
 * others' drivers cannot disturb; with verbose, the library's messages go to
 * standard error.  With a directory for all users, that is where compiled
 * programs go. */
enum tandem_status probe_context(const struct probe_options *options,
                                 const char *backends,
                                 struct tandem_context **out_context);

/* Whether a file of a cache is a compiled program by its name, which is a
 * number of 32 digits and ".clbin". */
bool probe_is_program(const char *name);

/* "cl-probe: ..." on standard error. */
void probe_complain(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Return a member of a device's or a result's object, or "" and 0 if it is
 * absent. */
const char *device_text(const json_t *device, const char *key);
double device_number(const json_t *device, const char *key);

/* Prints json on standard output and releases it. */
void probe_print_json(json_t *json);

#endif
