/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Half arithmetic itself: scalars, and what needs no function, since NVIDIA's
 * compiler has no vectors and no functions of halves.  (Its list of extensions
 * has no cl_khr_fp16, and yet this pragma is what it wants.)  Nothing computes
 * so: it shows that the device can.
 */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

/* Five results of each pair. */
__kernel void fp16(__global half *out, __global const half *a,
                   __global const half *b)
{
    size_t i = get_global_id(0);
    half x = a[i], y = b[i];
    out += 5 * i;
    out[0] = x + y;
    out[1] = x - y;
    out[2] = x * y;
    out[3] = x < y ? x : y;
    out[4] = (half)((float)x + 1.0f);
}
