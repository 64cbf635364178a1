/* SPDX-License-Identifier: Apache-2.0 */
/* The execution provider: the functions that ONNX Runtime calls.
 *
 * ONNX Runtime calls CreateEpFactories once for each registration of the
 * library.  For each session it creates a provider, asks it which nodes it
 * takes (GetCapability), and lets it compile each group of them (Compile) to a
 * node compute info, whose Compute function runs the group. */
#include <config.h>

#include "adapters/onnxruntime/claim.h"
#include "adapters/onnxruntime/options.h"
#include "adapters/onnxruntime/report.h"
#include "adapters/onnxruntime/runtime.h"
#include "adapters/onnxruntime/subgraph.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

/* A registration of the library.  Sessions may outlive the registration, and
 * ONNX Runtime calls ReleaseEp of a factory that it has released, so the
 * factory exists until the last provider is released, too. */
struct factory {
    struct ort_ep_factory base; /* first, so that pointers convert */
    struct runtime runtime;
    struct runtime cpu_runtime; /* of the sessions that use only the CPU */
    atomic_uint users;          /* the registration and the providers */
};

struct provider {
    struct ort_ep base;
    struct runtime *runtime;
    const struct OrtLogger *logger;
    struct provider_options options;
    bool reported;   /* the placement report has the line of the session */
    bool main_asked; /* the nodes of the main graph were asked for */
    uint32_t compiled_count; /* groups that were compiled */
    bool writes_context;     /* the session writes a model of EPContext nodes */
};

/* A compiled group. */
struct compiled {
    struct ort_compute_info base;
    struct subgraph *subgraph;
};

/* Returns a status for a function of libtandem that has just failed. */
static struct OrtStatus *tandem_failed(const struct ort_api *api,
                                       const char *what)
{
    char message[1024];

    snprintf(message, sizeof(message), PROVIDER_NAME ": %s: %s", what,
             tandem_last_error());
    return api->CreateStatus(ORT_FAIL, message);
}

static struct OrtStatus *out_of_memory(const struct ort_api *api)
{
    return api->CreateStatus(ORT_FAIL, PROVIDER_NAME ": out of memory");
}

/* ---- compiled groups ---- */

static struct OrtStatus *
compiled_create_state(struct ort_compute_info *self,
                      struct OrtNodeComputeContext *context, void **out_state)
{
    (void)context;
    *out_state = self;
    return NULL;
}

static struct OrtStatus *compiled_compute(struct ort_compute_info *self,
                                          void *state,
                                          struct OrtKernelContext *context)
{
    struct compiled *compiled = (struct compiled *)self;

    (void)state;
    return subgraph_run(compiled->subgraph, context);
}

static void compiled_release_state(struct ort_compute_info *self, void *state)
{
    (void)self;
    (void)state;
}

static void compiled_free(struct compiled *compiled)
{
    if (compiled != NULL)
        subgraph_destroy(compiled->subgraph);
    free(compiled);
}

static struct OrtStatus *compiled_create(struct provider *provider,
                                         const struct OrtGraph *graph,
                                         const struct OrtNode *fused_node,
                                         struct ort_compute_info **out)
{
    struct compiled *compiled = calloc(1, sizeof(*compiled));
    struct OrtStatus *status;

    *out = NULL;
    if (compiled == NULL)
        return out_of_memory(provider->runtime->api);
    compiled->base = (struct ort_compute_info){
        .version = provider->runtime->version,
        .CreateState = compiled_create_state,
        .Compute = compiled_compute,
        .ReleaseState = compiled_release_state,
    };
    status = subgraph_create(provider->runtime, &provider->options,
                             provider->logger, graph, fused_node,
                             ++provider->compiled_count, &compiled->subgraph);
    if (status != NULL) {
        compiled_free(compiled);
        return status;
    }
    *out = &compiled->base;
    return NULL;
}

/* ---- providers ---- */

static const char *provider_name(const struct ort_ep *self)
{
    (void)self;
    return PROVIDER_NAME;
}

static struct OrtStatus *
provider_get_capability(struct ort_ep *self, const struct OrtGraph *graph,
                        struct OrtEpGraphSupportInfo *info)
{
    struct provider *provider = (struct provider *)self;
    const struct ort_api *api = provider->runtime->api;
    const struct OrtNode *parent = NULL; /* a node with a body, such as If */
    struct OrtStatus *status = api->Graph_GetParentNode(graph, &parent);

    if (status == NULL && !provider->reported)
        status = report_session(provider->runtime, &provider->options, graph);
    if (status != NULL)
        return status;
    provider->reported = true;
    if (parent == NULL && provider->main_asked)
        report_write(provider->runtime, &provider->options,
                     "again, after ONNX Runtime has replaced nodes by simpler "
                     "ones:");
    provider->main_asked |= parent == NULL;
    return claim_nodes(provider->runtime, &provider->options, provider->logger,
                       graph, info);
}

