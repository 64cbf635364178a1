/* SPDX-License-Identifier: Apache-2.0 */
/* Queries the properties of one OpenCL device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/device/device_enumeration.h"
#include "opencl/device/quirks.h"

/* OpenCL extensions that the plugin or its users can need. info.extensions
 * lists the ones that the device supports. */
static const char *const reported_extensions[] = {
    "cl_khr_fp16",
    "cl_khr_fp64",
    "cl_khr_subgroups",
    "cl_intel_subgroups",
    "cl_khr_device_uuid",
    "cl_khr_pci_bus_info",
    "cl_khr_command_buffer",
    "cl_khr_int64_base_atomics",
    "cl_khr_il_program",
    "cl_nv_device_attribute_query",
    "cl_amd_device_attribute_query",
    "cl_arm_import_memory",
    "cl_khr_external_memory",
    "cl_intel_unified_shared_memory"};

/* A device, and the error code of its first mandatory query that failed. */
struct device_query {
    cl_device_id id;
    cl_int code;
};

static bool query_succeeded(struct device_query *query, cl_int code)
{
    if (query->code == CL_SUCCESS)
        query->code = code;
    return code == CL_SUCCESS;
}

static void query_text(struct device_query *query, cl_device_info what,
                       char *out, size_t bytes)
{
    size_t length = 0;
    out[0] = '\0';
    if (!query_succeeded(query,
                         clGetDeviceInfo(query->id, what, 0, NULL, &length)) ||
        length == 0)
        return;
    char *full = calloc(1, length + 1);
    if (query_succeeded(
            query, full != NULL
                       ? clGetDeviceInfo(query->id, what, length, full, NULL)
                       : CL_OUT_OF_HOST_MEMORY))
        snprintf(out, bytes, "%s", full + strspn(full, " "));
    free(full);
}

static void query_platform_text(struct device_query *query,
                                cl_platform_id platform, cl_platform_info what,
                                char *out, size_t bytes)
{
    char full[1024] = "";
    if (!query_succeeded(
            query,
            clGetPlatformInfo(platform, what, sizeof(full) - 1, full, NULL)))
        full[0] = '\0';
    snprintf(out, bytes, "%s", full);
}

static cl_ulong query_number(struct device_query *query, cl_device_info what)
{
    cl_ulong value = 0; /* the host is little-endian, so 32-bit results fit */
    return query_succeeded(query, clGetDeviceInfo(query->id, what,
                                                  sizeof(value), &value, NULL))
               ? value
               : 0;
}

/* Returns the value of an optional query, or 0 if the query fails. */
static cl_ulong query_optional_number(cl_device_id id, cl_device_info what)
{
    struct device_query query = {id, CL_SUCCESS};
    return query_number(&query, what);
}

