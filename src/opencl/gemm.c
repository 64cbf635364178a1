/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: by our kernels, which do all in one, or by CLBlast with our
 * epilogue after it; route.c says which. */
#include "opencl/gemm.h"

#include "common/check.h"
#include "opencl/clblast.h"
#include "opencl/launch.h"
#include "opencl/status.h"

/* No product, so that CLBlast, which rejects sizes of 0, is not asked. */
static bool product_zero(const struct tandem_gemm *gemm)
{
    return gemm->k == 0 || gemm->alpha == 0;
}

static bool has_epilogue(const struct tandem_gemm *gemm)
{
    return gemm->bias_kind != TANDEM_BIAS_NONE ||
           gemm->activation != TANDEM_OP_INVALID;
}

static bool nothing(const struct tandem_gemm *gemm)
{
    return gemm->m == 0 || gemm->n == 0 || gemm->batch == 0;
}

enum tandem_status gemm_supports(const struct tandem_device *device,
                                 const struct tandem_gemm *gemm)
{
    (void)device;
    if (nothing(gemm) || product_zero(gemm))
        return TANDEM_OK;
    return product_wide(gemm) ? clblast_supports(gemm) : TANDEM_OK;
}

/* How a product is computed: by CLBlast's kernels, by a plan, or by one after
 * the other. */
struct way {
    bool zero, clblast, plain; /* plain: by a kernel that cannot be broken */
    struct route route;
    struct plan plan; /* of no steps: CLBlast's kernels do all */
};

/* What a route depends on beside the extents. */
static uint32_t traits_of(const struct tandem_gemm *gemm)
{
    return (gemm->flags &
            (TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B)) |
           (gemm->beta != 0 ? 4u : 0) |
           (operand_aligned(gemm, OPERAND_A) ? 8u : 0) |
           (operand_aligned(gemm, OPERAND_B) ? 16u : 0) |
           (product_fits(gemm, TILE_LARGE) ? 32u : 0) |
           (product_counts(gemm) ? 64u : 0) | (has_epilogue(gemm) ? 128u : 0) |
           type_of(gemm->dtype) << 8 | type_of(gemm_c_dtype(gemm)) << 12;
}

/* route_choose, which takes a microsecond or two, or what it said before. */
static void route_recall(struct tandem_stream *stream,
                         const struct tandem_gemm *gemm,
                         struct route *out_route)
{
    struct routes *routes = &stream->device->routes;
    uint32_t traits = traits_of(gemm);
    uint32_t broken = atomic_load_explicit(&routes->broken,
                                           memory_order_relaxed);
    uint64_t mix = ((uint64_t)gemm->m * 31u + (uint64_t)gemm->n) * 31u +
                   (uint64_t)gemm->k;
    struct route_memo *memo =
        &stream->routes[mix * 0x9e3779b97f4a7c15u >> 60 & (ROUTE_MEMOS - 1)];
    if (memo->m != gemm->m || memo->n != gemm->n || memo->k != gemm->k ||
        memo->batch != gemm->batch || memo->traits != traits ||
        memo->broken != broken) {
        *memo = (struct route_memo){gemm->m, gemm->n, gemm->k, gemm->batch,
                                    traits,  broken,  {0}};
        route_choose(routes, gemm, &memo->route);
    }
    *out_route = memo->route;
}

/* stream: NULL where none will run it. */
static void way_find(struct way *out, struct tandem_device *device,
                     struct tandem_stream *stream,
                     const struct tandem_gemm *gemm)
{
    uint32_t group_log2 = device->programs.group_log2;
    out->zero = product_zero(gemm);
    out->plan.steps = 0;
    out->clblast = out->plain = false;
    if (!out->zero && stream != NULL)
        route_recall(stream, gemm, &out->route);
    else if (!out->zero)
        route_choose(&device->routes, gemm, &out->route);
    if (!out->zero && !out->route.clblast) {
        plan_product(&out->plan, gemm, out->route.tile, out->route.splits,
                     out->route.packs, group_log2);
        return;
    }
    out->plain = !out->zero && !product_wide(gemm);
    if (out->plain) {
        plan_multiply(&out->plan, gemm, group_log2);
        return;
    }
    out->clblast = !out->zero;
    if (out->zero || has_epilogue(gemm))
        plan_epilogue(&out->plan, gemm, group_log2,
                      out->zero ? (float)gemm->beta : 1.0f);
}

/* Whether status says that the way's own kernels do not run on this device,
 * so that another way is to be found. */
