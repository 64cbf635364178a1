/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CLBlast's current kernel parameters, which only its C++ API returns. */
#include "opencl/gemm/clblast_params.h"

#include <clblast.h>

#include <string>
#include <unordered_map>

extern "C" bool clblast_params_query(cl_device_id device, const char *kernel,
                                     uint32_t count, const char *const *names,
                                     uint32_t *out_values)
{
    try {
        std::unordered_map<std::string, size_t> found;
        if (clblast::RetrieveParameters(device, kernel,
                                        clblast::Precision::kSingle, found) !=
            clblast::StatusCode::kSuccess)
            return false;
        for (uint32_t i = 0; i < count; i++) {
            const auto at = found.find(names[i]);
            if (at == found.end())
                return false;
            out_values[i] = static_cast<uint32_t>(at->second);
        }
        return true;
    } catch (...) {
        return false;
    }
}
