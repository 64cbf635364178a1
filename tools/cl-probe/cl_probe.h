/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that all modes of cl-probe share.  The parent process is
 * single-threaded and never creates a context.  Code that may load a driver
 * runs in a child process (child_process.h), which answers in JSON.
 */
#ifndef CL_PROBE_H
#define CL_PROBE_H

#include <tandem/host.h>
#include <jansson.h>

enum probe_exit {
    PROBE_OK = 0,
    PROBE_FAILED = 1, /* a device or a check failed */
    PROBE_USAGE = 2,
    PROBE_NO_DEVICE = 3 /* no device, or no device of the given name */
};

struct probe_options {
    /* Name of the only device to use, or NULL for all. */
    const char *device;
    /* The value of TANDEM_DEVICE, which main unsets, or NULL. */
    const char *forced;
    /* --explain: name of the device that holds the data, or NULL for the host.
     */
    const char *resident;
    /* --explain: operator and shape.  --verify and --warm-cache: the only
     * operator to use, or NULL. */
    const char *op, *shape;
    /* --verify: file to which a report is written, or NULL. */
    const char *report;
    /* --warm-cache: directory shared by all users, or NULL. */
    const char *system;
    /* Time limits; 0 for the default. */
    unsigned timeout_s;        /* of one child process */
    unsigned budget_s;         /* of --tune for one device */
    unsigned driver_timeout_s; /* of the test of an OpenCL driver */
    unsigned wait_s;           /* of --calibrate for a quiet machine */
    bool one_op;               /* --operator was given */
    bool waits;                /* --wait was given */
    bool clblast;              /* the context uses CLBlast for every GEMM */
    bool lists_problems; /* the output lists what cannot be loaded */
    bool json, quick, replace, verbose;
};

/* The modes.  Each prints its result and returns the exit status.
 * probe_overview runs if the command line names none. */
int probe_overview(const struct probe_options *options);
int probe_list(const struct probe_options *options);
int probe_calibrate(const struct probe_options *options);
int probe_tune(const struct probe_options *options);
int probe_verify(const struct probe_options *options);
int probe_explain(const struct probe_options *options);
int probe_clear_cache(const struct probe_options *options);
int probe_warm_cache(const struct probe_options *options);
int probe_doctor(const struct probe_options *options);

/* Creates a context in a child process.  `backends` names the plugins to load,
 * separated by commas; NULL loads all.  With options->verbose, the library logs
 * to standard error.  With options->system, compiled programs are stored in
 * that directory. */
enum tandem_status probe_context(const struct probe_options *options,
                                 const char *backends,
                                 struct tandem_context **out_context);

/* Returns true if `name` is the file name of a cached program: 32 hexadecimal
 * digits and ".clbin". */
bool probe_is_program(const char *name);

/* Prints "cl-probe: " and the message to standard error. */
void probe_complain(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Return a member of a device's or a result's object, or "" or 0 if it is
 * absent. */
const char *device_text(const json_t *device, const char *key);
double device_number(const json_t *device, const char *key);

/* Prints the strings of an array, with these texts before the first, between
 * them and after the last.  Prints nothing if the array is empty or NULL. */
void probe_print_texts(const char *before, const json_t *texts,
                       const char *between, const char *after);

/* Prints `json` to standard output and releases it. */
void probe_print_json(json_t *json);

#endif