static void provider_release_compiled(struct ort_ep *self,
                                      struct ort_compute_info **infos,
                                      size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++)
        compiled_free((struct compiled *)infos[i]);
}

static struct OrtStatus *provider_compile(struct ort_ep *self,
                                          const struct OrtGraph **graphs,
                                          const struct OrtNode **fused_nodes,
                                          size_t count,
                                          struct ort_compute_info **out_infos,
                                          struct OrtNode **out_context_nodes)
{
    struct provider *provider = (struct provider *)self;

    if (provider->writes_context && out_context_nodes != NULL && count > 0)
        return provider->runtime->api->CreateStatus(
            ORT_NOT_IMPLEMENTED,
            PROVIDER_NAME ": compiled models (ModelCompiler, "
                          "ep.context_enable) are not supported; run the "
                          "original model");
    for (size_t i = 0; i < count; i++) {
        struct OrtStatus *status =
            compiled_create(provider, graphs[i], fused_nodes[i], &out_infos[i]);

        if (status == NULL)
            continue;
        provider_release_compiled(self, out_infos, i);
        memset(out_infos, 0, count * sizeof(out_infos[0]));
        return status;
    }
    return NULL;
}

/* ---- the factory ---- */

static const char *factory_name(const struct ort_ep_factory *self)
{
    (void)self;
    return PROVIDER_NAME;
}

static const char *factory_vendor(const struct ort_ep_factory *self)
{
    (void)self;
    return "Tandem";
}

static uint32_t factory_vendor_id(const struct ort_ep_factory *self)
{
    (void)self;
    return 0; /* no PCI vendor */
}

static const char *factory_version(const struct ort_ep_factory *self)
{
    (void)self;
    return tandem_version();
}

/* Offers the provider on the CPU, which every machine has.  ONNX Runtime's list
 * of GPUs is not complete on Linux, and libtandem finds devices itself. */
static struct OrtStatus *
factory_devices(struct ort_ep_factory *self,
                const struct OrtHardwareDevice *const *devices, size_t count,
                struct OrtEpDevice **out_ep_devices, size_t max_ep_devices,
                size_t *out_count)
{
    struct factory *factory = (struct factory *)self;
    const struct runtime *runtime = &factory->runtime;

    *out_count = 0;
    for (size_t i = 0; i < count && max_ep_devices > 0; i++) {
        struct OrtStatus *status;

        if (runtime->api->HardwareDevice_Type(devices[i]) != ORT_HARDWARE_CPU)
            continue;
        status = runtime->ep_api->CreateEpDevice(self, devices[i], NULL, NULL,
                                                 &out_ep_devices[0]);
        if (status == NULL)
            *out_count = 1;
        return status;
    }
    return NULL;
}

/* Removes a user of the factory, and destroys the factory with the last one. */
static void factory_release(struct factory *factory)
{
    if (atomic_fetch_sub(&factory->users, 1) > 1)
        return;
    runtime_finish(&factory->runtime);
    runtime_finish(&factory->cpu_runtime);
    free(factory);
}

static void factory_release_provider(struct ort_ep_factory *self,
                                     struct ort_ep *ep)
{
    if (ep == NULL)
        return;
    runtime_close(((struct provider *)ep)->runtime);
    free(ep);
    factory_release((struct factory *)self);
}

/* Returns true if the session saves the compiled model. */
static bool session_writes_context(const struct ort_api *api,
                                   const struct OrtSessionOptions *options)
{
    char value[8] = "";
    size_t bytes = sizeof(value);
    struct OrtStatus *status =
        api->GetSessionConfigEntry(options, "ep.context_enable", value, &bytes);

    if (status != NULL)
        api->ReleaseStatus(status);
    return status == NULL && strcmp(value, "1") == 0;
}

static struct OrtStatus *
factory_create_provider(struct ort_ep_factory *self,
                        const struct OrtHardwareDevice *const *devices,
                        const struct OrtKeyValuePairs *const *metadata,
                        size_t count, const struct OrtSessionOptions *options,
                        const struct OrtLogger *logger, struct ort_ep **out_ep)
{
    struct factory *factory = (struct factory *)self;
    struct runtime *runtime = options_name_cpu(factory->runtime.api, options)
                                  ? &factory->cpu_runtime
                                  : &factory->runtime;
    struct provider *provider;
    struct OrtStatus *status;

    (void)devices;
    (void)metadata;
    (void)count;
    *out_ep = NULL;
    if (runtime_open(runtime) != TANDEM_OK)
        return tandem_failed(runtime->api, "loading the plugins");
    provider = calloc(1, sizeof(*provider));
    if (provider == NULL) {
        runtime_close(runtime);
        return out_of_memory(runtime->api);
    }
    provider->base = (struct ort_ep){
        .version = runtime->version,
        .GetName = provider_name,
        .GetCapability = provider_get_capability,
        .Compile = provider_compile,
        .ReleaseNodeComputeInfos = provider_release_compiled,
    };
    provider->runtime = runtime;
    provider->logger = logger;
    atomic_fetch_add(&factory->users, 1);
    provider->writes_context = session_writes_context(runtime->api, options);
    status = options_read(&provider->options, runtime->api, options,
                          runtime->context);
    if (status != NULL) {
        factory_release_provider(self, &provider->base);
        return status;
    }
    *out_ep = &provider->base;
    return NULL;
}

