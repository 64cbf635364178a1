/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the devices that the OpenCL loader offers; see opencl_inventory.h. */
#include <config.h>

#include "opencl_inventory.h"

#include "child_process.h"

#include <dlfcn.h>
#include <string.h>

#define INVENTORY_LIMIT_S 60u
#define MAX_HANDLES 64u /* platforms, and devices of a platform */
#define TEXT_LIMIT_BYTES 32768u

/* Values of cl.h, which is missing if configure was run with --without-opencl.
 */
enum {
    PLATFORM_VERSION = 0x0901,
    PLATFORM_NAME = 0x0902,
    DEVICE_NAME = 0x102B,
    DEVICE_VENDOR = 0x102C,
    DRIVER_VERSION = 0x102D,
    DEVICE_VERSION = 0x102F,
    DEVICE_EXTENSIONS = 0x1030,
    DEVICE_C_VERSION = 0x103D
};
#define DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

typedef int (*info_fn)(void *object, uint32_t what, size_t bytes, void *out,
                       size_t *out_bytes);

/* Functions of the OpenCL loader. */
struct opencl {
    int (*platforms)(uint32_t room, void **out, uint32_t *out_count);
    int (*devices)(void *platform, uint64_t types, uint32_t room, void **out,
                   uint32_t *out_count);
    info_fn platform_info, device_info;
};

static bool opencl_load(struct opencl *cl)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);

    if (library == NULL)
        return false;
    *(void **)&cl->platforms = dlsym(library, "clGetPlatformIDs");
    *(void **)&cl->devices = dlsym(library, "clGetDeviceIDs");
    *(void **)&cl->platform_info = dlsym(library, "clGetPlatformInfo");
    *(void **)&cl->device_info = dlsym(library, "clGetDeviceInfo");
    return cl->platforms != NULL && cl->devices != NULL &&
           cl->platform_info != NULL && cl->device_info != NULL;
}

/* Reads a text into a buffer that the next call overwrites.  Returns "" if the
 * driver has none. */
static char *query_text(info_fn query, void *object, uint32_t what)
{
    static char text[TEXT_LIMIT_BYTES];

    memset(text, 0, sizeof text);
    if (query(object, what, sizeof text - 1, text, NULL) != 0)
        text[0] = '\0';
    return text;
}

/* Returns an array of the words of `text`, which it changes. */
static json_t *words_json(char *text)
{
    json_t *words = json_array();
    const char *word;

    while ((word = strsep(&text, " ")) != NULL)
        if (word[0] != '\0')
            json_array_append_new(words, child_text("%s", word));
    return words;
}

static json_t *device_json(const struct opencl *cl, void *platform,
                           void *device)
{
    const struct {
        const char *key;
        info_fn query;
        void *object;
        uint32_t what;
    } texts[] = {
        {"platform", cl->platform_info, platform, PLATFORM_NAME},
        {"platform_version", cl->platform_info, platform, PLATFORM_VERSION},
        {"device", cl->device_info, device, DEVICE_NAME},
        {"vendor", cl->device_info, device, DEVICE_VENDOR},
        {"driver", cl->device_info, device, DRIVER_VERSION},
        {"opencl_version", cl->device_info, device, DEVICE_VERSION},
        {"opencl_c_version", cl->device_info, device, DEVICE_C_VERSION},
    };
    json_t *out = json_object();

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        json_object_set_new(out, texts[i].key,
                            child_text("%s", query_text(texts[i].query,
                                                        texts[i].object,
                                                        texts[i].what)));
    json_object_set_new(
        out, "extensions",
        words_json(query_text(cl->device_info, device, DEVICE_EXTENSIONS)));
    return out;
}

static void inventory_body(void *argument, struct child_link *link)
{
    struct tandem_context *context;
    struct opencl cl;
    void *platforms[MAX_HANDLES], *devices[MAX_HANDLES];
    uint32_t platform_count = 0, device_count;
    json_t *out = json_array();

    child_progress(link, 0, "listing OpenCL devices");
    /* This loads the same OpenCL library as programs use. */
    if (probe_context(argument, "opencl", &context) != TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
        return;
    }
    if (!opencl_load(&cl)) {
        child_fail(link, "libOpenCL.so.1 cannot be loaded");
        return;
    }
    if (cl.platforms(MAX_HANDLES, platforms, &platform_count) != 0)
        platform_count = 0;
    for (uint32_t i = 0; i < platform_count && i < MAX_HANDLES; i++) {
        if (cl.devices(platforms[i], DEVICE_TYPE_ALL, MAX_HANDLES, devices,
                       &device_count) != 0)
            continue;
        for (uint32_t j = 0; j < device_count && j < MAX_HANDLES; j++)
            json_array_append_new(out,
                                  device_json(&cl, platforms[i], devices[j]));
    }
    child_answer(link, out);
    tandem_context_destroy(context);
}

json_t *opencl_inventory(const struct probe_options *options)
{
    struct child_outcome outcome;
    json_t *out;

    child_run(inventory_body, (void *)options,
              options->timeout_s ? options->timeout_s : INVENTORY_LIMIT_S, NULL,
              &outcome);
    out = outcome.result != NULL
              ? json_incref(outcome.result)
              : json_pack("{s:s}", "error", outcome.message);
    child_outcome_destroy(&outcome);
    return out;
}
