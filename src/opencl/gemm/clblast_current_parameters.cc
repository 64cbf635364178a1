/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CLBlast's current kernel parameters, which only its C++ API returns. */
#include "opencl/gemm/clblast_params.h"

#include <clblast.h>

#include <string>
#include <unordered_map>

extern "C" bool clblast_params_get(cl_device_id device,
                                   enum clblast_kernel_id id,
                                   struct clblast_params *out)
{
    const struct clblast_kernel &kernel = clblast_kernels[id];
    *out = {};
    try {
        std::unordered_map<std::string, size_t> found;
        if (clblast::RetrieveParameters(device, kernel.name,
                                        clblast::Precision::kSingle, found) !=
            clblast::StatusCode::kSuccess)
            return false;
        for (uint32_t i = 0; i < kernel.count; i++) {
            const auto at = found.find(kernel.params[i].name);
            if (at == found.end())
                return false;
            out->values[i] = static_cast<uint32_t>(at->second);
        }
        return true;
    } catch (...) {
        return false;
    }
}
