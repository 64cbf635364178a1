/* SPDX-License-Identifier: Apache-2.0 */
/* The part of ONNX Runtime's C interface that the execution provider uses.
 *
 * ONNX Runtime's packages do not contain its C headers, so this file declares
 * the functions and structs that are needed.  Names, order and signatures are
 * facts taken from these files of ONNX Runtime (MIT licence):
 *
 *   [api]  include/onnxruntime/core/session/onnxruntime_c_api.h
 *   [ep]   include/onnxruntime/core/session/onnxruntime_ep_c_api.h
 *   [slot] onnxruntime/core/session/onnxruntime_c_api.cc, whose static_assert
 *          lines fix the number of the last function of each version
 *
 * Both function tables are append-only: a function keeps its slot in every
 * later version.  ORT_SLOT checks each slot number when this file is compiled.
 * A function that returns a struct OrtStatus pointer returns NULL for success.
 * The receiver of a status releases it. */
#ifndef TANDEM_ONNXRUNTIME_ORT_API_H
#define TANDEM_ONNXRUNTIME_ORT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Versions of the interface that the provider accepts.  Version N belongs to
 * ONNX Runtime 1.N.  Version 23 is the first with graph access for providers;
 * the structs below have the fields of version 24. */
#define ORT_OLDEST_VERSION 23u
#define ORT_NEWEST_VERSION 24u

/* Opaque objects of ONNX Runtime [api] [ep]. */
struct OrtStatus;
struct OrtLogger;
struct OrtSessionOptions;
struct OrtKeyValuePairs;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtNode;
struct OrtOpAttr;
struct OrtValueInfo;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtKernelContext;
struct OrtNodeComputeContext;
struct OrtMemoryInfo;
struct OrtAllocator;
struct OrtDataTransferImpl;
struct OrtExternalInitializerInfo;

/* [api] enum OrtErrorCode.  The provider never returns ORT_EP_FAIL (11), after
 * which ONNX Runtime's Python class gives up the provider for good. */
enum ort_error_code {
    ORT_FAIL = 1,
    ORT_INVALID_ARGUMENT = 2,
    ORT_NOT_IMPLEMENTED = 9
};

/* [api] enum OrtLoggingLevel */
enum ort_logging_level {
    ORT_LOG_VERBOSE = 0,
    ORT_LOG_INFO = 1,
    ORT_LOG_WARNING = 2,
    ORT_LOG_ERROR = 3
};

/* [api] enum ONNXTensorElementDataType */
enum onnx_dtype {
    ONNX_F32 = 1,
    ONNX_U8 = 2,
    ONNX_I8 = 3,
    ONNX_U16 = 4,
    ONNX_I16 = 5,
    ONNX_I32 = 6,
    ONNX_I64 = 7,
    ONNX_BOOL = 9,
    ONNX_F16 = 10,
    ONNX_F64 = 11,
    ONNX_U32 = 12,
    ONNX_U64 = 13,
    ONNX_BF16 = 16
};

/* [api] enum OrtOpAttrType */
enum ort_attribute_type {
    ORT_ATTRIBUTE_INT = 1,
    ORT_ATTRIBUTE_INTS = 2,
    ORT_ATTRIBUTE_FLOAT = 3,
    ORT_ATTRIBUTE_FLOATS = 4,
    ORT_ATTRIBUTE_STRING = 5,
    ORT_ATTRIBUTE_TENSOR = 8
};

/* [api] enum OrtHardwareDeviceType */
enum ort_hardware_type { ORT_HARDWARE_CPU = 0 };

/* [ep] struct OrtNodeFusionOptions, version 23 */
struct ort_fusion_options {
    uint32_t version;
    /* ONNX Runtime may free the constants, which the provider has copied.
     * Otherwise they are inputs of the fused node. */
    bool drop_constant_initializers;
};

/* [ep] struct OrtNodeComputeInfo, version 23 */
struct ort_compute_info {
    uint32_t version;
    struct OrtStatus *(*CreateState)(struct ort_compute_info *self,
                                     struct OrtNodeComputeContext *context,
                                     void **out_state);
    struct OrtStatus *(*Compute)(struct ort_compute_info *self, void *state,
                                 struct OrtKernelContext *context);
    void (*ReleaseState)(struct ort_compute_info *self, void *state);
};