/* Returns true if the space-separated list contains `name`. */
static bool has_extension(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') &&
            (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void query_extensions(struct tandem_device_info *info, const char *all)
{
    size_t used = 0;
    for (size_t i = 0;
         i < sizeof(reported_extensions) / sizeof(reported_extensions[0]); i++)
        if (has_extension(all, reported_extensions[i]) &&
            used + strlen(reported_extensions[i]) + 2 <
                sizeof(info->extensions))
            used +=
                (size_t)sprintf(info->extensions + used, "%s%s",
                                used != 0 ? " " : "", reported_extensions[i]);
}

static void query_pci(struct tandem_device_info *info, cl_device_id id,
                      const char *extensions)
{
    struct {
        cl_uint domain, bus, device, function;
    } khr;
    union {
        struct {
            cl_uint type, data[5];
        } raw;
        struct {
            cl_uint type;
            char unused[17];
            char bus, device, function;
        } pcie;
    } amd;
    if (has_extension(extensions, "cl_khr_pci_bus_info") &&
        clGetDeviceInfo(id, DEVICE_PCI_BUS_INFO_KHR, sizeof(khr), &khr, NULL) ==
            CL_SUCCESS) {
        snprintf(info->pci_address, sizeof(info->pci_address),
                 "%04x:%02x:%02x.%x", khr.domain, khr.bus, khr.device,
                 khr.function);
    } else if (has_extension(extensions, "cl_nv_device_attribute_query")) {
        unsigned slot =
            (unsigned)query_optional_number(id, DEVICE_PCI_SLOT_ID_NV);
        snprintf(info->pci_address, sizeof(info->pci_address),
                 "%04x:%02x:%02x.%x",
                 (unsigned)query_optional_number(id, DEVICE_PCI_DOMAIN_ID_NV),
                 (unsigned)query_optional_number(id, DEVICE_PCI_BUS_ID_NV),
                 slot >> 3, slot & 7u);
    } else if (has_extension(extensions, "cl_amd_device_attribute_query") &&
               clGetDeviceInfo(id, DEVICE_TOPOLOGY_AMD, sizeof(amd), &amd,
                               NULL) == CL_SUCCESS &&
               amd.raw.type == 1) {
        snprintf(info->pci_address, sizeof(info->pci_address),
                 "0000:%02x:%02x.%x", (unsigned char)amd.pcie.bus,
                 (unsigned char)amd.pcie.device,
                 (unsigned char)amd.pcie.function);
    }
}

static uint32_t query_kind(struct device_query *query)
{
    cl_device_type type = (cl_device_type)query_number(query, CL_DEVICE_TYPE);
    if ((type & CL_DEVICE_TYPE_GPU) != 0)
        return TANDEM_DEVICE_GPU;
    return (type & CL_DEVICE_TYPE_CPU) != 0 ? TANDEM_DEVICE_CPU
                                            : TANDEM_DEVICE_ACCELERATOR;
}

static void query_limits(struct platform_device *out,
                         struct device_query *query)
{
    struct tandem_device_info *info = &out->info;
    size_t sizes[8] = {0};
    info->memory_bytes = query_number(query, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_alloc_bytes = query_number(query, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->local_memory_bytes = query_number(query, CL_DEVICE_LOCAL_MEM_SIZE);
    info->compute_units =
        (uint32_t)query_number(query, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->max_work_group_size =
        (uint32_t)query_number(query, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    info->clock_mhz =
        (uint32_t)query_number(query, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    query_succeeded(query,
                    clGetDeviceInfo(query->id, CL_DEVICE_MAX_WORK_ITEM_SIZES,
                                    sizeof(sizes), sizes, NULL));
    out->group_limit = info->max_work_group_size;
    if (sizes[0] < out->group_limit)
        out->group_limit = (uint32_t)sizes[0];
    out->unified =
        query_optional_number(query->id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    out->correct_divide = (query_number(query, CL_DEVICE_SINGLE_FP_CONFIG) &
                           CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
}

/* Returns ten times NVIDIA's compute capability, for example 53 for 5.3.
 * Returns 0 on other platforms, or if the driver does not report a value. */
static uint32_t compute_capability(const struct platform_device *device,
                                   const char *extensions)
{
    if (!device->nvidia ||
        !has_extension(extensions, "cl_nv_device_attribute_query"))
        return 0;
    return (uint32_t)(10 * query_optional_number(
                               device->id, DEVICE_COMPUTE_CAPABILITY_MAJOR_NV) +
                      query_optional_number(
                          device->id, DEVICE_COMPUTE_CAPABILITY_MINOR_NV));
}

/* Sets features by NVIDIA's compute capability. From 7.0 on, PTX can make
 * writes visible to other work-groups. From 8.0 on, tensor cores take TF32.
 * From 9.0 on, PTX can round to TF32 (ties to even). Only 9.0 has wgmma. */
static void query_nvidia(struct platform_device *out, uint32_t capability)
{
    out->has_device_scope_visibility = capability >= 70;
    out->tensor_cores = capability >= 80;
    out->tf32_to_even = capability >= 90;
    out->wgmma = capability == 90;
}

static bool device_is_usable(struct device_query *query)
{
    char version[128];
    int major = 0, minor = 0;
    query_text(query, CL_DEVICE_VERSION, version, sizeof(version));
    sscanf(version, "OpenCL %d.%d", &major, &minor);
    return query_number(query, CL_DEVICE_AVAILABLE) != 0 &&
           query_number(query, CL_DEVICE_COMPILER_AVAILABLE) != 0 &&
           query_number(query, CL_DEVICE_ENDIAN_LITTLE) != 0 &&
           major * 100 + minor >= 102;
}

static void query_texts(struct platform_device *out, struct device_query *query)
{
    struct tandem_device_info *info = &out->info;
    query_text(query, CL_DEVICE_NAME, info->name, sizeof(info->name));
    query_text(query, CL_DEVICE_VENDOR, info->vendor, sizeof(info->vendor));
    query_text(query, CL_DRIVER_VERSION, info->driver_version,
               sizeof(info->driver_version));
    query_platform_text(query, out->platform, CL_PLATFORM_NAME, info->platform,
                        sizeof(info->platform));
    query_platform_text(query, out->platform, CL_PLATFORM_VERSION, out->version,
                        sizeof(out->version));
}

bool device_info_query(struct platform_device *out, cl_platform_id platform,
                       cl_device_id id, cl_int *out_code)
{
    static char extensions[16384]; /* guarded by device_enumeration.c's mutex */
    struct tandem_device_info *info = &out->info;
    struct device_query query = {id, CL_SUCCESS};
    memset(out, 0, sizeof(*out));
    bool is_usable = device_is_usable(&query);
    *out_code = query.code;
    if (!is_usable)
        return false;
    out->platform = platform;
    out->id = id;
    info->struct_size = sizeof(*info);
    info->kind = query_kind(&query);
    query_texts(out, &query);
    query_text(&query, CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
    query_extensions(info, extensions);
    query_pci(info, id, extensions);
    query_limits(out, &query);
    if (has_extension(extensions, "cl_khr_device_uuid"))
        clGetDeviceInfo(id, DEVICE_UUID_KHR, sizeof(info->uuid), info->uuid,
                        NULL);
    out->nvidia = strstr(info->platform, "NVIDIA") != NULL;
    uint32_t capability = compute_capability(out, extensions);
    query_nvidia(out, capability);
    out->quirks = quirks_find(info, capability);
    out->subgroups = has_extension(extensions, "cl_intel_subgroups") &&
                     info->kind == TANDEM_DEVICE_GPU;
    info->caps = TANDEM_CAP_ASYNC | TANDEM_CAP_JIT_COMPILATION |
                 TANDEM_CAP_PROFILING | TANDEM_CAP_CORE_OPERATORS |
                 TANDEM_CAP_F16_BF16_STORAGE;
    info->caps |= has_extension(extensions, "cl_khr_fp64") ? TANDEM_CAP_F64 : 0;
    if (has_extension(extensions, "cl_khr_fp16") ||
        (out->quirks & QUIRK_F16_UNLISTED) != 0)
        info->caps |= TANDEM_CAP_F16_ARITHMETIC;
    /* A CPU device computes in host memory.  Other devices can import host
     * memory only if they pass the coherence test in host_import.c. */
    if (info->kind == TANDEM_DEVICE_CPU)
        info->caps |= TANDEM_CAP_ZERO_COPY_IMPORT;
    else if (out->unified)
        info->caps |= TANDEM_CAP_UNIFIED_MEMORY;
    *out_code = query.code;
    return query.code == CL_SUCCESS;
}

uint32_t device_base_alignment(const struct platform_device *hardware)
{
    cl_uint bits = 0;
    clGetDeviceInfo(hardware->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits),
                    &bits, NULL);
    return bits / 8;
}

uint64_t device_free_bytes(const struct platform_device *hardware)
{
    size_t kib[2] = {0}; /* free memory, and the largest free block */
    if (clGetDeviceInfo(hardware->id, DEVICE_GLOBAL_FREE_MEMORY_AMD,
                        sizeof(kib), kib, NULL) != CL_SUCCESS)
        return 0;
    return (uint64_t)kib[0] * 1024;
}