static struct OrtStatus *factory_create_allocator(
    struct ort_ep_factory *self, const struct OrtMemoryInfo *info,
    const struct OrtKeyValuePairs *options, struct OrtAllocator **out_allocator)
{
    (void)self;
    (void)info;
    (void)options;
    *out_allocator = NULL; /* the CPU's allocator */
    return NULL;
}

static void factory_release_allocator(struct ort_ep_factory *self,
                                      struct OrtAllocator *allocator)
{
    (void)self;
    (void)allocator;
}

static struct OrtStatus *
factory_create_transfer(struct ort_ep_factory *self,
                        struct OrtDataTransferImpl **out_transfer)
{
    (void)self;
    *out_transfer = NULL; /* tensors are in host memory */
    return NULL;
}

static bool factory_is_stream_aware(const struct ort_ep_factory *self)
{
    (void)self;
    return false;
}

static struct factory *factory_create(const struct ort_api *api,
                                      const struct OrtLogger *logger,
                                      uint32_t version)
{
    struct factory *factory = calloc(1, sizeof(*factory));

    if (factory == NULL)
        return NULL;
    factory->base = (struct ort_ep_factory){
        .version = version,
        .GetName = factory_name,
        .GetVendor = factory_vendor,
        .GetSupportedDevices = factory_devices,
        .CreateEp = factory_create_provider,
        .ReleaseEp = factory_release_provider,
        .GetVendorId = factory_vendor_id,
        .GetVersion = factory_version,
        .CreateAllocator = factory_create_allocator,
        .ReleaseAllocator = factory_release_allocator,
        .CreateDataTransfer = factory_create_transfer,
        .IsStreamAware = factory_is_stream_aware,
    };
    runtime_init(&factory->runtime, api, logger, version, NULL);
    runtime_init(&factory->cpu_runtime, api, logger, version, "cpu");
    atomic_init(&factory->users, 1);
    return factory;
}

/* ---- entry points ---- */

/* Returns the newest version of the interface that the provider and the host
 * know, or the host's version if it is too old.  Asking GetApi for a version
 * that the host does not have would print a message. */
static uint32_t negotiate_version(const struct ort_api_base *base)
{
    unsigned int minor = 0;

    if (sscanf(base->GetVersionString(), "1.%u", &minor) != 1)
        return 1;
    return minor < ORT_NEWEST_VERSION ? minor : ORT_NEWEST_VERSION;
}

EXPORTED struct OrtStatus *CreateEpFactories(const char *registered_name,
                                             const struct ort_api_base *base,
                                             const struct OrtLogger *logger,
                                             struct ort_ep_factory **factories,
                                             size_t max_factories,
                                             size_t *out_count);
EXPORTED struct OrtStatus *ReleaseEpFactory(struct ort_ep_factory *factory);

struct OrtStatus *CreateEpFactories(const char *registered_name,
                                    const struct ort_api_base *base,
                                    const struct OrtLogger *logger,
                                    struct ort_ep_factory **factories,
                                    size_t max_factories, size_t *out_count)
{
    const uint32_t version = negotiate_version(base);
    const struct ort_api *api = base->GetApi(version);
    struct factory *factory;

    (void)registered_name;
    *out_count = 0;
    if (version < ORT_OLDEST_VERSION)
        return api->CreateStatus(
            ORT_NOT_IMPLEMENTED,
            PROVIDER_NAME ": this ONNX Runtime is too old; install 1.23 or "
                          "newer");
    if (max_factories < 1)
        return api->CreateStatus(ORT_INVALID_ARGUMENT,
                                 PROVIDER_NAME ": no room for a factory");
    factory = factory_create(api, logger, version);
    if (factory == NULL)
        return out_of_memory(api);
    factory->runtime.takes_whole_graphs_only =
        strcmp(base->GetVersionString(), "1.23.0") == 0;
    factory->cpu_runtime.takes_whole_graphs_only =
        factory->runtime.takes_whole_graphs_only;
    factories[0] = &factory->base;
    *out_count = 1;
    return NULL;
}

struct OrtStatus *ReleaseEpFactory(struct ort_ep_factory *factory)
{
    if (factory != NULL)
        factory_release((struct factory *)factory);
    return NULL;
}
