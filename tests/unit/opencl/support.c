/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of the OpenCL plugin share; see support.h. */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define PLUGIN ".libs/tandem-opencl.so"

const struct tandem_backend *backend;

const struct tandem_backend *plugin_load(void)
{
    void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    /*
     * Converts the void * of dlsym to a function pointer through memory, as
     * ISO C requires.
     */
    tandem_backend_query_fn query;
    void *symbol = dlsym(library, TANDEM_BACKEND_QUERY_SYMBOL);
    memcpy(&query, &symbol, sizeof(query));
    backend = symbol != NULL ? query(TANDEM_ABI_MAJOR) : NULL;
    return backend;
}

int plugin_start(void)
{
    uint32_t count;

    if (plugin_load() == NULL)
        return 1;
    if (backend->device_count(&count) == TANDEM_OK)
        return 0;
    fprintf(stderr, "%s\n", backend->last_error());
    return SKIPPED;
}

void expect_ok(enum tandem_status status, const char *what)
{
    ck_assert_msg(status == TANDEM_OK, "%s: %d, %s", what, (int)status,
                  backend->last_error());
}

pid_t process_start(const char *self, const char *what)
{
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, what, (char *)NULL);
        _exit(99);
    }
    ck_assert(child > 0);
    return child;
}

int process_end(pid_t child)
{
    int status = 0;
    ck_assert(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
