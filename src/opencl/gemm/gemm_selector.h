/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernel computes a matrix product: CLBlast's, or one of ours, in which
 * tiles, over how many splits of k.  By costs, measured where the profile has
 * them.
 */
#ifndef TANDEM_OPENCL_GEMM_GEMM_SELECTOR_H
#define TANDEM_OPENCL_GEMM_GEMM_SELECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/gemm/gemm_cost_model.h"

struct platform_device;

struct route {
    bool clblast;
    enum tile_id tile; /* where it is not CLBlast's */
    struct division division;
};

/* A route that was chosen, with all that the choice depends on: written by one
 * thread at a time, read by any without a lock.  What was read while turn was
 * odd, or has changed, is nothing. */
#define ROUTE_KEY 6u
#define ROUTE_WORDS (ROUTE_KEY + (sizeof(struct route) + 7) / 8)
struct selection_cache_entry {
    _Atomic uint32_t turn;
    _Atomic uint64_t words[ROUTE_WORDS];
};
#define ROUTE_MEMOS_LOG2 6u

/* A device's.  But for broken and the memos, nothing changes after open. */
struct routes {
    struct costs costs;
    uint32_t units;      /* compute units */
    bool prefer_clblast; /* nothing is built in of our kernels here */
    bool fixed;          /* by the open key deterministic */
    bool forced;         /* by the open key test.gemm: use_route */
    struct route use_route;
    /* Bits of tiles that this driver cannot run; from ROUTE_16_BITS on, those
     * with operands of 16 bits. */
    _Atomic uint64_t broken;
    uint32_t patched; /* bits of those that only wait for routes_trust */
    struct selection_cache_entry memos[1u << ROUTE_MEMOS_LOG2];
};
#define ROUTE_16_BITS 32u

void routes_start(struct routes *routes,
                  const struct platform_device *hardware);
/* Permits the kernels of sm_90a programs, whose self-test has passed on this
 * driver (sm90a_self_test_result.h).  None is selected before this call. */
void routes_trust(struct routes *routes);
/* The value of the open key test.gemm: clblast, or TILE[:SPLITS[:TILES]], where
 * TILES are in splits; false where it is neither. */
bool routes_force(struct routes *routes, const char *value);
/* gemm is supported and not empty.  Any thread.  A route by CLBlast for what
 * CLBlast does not take: none of the tiles does, either. */
void gemm_selector_compute(struct routes *routes,
                           const struct tandem_gemm *gemm,
                           struct route *out_route);
/* gemm_selector_compute, which takes microseconds, or what it said before. */
void gemm_selector_choose(struct routes *routes, const struct tandem_gemm *gemm,
                  struct route *out_route);
/* The fastest of our tiles, where CLBlast is out of the question; by CLBlast
 * where none of them serves. */
void route_tiles(struct routes *routes, const struct tandem_gemm *gemm,
                 struct route *out_route);
/* Notes that the route's tile does not run here, for products like gemm. */
void route_break(struct routes *routes, const struct tandem_gemm *gemm,
                 const struct route *route);

#endif
