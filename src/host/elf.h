/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at a shared object before the dynamic linker maps it: a file that was
 * cut short would kill the process.  Any thread.
 */
#ifndef TANDEM_HOST_ELF_H
#define TANDEM_HOST_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL where the open file is whole, else what is wrong with it (static). */
const char *elf_problem(int file);

/* The name of the index-th library that a whole shared object needs; false
 * past the last. */
bool elf_needed(int file, uint32_t index, char *out_name, size_t name_bytes);

#endif