static bool way_broken(struct tandem_device *device,
                       const struct tandem_gemm *gemm, const struct way *way,
                       enum tandem_status status)
{
    if (way->clblast || way->zero || way->plain ||
        (status != TANDEM_FAILED && status != TANDEM_UNSUPPORTED))
        return false;
    device_log(device, TANDEM_LOG_WARNING,
               "gemm: the %s tiles are not used on %s: %s",
               tiles[way->route.tile].name, device->hardware->info.name,
               message_get());
    route_break(&device->routes, gemm, &way->route);
    return true;
}

static enum tandem_status way_prepare(struct tandem_device *device,
                                      const struct tandem_gemm *gemm,
                                      const struct way *way)
{
    enum tandem_status status = TANDEM_OK;
    if (way->clblast)
        status = program_prepare_gemm(device, clblast_key(gemm));
    for (uint32_t i = 0; i < way->plan.steps && status == TANDEM_OK; i++)
        if (key_compiles(way->plan.step[i].key))
            status = program_prepare(device, &way->plan.step[i]);
    return status;
}

enum tandem_status gemm_prepare(struct tandem_device *device,
                                const struct tandem_gemm *gemm)
{
    struct way way;
    if (nothing(gemm))
        return TANDEM_OK;
    way_find(&way, device, NULL, gemm);
    return way_prepare(device, gemm, &way);
}

static enum tandem_status way_ready(struct tandem_device *device,
                                    const struct tandem_gemm *gemm,
                                    const struct way *way)
{
    enum tandem_status status = TANDEM_OK;
    if (way->clblast)
        status = program_ready(device, clblast_key(gemm));
    for (uint32_t i = 0; i < way->plan.steps && status == TANDEM_OK; i++)
        if (key_compiles(way->plan.step[i].key))
            status = program_ready(device, way->plan.step[i].key);
    return status;
}

enum tandem_status gemm_ready(struct tandem_device *device,
                              const struct tandem_gemm *gemm)
{
    struct way way;
    if (nothing(gemm))
        return TANDEM_OK;
    way_find(&way, device, NULL, gemm);
    enum tandem_status status = way_ready(device, gemm, &way);
    while (way_broken(device, gemm, &way, status)) {
        way_find(&way, device, NULL, gemm);
        status = way_prepare(device, gemm, &way);
        if (status == TANDEM_OK)
            status = way_ready(device, gemm, &way);
    }
    return status;
}

/* ---- the call ---- */

static enum tandem_status check_poison(const struct tandem_gemm *gemm)
{
    const struct tandem_buffer *inputs[4] = {
        gemm->a.buffer, gemm->b.buffer, gemm->bias,
        gemm->beta != 0 ? gemm->c.buffer : NULL};
    for (uint32_t i = 0; i < 4; i++) {
        enum tandem_status status = TANDEM_OK;
        if (inputs[i] != NULL)
            status = buffer_poisoned(inputs[i]);
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

/* The kernels of the way's plan, compiled before any work starts: a failure
 * then has started none. */
static enum tandem_status way_kernels(struct tandem_stream *stream,
                                      const struct tandem_gemm *gemm,
                                      struct way *out)
{
    struct stream_kernel *kernel;
    enum tandem_status status;
    do {
        way_find(out, stream->device, stream, gemm);
        status = TANDEM_OK;
        for (uint32_t i = 0; i < out->plan.steps && status == TANDEM_OK; i++)
            if (key_compiles(out->plan.step[i].key))
                status = stream_kernel(stream, &out->plan.step[i], &kernel);
    } while (status == TANDEM_NOT_READY ||
             way_broken(stream->device, gemm, out, status));
    return status;
}

enum tandem_status gemm_launch(struct tandem_stream *stream,
                               const struct tandem_gemm *gemm)
{
    struct way way;
    struct span_user user = {stream->device, "gemm"};
    enum tandem_status status = check_gemm(gemm, launch_span, &user);
    if (status == TANDEM_OK)
        status = gemm_supports(stream->device, gemm);
    if (status == TANDEM_OK)
        status = check_poison(gemm);
    if (status != TANDEM_OK || nothing(gemm))
        return status;
    status = way_kernels(stream, gemm, &way);
    if (status == TANDEM_OK && way.clblast)
        status = clblast_product(stream, gemm);
    if (status != TANDEM_OK || way.plan.steps == 0)
        return status;
    bool temporary = way.plan.temp_bytes != 0;
    status = launch_plan(stream, &way.plan);
    if (status == TANDEM_OUT_OF_MEMORY && temporary &&
        atomic_load(&stream->status) == TANDEM_OK) {
        plan_product(&way.plan, gemm, TILE_MEDIUM, 1, 0,
                     stream->device->programs.group_log2);
        status = launch_plan(stream, &way.plan);
    }
    return status == TANDEM_OK || !way.clblast ? status
                                               : stream_fail(stream, status);
}
