/* SPDX-License-Identifier: Apache-2.0 */
/* Builds sm_90a programs from the PTX of sm_90 programs. */
#include "opencl/program/nvidia/sm90a_program.h"

#include <stdlib.h>

#include "opencl/program/program_cache.h"
#include "opencl/device/device.h"
#include "opencl/program/nvidia/ptx_rewrite.h"
#include "opencl/device/cl_status.h"

static enum tandem_status ptx_build(struct tandem_device *device,
                                    const struct variant_source *text,
                                    const char *ptx, size_t bytes,
                                    cl_program *out_program)
{
    const unsigned char *binary = (const unsigned char *)ptx;
    cl_int code = CL_SUCCESS, binary_status = CL_SUCCESS;
    cl_program program =
        clCreateProgramWithBinary(device->context, 1, &device->hardware->id,
                                  &bytes, &binary, &binary_status, &code);
    if (code == CL_SUCCESS)
        code = binary_status;
    if (code == CL_SUCCESS)
        code =
            clBuildProgram(program, 1, &device->hardware->id, "", NULL, NULL);
    if (code == CL_SUCCESS) {
        *out_program = program;
        return TANDEM_OK;
    }
    if (program != NULL)
        clReleaseProgram(program);
    return last_error_set(TANDEM_FAILED,
                          "the driver rejects the sm_90a program of %s (%d)",
                          text->file, code);
}

enum tandem_status sm90a_program_build(struct tandem_device *device,
                                       const struct variant_source *text,
                                       cl_program *program)
{
    size_t bytes, ptx_bytes;
    const char *why = "there is no binary";
    enum tandem_status status = TANDEM_FAILED;
    cl_program from = *program;
    char *ptx = NULL;
    *program = NULL;
    unsigned char *binary = program_binary_get(from, MAX_PTX_BYTES, &bytes);
    if (binary != NULL)
        ptx = ptx_rewrite_sm90a((const char *)binary, bytes, &ptx_bytes, &why);
    if (ptx == NULL)
        last_error_set(TANDEM_FAILED,
                       "the PTX of %s cannot be rewritten for sm_90a: %s",
                       text->file, why);
    else /* NVIDIA's PTX includes its final NUL */
        status = ptx_build(device, text, ptx, ptx_bytes + 1, program);
    free(ptx);
    free(binary);
    clReleaseProgram(from);
    return status;
}
