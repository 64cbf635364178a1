/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the segments of a shared object with the size of its file; see
 * elf_check.h. */
#include <config.h>

#include "host/loader/elf_check.h"

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *segments_check(int file, const ElfW(Ehdr) * header,
                                  uint64_t bytes)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        const uint64_t at =
            (uint64_t)header->e_phoff + (uint64_t)i * sizeof(segment);
        uint64_t end;

        if (at > bytes || pread(file, &segment, sizeof(segment), (off_t)at) !=
                              (ssize_t)sizeof(segment))
            return "it is truncated";
        if (__builtin_add_overflow((uint64_t)segment.p_offset,
                                   (uint64_t)segment.p_filesz, &end) ||
            end > bytes)
            return "it is truncated";
    }
    return NULL;
}

const char *elf_integrity_error(int file)
{
    ElfW(Ehdr) header;
    struct stat status;

    if (fstat(file, &status) != 0)
        return "it cannot be read";
    if (pread(file, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return "it is not a shared object";
    if (header.e_phentsize != sizeof(ElfW(Phdr)))
        return "it is a shared object of another architecture";
    return segments_check(file, &header, (uint64_t)status.st_size);
}
