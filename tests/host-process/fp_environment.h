/* SPDX-License-Identifier: Apache-2.0 */
/* What a host may set in the floating-point environment of its thread.  Any
 * thread. */
#ifndef TANDEM_TESTS_MANNERS_CONTROL_H
#define TANDEM_TESTS_MANNERS_CONTROL_H

struct control {
    int rounding, traps;
    unsigned flushing; /* of subnormals, where the processor can */
};

struct control control_read(void);
/* Asserts that nothing changed. */
void control_compare(struct control before, struct control after);
/* Subnormals count as 0, where the processor can. */
void control_flush(void);

#endif
