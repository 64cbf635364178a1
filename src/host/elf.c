/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a shared object is whole, and what it needs; see elf.h.
 */
#include <config.h>

#include "host/elf.h"

#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *segments_judge(int file, const ElfW(Ehdr) *header,
                                  uint64_t bytes)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        const uint64_t at =
            (uint64_t)header->e_phoff + (uint64_t)i * sizeof(segment);
        uint64_t end;

        if (at > bytes || pread(file, &segment, sizeof(segment), (off_t)at) !=
                              (ssize_t)sizeof(segment))
            return "it is cut short";
        if (__builtin_add_overflow((uint64_t)segment.p_offset,
                                   (uint64_t)segment.p_filesz, &end) ||
            end > bytes)
            return "it is cut short";
    }
    return NULL;
}

const char *elf_problem(int file)
{
    ElfW(Ehdr) header;
    struct stat status;

    if (fstat(file, &status) != 0)
        return "it cannot be read";
    if (pread(file, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return "it is no shared object";
    if (header.e_phentsize != sizeof(ElfW(Phdr)))
        return "it is a shared object of another architecture";
    return segments_judge(file, &header, (uint64_t)status.st_size);
}

/* ---- needed libraries ------------------------------------------------------------ */

#define ENTRIES_MAX 4096u

static bool bytes_read(int file, uint64_t at, void *out, size_t bytes)
{
    return at <= INT64_MAX - bytes &&
           pread(file, out, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool segment_read(int file, const ElfW(Ehdr) *header, unsigned index,
                         ElfW(Phdr) *out)
{
    return bytes_read(file,
                      (uint64_t)header->e_phoff + index * sizeof(*out), out,
                      sizeof(*out));
}

/* Where in the file the bytes of an address are. */
static bool address_find(int file, const ElfW(Ehdr) *header, uint64_t address,
                         uint64_t *out_at)
{
    ElfW(Phdr) segment;

    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (!segment_read(file, header, i, &segment))
            return false;
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
            address - segment.p_vaddr >= segment.p_filesz)
            continue;
        *out_at = segment.p_offset + (address - segment.p_vaddr);
        return true;
    }
    return false;
}

/* The place of the name in the string table, and the table's address. */
static bool entry_find(int file, uint64_t at, uint32_t index,
                       uint64_t *out_name, uint64_t *out_table)
{
    bool named = false, table = false;

    for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
        ElfW(Dyn) entry;

        if (!bytes_read(file, at + i * sizeof(entry), &entry, sizeof(entry)) ||
            entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_STRTAB) {
            *out_table = entry.d_un.d_ptr;
            table = true;
        } else if (entry.d_tag == DT_NEEDED && !named && index-- == 0) {
            *out_name = entry.d_un.d_val;
            named = true;
        }
    }
    return named && table;
}

bool elf_needed(int file, uint32_t index, char *out_name, size_t name_bytes)
{
    uint64_t name = 0, table = 0, at;
    ElfW(Phdr) segment = {.p_type = PT_NULL};
    ElfW(Ehdr) header;
    ssize_t got;

    if (!bytes_read(file, 0, &header, sizeof(header)))
        return false;
    for (unsigned i = 0; i < header.e_phnum && segment.p_type != PT_DYNAMIC;
         i++) {
        if (!segment_read(file, &header, i, &segment))
            return false;
    }
    if (segment.p_type != PT_DYNAMIC ||
        !entry_find(file, segment.p_offset, index, &name, &table) ||
        !address_find(file, &header, table, &at) || name > INT32_MAX ||
        at > INT64_MAX - name)
        return false;
    got = pread(file, out_name, name_bytes, (off_t)(at + name));
    return got > 0 && out_name[0] != '\0' &&
           memchr(out_name, '\0', (size_t)got) != NULL;
}
