/* SPDX-License-Identifier: Apache-2.0 */
/* Searches directories for plugins and loads them; see loader.h. */
#include <config.h>

#include "host/loader/loader.h"
#include "common/environment.h"
#include "common/last_error.h"
#include "common/plugin_directory.h"
#include "common/thread_state_guard.h"
#include "common/threads.h"
#include "host/loader/plugin_reply.h"
#include "host/context/directories.h"

#include <installed_directories.h>

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PLUGINS 16u

/* Returns a hint on which packages contain the missing library that the dlerror
 * message `error` names, or "" if the library is not known. */
static const char *library_hint(const char *error)
{
    static const struct {
        const char *library, *hint;
    } hints[] = {
        {"libOpenCL.so",
         "; install ocl-icd-libopencl1 (Debian) or ocl-icd (Fedora) for it"},
        {"libclblast.so",
         "; install libclblast1 (Debian) or clblast (Fedora) for it"},
        {"libopenblas.so",
         "; install libopenblas0 (Debian) or openblas (Fedora) for it"},
        {"libblis.so", "; install libblis4 (Debian) or blis (Fedora) for it"},
        {"libsleef.so",
         "; install libsleef3 (Debian) or sleef (Fedora) for it"},
    };

    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (strstr(error, hints[i].library) != NULL)
            return hints[i].hint;
    }
    return "";
}

/* A CPU affinity mask that has room for all CPUs that Linux supports. */
struct affinity_mask {
    cpu_set_t sets[8192 / CPU_SETSIZE];
};

/* OpenBLAS starts one thread fewer than the number of CPUs on which the loading
 * thread is allowed to run.  If the system refuses one of these threads,
 * OpenBLAS prints to stderr and raises SIGINT. */
enum thread_start_state {
    THREADS_START,   /* OpenBLAS can start all its threads */
    THREADS_LIMITED, /* the loading thread is limited to one CPU for now */
    THREADS_REFUSED  /* libraries that start threads must not be loaded */
};

/* If OpenBLAS cannot start its threads, tries to limit the calling thread to
 * one CPU.  If the result is THREADS_LIMITED, the caller must restore the
 * affinity mask *out_found after it loads the library. */
static enum thread_start_state
thread_start_state(struct affinity_mask *out_found)
{
    const size_t bytes = sizeof(out_found->sets);
    struct affinity_mask one = {0};
    const int here = sched_getcpu();
    int count;

    memset(out_found, 0, bytes);
    if (here < 0 || sched_getaffinity(0, bytes, out_found->sets) != 0)
        return threads_can_start(1) ? THREADS_START : THREADS_REFUSED;
    count = CPU_COUNT_S(bytes, out_found->sets);
    if (count < 2 || threads_can_start((uint32_t)count - 1))
        return THREADS_START;
    CPU_SET_S(here, bytes, one.sets);
    return sched_setaffinity(0, bytes, one.sets) == 0 ? THREADS_LIMITED
                                                      : THREADS_REFUSED;
}

/* State of a search for plugins in several directories. */
struct plugin_search {
    struct tandem_context *context;
    /* Names of all plugins that were found, also of those that are not loaded,
     * separated by commas.  Names that do not fit are missing. */
    char found[2048];
    const char *installed; /* the directory of installed plugins */
    bool has_list;         /* the user names directories, too */
};

/* Returns true if `list`, names that are separated by commas, contains the
 * first `length` bytes of `name`. */
static bool list_contains(const char *list, const char *name, size_t length)
{
    for (;;) {
        const size_t part = strcspn(list, ",");

        if (part == length && strncmp(list, name, length) == 0)
            return true;
        if (list[part] == '\0')
            return false;
        list += part + 1;
    }
}

struct tandem_backend *backend_find(const struct tandem_context *context,
                                    const char *name, size_t length)
{
    for (uint32_t i = 0; i < context->backend_count; i++) {
        const char *loaded = context->backends[i].name;

        if (strncmp(loaded, name, length) == 0 && loaded[length] == '\0')
            return &context->backends[i];
    }
    return NULL;
}

/* Adds the plugin in `library` to the context, or skips it if a loaded plugin
 * has the same name.  Returns NULL on success, otherwise the reason of the
 * failure, which is a static text or is stored in `why`. */
static const char *backend_add(struct tandem_context *context, const char *path,
                               void *library, char *why)
{
    tandem_backend_query_fn query;
    struct tandem_backend backend;
    const char *problem;

    *(void **)&query = dlsym(library, TANDEM_BACKEND_QUERY_SYMBOL);
    if (query == NULL)
        return "it is not a Tandem plugin: it does not "
               "export " TANDEM_BACKEND_QUERY_SYMBOL;
    problem = backend_vtable_normalize(query(TANDEM_ABI_MAJOR), &backend, why);
    if (problem != NULL)
        return problem;
    if (backend_find(context, backend.name, strlen(backend.name)) != NULL) {
        log_message(&context->log, TANDEM_LOG_INFO,
                    "%s: skipped: a plugin named %s is already loaded", path,
                    backend.name);
        return NULL;
    }
    if (context->backend_count == MAX_PLUGINS)
        return "too many plugins are loaded already";
    context->backends[context->backend_count++] = backend;
    log_message(&context->log, TANDEM_LOG_INFO, "loaded %s: %s %s", path,
                backend.name, backend.version);
    return NULL;
}

