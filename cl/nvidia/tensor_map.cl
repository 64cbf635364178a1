/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps: how the copy engine of GPUs of compute capability 9.0 is told
 * where an operand's rows of f32 along k lie, so that it copies a box of rows
 * by 128 bytes of k into local memory, in the order that wgmma reads, what lies
 * past the edges 0, and rounds each element to TF32, to the nearest, on the
 * way.  cuTensorMapEncodeTiled makes the same words; docs/gemm-wgmma.md says
 * how they were found.
 */
#ifndef TANDEM_TENSOR_MAP_CL
#define TANDEM_TENSOR_MAP_CL

#define MAP_WORDS 32
/* Elements of 32 bits that become TF32, three dimensions, pieces of sixteen
 * bytes in turned order, and 256 bytes at a time into the L2 cache. */
#define MAP_FORMAT 0x763a0u
#define MAP_LINE_BYTES 128u
#define MAP_STRIDE_LOG2 4

/* Of rows by k, line_bytes apart, in planes batch_bytes apart, or in one, if
 * that is 0; a copy takes box_rows of them, 256 at most.  from and all steps
 * are multiples of sixteen bytes, below 2^36. */
static inline void tensor_map_write(__global uint *map, ulong from, uint k,
                                    uint rows, uint planes, ulong line_bytes,
                                    ulong batch_bytes, uint box_rows)
{
#pragma unroll
    for (uint i = 0; i < MAP_WORDS; ++i)
        map[i] = 0;
    map[0] = (uint)from;
    map[1] = (uint)(from >> 32);
    map[2] = MAP_FORMAT;
    map[3] = (uint)(line_bytes >> MAP_STRIDE_LOG2);
    map[4] = (uint)((batch_bytes == 0 ? line_bytes : batch_bytes) >>
                    MAP_STRIDE_LOG2);
    map[8] = k - 1;
    map[9] = rows - 1;
    map[10] = batch_bytes == 0 ? 0 : planes - 1;
    map[13] = (MAP_LINE_BYTES / 4 - 1) << 24;
    map[14] = box_rows - 1;
    map[16] = box_rows * MAP_LINE_BYTES;
    map[18] = 0x400;
}

#endif
