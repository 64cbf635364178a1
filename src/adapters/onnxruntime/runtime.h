/* SPDX-License-Identifier: Apache-2.0 */
/* State that sessions of a process share: the context of libtandem, and the
 * weights of the models (weight.h).  Any thread may call these functions. */
#ifndef TANDEM_ONNXRUNTIME_RUNTIME_H
#define TANDEM_ONNXRUNTIME_RUNTIME_H

#include "adapters/onnxruntime/mapped_file.h"
#include "adapters/onnxruntime/ort_api.h"
#include "tandem/host.h"

#define PROVIDER_NAME "TandemExecutionProvider"
#define WEIGHT_BUCKETS 256u

struct weight;

struct runtime {
    const struct ort_api *api;
    const struct ort_ep_api *ep_api;
    const struct OrtLogger *logger; /* belongs to ONNX Runtime's environment */
    uint32_t version;               /* of the interface that both sides know */
    /* ONNX Runtime 1.23.0 cannot copy tensors between nodes of the provider and
     * of its own (fixed in 1.23.1, its pull request 26088). */
    bool takes_whole_graphs_only;
    const char *device; /* device that runs everything, or NULL for all */
    struct mapped_files files;
    pthread_mutex_t mutex; /* guards what follows */
    uint32_t sessions;
    struct tandem_context *context; /* NULL while there is no session */
    struct weight *weights[WEIGHT_BUCKETS];
};

/* If `device` is "cpu", the runtime loads no plugins of GPUs.  NULL means all
 * devices. */
void runtime_init(struct runtime *runtime, const struct ort_api *api,
                  const struct OrtLogger *logger, uint32_t version,
                  const char *device);
/* Destroys the context.  No session may exist. */
void runtime_finish(struct runtime *runtime);
/* Adds a session, and creates the context for the first one. Sets the message
 * of tandem_last_error if it fails. */
enum tandem_status runtime_open(struct runtime *runtime);
/* [blocks] Removes a session, and destroys the context with the last one. This
 * waits for kernels that are compiled in the background. A process that ended
 * while a driver compiles would crash in some drivers. */
void runtime_close(struct runtime *runtime);

#define DEVICE_LABEL_BYTES 64u
/* Writes the name of a device, such as "opencl:0", or "?" if there is no such
 * device. */
void device_label(struct tandem_context *context, uint32_t device,
                  char out[DEVICE_LABEL_BYTES]);

/* Sends a message to a logger of ONNX Runtime. */
void log_write(const struct runtime *runtime, const struct OrtLogger *logger,
               enum ort_logging_level level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
