/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for profiles and reads them; see profile_search.h. */
#include <config.h>

#include "host/profile/profile_search.h"
#include "common/thread_state_guard.h"
#include "host/context/directories.h"

#include <installed_directories.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEARCH_PATH_LENGTH 3u
#define MAX_IGNORED_BYTES 16384u

/* ---- keys ---- */

static void text_copy(char *out, size_t bytes, const char *text)
{
    snprintf(out, bytes, "%s", text);
}

void profile_key_make(const struct device *device, struct profile_key *out)
{
    const struct tandem_device_info *info = &device->info;
    bool known = false;

    memset(out, 0, sizeof(*out));
    text_copy(out->backend, sizeof(out->backend), device->vtable->name);
    text_copy(out->name, sizeof(out->name), info->name);
    text_copy(out->pci, sizeof(out->pci), info->pci_address);
    text_copy(out->driver, sizeof(out->driver), info->driver_version);
    text_copy(out->plugin_version, sizeof(out->plugin_version),
              device->vtable->version);
    text_copy(out->host_cpu, sizeof(out->host_cpu), device->context->host_cpu);
    for (uint32_t i = 0; i < sizeof(info->uuid); i++) {
        snprintf(out->uuid + 2 * i, 3, "%02x", info->uuid[i]);
        known |= info->uuid[i] != 0;
    }
    if (!known)
        out->uuid[0] = '\0';
}

/* Adds a text and its terminating NUL, as a separator, to an FNV-1a hash. */
static uint64_t hash_add(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    } while (*text++ != '\0');
    return hash;
}

size_t profile_file_name(const struct profile_key *key, char *out)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const int length =
        snprintf(out, PROFILE_NAME_BYTES, "%s-%s-", key->backend, key->name);

    for (char *c = out + strlen(key->backend); *c != '\0'; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') ||
                           (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');

        if (!plain)
            *c = '-';
    }
    hash = hash_add(hash, key->uuid[0] != '\0' ? key->uuid : key->pci);
    hash = hash_add(hash, key->driver);
    hash = hash_add(hash, key->plugin_version);
    hash = hash_add(hash, key->host_cpu);
    snprintf(out + length, PROFILE_NAME_BYTES - (size_t)length, "%016llx.json",
             (unsigned long long)hash);
    return (size_t)length;
}

/* ---- reading ---- */

/* Appends the reason why a profile is not used to device->ignored_profiles,
 * which cl-probe --list shows.  Does nothing if memory runs out or the text
 * becomes too long. */
static void ignored_profiles_add(struct device *device, const char *path,
                                 const char *why)
{
    char *old = device->ignored_profiles, *grown;
    const size_t used = old != NULL ? strlen(old) : 0;
    const size_t bytes = used + sizeof("; : ") + strlen(path) + strlen(why);

    if (bytes > MAX_IGNORED_BYTES)
        return;
    grown = realloc(old, bytes);
    if (grown == NULL)
        return;
    device->ignored_profiles = grown;
    sprintf(grown + used, "%s%s: %s", used > 0 ? "; " : "", path, why);
}

/* A directory that is searched for profiles. */
struct profile_directory {
    const char *path;
    int fd; /* descriptor, or -1 if the directory is missing or not secure */
};

static void profile_directory_open(struct device *device,
                                   struct profile_directory *directory)
{
    char why[SECURE_WHY_BYTES];

    if (directory->path == NULL)
        return;
    directory->fd = secure_directory_open(directory->path, SECURE_READ, why);
    if (directory->fd < 0 && why[0] != '\0')
        ignored_profiles_add(device, directory->path, why);
}

/* Loads the costs from a profile file if the profile matches the device.
 * Returns PROFILE_MALFORMED if the file does not exist. */
