/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps describe a K-major f32 operand to the copy engine of compute
 * capability 9.0. The engine copies a box of rows by 128 bytes of k into local
 * memory in wgmma's swizzle. It sets elements past the edges to 0 and rounds
 * each element to TF32. cuTensorMapEncodeTiled writes the same words into a
 * map. They were found by comparing maps that differ in one property. */
#ifndef TANDEM_TENSOR_MAP_CL
#define TANDEM_TENSOR_MAP_CL

#define MAP_WORDS 32
/* Flags: f32 rounded to TF32, rank 3, 128 B swizzle, 256 B L2 promotion. */
#define MAP_FORMAT 0x763a0u
#define MAP_LINE_BYTES 128u
#define MAP_STRIDE_LOG2 4

/* Writes the tensor map of the matrices at `from`, which have `rows` rows by k
 * elements. Rows are line_bytes apart. Matrices are batch_bytes apart; 0 means
 * a single matrix. A copy takes box_rows rows, at most 256. `from`, line_bytes
 * and batch_bytes must be multiples of 16. */
static inline void tensor_map_write(__global uint *map, ulong from, uint k,
                                    uint rows, uint planes, ulong line_bytes,
                                    ulong batch_bytes, uint box_rows)
{
    REPEAT (i, MAP_WORDS)
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
