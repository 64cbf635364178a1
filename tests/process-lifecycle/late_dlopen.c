/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: late-dlopen MODULE DEVICE
 *
 * Loads the module of process-case, and with it the library, with dlopen, uses
 * it, closes it with or without its context, does the same again, and exits.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void (*run)(const char *device, char **steps);

static void *thread_use(void *device)
{
    char *steps[] = {"open", "work", "close", NULL};

    run(device, steps);
    return NULL;
}

int main(int count, char **words)
{
    static char *const uses[2][5] = {{"open", "work", "start", NULL},
                                     {"open", "work", "start", "close", NULL}};
    pthread_t thread;

    for (int i = 0; i < 4 && count == 3; i++) {
        void *module = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);

        if (module == NULL) {
            fprintf(stderr, "late-dlopen: %s\n", dlerror());
            return 2;
        }
        *(void **)&run = dlsym(module, "steps_run");
        run(words[2], (char **)uses[i % 2]);
        /* Another thread uses the library, and ends. */
        if (pthread_create(&thread, NULL, thread_use, words[2]) != 0 ||
            pthread_join(thread, NULL) != 0 || dlclose(module) != 0)
            return 3;
    }
    return 0;
}
