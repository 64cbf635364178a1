/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the OpenCL drivers; see icd_list.h. */
#include <config.h>

#include "common/environment.h"
#include "common/icd_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool icd_list_add(struct icd_list *list, const char *file, const char *library)
{
    struct icd icd;

    if (list->count == ICD_COUNT_MAX)
        return false;
    icd = (struct icd){.file = strdup(file), .library = strdup(library)};
    if (icd.file == NULL || icd.library == NULL) {
        free(icd.file);
        free(icd.library);
        return false;
    }
    list->icds[list->count++] = icd;
    return true;
}

bool icd_list_has(const struct icd_list *list, const char *library)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->icds[i].library, library) == 0)
            return true;
    }
    return false;
}

void icd_list_finish(struct icd_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->icds[i].file);
        free(list->icds[i].library);
    }
    *list = (struct icd_list){0};
}

/* State of a search for .icd files. The search adds drivers to `list`. */
struct search {
    struct icd_list *list;
    bool useless; /* list only .icd files that name no library */
};

static bool why(char *out_library, const char *text)
{
    snprintf(out_library, ICD_TEXT_MAX, "%s", text);
    return false;
}

bool icd_file_read(const char *path, char *out_library)
{
    struct stat status;
    FILE *file;
    bool good;

    if (stat(path, &status) != 0)
        return why(out_library, strerror(errno));
    /* Reading a file that is not regular, such as a pipe, could block. */
    if (!S_ISREG(status.st_mode))
        return why(out_library, "it is no regular file");
    file = fopen(path, "re");
    if (file == NULL)
        return why(out_library, strerror(errno));
    good = fgets(out_library, (int)ICD_TEXT_MAX, file) != NULL;
    fclose(file);
    if (good)
        out_library[strcspn(out_library, "\n")] = '\0';
    return (good && out_library[0] != '\0') ||
           why(out_library, "its first line names no library");
}

static bool has_suffix(const char *name)
{
    const size_t length = strlen(name);

    return length > 4 && strcmp(name + length - 4, ".icd") == 0;
}

/* Adds the .icd file to the list if the file names a library. If
 * search->useless is true, adds only files that name none. An unreadable file
 * counts as one that names none. Returns false if memory is out. */
static bool file_add(const struct search *search, const char *path)
{
    char library[ICD_TEXT_MAX];
    const bool useless = !icd_file_read(path, library);

    return useless != search->useless || search->list->count == ICD_COUNT_MAX ||
           icd_list_add(search->list, path, library);
}

static int is_icd(const struct dirent *entry)
{
    return has_suffix(entry->d_name);
}

static bool directory_add(const struct search *search, const char *directory)
{
    char path[ICD_TEXT_MAX];
    struct dirent **entries = NULL;
    const int count = scandir(directory, &entries, is_icd, alphasort);
    bool good = true;

    for (int i = 0; i < count; i++) {
        const int length = snprintf(path, sizeof(path), "%s/%s", directory,
                                    entries[i]->d_name);

        if (length > 0 && (size_t)length < sizeof(path))
            good = good && file_add(search, path);
        free(entries[i]);
    }
    free(entries);
    return good;
}

/* Returns true if the name contains a directory and no such file exists. The
 * dynamic linker searches for a name without a directory. */
static bool is_missing(const char *name)
{
    struct stat status;

    return strchr(name, '/') != NULL && stat(name, &status) != 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

/* Adds the driver if OCL_ICD_VENDORS names a driver, not a directory. Adds
 * nothing if no such file exists. */
static bool single_add(const struct search *search, const char *name,
                       const char *directory)
{
    char path[ICD_TEXT_MAX];
    const uint32_t before = search->list->count;
    bool good = true;

    if (is_missing(name))
        return true;
    if (!has_suffix(name))
        return search->useless || icd_list_add(search->list, name, name);
    if (strchr(name, '/') == NULL &&
        snprintf(path, sizeof(path), "%s/%s", directory, name) <
            (int)sizeof(path))
        good = file_add(search, path);
    return good && (search->list->count > before || file_add(search, name));
}

const char *icd_place(const char **out_variable)
{
    const char *vendors = environment_get("OCL_ICD_VENDORS");
    const char *directory = environment_get("OPENCL_VENDOR_PATH");

    *out_variable = vendors != NULL     ? "OCL_ICD_VENDORS"
                    : directory != NULL ? "OPENCL_VENDOR_PATH"
                                        : NULL;
    return vendors != NULL     ? vendors
           : directory != NULL ? directory
                               : ICD_DIRECTORY;
}

static bool vendors_add(const struct search *search)
{
    const char *directory = environment_get("OPENCL_VENDOR_PATH");
    const char *variable, *place = icd_place(&variable);
    struct stat status;

    if (environment_get("OCL_ICD_VENDORS") == NULL ||
        (stat(place, &status) == 0 && S_ISDIR(status.st_mode)))
        return directory_add(search, place);
    return single_add(search, place,
                      directory != NULL ? directory : ICD_DIRECTORY);
}

static bool libraries_add(struct icd_list *list, const char *names)
{
    char name[ICD_TEXT_MAX];
    bool good = true;

    while (names != NULL && good) {
        const size_t length = strcspn(names, ":");

        if (length > 0 && length < sizeof(name)) {
            memcpy(name, names, length);
            name[length] = '\0';
            good =
                list->count == ICD_COUNT_MAX || icd_list_add(list, name, name);
        }
        names = names[length] == ':' ? names + length + 1 : NULL;
    }
    return good;
}

/* Lists the drivers of .icd files and those in `libraries` (may be NULL). */
static bool list_make(struct icd_list *out, bool useless, const char *libraries)
{
    const struct search search = {out, useless};

    *out = (struct icd_list){0};
    if (vendors_add(&search) && libraries_add(out, libraries))
        return true;
    icd_list_finish(out);
    return false;
}

bool icd_list_find(struct icd_list *out)
{
    return list_make(out, false, environment_get("OCL_ICD_FILENAMES"));
}

bool icd_list_find_useless(struct icd_list *out)
{
    return list_make(out, true, NULL);
}
