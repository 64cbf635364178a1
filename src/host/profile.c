/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and reading profiles; see profile.h.
 */
#include <config.h>

#include "host/profile.h"
#include "host/path.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORIES 3u
#define ENTRIES_MAX 4096u

/* ---- keys --------------------------------------------------------------------- */

static void text_copy(char *out, size_t bytes, const char *text)
{
    snprintf(out, bytes, "%s", text);
}

void profile_key_make(const struct device *device, struct profile_key *out)
{
    const struct tandem_device_info *info = &device->info;
    bool known = false;

    memset(out, 0, sizeof(*out));
    text_copy(out->backend, sizeof(out->backend), device->backend->name);
    text_copy(out->name, sizeof(out->name), info->name);
    text_copy(out->pci, sizeof(out->pci), info->pci);
    text_copy(out->driver, sizeof(out->driver), info->driver);
    text_copy(out->plugin_version, sizeof(out->plugin_version),
              device->table->version);
    text_copy(out->host_cpu, sizeof(out->host_cpu), device->context->host_cpu);
    for (uint32_t i = 0; i < sizeof(info->uuid); i++) {
        snprintf(out->uuid + 2 * i, 3, "%02x", info->uuid[i]);
        known |= info->uuid[i] != 0;
    }
    if (!known)
        out->uuid[0] = '\0';
}

/* FNV-1a over the text and its end. */
static uint64_t hash_add(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    } while (*text++ != '\0');
    return hash;
}

void profile_file_name(const struct profile_key *key, char *out, size_t bytes,
                       size_t *out_prefix)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char name[sizeof(key->name)];
    int length;

    hash = hash_add(hash, key->uuid[0] != '\0' ? key->uuid : key->pci);
    hash = hash_add(hash, key->driver);
    hash = hash_add(hash, key->plugin_version);
    hash = hash_add(hash, key->host_cpu);
    text_copy(name, sizeof(name), key->name);
    for (char *c = name; *c != '\0'; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') ||
                           (*c >= 'A' && *c <= 'Z') ||
                           (*c >= '0' && *c <= '9');

        if (!plain)
            *c = '-';
    }
    length = snprintf(out, bytes, "%s-%s-", key->backend, name);
    *out_prefix = (size_t)length;
    snprintf(out + length, bytes - (size_t)length, "%016llx.json",
             (unsigned long long)hash);
}

static bool text_equal(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL && strcmp(value, text) == 0;
}

/* The same model and driver; exact: the same device, plugin and host. */
static bool key_fits(const struct profile_key *key, const json_t *root,
                     bool exact)
{
    const json_t *device = json_object_get(root, "device");

    if (!text_equal(device, "backend", key->backend) ||
        !text_equal(device, "name", key->name) ||
        !text_equal(device, "driver", key->driver))
        return false;
    return !exact || (text_equal(device, "uuid", key->uuid) &&
                      text_equal(device, "pci", key->pci) &&
                      text_equal(device, "plugin_version",
                                 key->plugin_version) &&
                      text_equal(device, "host_cpu", key->host_cpu));
}

/* ---- reading -------------------------------------------------------------------- */

/* The file's bytes, ended by a zero; NULL, with why (empty: no such file). */
static char *file_read(const char *path, size_t *out_bytes, char *out_why,
                       size_t why_bytes)
{
    struct stat status;
    char *text = NULL;
    size_t done = 0;
    int file;

    out_why[0] = '\0';
    if (access(path, F_OK) != 0)
        return NULL;
    if (!path_trusted(path, out_why, why_bytes))
        return NULL;
    file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_uid != 0 && status.st_uid != geteuid())) {
        snprintf(out_why, why_bytes, "it cannot be opened");
    } else if (status.st_size > (off_t)PROFILE_BYTES_MAX) {
        snprintf(out_why, why_bytes, "it is larger than %u bytes",
                 PROFILE_BYTES_MAX);
    } else if ((text = malloc((size_t)status.st_size + 1)) != NULL) {
        ssize_t got = 1;

        while (done < (size_t)status.st_size && got > 0) {
            got = read(file, text + done, (size_t)status.st_size - done);
            done += got > 0 ? (size_t)got : 0;
        }
        text[done] = '\0';
        *out_bytes = done;
    }
    if (file >= 0)
        close(file);
    return text;
}

