/* SPDX-License-Identifier: Apache-2.0 */
/* Lets the last of several work-groups read what the others have written. */
#ifndef TANDEM_DEVICE_FENCE_CL
#define TANDEM_DEVICE_FENCE_CL

/* Memory fence for the whole device: every work-group that sees a write after
 * the fence also sees all writes before the fence, even those of other
 * work-items that reached a barrier with this work-item before the fence. */
#if SHUFFLE == 1
#define DEVICE_FENCE __asm__ volatile("membar.gl;" : : : "memory")
#else
#define DEVICE_FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
#define GROUP_BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* Number of finished splits for each group of outputs, 0 between launches. */
#define ARRIVAL_COUNTERS_ARGUMENT volatile __global uint *arrival_counters,

/* Sets `is_last`, an element of local memory, to true in the last of `splits`
 * work-groups that arrive at this counter, and resets the counter. All
 * work-items of the work-group must arrive. */
#define ARRIVE(is_last, counter, splits)                                       \
    do {                                                                       \
        GROUP_BARRIER;                                                         \
        if (get_local_id(0) == 0) {                                            \
            DEVICE_FENCE;                                                      \
            is_last = atomic_inc(arrival_counters + (counter)) == (splits)-1;  \
            DEVICE_FENCE;                                                      \
            if (is_last)                                                       \
                arrival_counters[counter] = 0;                                 \
        }                                                                      \
        GROUP_BARRIER;                                                         \
    } while (0)

#endif
