/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets each allocation fail that a launch of an operator makes on the CPU
 * device. The calls are the examples of all operators (operator_example.h).
 *
 * Call it from one thread.
 */
#ifndef TANDEM_TESTS_OPERATOR_ALLOCATIONS_H
#define TANDEM_TESTS_OPERATOR_ALLOCATIONS_H

/*
 * Fails the test if a launch reports something other than success or
 * TANDEM_OUT_OF_MEMORY, gives a wrong result, does not work afterwards, or
 * leaks. `plugins` is a directory with tandem-cpu.so.
 */
void operator_allocations_fail(const char *plugins);

#endif
