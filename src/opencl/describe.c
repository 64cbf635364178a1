/* SPDX-License-Identifier: Apache-2.0 */
/* What one OpenCL device says of itself. */
#include "opencl/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Extensions that change what the plugin does, or what its users can. */
static const char *const notable[] = {"cl_khr_fp16",
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

static void text(cl_device_id id, cl_device_info what, char *out, size_t bytes)
{
    size_t length = 0;
    out[0] = '\0';
    if (clGetDeviceInfo(id, what, 0, NULL, &length) != CL_SUCCESS ||
        length == 0)
        return;
    char *whole = calloc(1, length + 1);
    if (whole != NULL &&
        clGetDeviceInfo(id, what, length, whole, NULL) == CL_SUCCESS)
        snprintf(out, bytes, "%s", whole + strspn(whole, " "));
    free(whole);
}

static void platform_text(cl_platform_id platform, cl_platform_info what,
                          char *out, size_t bytes)
{
    char whole[1024] = "";
    if (clGetPlatformInfo(platform, what, sizeof(whole) - 1, whole, NULL) !=
        CL_SUCCESS)
        whole[0] = '\0';
    snprintf(out, bytes, "%s", whole);
}

static cl_ulong number(cl_device_id id, cl_device_info what)
{
    cl_ulong value = 0; /* little-endian: serves narrower answers too */
    if (clGetDeviceInfo(id, what, sizeof(value), &value, NULL) != CL_SUCCESS)
        return 0;
    return value;
}

/* Whether name is a word of list. */
static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') &&
            (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void describe_extensions(struct tandem_device_info *info,
                                const char *all)
{
    size_t used = 0;
    for (size_t i = 0; i < sizeof(notable) / sizeof(notable[0]); i++)
        if (listed(all, notable[i]) &&
            used + strlen(notable[i]) + 2 < sizeof(info->extensions))
            used += (size_t)sprintf(info->extensions + used, "%s%s",
                                    used != 0 ? " " : "", notable[i]);
}

static void describe_pci(struct tandem_device_info *info, cl_device_id id,
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
    if (listed(extensions, "cl_khr_pci_bus_info") &&
        clGetDeviceInfo(id, DEVICE_PCI_BUS_INFO_KHR, sizeof(khr), &khr, NULL) ==
            CL_SUCCESS) {
        snprintf(info->pci, sizeof(info->pci), "%04x:%02x:%02x.%x", khr.domain,
                 khr.bus, khr.device, khr.function);
    } else if (listed(extensions, "cl_nv_device_attribute_query")) {
        unsigned slot = (unsigned)number(id, DEVICE_PCI_SLOT_ID_NV);
        snprintf(info->pci, sizeof(info->pci), "%04x:%02x:%02x.%x",
                 (unsigned)number(id, DEVICE_PCI_DOMAIN_ID_NV),
                 (unsigned)number(id, DEVICE_PCI_BUS_ID_NV), slot >> 3,
                 slot & 7u);
    } else if (listed(extensions, "cl_amd_device_attribute_query") &&
               clGetDeviceInfo(id, DEVICE_TOPOLOGY_AMD, sizeof(amd), &amd,
                               NULL) == CL_SUCCESS &&
               amd.raw.type == 1) {
        snprintf(info->pci, sizeof(info->pci), "0000:%02x:%02x.%x",
                 (unsigned char)amd.pcie.bus, (unsigned char)amd.pcie.device,
                 (unsigned char)amd.pcie.function);
    }
}

static uint32_t describe_kind(cl_device_id id)
{
    cl_device_type type = (cl_device_type)number(id, CL_DEVICE_TYPE);
    if ((type & CL_DEVICE_TYPE_GPU) != 0)
        return TANDEM_DEVICE_GPU;
    return (type & CL_DEVICE_TYPE_CPU) != 0 ? TANDEM_DEVICE_CPU
                                            : TANDEM_DEVICE_ACCELERATOR;
}

static void describe_limits(struct platform_device *out, cl_device_id id)
{
    struct tandem_device_info *info = &out->info;
    size_t sizes[8] = {0};
    info->memory_bytes = number(id, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_alloc_bytes = number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->local_memory_bytes = number(id, CL_DEVICE_LOCAL_MEM_SIZE);
    info->compute_units = (uint32_t)number(id, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->max_work_group = (uint32_t)number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    info->clock_mhz = (uint32_t)number(id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    if (clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes,
                        NULL) != CL_SUCCESS)
        sizes[0] = 1;
    out->group_limit = info->max_work_group;
    if (sizes[0] < out->group_limit)
        out->group_limit = (uint32_t)sizes[0];
    out->unified = number(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    out->correct_divide = (number(id, CL_DEVICE_SINGLE_FP_CONFIG) &
                           CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
}

static bool usable(cl_device_id id)
{
    char version[128];
    int major = 0, minor = 0;
    text(id, CL_DEVICE_VERSION, version, sizeof(version));
    sscanf(version, "OpenCL %d.%d", &major, &minor);
    return number(id, CL_DEVICE_AVAILABLE) != 0 &&
           number(id, CL_DEVICE_COMPILER_AVAILABLE) != 0 &&
           number(id, CL_DEVICE_ENDIAN_LITTLE) != 0 &&
           major * 100 + minor >= 102;
}

bool describe_device(struct platform_device *out, cl_platform_id platform,
                     cl_device_id id)
{
    static char extensions[16384]; /* platform.c's mutex is held */
    struct tandem_device_info *info = &out->info;
    memset(out, 0, sizeof(*out));
    if (!usable(id))
        return false;
    out->platform = platform;
    out->id = id;
    info->struct_size = sizeof(*info);
    info->kind = describe_kind(id);
    text(id, CL_DEVICE_NAME, info->name, sizeof(info->name));
    text(id, CL_DEVICE_VENDOR, info->vendor, sizeof(info->vendor));
    text(id, CL_DRIVER_VERSION, info->driver, sizeof(info->driver));
    text(id, CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
    platform_text(platform, CL_PLATFORM_NAME, info->platform,
                  sizeof(info->platform));
    platform_text(platform, CL_PLATFORM_VERSION, out->version,
                  sizeof(out->version));
    describe_extensions(info, extensions);
    describe_pci(info, id, extensions);
    describe_limits(out, id);
    if (listed(extensions, "cl_khr_device_uuid"))
        clGetDeviceInfo(id, DEVICE_UUID_KHR, sizeof(info->uuid), info->uuid,
                        NULL);
    out->nvidia = strstr(info->platform, "NVIDIA") != NULL;
    out->pocl = strstr(info->platform, "Portable Computing") != NULL;
    out->rusticl = strstr(info->platform, "rusticl") != NULL;
    info->caps = TANDEM_CAP_ASYNC | TANDEM_CAP_COMPILES | TANDEM_CAP_PROFILING |
                 TANDEM_CAP_CORE_OPERATORS;
    info->caps |= listed(extensions, "cl_khr_fp64") ? TANDEM_CAP_F64 : 0;
    info->caps |= listed(extensions, "cl_khr_fp16") ? TANDEM_CAP_F16 : 0;
    /* A CPU device computes in the host's memory; others are believed only
     * after a round trip, at import_host. */
    info->caps |= info->kind == TANDEM_DEVICE_CPU ? TANDEM_CAP_HOST_MEMORY : 0;
    return true;
}
