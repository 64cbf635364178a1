/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor, as the system describes the first one of the machine.  Any
 * thread.
 */
#ifndef TANDEM_COMMON_CPU_INFO_H
#define TANDEM_COMMON_CPU_INFO_H

#include <stddef.h>
#include <stdio.h>

/* What people call it: the maker's name where the system knows it, what the
 * numbers of an AArch64 processor stand for, or the kind of the machine. */
void processor_name(char *out, size_t bytes);

/* The value of a key in /proc/cpuinfo; "" where it has none. */
void processor_value(const char *key, char *out, size_t bytes);

/* processor_name from the text of a /proc/cpuinfo; "" where it does not say. */
void processor_name_read(FILE *cpuinfo, char *out, size_t bytes);

#endif
