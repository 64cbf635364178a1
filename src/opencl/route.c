/* SPDX-License-Identifier: Apache-2.0 */
/* The predicted time of each way to compute a product, and the least. */
#include "opencl/route.h"

#include <string.h>

#include "common/decimal.h"
#include "opencl/platform.h"

/* Sums of fewer terms are more accurate in plain f32. */
#define STRICT_K 256

/* More partial results than this are never worth their memory. */
#define MOST_PARTIAL_BYTES ((double)(256u << 20))

void routes_start(struct routes *routes,
                  const struct platform_device *hardware)
{
    costs_start(&routes->costs);
    routes->units = hardware->info.compute_units;
    if (routes->units == 0)
        routes->units = 1;
    routes->prefer_clblast = !hardware->nvidia;
    if (!hardware->tensor_cores)
        atomic_store(&routes->broken, 1u << TILE_STRICT_LARGE |
                                          1u << TILE_STRICT_MEDIUM);
}

bool routes_force(struct routes *routes, const char *value)
{
    uint64_t splits = 1;
    size_t length = strcspn(value, ":");
    if (value[length] == ':' &&
        (!decimal_read(value + length + 1, &splits) || splits == 0 ||
         splits > MOST_SPLITS))
        return false;
    routes->use_route = (struct route){.splits = (uint32_t)splits};
    routes->forced = true;
    routes->use_route.clblast = strcmp(value, "clblast") == 0;
    if (routes->use_route.clblast)
        return true;
    for (uint32_t i = 0; i < TILES; i++)
        if (strlen(tiles[i].name) == length &&
            strncmp(tiles[i].name, value, length) == 0) {
            routes->use_route.tile = (enum tile_id)i;
            return true;
        }
    return false;
}

/* What the operands add to a strict product of ns, copied first where that is
 * the lesser evil, or the only way. */
static double operands_cost(const struct routes *routes,
                            const struct tandem_gemm *gemm, double ns,
                            uint32_t *out_packs)
{
    double sum = 0;
    *out_packs = 0;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        enum operand_id id = (enum operand_id)i;
        bool aligned = operand_aligned(gemm, id);
        if (aligned && !operand_outer(gemm, id))
            continue;
        double pack = routes->costs.launch_ns + 2.0 *
                                              (double)operand_packed(gemm, id) /
                                              routes->costs.bytes_per_ns;
        double as_it_lies = ns * routes->costs.outer_share;
        if (aligned && as_it_lies <= pack) {
            sum += as_it_lies;
        } else {
            sum += pack;
            *out_packs |= 1u << i;
        }
    }
    return sum;
}

static double predict(const struct routes *routes,
                      const struct tandem_gemm *gemm, double groups,
                      struct route *route)
{
    const struct tile *tile = &tiles[route->tile];
    const struct tile_cost *cost = &routes->costs.tiles[route->tile];
    double units = routes->units;
    double slice = product_slice(gemm, route->tile);
    double slices = ((double)gemm->k + slice - 1) / slice;
    uint64_t each =
        (uint64_t)((slices + route->splits - 1) / route->splits);
    uint64_t rounds =
        (uint64_t)((groups * route->splits + units - 1) / units);
    double step_ns = cost->step_ns * (double)rounds *
                     product_share(gemm, route->tile);
    if (step_ns < cost->latency_ns)
        step_ns = cost->latency_ns;
    double ns = cost->start_ns + step_ns * slice * (double)each;
    route->packs = 0;
    if (tile->strict)
        ns += operands_cost(routes, gemm, ns, &route->packs) +
              routes->costs.launch_ns;
    if (route->splits == 1 && (!tile->strict || gemm->beta == 0))
        return ns;
    double bytes = (double)gemm->m * (double)gemm->n * (double)gemm->batch *
                   sizeof(float);
    if (bytes * route->splits > MOST_PARTIAL_BYTES)
        return 1e30;
    return ns + routes->costs.launch_ns +
           bytes * (route->splits + 1) / routes->costs.bytes_per_ns;
}

