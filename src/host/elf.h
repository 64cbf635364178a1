/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at a shared object before the dynamic linker maps it: a file that was
 * cut short would kill the process.  Any thread.
 */
#ifndef TANDEM_HOST_ELF_H
#define TANDEM_HOST_ELF_H

/* NULL where the open file is whole, else what is wrong with it (static). */
const char *elf_problem(int file);

#endif