/* [ep] struct OrtEp.  Functions that the provider leaves NULL have no
 * signature here. */
struct ort_ep {
    uint32_t version;
    const char *(*GetName)(const struct ort_ep *self);
    struct OrtStatus *(*GetCapability)(struct ort_ep *self,
                                       const struct OrtGraph *graph,
                                       struct OrtEpGraphSupportInfo *info);
    /* The graphs become invalid when Compile returns. */
    struct OrtStatus *(*Compile)(struct ort_ep *self,
                                 const struct OrtGraph **graphs,
                                 const struct OrtNode **fused_nodes,
                                 size_t count,
                                 struct ort_compute_info **out_infos,
                                 struct OrtNode **out_context_nodes);
    void (*ReleaseNodeComputeInfos)(struct ort_ep *self,
                                    struct ort_compute_info **infos,
                                    size_t count);
    void (*GetPreferredDataLayout)(void);
    void (*ShouldConvertDataLayoutForOp)(void);
    void (*SetDynamicOptions)(void);
    void (*OnRunStart)(void);
    void (*OnRunEnd)(void);
    void (*CreateAllocator)(void);
    void (*CreateSyncStreamForDevice)(void);
    void (*GetCompiledModelCompatibilityInfo)(void);
    void (*GetKernelRegistry)(void);        /* version 24 */
    void (*IsConcurrentRunSupported)(void); /* version 24; NULL means yes */
};

/* [ep] struct OrtEpFactory */
struct ort_ep_factory {
    uint32_t version;
    const char *(*GetName)(const struct ort_ep_factory *self);
    const char *(*GetVendor)(const struct ort_ep_factory *self);
    struct OrtStatus *(*GetSupportedDevices)(
        struct ort_ep_factory *self,
        const struct OrtHardwareDevice *const *devices, size_t count,
        struct OrtEpDevice **out_ep_devices, size_t max_ep_devices,
        size_t *out_count);
    struct OrtStatus *(*CreateEp)(
        struct ort_ep_factory *self,
        const struct OrtHardwareDevice *const *devices,
        const struct OrtKeyValuePairs *const *metadata, size_t count,
        const struct OrtSessionOptions *options, const struct OrtLogger *logger,
        struct ort_ep **out_ep);
    void (*ReleaseEp)(struct ort_ep_factory *self, struct ort_ep *ep);
    uint32_t (*GetVendorId)(const struct ort_ep_factory *self);
    const char *(*GetVersion)(const struct ort_ep_factory *self);
    void (*ValidateCompiledModelCompatibilityInfo)(void);
    struct OrtStatus *(*CreateAllocator)(struct ort_ep_factory *self,
                                         const struct OrtMemoryInfo *info,
                                         const struct OrtKeyValuePairs *options,
                                         struct OrtAllocator **out_allocator);
    void (*ReleaseAllocator)(struct ort_ep_factory *self,
                             struct OrtAllocator *allocator);
    /* Must not be NULL: ONNX Runtime 1.23 to 1.32 call it unconditionally. */
    struct OrtStatus *(*CreateDataTransfer)(
        struct ort_ep_factory *self, struct OrtDataTransferImpl **out_transfer);
    bool (*IsStreamAware)(const struct ort_ep_factory *self);
    void (*CreateSyncStreamForDevice)(void);
    /* version 24 */
    void (*GetHardwareDeviceIncompatibilityDetails)(void);
    void (*CreateExternalResourceImporterForDevice)(void);
    void (*GetNumCustomOpDomains)(void);
    void (*GetCustomOpDomains)(void);
};