/* The splits with which a tile is fastest. */
static double tile_best(const struct routes *routes,
                        const struct tandem_gemm *gemm, enum tile_id tile,
                        double groups, struct route *out_route)
{
    static const uint32_t splits[] = {1,  2,  3,  4,  6,   8,   12, 16,
                                      24, 32, 48, 64, 96, 128, 192, 256};
    uint32_t slice = product_slice(gemm, tile);
    double best = 1e30;
    for (uint32_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
        struct route route = {.tile = tile, .splits = splits[i]};
        /* Chunks of fewer slices, or more groups than fill the device several
         * times, gain nothing. */
        if (i > 0 && (gemm->k < 2 * slice * splits[i] ||
                      groups * splits[i - 1] > 4.0 * routes->units))
            break;
        double ns = predict(routes, gemm, groups, &route);
        if (ns < best) {
            best = ns;
            *out_route = route;
        }
    }
    return best;
}

/* The time of the fastest of our kernels; 1e30: there is none. */
static double tiles_best(const struct routes *routes,
                         const struct tandem_gemm *gemm, uint32_t broken,
                         struct route *out_route)
{
    double best = 1e30;
    /* Those that were measured, where some were and others will do. */
    if (routes->costs.measured != 0 && product_wide(gemm))
        broken |= ~routes->costs.measured;
    for (uint32_t i = 0; i < TILES; i++) {
        struct route route;
        double groups = (double)product_groups(gemm, (enum tile_id)i);
        if ((broken >> i & 1u) != 0 || groups * MOST_SPLITS > INT32_MAX ||
            (tiles[i].strict && gemm->k < STRICT_K) ||
            !product_fits(gemm, (enum tile_id)i))
            continue;
        double ns = tile_best(routes, gemm, (enum tile_id)i, groups, &route);
        if (ns < best) {
            best = ns;
            *out_route = route;
        }
    }
    return best;
}

/* CLBlast's, with our epilogue after it. */
static double clblast_best(const struct routes *routes,
                           const struct tandem_gemm *gemm)
{
    if (routes->costs.times == 0)
        return routes->prefer_clblast ? 0 : 1e30;
    double ns = costs_clblast(&routes->costs, gemm);
    if (gemm->bias_kind != TANDEM_BIAS_NONE ||
        gemm->activation != TANDEM_OP_INVALID)
        ns += routes->costs.launch_ns + 2.0 * sizeof(float) *
                                            (double)gemm->m * (double)gemm->n *
                                            (double)gemm->batch /
                                            routes->costs.bytes_per_ns;
    return ns;
}

void route_choose(struct routes *routes, const struct tandem_gemm *gemm,
                  struct route *out_route)
{
    uint32_t broken =
        atomic_load_explicit(&routes->broken, memory_order_relaxed);
    bool either = product_wide(gemm); /* way */
    *out_route = (struct route){.clblast = true, .splits = 1};
    if (!either)
        broken |= broken >> ROUTE_16_BITS;
    if (!product_counts(gemm))
        return;
    if (routes->forced) {
        *out_route = routes->use_route;
        if (!either && out_route->clblast)
            *out_route = (struct route){.tile = TILE_MEDIUM, .splits = 1};
        if (gemm->dtype != TANDEM_F32)
            out_route->tile = tiles[out_route->tile].plain;
        if (!product_fits(gemm, out_route->tile))
            out_route->tile = tiles[out_route->tile].strict
                                  ? TILE_STRICT_MEDIUM
                                  : TILE_MEDIUM;
        for (uint32_t i = 0; tiles[out_route->tile].strict && i < OPERANDS; i++)
            if (!operand_aligned(gemm, (enum operand_id)i))
                out_route->packs |= 1u << i;
        if ((broken >> out_route->tile & 1u) != 0)
            out_route->clblast = true;
        return;
    }
    /* Costs that are built in mean nothing beside measured ones. */
    if (either && routes->costs.measured == 0 && routes->prefer_clblast)
        return;
    struct route ours;
    double limit = either && routes->costs.measured != 0
                       ? clblast_best(routes, gemm)
                       : 1e30;
    if (tiles_best(routes, gemm, broken, &ours) < limit)
        *out_route = ours;
}

void route_break(struct routes *routes, const struct tandem_gemm *gemm,
                 const struct route *route)
{
    uint32_t first = product_wide(gemm) ? 0 : ROUTE_16_BITS;
    atomic_fetch_or(&routes->broken, 1u << (first + route->tile));
}