static const char *segments_check(int file, const ElfW(Ehdr) * header,
                                  uint64_t bytes)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        const uint64_t at =
            (uint64_t)header->e_phoff + (uint64_t)i * sizeof(segment);
        uint64_t end;

        if (at > bytes ||
            pread(file, &segment, sizeof(segment), (off_t)at) !=
                (ssize_t)sizeof(segment) ||
            __builtin_add_overflow((uint64_t)segment.p_offset,
                                   (uint64_t)segment.p_filesz, &end) ||
            end > bytes)
            return "it is truncated";
    }
    return NULL;
}

/* Returns NULL if the open file is a complete shared object for this CPU
 * architecture.  Otherwise returns a static text that says what is wrong.
 * Finds truncated files before the dynamic linker maps them, because reading a
 * mapped page past the end of the file kills the process with SIGBUS. */
static const char *elf_integrity_error(int file)
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

/* Opens the plugin at `path`.  Returns NULL on failure.  If it fails because
 * the system refuses new threads, dlerror has no message.  Opening by path,
 * which lets debuggers and dladdr show the path, is safe: only users who can
 * change the plugin's file can change the directories in its path
 * (docs/options.md). */
static void *library_open(struct tandem_context *context, const char *path)
{
    /* A plugin that is already loaded starts no threads. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    struct affinity_mask found;
    struct thread_state host;
    enum thread_start_state thread_start;

    if (library != NULL)
        return library;
    dlerror();
    /* The plugin's libraries may start threads; see thread_state_guard.h. */
    thread_state_guard_enter(&host);
    thread_start = thread_start_state(&found);
    if (thread_start != THREADS_REFUSED)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (thread_start == THREADS_LIMITED)
        sched_setaffinity(0, sizeof(found.sets), found.sets);
    thread_state_guard_leave(&host);
    if (thread_start == THREADS_LIMITED)
        log_message(&context->log, TANDEM_LOG_WARNING,
                    "%s: its libraries use one thread, because the system "
                    "refuses new threads: " THREADS_LIMITS " is reached",
                    path);
    return library;
}

static void plugin_load(struct tandem_context *context, int directory,
                        const char *name, const char *path)
{
    char why[SECURE_WHY_BYTES];
    const char *problem = why;
    const int file = secure_file_open(directory, name, why);
    void *library;

    if (file >= 0) {
        problem = elf_integrity_error(file);
        close(file);
    }
    if (problem != NULL) {
        context_add_load_error(
            context, TANDEM_LOG_WARNING, "%s: not loaded: %s", path,
            problem[0] != '\0' ? problem : "the file no longer exists");
        return;
    }
    library = library_open(context, path);
    if (library == NULL) {
        /* If libraries are missing, dlerror names the first one. */
        problem = dlerror();
        if (problem == NULL)
            problem =
                "the system refuses new threads because of " THREADS_LIMITS;
        context_add_load_error(context, TANDEM_LOG_WARNING,
                               "%s: not loaded: %s%s", path, problem,
                               library_hint(problem));
        return;
    }
    problem = backend_add(context, path, library, why);
    if (problem != NULL) {
        context_add_load_error(context, TANDEM_LOG_WARNING, "%s: not used: %s",
                               path, problem);
        dlclose(library);
    }
}

/* Returns true if `file`, a name in a directory, is that of a plugin to load.
 * `user` is the search, to which the function adds the name of the plugin. */
static bool is_plugin_wanted(const char *file, void *user)
{
    struct plugin_search *search = user;
    const char *list = search->context->backends_option, *name;
    const size_t file_length = strlen(file), used = strlen(search->found);
    size_t length;

    if (strncmp(file, "tandem-", 7) != 0 || file_length <= 10 ||
        strcmp(file + file_length - 3, ".so") != 0)
        return false;
    name = file + 7;
    length = file_length - 10;
    if (!list_contains(search->found, name, length) &&
        used + length + 2 <= sizeof(search->found))
        snprintf(search->found + used, sizeof(search->found) - used, "%s%.*s",
                 used == 0 ? "" : ",", (int)length, name);
    return list == NULL || list_contains(list, name, length);
}

/* Loads the plugins of a directory.  `is_asked` is true if the user names the
 * directory, which therefore should exist. */
