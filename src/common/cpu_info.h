/* SPDX-License-Identifier: Apache-2.0 */
/* Names the CPU, as the system describes the machine's first one.  Callable
 * from any thread. */
#ifndef TANDEM_COMMON_CPU_INFO_H
#define TANDEM_COMMON_CPU_INFO_H

#include <stddef.h>
#include <stdio.h>

/* Writes the CPU's name: the vendor's model name, or the name for an AArch64
 * CPU's ID numbers, or the machine type that uname reports. */
void processor_name(char *out, size_t bytes);

/* Writes the value of a key in /proc/cpuinfo, or "" if the key is missing. */
void processor_value(const char *key, char *out, size_t bytes);

/* Does what processor_name does, but reads an open /proc/cpuinfo file. Writes
 * "" if the file names no CPU. */
void processor_name_read(FILE *cpuinfo, char *out, size_t bytes);

#endif