/* Whether this file served. */
static bool file_load(struct device *device, const struct profile_key *key,
                      const char *path, bool exact)
{
    const struct log *log = &device->context->log;
    struct cost_model *cost = &device->cost;
    char why[512];
    size_t bytes = 0;
    json_error_t error;
    json_t *root;
    char *tuning = NULL;
    bool good = false;
    char *text = file_read(path, &bytes, why, sizeof(why));

    if (text == NULL) {
        if (why[0] != '\0')
            log_message(log, TANDEM_LOG_WARNING, "%s: profile ignored: %s",
                        path, why);
        return false;
    }
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (root == NULL) {
        log_message(log, TANDEM_LOG_WARNING,
                    "%s: profile ignored: line %d: %s", path, error.line,
                    error.text);
    } else if (json_integer_value(json_object_get(root, "format")) !=
               PROFILE_FORMAT) {
        log_message(log, TANDEM_LOG_WARNING,
                    "%s: profile ignored: it is not of format %d", path,
                    PROFILE_FORMAT);
    } else if (key_fits(key, root, exact)) {
        good = profile_parse(root, cost, &tuning, why, sizeof(why));
        if (!good)
            log_message(log, TANDEM_LOG_WARNING, "%s: profile ignored: %s",
                        path, why);
    }
    if (root != NULL && exact && !good && !key_fits(key, root, exact))
        log_message(log, TANDEM_LOG_WARNING,
                    "%s: profile ignored: it has the name of this device's, "
                    "but was not made for it",
                    path);
    json_decref(root);
    if (!good)
        return false;
    device->calibrated = true;
    device->profile = strdup(path);
    device->tuning = tuning;
    log_message(log, TANDEM_LOG_INFO, "%s: profile %s%s", device->label, path,
                exact ? "" : " (of the same model and driver)");
    return true;
}

static bool path_join(char *out, size_t bytes, const char *directory,
                      const char *name)
{
    const int length = snprintf(out, bytes, "%s/%s", directory, name);

    return length > 0 && (size_t)length < bytes;
}

/* The first profile of the same model, by name, that serves. */
static bool directory_load(struct device *device,
                           const struct profile_key *key,
                           const char *directory, const char *name,
                           size_t prefix)
{
    char path[PATH_BYTES];
    struct dirent **entries = NULL;
    bool found = false;
    const int count = scandir(directory, &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        const size_t length = strlen(entry);

        if (!found && i < (int)ENTRIES_MAX && length > prefix + 5 &&
            strncmp(entry, name, prefix) == 0 && strcmp(entry, name) != 0 &&
            strcmp(entry + length - 5, ".json") == 0 &&
            path_join(path, sizeof(path), directory, entry))
            found = file_load(device, key, path, false);
        free(entries[i]);
    }
    free(entries);
    return found;
}

void profile_load(struct device *device)
{
    const struct tandem_context *context = device->context;
    const char *const directories[DIRECTORIES] = {
        context->profile_path, context->cache_path, STATEDIR};
    struct profile_key key;
    char name[PROFILE_NAME_BYTES], path[PATH_BYTES];
    size_t prefix;

    profile_key_make(device, &key);
    profile_file_name(&key, name, sizeof(name), &prefix);
    for (uint32_t i = 0; i < DIRECTORIES; i++) {
        if (directories[i] != NULL &&
            path_join(path, sizeof(path), directories[i], name) &&
            file_load(device, &key, path, true))
            return;
    }
    for (uint32_t i = 0; i < DIRECTORIES; i++) {
        if (directories[i] != NULL &&
            directory_load(device, &key, directories[i], name, prefix))
            return;
    }
}
