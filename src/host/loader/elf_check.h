/* SPDX-License-Identifier: Apache-2.0 */
/* Finds truncated shared objects before the dynamic linker maps them: reading a
 * mapped page past the end of the file kills the process with SIGBUS.  Any
 * thread may call the function. */
#ifndef TANDEM_HOST_LOADER_ELF_CHECK_H
#define TANDEM_HOST_LOADER_ELF_CHECK_H

/* Returns NULL if the open file is a complete shared object for this CPU
 * architecture.  Otherwise returns a static text that says what is wrong. */
const char *elf_integrity_error(int file);

#endif
