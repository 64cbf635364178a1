/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL drivers (ICDs) that the ICD loader would load into this process,
 * found as the loaders find them, without loading any:
 *
 *   OCL_ICD_VENDORS      a directory of .icd files, one .icd file, or (ocl-icd)
 *                        a library; a bare NAME.icd is looked for among the
 *                        vendors first
 *   OPENCL_VENDOR_PATH   where that is not set: the directory (ocl-icd)
 *   /etc/OpenCL/vendors  where neither is
 *   OCL_ICD_FILENAMES    libraries, by colons, besides (Khronos)
 *
 * The first line of an .icd file names the driver's library.  Any thread;
 * opens no driver.
 */
#ifndef TANDEM_COMMON_ICD_LIST_H
#define TANDEM_COMMON_ICD_LIST_H

#include <stdbool.h>
#include <stdint.h>

#define ICD_DIRECTORY "/etc/OpenCL/vendors"
/* What is longer, or beyond, is left out. */
#define ICD_COUNT_MAX 64u
#define ICD_TEXT_MAX 1024u

struct icd {
    char *file;    /* the .icd file; the library where there is none */
    char *library; /* as the file writes it */
};

struct icd_list {
    struct icd *icds;
    uint32_t count;
};

/* The directory or file in which drivers are looked for; *out_variable is the
 * environment variable that names it, or NULL.  Ignores OCL_ICD_FILENAMES. */
const char *icd_place(const char **out_variable);

/* The drivers, in the order of their files' names.  false: out of memory, and
 * the list is empty. */
bool icd_list_find(struct icd_list *out);

/* The .icd files there that name no library, which the loader leaves out; of
 * these, library is why.  As icd_list_find. */
bool icd_list_find_useless(struct icd_list *out);

/* Adds a copy; false: out of memory, or there are ICD_COUNT_MAX. */
bool icd_list_add(struct icd_list *list, const char *file,
                  const char *library);

/* Whether the list has a driver of that library. */
bool icd_list_has(const struct icd_list *list, const char *library);

/* Reads which library an .icd file names; room for ICD_TEXT_MAX.  false where
 * it names none, and then why it does not. */
bool icd_file_read(const char *path, char *out_library);

/* Frees the list's content. */
void icd_list_finish(struct icd_list *list);

#endif
