/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripted profiles: costs that a test chooses, saved with the library's own
 * writer, so that the next context reads them.
 */
#include <stdio.h>

#include "support.h"

const char *const curve_names[CURVES] = {
    "elementwise",    "transcendental", "multi_transcendental",
    "reduce",         "softmax",        "strided",
    "gather",         "optimizer",      "norm",
    "upload",         "upload_pinned",  "download",
    "download_pinned"};

struct script script_free(void)
{
    return (struct script){0};
}

void script_all(struct script *script, double a, double b)
{
    for (uint32_t i = 0; i < TANDEM_COST_GEMM; i++)
        script->curves[i] = (struct script_line){a, b};
}

double line_at(struct script_line line, double x)
{
    return line.a + line.b * x;
}

/*
 * A straight line needs two points; below its first point a curve is constant.
 */
static void line_write(struct tandem_profile *profile, const char *name,
                       struct script_line line)
{
    OK(tandem_profile_add_curve_point(profile, name, 0, line_at(line, 0)));
    OK(tandem_profile_add_curve_point(profile, name, 1e9, line_at(line, 1e9)));
}

static void gemm_write(struct tandem_profile *profile,
                       const struct script *script)
{
    static const int64_t sizes[] = {1, 16, 256, 4096};

    for (int m = 0; m < 4; m++)
        for (int n = 0; n < 4; n++)
            for (int k = 0; k < 4; k++)
                OK(tandem_profile_add_gemm_point(
                    profile, sizes[m], sizes[n], sizes[k],
                    script->gemm_fixed +
                        script->gemm_base *
                            (double)(sizes[m] * sizes[n] * sizes[k])));
}

static void script_write(struct tandem_profile *profile,
                         const struct script *script)
{
    OK(tandem_profile_set_scalar(profile, "launch", script->launch));
    OK(tandem_profile_set_scalar(profile, "sync", script->sync));
    OK(tandem_profile_set_scalar(profile, "alloc", 0));
    OK(tandem_profile_set_scalar(profile, "compile", 0));
    OK(tandem_profile_set_scalar(profile, "gemm_compile", 0));
    for (uint32_t i = 0; i < CURVES; i++)
        line_write(profile, curve_names[i],
                   i < TANDEM_COST_GEMM ? script->curves[i]
                   : i == 8             ? script->curves[TANDEM_COST_SOFTMAX]
                   : i < 11             ? script->upload
                                        : script->download);
    if (script->gemm_base > 0)
        gemm_write(profile, script);
}

void script_save(const char *device, const struct script *script)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, device);

    script_write(profile, script);
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
}

const char *script_path(const char *device)
{
    static char path[4096];
    struct tandem_context *context = context_new(NULL);
    const char *found = NULL;

    OK(tandem_device_profile_path(context, device_named(context, device),
                                  &found));
    ck_assert_ptr_nonnull(found);
    snprintf(path, sizeof path, "%s", found);
    tandem_context_destroy(context);
    return path;
}
