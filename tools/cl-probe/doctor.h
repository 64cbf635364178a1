/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of cl-probe --doctor.  Each check reads facts about the machine
 * and writes its result to an object:
 *
 *   { "check": "device files", "state": "problem", "text": "...",
 *     "problems": [ { "text", "advice" } ] }
 *
 * The state is "ok", "problem" or "not applicable".  A check loads no driver
 * and opens no device.  Parent process only.
 */
#ifndef CL_PROBE_DOCTOR_H
#define CL_PROBE_DOCTOR_H

#include "cl_probe.h"

/* Facts about the machine.  The caller owns everything.  Tests set other values
 * than those of this machine. */
struct doctor_facts {
    /* The directory that contains "dev", "proc", "run" and "sys", without a
     * final slash: "" for this machine. */
    const char *root;
    const json_t *found;  /* the object of device_list.h */
    const json_t *loader; /* see doctor_loader_find */
    const json_t *opened; /* see doctor_devices_open */
    const json_t *kernel; /* see doctor_kernel_ask */
    /* Number of drivers that .icd files name, the directory or file that was
     * searched for them, and the environment variable that names it or NULL. */
    uint32_t driver_count;
    const char *driver_place, *driver_variable;
    const char *forced; /* the value of TANDEM_DEVICE, or NULL */
    /* Number of CPUs of the machine, and in this process's affinity mask. */
    uint32_t online_cpus, affinity_cpus;
};

/* ---- facts (doctor_facts.c) ---- */

/* [blocks] Loads libOpenCL.so.1 without drivers in a child process and returns
 *
 *   { "library", "name", "version", "has_opencl_1_2", "has_opencl_3_0" }
 *
 * or { "error" } if it cannot be loaded.  Name and version are "" if the loader
 * does not report them. */
json_t *doctor_loader_find(const struct probe_options *options);

/* [blocks] Opens each device in a child process.  Returns, by device,
 *
 *   { "opencl": { "warnings": [ "..." ], "latency_ns" } }
 *
 * or { "error" } instead.  The warnings are those that the library logs.  The
 * latency is the time of a small operator with the wait for it, or 0 for a CPU.
 */
json_t *doctor_devices_open(const struct probe_options *options,
                            const json_t *found);

/* Glob patterns of the device files of GPUs; NULL ends the list. */
extern const char *const doctor_device_files[];

/* [blocks] Opens the device files of GPUs and reads what the kernel says about
 * the load of GPUs, in a child process, because a driver may hang in it.
 * Returns, by path, the error of each file that cannot be opened, and the
 * percentage of the time in which a GPU works,
 *
 *   { "unopened": { "/dev/kfd": "..." }, "busy_percent": { "/sys/...": 97 } }
 *
 * or { "error" }.  Reads below `root`, the directory of struct doctor_facts. */
json_t *doctor_kernel_ask(const struct probe_options *options,
                          const char *root);

/* ---- results (doctor_result.c) ---- */

/* Set the state and the text, unless the check has a problem already. */
void result_ok(json_t *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_not_applicable(json_t *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a problem and what to do about it. */
void result_problem(json_t *result, const char *advice, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool result_is_problem(const json_t *result);

/* ---- the checks ---- */

typedef void (*doctor_check_fn)(const struct doctor_facts *facts,
                                json_t *result);

/* doctor_opencl.c */
void check_registered_drivers(const struct doctor_facts *facts, json_t *result);
void check_driver_libraries(const struct doctor_facts *facts, json_t *result);
void check_drivers_per_gpu(const struct doctor_facts *facts, json_t *result);
void check_loader(const struct doctor_facts *facts, json_t *result);
/* doctor_machine.c */
void check_device_files(const struct doctor_facts *facts, json_t *result);
void check_container(const struct doctor_facts *facts, json_t *result);
/* Returns the vendor of the first GPU on the PCI bus, or NULL if there is no
 * GPU of NVIDIA, AMD or Intel. */
const char *doctor_gpu_vendor(const struct doctor_facts *facts);
void check_cpu_limits(const struct doctor_facts *facts, json_t *result);
void check_cache(const struct doctor_facts *facts, json_t *result);
/* doctor_devices.c */
void check_devices(const struct doctor_facts *facts, json_t *result);
void check_profiles(const struct doctor_facts *facts, json_t *result);
void check_gpu_load(const struct doctor_facts *facts, json_t *result);
void check_blas(const struct doctor_facts *facts, json_t *result);

/* Runs all checks.  Returns
 *
 *   { "version", "checks": [ ... ], "problems", "summary", "note", "next" }
 *
 * with the number of checks that found a problem, a summary, a note if the only
 * OpenCL device is the CPU or else "", and the next step.  (doctor.c) */
json_t *doctor_report(const struct doctor_facts *facts);

#endif