static enum profile_match file_load(struct device *device,
                                    const struct profile_key *key,
                                    const struct profile_directory *directory,
                                    const char *name, bool exact)
{
    const struct log *log = &device->context->log;
    char why[SECURE_WHY_BYTES], path[PATH_BYTES];
    enum profile_match fit = PROFILE_MALFORMED;
    struct thread_state host;
    char *tuning = NULL, *path_copy;
    size_t bytes;
    char *text =
        secure_file_read(directory->fd, name, MAX_PROFILE_BYTES, &bytes, why);

    if (text == NULL && why[0] == '\0')
        return PROFILE_MALFORMED;
    snprintf(path, sizeof(path), "%s/%s", directory->path, name);
    path_copy = strdup(path);
    if (path_copy == NULL) {
        snprintf(why, sizeof(why), "no memory for its name");
    } else if (text != NULL) {
        /* Jansson's number parser uses the locale and may raise FP flags. */
        thread_state_guard_enter(&host);
        fit =
            profile_parse(text, bytes, key, exact, &device->cost, &tuning, why);
        thread_state_guard_leave(&host);
    }
    free(text);
    if (fit == PROFILE_MATCH) {
        device->profile_path = path_copy;
        device->tuning = tuning;
        log_message(log, TANDEM_LOG_INFO, "%s: profile %s%s", device->label,
                    path, exact ? "" : " (of the same model and driver)");
        return PROFILE_MATCH;
    }
    free(path_copy);
    ignored_profiles_add(device, path, why);
    return fit;
}

struct model_file_names {
    const char *own; /* file name of the device's own profile */
    size_t prefix;   /* number of bytes of `own` before the hash */
};

static bool is_same_model(const char *entry, void *user)
{
    const struct model_file_names *names = user;
    const size_t length = strlen(entry);

    return length > names->prefix + 5 &&
           strncmp(entry, names->own, names->prefix) == 0 &&
           strcmp(entry, names->own) != 0 &&
           strcmp(entry + length - 5, ".json") == 0;
}

/* Loads the first profile, in the order of file names, that was measured on a
 * device of the same model with the same driver.  Returns true if there is
 * one. */
static bool same_model_load(struct device *device,
                            const struct profile_key *key,
                            const struct profile_directory *directory,
                            struct model_file_names *names)
{
    enum profile_match fit = PROFILE_MALFORMED;
    struct directory_names entries;

    if (!directory_list(directory->fd, is_same_model, names, &entries))
        log_message(&device->context->log, TANDEM_LOG_WARNING,
                    "%s: not all profiles could be listed", directory->path);
    for (size_t i = 0; i < entries.count && fit != PROFILE_MATCH; i++)
        fit = file_load(device, key, directory, entries.names[i], false);
    directory_names_free(&entries);
    return fit == PROFILE_MATCH;
}

void profile_load(struct device *device)
{
    const struct tandem_context *context = device->context;
    struct profile_directory directories[SEARCH_PATH_LENGTH] = {
        {context->profile_path, -1}, {context->cache_path, -1}, {STATEDIR, -1}};
    struct profile_key key;
    char name[PROFILE_NAME_BYTES];
    struct model_file_names names = {.own = name};
    bool found = false;

    profile_key_make(device, &key);
    names.prefix = profile_file_name(&key, name);
    for (uint32_t i = 0; i < SEARCH_PATH_LENGTH; i++)
        profile_directory_open(device, &directories[i]);
    for (uint32_t i = 0; i < SEARCH_PATH_LENGTH && !found; i++)
        found = directories[i].fd >= 0 &&
                file_load(device, &key, &directories[i], name, true) ==
                    PROFILE_MATCH;
    for (uint32_t i = 0; i < SEARCH_PATH_LENGTH; i++) {
        if (directories[i].fd < 0)
            continue;
        found = found || same_model_load(device, &key, &directories[i], &names);
        close(directories[i].fd);
    }
    if (found && device->ignored_profiles != NULL)
        log_message(&context->log, TANDEM_LOG_WARNING,
                    "%s: profile ignored: %.640s; %s is used", device->label,
                    device->ignored_profiles, device->profile_path);
}
