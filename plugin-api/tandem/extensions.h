/* SPDX-License-Identifier: Apache-2.0 */
/* tandem/extensions.h - tables of functions that only some plugins have.
 *
 * The function extension of struct tandem_backend returns these tables by name.
 * Each begins with struct_size, which the plugin sets, and has at least the
 * fields of its first version. Fields are appended. A change that breaks
 * callers gets a new number in the name, and a plugin may have both tables. The
 * rules of backend.h (Unknown input, Errors, NULL, ...) hold here, too. */
#ifndef TANDEM_EXTENSIONS_H
#define TANDEM_EXTENSIONS_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tune.1 ----------------------------------------------------------------
 * Search for better kernels on the user's device. */

#define TANDEM_EXTENSION_TUNE "tune.1"

/* Receives a key and a value for the plugin's section of the profile, which
 * later calls of open get as the option "tuning". Called by tune in its thread.
 * The strings are valid during the call. */
typedef void (*tandem_tuning_result_fn)(void *user, const char *key,
                                        const char *value);

struct tandem_tune_extension {
    size_t struct_size;
    /* [blocks] Measures kernels for budget_ns, plus up to 30 s to build them,
     * and passes each result to sink as soon as it is known. If the device was
     * opened with the option "self_test_only" = "1", runs only the sm_90a
     * self-test. Any thread; other work on the device disturbs the
     * measurement. */
    enum tandem_status (*tune)(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn sink, void *user);
};

/* ---- test.1 ----------------------------------------------------------------
 * Options of open for tests. Programs do not need them. */

#define TANDEM_EXTENSION_TEST "test.1"

struct tandem_test_extension {
    size_t struct_size;
    /* The keys "test.*" that open accepts, ended by NULL. open ignores other
     * keys "test.*", so a test asks here first:
     *   test.fault             "launch:N:STATUS": launch N (from 1) of a device
     *                          returns TANDEM_OK and fails later with STATUS;
     *                          "wait:N": wait N times out
     *   test.gemm_kernel       OpenCL: "clblast" or a GEMM kernel, and
     *                          optionally the number of splits of k, and of
     *                          split tiles: "simt-64x64", "simt-64x64:3:2"
     *                          (docs/kernels.md)
     *   test.packed_limit_bytes  OpenCL: limit of the packed copies of GEMM
 *                          operands (default: 1/8 of the device memory)
 *   test.transfer_path     OpenCL: path of all transfers: "driver" or
     *                          "ring" (docs/kernels.md)
     *   test.force_program_cache  OpenCL: "1": use cache_dir even if the
     *                          driver caches programs
     * The other keys of a plugin are described in its sources. */
    const char *const *open_keys;
};

#ifdef __cplusplus
}
#endif
#endif
