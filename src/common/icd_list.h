/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the OpenCL drivers (ICDs) that the ICD loader would load into this
 * process, without loading them. The sources are those of the loaders:
 *
 *   OCL_ICD_VENDORS      a directory of .icd files, one .icd file, or (ocl-icd)
 *                        a library; a bare NAME.icd is first searched for in
 *                        the vendors directory
 *   OPENCL_VENDOR_PATH   the directory, if OCL_ICD_VENDORS is unset (ocl-icd)
 *   /etc/OpenCL/vendors  the directory, if both are unset
 *   OCL_ICD_FILENAMES    additional libraries, separated by colons (Khronos)
 *
 * The first line of an .icd file names the driver's library. Callable from any
 * thread; opens no driver. */
#ifndef TANDEM_COMMON_ICD_LIST_H
#define TANDEM_COMMON_ICD_LIST_H

#include <stdbool.h>
#include <stdint.h>

#define ICD_DIRECTORY "/etc/OpenCL/vendors"
/* Maximum number of drivers, and maximum size of a path in bytes, with the
 * final zero byte. Further drivers and longer paths are skipped. */
#define ICD_COUNT_MAX 64u
#define ICD_TEXT_MAX 1024u

struct icd {
    char *file;    /* path of the .icd file or, without one, of the library */
    char *library; /* name of the library as written in the file or variable */
};

struct icd_list {
    struct icd icds[ICD_COUNT_MAX];
    uint32_t count;
};

/* Returns the directory or file that is searched for drivers. Sets
 * *out_variable to the environment variable that names it, or NULL. Ignores
 * OCL_ICD_FILENAMES. */
const char *icd_place(const char **out_variable);

/* Finds the drivers, sorted by the names of their .icd files. Returns false,
 * with an empty list, if memory is out. */
bool icd_list_find(struct icd_list *out);

/* Finds the .icd files that name no library, which the ICD loader skips. Each
 * entry's `library` holds the reason. Returns false if memory is out. */
bool icd_list_find_useless(struct icd_list *out);

/* Adds a driver to the list, with copies of both strings. Returns false if
 * memory is out or the list has ICD_COUNT_MAX drivers. */
bool icd_list_add(struct icd_list *list, const char *file, const char *library);

/* Returns true if a driver in the list has this library. */
bool icd_list_has(const struct icd_list *list, const char *library);

/* Writes the library that an .icd file names to out_library (ICD_TEXT_MAX
 * bytes). If the file names none, writes the reason and returns false. */
bool icd_file_read(const char *path, char *out_library);

void icd_list_finish(struct icd_list *list);

#endif
