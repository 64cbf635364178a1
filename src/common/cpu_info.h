/* SPDX-License-Identifier: Apache-2.0 */
/* Name of the machine's first CPU, as the system describes it. May be called
 * from any thread. */
#ifndef TANDEM_COMMON_CPU_INFO_H
#define TANDEM_COMMON_CPU_INFO_H

#include <stddef.h>
#include <stdio.h>

/* Writes the CPU's name: the vendor's model name, else the name that belongs to
 * an AArch64 CPU's ID numbers, else the machine type that uname reports. */
void processor_name(char *out, size_t bytes);

/* Writes the value of a key in /proc/cpuinfo, or "" if the key is missing. */
void processor_value(const char *key, char *out, size_t bytes);

/* Writes the CPU's name like processor_name, but reads it from `cpuinfo`, an
 * open file like /proc/cpuinfo. Writes "" if the file names no CPU. */
void processor_name_read(FILE *cpuinfo, char *out, size_t bytes);

#endif