static void directory_load(struct plugin_search *search, const char *path,
                           bool is_asked)
{
    struct tandem_context *context = search->context;
    char file[PATH_BYTES], why[SECURE_WHY_BYTES];
    struct directory_names found;
    const int directory = secure_directory_open(path, SECURE_READ, why);

    if (directory < 0) {
        if (is_asked || why[0] != '\0')
            context_add_load_error(
                context, TANDEM_LOG_WARNING, "no plugins from %s: %s", path,
                why[0] != '\0' ? why : "the directory does not exist");
        return;
    }
    if (!directory_list(directory, is_plugin_wanted, search, &found))
        context_add_load_error(context, TANDEM_LOG_WARNING,
                               "%s: the directory could not be read completely",
                               path);
    for (size_t i = 0; i < found.count; i++) {
        const int length =
            snprintf(file, sizeof(file), "%s/%s", path, found.names[i]);

        if (length > 0 && (size_t)length < sizeof(file))
            plugin_load(context, directory, found.names[i], file);
    }
    directory_names_free(&found);
    close(directory);
}

/* Loads the plugins in the directories in `list`, which the user sets, with
 * colons between them.  `list` may be NULL. */
static void list_load(struct plugin_search *search, const char *list)
{
    struct tandem_context *context = search->context;
    char path[PATH_BYTES];

    while (list != NULL) {
        const char *end = strchr(list, ':');
        const size_t length = end != NULL ? (size_t)(end - list) : strlen(list);

        if (length == 0 || list[0] != '/' || length >= sizeof(path)) {
            log_message(&context->log, TANDEM_LOG_WARNING,
                        "element \"%.*s\" of the plugin path ignored: it is %s",
                        length < 256 ? (int)length : 256, list,
                        length == 0      ? "empty"
                        : list[0] != '/' ? "relative"
                                         : "too long");
        } else {
            memcpy(path, list, length);
            path[length] = '\0';
            directory_load(search, path, true);
        }
        list = end != NULL ? end + 1 : NULL;
    }
}

/* Moves the CPU plugin to the front, so that its devices have low numbers. */
static void cpu_plugin_move_first(struct tandem_context *context)
{
    struct tandem_backend *found = backend_find(context, "cpu", 3);

    if (found != NULL) {
        const struct tandem_backend cpu = *found;

        memmove(context->backends + 1, context->backends,
                (size_t)(found - context->backends) * sizeof(cpu));
        context->backends[0] = cpu;
    }
}

/* Logs each name in the list of backends to load that no plugin has. */
static void unknown_backends_log(const struct plugin_search *search)
{
    const struct tandem_context *context = search->context;
    const char *list = context->backends_option;

    while (list != NULL) {
        const size_t length = strcspn(list, ",");

        if (!list_contains(search->found, list, length))
            log_message(&context->log, TANDEM_LOG_WARNING,
                        "%s: there is no plugin \"%.*s\"; expected names "
                        "from: %s",
                        context->backends_setting,
                        length < 64 ? (int)length : 64, list, search->found);
        list = list[length] == ',' ? list + length + 1 : NULL;
    }
}

static enum tandem_status no_plugin_error(const struct plugin_search *search)
{
    const struct tandem_context *context = search->context;

    if (context->load_error_count > 0)
        return last_error_set(TANDEM_NO_DEVICE,
                              "no backend plugin could be loaded: %s",
                              context->load_errors[0]);
    if (search->found[0] != '\0' && context->backends_option != NULL)
        return last_error_set(
            TANDEM_NO_DEVICE,
            "no backend plugin is loaded: %s \"%.64s\" names none of: %.300s",
            context->backends_setting, context->backends_option, search->found);
    return last_error_set(TANDEM_NO_DEVICE,
                          "no backend plugin was found in %s%s; install the "
                          "plugins, or set TANDEM_PLUGIN_PATH to their "
                          "directory (.libs in a build directory)",
                          search->has_list ? "the plugin path or in " : "",
                          search->installed);
}

enum tandem_status plugins_load(struct tandem_context *context,
                                const char *option_path)
{
    struct plugin_search search = {.context = context, .installed = PLUGINDIR};
    const char *environment_path = environment_get("TANDEM_PLUGIN_PATH");
    char installed[PLUGIN_DIRECTORY_BYTES];

    context->backends = calloc(MAX_PLUGINS, sizeof(*context->backends));
    if (context->backends == NULL)
        return memory_error("no memory for the list of plugins");
    search.has_list = option_path != NULL || environment_path != NULL;
    list_load(&search, option_path);
    list_load(&search, environment_path);
    if (plugin_directory_find((const void *)(uintptr_t)plugins_load,
                              installed)) {
        search.installed = installed;
        directory_load(&search, installed, false);
    }
    directory_load(&search, PLUGINDIR, false);
    cpu_plugin_move_first(context);
    if (context->backend_count == 0)
        return no_plugin_error(&search);
    unknown_backends_log(&search);
    return TANDEM_OK;
}
