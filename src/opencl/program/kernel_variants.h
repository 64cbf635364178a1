/* SPDX-License-Identifier: Apache-2.0 */
/* The programs and kernel variants of a device.  A build thread builds each
 * variant once, and launches wait for the build until the blocking timeout.
 * Any thread may call these functions.  programs.mutex guards the tables of a
 * device.  Builds do not hold the mutex. */
#ifndef TANDEM_OPENCL_PROGRAM_KERNEL_VARIANTS_H
#define TANDEM_OPENCL_PROGRAM_KERNEL_VARIANTS_H

#include "opencl/program/programs.h"

struct launch_plan;
struct trial_launch;

/* `callbacks` must be static. */
void programs_init(struct tandem_device *device,
                   const struct program_callbacks *callbacks);
/* Releases all programs of the device.  All builds must have ended. */
void programs_free(struct tandem_device *device);
/* Returns the number of kernel variants that were built. */
uint64_t programs_built_count(struct programs *programs);

/* Creates a cl_kernel for the variant of the plan step, and first builds the
 * variant if necessary.  Blocks.  Returns NOT_READY if the kernel needs smaller
 * work-groups than planned, so that the caller must plan again. */
enum tandem_status kernel_variant_create_kernel(struct tandem_device *device,
                                                const struct launch_plan *plan,
                                                uint32_t step,
                                                cl_kernel *out_kernel);
/* Queues a build of the variant of a plan step, unless a build is done, queued
 * or running. */
enum tandem_status kernel_variant_prepare(struct tandem_device *device,
                                          const struct launch_plan *plan,
                                          uint32_t step);
/* Queues a compilation of CLBlast's kernels. */
enum tandem_status kernel_variant_prepare_clblast(struct tandem_device *device);
/* Returns TANDEM_OK if the variant is built, the error of a failed build,
 * FAILED if the build has timed out, or otherwise NOT_READY. */
enum tandem_status kernel_variant_query(struct tandem_device *device,
                                        const struct kernel_key *key);
/* The same, but first waits for a build that is queued or running. */
enum tandem_status kernel_variant_wait(struct tandem_device *device,
                                       const struct kernel_key *key);
/* Marks the CLBlast kernels that `key` stands for as built.  Call this function
 * after CLBlast's first GEMM, in which CLBlast compiles its kernels. */
void kernel_variant_mark_ready(struct tandem_device *device,
                               const struct kernel_key *key);

/* ---- program_build.c ---- */

/* Builds the program of the variant, tests its kernel, and runs `trial` if it
 * is not NULL.  The caller must not hold programs.mutex. */
enum tandem_status kernel_variant_build(struct tandem_device *device,
                                        struct kernel_variant *variant,
                                        const struct trial_launch *trial);
/* Releases all built programs and empties the table of programs. */
void programs_release_built(struct programs *programs);

/* ---- build_threads.c ---- */

/* Returns the key of CLBlast's kernels. */
struct kernel_key clblast_key(void);
/* Waits until a build of the variant that is queued or running ends or times
 * out, and returns build_status().  The caller holds programs.mutex. */
enum tandem_status build_wait(struct tandem_device *device,
                              const struct kernel_variant *variant);
/* Returns TANDEM_OK if the variant is built, or the error of its failed build.
 * Returns FAILED if the build has timed out, and otherwise NOT_READY.  Can
 * start a build thread.  The caller holds programs.mutex. */
enum tandem_status build_status(struct tandem_device *device,
                                const struct kernel_variant *variant);
/* Queues a build of the variant, unless a build is done, queued or running.
 * Takes ownership of `trial`, which may be NULL. */
void build_enqueue(struct tandem_device *device, struct kernel_variant *variant,
                   struct trial_launch *trial);
/* Queues the variant if necessary and waits for its build.  Builds the variant
 * in the calling thread if no build thread exists; then there is no trial.
 * Returns FAILED if the build times out, or if the builds of all threads have
 * timed out.  Takes ownership of `trial`, which may be NULL. */
enum tandem_status build_ensure(struct tandem_device *device,
                                struct kernel_variant *variant,
                                struct trial_launch *trial);
/* Makes the build threads start no more builds, and waits for running builds,
 * except for those that timed out. */
void build_threads_stop(struct tandem_device *device);

#endif