#define ORT_SLOT(table, function, slot)                                        \
    _Static_assert(offsetof(struct table, function) ==                         \
                       (slot) * sizeof(void *),                                \
                   "slot of " #function)

/* [ep] struct OrtEpApi */
struct ort_ep_api {
    struct OrtStatus *(*CreateEpDevice)(struct ort_ep_factory *factory,
                                        const struct OrtHardwareDevice *device,
                                        const struct OrtKeyValuePairs *metadata,
                                        const struct OrtKeyValuePairs *options,
                                        struct OrtEpDevice **out);
    void *unused_1[1];
    struct OrtStatus *(*EpGraphSupportInfo_AddNodesToFuse)(
        struct OrtEpGraphSupportInfo *info, const struct OrtNode *const *nodes,
        size_t count, const struct ort_fusion_options *options);
    void *unused_3[1];
    /* The name is valid during CreateState. */
    const char *(*NodeComputeContext_NodeName)(
        const struct OrtNodeComputeContext *context);
};
ORT_SLOT(ort_ep_api, EpGraphSupportInfo_AddNodesToFuse, 2);
ORT_SLOT(ort_ep_api, NodeComputeContext_NodeName, 4);

/* [api] struct OrtApi */
struct ort_api {
    struct OrtStatus *(*CreateStatus)(enum ort_error_code code,
                                      const char *message);
    void *unused_1[1];
    const char *(*GetErrorMessage)(const struct OrtStatus *status);
    void *unused_3[48];
    struct OrtStatus *(*GetTensorMutableData)(struct OrtValue *value,
                                              void **out);
    void *unused_52[3];
    /* *out is NULL if the type is not a tensor. */
    struct OrtStatus *(*CastTypeInfoToTensorInfo)(
        const struct OrtTypeInfo *type,
        const struct OrtTensorTypeAndShapeInfo **out);
    void *unused_56[4];
    struct OrtStatus *(*GetTensorElementType)(
        const struct OrtTensorTypeAndShapeInfo *info, enum onnx_dtype *out);
    struct OrtStatus *(*GetDimensionsCount)(
        const struct OrtTensorTypeAndShapeInfo *info, size_t *out);
    /* Unknown dimensions are -1. */
    struct OrtStatus *(*GetDimensions)(
        const struct OrtTensorTypeAndShapeInfo *info, int64_t *out,
        size_t count);
    /* The names belong to `info`; a dimension without a name has "". */
    struct OrtStatus *(*GetSymbolicDimensions)(
        const struct OrtTensorTypeAndShapeInfo *info, const char **out,
        size_t count);
    struct OrtStatus *(*GetTensorShapeElementCount)(
        const struct OrtTensorTypeAndShapeInfo *info, size_t *out);
    /* The caller releases *out. */
    struct OrtStatus *(*GetTensorTypeAndShape)(
        const struct OrtValue *value, struct OrtTensorTypeAndShapeInfo **out);
    void *unused_66[22];
    struct OrtStatus *(*KernelContext_GetInputCount)(
        const struct OrtKernelContext *context, size_t *out);
    void *unused_89[1];
    struct OrtStatus *(*KernelContext_GetInput)(
        const struct OrtKernelContext *context, size_t index,
        const struct OrtValue **out);
    struct OrtStatus *(*KernelContext_GetOutput)(
        struct OrtKernelContext *context, size_t index, const int64_t *shape,
        size_t rank, struct OrtValue **out);
    void *unused_92[1];
    void (*ReleaseStatus)(struct OrtStatus *status);
    void *unused_94[2];
    void (*ReleaseValue)(struct OrtValue *value);
    void *unused_97[2];
    void (*ReleaseTensorTypeAndShapeInfo)(
        struct OrtTensorTypeAndShapeInfo *info);
    void *unused_100[138];
    /* With value NULL, sets *size to the length with the terminating 0. */
    struct OrtStatus *(*GetSessionConfigEntry)(
        const struct OrtSessionOptions *options, const char *key, char *value,
        size_t *size);
    void *unused_239[8];
    struct OrtStatus *(*Logger_LogMessage)(const struct OrtLogger *logger,
                                           enum ort_logging_level level,
                                           const char *message,
                                           const char *file, int line,
                                           const char *function);
    void *unused_248[24];
    /* Fails if `bytes` is too small, and sets *out_bytes in both cases. */
    struct OrtStatus *(*ReadOpAttr)(const struct OrtOpAttr *attribute,
                                    enum ort_attribute_type type, void *data,
                                    size_t bytes, size_t *out_bytes);
    void *unused_273[16];
    struct OrtStatus *(*GetValueInfoName)(const struct OrtValueInfo *info,
                                          const char **out);
    struct OrtStatus *(*GetValueInfoTypeInfo)(const struct OrtValueInfo *info,
                                              const struct OrtTypeInfo **out);
    void *unused_291[7];
    /* The texts belong to `pairs`. */
    void (*GetKeyValuePairs)(const struct OrtKeyValuePairs *pairs,
                             const char *const **out_keys,
                             const char *const **out_values, size_t *out_count);
    void *unused_299[1];
    void (*ReleaseKeyValuePairs)(struct OrtKeyValuePairs *pairs);
    void *unused_301[6];
    enum ort_hardware_type (*HardwareDevice_Type)(
        const struct OrtHardwareDevice *device);
    void *unused_308[9];
    const struct ort_ep_api *(*GetEpApi)(void);
    void *unused_318[8];
    /* *out is NULL if the value is not an initializer, else it belongs to
     * `info`. */
    struct OrtStatus *(*ValueInfo_GetInitializerValue)(
        const struct OrtValueInfo *info, const struct OrtValue **out);
    /* *out is NULL unless the content is in a file.  The caller releases
     * *out. */
    struct OrtStatus *(*ValueInfo_GetExternalInitializerInfo)(
        const struct OrtValueInfo *info,
        struct OrtExternalInitializerInfo **out);
    void *unused_328[2];
    struct OrtStatus *(*ValueInfo_IsGraphOutput)(
        const struct OrtValueInfo *info, bool *out);
    struct OrtStatus *(*ValueInfo_IsConstantInitializer)(
        const struct OrtValueInfo *info, bool *out);
    void *unused_332[1];
    struct OrtStatus *(*Graph_GetName)(const struct OrtGraph *graph,
                                       const char **out);
    /* *out is "" for a model that was not read from a file. */
    struct OrtStatus *(*Graph_GetModelPath)(const struct OrtGraph *graph,
                                            const char **out);
    void *unused_335[3];
    struct OrtStatus *(*Graph_GetNumInputs)(const struct OrtGraph *graph,
                                            size_t *out);
    void *unused_339[5];
    struct OrtStatus *(*Graph_GetNumNodes)(const struct OrtGraph *graph,
                                           size_t *out);
    /* The nodes are in topological order. */
    struct OrtStatus *(*Graph_GetNodes)(const struct OrtGraph *graph,
                                        const struct OrtNode **out,
                                        size_t count);
    /* *out is NULL if the graph is not the body of a node. */
    struct OrtStatus *(*Graph_GetParentNode)(const struct OrtGraph *graph,
                                             const struct OrtNode **out);
    void *unused_347[2];
    struct OrtStatus *(*Node_GetName)(const struct OrtNode *node,
                                      const char **out);
    struct OrtStatus *(*Node_GetOperatorType)(const struct OrtNode *node,
                                              const char **out);
    struct OrtStatus *(*Node_GetDomain)(const struct OrtNode *node,
                                        const char **out);
    struct OrtStatus *(*Node_GetSinceVersion)(const struct OrtNode *node,
                                              int *out);
    struct OrtStatus *(*Node_GetNumInputs)(const struct OrtNode *node,
                                           size_t *out);
    /* An absent optional input is NULL. */
    struct OrtStatus *(*Node_GetInputs)(const struct OrtNode *node,
                                        const struct OrtValueInfo **out,
                                        size_t count);
    struct OrtStatus *(*Node_GetNumOutputs)(const struct OrtNode *node,
                                            size_t *out);
    struct OrtStatus *(*Node_GetOutputs)(const struct OrtNode *node,
                                         const struct OrtValueInfo **out,
                                         size_t count);
    struct OrtStatus *(*Node_GetNumImplicitInputs)(const struct OrtNode *node,
                                                   size_t *out);
    struct OrtStatus *(*Node_GetImplicitInputs)(const struct OrtNode *node,
                                                const struct OrtValueInfo **out,
                                                size_t count);
    struct OrtStatus *(*Node_GetNumAttributes)(const struct OrtNode *node,
                                               size_t *out);
    struct OrtStatus *(*Node_GetAttributes)(const struct OrtNode *node,
                                            const struct OrtOpAttr **out,
                                            size_t count);
    void *unused_361[1];
    /* The caller releases *out. */
    struct OrtStatus *(*OpAttr_GetTensorAttributeAsOrtValue)(
        const struct OrtOpAttr *attribute, struct OrtValue **out);
    struct OrtStatus *(*OpAttr_GetType)(const struct OrtOpAttr *attribute,
                                        enum ort_attribute_type *out);
    struct OrtStatus *(*OpAttr_GetName)(const struct OrtOpAttr *attribute,
                                        const char **out);
    void *unused_365[4];
    void (*ReleaseExternalInitializerInfo)(
        struct OrtExternalInitializerInfo *info);
    /* The path is relative to the directory of the model.  It belongs to
     * `info`. */
    const char *(*ExternalInitializerInfo_GetFilePath)(
        const struct OrtExternalInitializerInfo *info);
    int64_t (*ExternalInitializerInfo_GetFileOffset)(
        const struct OrtExternalInitializerInfo *info);
    size_t (*ExternalInitializerInfo_GetByteSize)(
        const struct OrtExternalInitializerInfo *info);
    void *unused_373[5];
    struct OrtStatus *(*GetTensorData)(const struct OrtValue *value,
                                       const void **out);
    /* The caller releases *out. */
    struct OrtStatus *(*GetSessionOptionsConfigEntries)(
        const struct OrtSessionOptions *options, struct OrtKeyValuePairs **out);
};
ORT_SLOT(ort_api, GetErrorMessage, 2);
ORT_SLOT(ort_api, GetTensorMutableData, 51);
ORT_SLOT(ort_api, CastTypeInfoToTensorInfo, 55);
ORT_SLOT(ort_api, GetTensorElementType, 60);
ORT_SLOT(ort_api, GetTensorTypeAndShape, 65);
ORT_SLOT(ort_api, KernelContext_GetInputCount, 88);
ORT_SLOT(ort_api, KernelContext_GetInput, 90);
ORT_SLOT(ort_api, ReleaseStatus, 93);
ORT_SLOT(ort_api, ReleaseValue, 96);
ORT_SLOT(ort_api, ReleaseTensorTypeAndShapeInfo, 99);
ORT_SLOT(ort_api, GetSessionConfigEntry, 238);
ORT_SLOT(ort_api, Logger_LogMessage, 247);
ORT_SLOT(ort_api, ReadOpAttr, 272);
ORT_SLOT(ort_api, GetValueInfoName, 289);
ORT_SLOT(ort_api, GetKeyValuePairs, 298);
ORT_SLOT(ort_api, ReleaseKeyValuePairs, 300);
ORT_SLOT(ort_api, HardwareDevice_Type, 307);
ORT_SLOT(ort_api, GetEpApi, 317);
ORT_SLOT(ort_api, ValueInfo_GetInitializerValue, 326);
ORT_SLOT(ort_api, ValueInfo_GetExternalInitializerInfo, 327);
ORT_SLOT(ort_api, ValueInfo_IsGraphOutput, 330);
ORT_SLOT(ort_api, Graph_GetName, 333);
ORT_SLOT(ort_api, Graph_GetModelPath, 334);
ORT_SLOT(ort_api, Graph_GetNumInputs, 338);
ORT_SLOT(ort_api, Graph_GetNumNodes, 344);
ORT_SLOT(ort_api, Graph_GetParentNode, 346);
ORT_SLOT(ort_api, Node_GetName, 349);
ORT_SLOT(ort_api, Node_GetAttributes, 360);
ORT_SLOT(ort_api, OpAttr_GetType, 363);
ORT_SLOT(ort_api, ReleaseExternalInitializerInfo, 369);
ORT_SLOT(ort_api, ExternalInitializerInfo_GetByteSize, 372);
ORT_SLOT(ort_api, GetTensorData, 378);
ORT_SLOT(ort_api, GetSessionOptionsConfigEntries, 379);

/* [api] struct OrtApiBase, the same in every version */
struct ort_api_base {
    /* Returns NULL, and prints a line to stderr, if the host is older. */
    const struct ort_api *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void); /* for example "1.23.0" */
};

#endif
