/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TANDEM_LAYER_OBJECT_CACHE: creates one context for each device and builds
 * the same source with the same options only once in a process, so that
 * thousands of devices can be opened in sequence. The cache is between the
 * layer and the driver: the layer still counts and fails all calls. The plugin
 * sees separate program objects, whose kernels come from the program that was
 * built first. For callers that do not retain programs.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXTS 8
#define PROGRAMS 512

struct cached_context {
    cl_device_id device;
    cl_context context;
};

/* A program object of the plugin, and the built program that replaces it. */
struct alias {
    cl_program program, built;
    char *text;
};

struct build {
    cl_program program;
    char *text, *options;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cl_icd_dispatch driver;
static struct cached_context contexts[CONTEXTS];
static struct alias aliases[PROGRAMS];
static struct build builds[PROGRAMS];

static cl_context CL_API_CALL cached_clCreateContext(
    const cl_context_properties *properties, cl_uint device_count,
    const cl_device_id *devices,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
    void *user, cl_int *error)
{
    cl_context made = NULL;
    int at = 0;

    if (device_count != 1 || notify)
        return driver.clCreateContext(properties, device_count, devices,
                                      notify, user, error);
    pthread_mutex_lock(&mutex);
    while (at < CONTEXTS && contexts[at].context &&
           contexts[at].device != devices[0])
        at++;
    if (at < CONTEXTS)
        made = contexts[at].context;
    if (made && error)
        *error = CL_SUCCESS;
    if (!made)
        made = driver.clCreateContext(properties, 1, devices, NULL, NULL,
                                      error);
    if (made && at < CONTEXTS) {
        contexts[at] = (struct cached_context){devices[0], made};
        driver.clRetainContext(made);
    }
    pthread_mutex_unlock(&mutex);
    return made;
}

/*
 * Waits for work that a lost device left running, so that the next device
 * starts with an idle driver.
 */
static cl_int CL_API_CALL cached_clReleaseCommandQueue(cl_command_queue queue)
{
    driver.clFinish(queue);
    return driver.clReleaseCommandQueue(queue);
}

/* ---- programs ---- */

/* Locked. Finds a program (NULL: a free entry), or returns NULL. */
static struct alias *alias_of(cl_program program)
{
    for (int i = 0; i < PROGRAMS; i++)
        if (aliases[i].program == program)
            return &aliases[i];
    return NULL;
}

static cl_program built_of(cl_program program)
{
    const struct alias *alias;
    cl_program built = program;

    pthread_mutex_lock(&mutex);
    alias = alias_of(program);
    if (alias && alias->built)
        built = alias->built;
    pthread_mutex_unlock(&mutex);
    return built;
}

static char *text_join(cl_uint string_count, const char **strings,
                       const size_t *lengths)
{
    size_t bytes = 0;
    char *text;

    for (cl_uint i = 0; i < string_count; i++)
        bytes += lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
    text = malloc(bytes + 1);
    bytes = 0;
    for (cl_uint i = 0; text && i < string_count; i++) {
        const size_t length =
            lengths && lengths[i] ? lengths[i] : strlen(strings[i]);

        memcpy(text + bytes, strings[i], length);
        bytes += length;
    }
    if (text)
        text[bytes] = '\0';
    return text;
}

static cl_program CL_API_CALL cached_clCreateProgramWithSource(
    cl_context context, cl_uint string_count, const char **strings,
    const size_t *lengths, cl_int *error)
{
    cl_program made = driver.clCreateProgramWithSource(
        context, string_count, strings, lengths, error);
    struct alias *place;

    if (!made)
        return NULL;
    pthread_mutex_lock(&mutex);
    place = alias_of(NULL);
    if (place)
        *place = (struct alias){made, NULL,
                                text_join(string_count, strings, lengths)};
    pthread_mutex_unlock(&mutex);
    return made;
}

/* Locked. Returns the entry of this program's build, or a free one. */
static struct build *build_of(const char *text, const char *options)
{
    for (int i = 0; i < PROGRAMS; i++)
        if (!builds[i].program || (strcmp(builds[i].options, options) == 0 &&
                                   strcmp(builds[i].text, text) == 0))
            return &builds[i];
    return NULL;
}

/* Returns true if the program was built before; otherwise records its build. */
static bool build_known(cl_program program, const char *options, bool note)
{
    struct alias *alias;
    struct build *build = NULL;
    bool known = false;

    pthread_mutex_lock(&mutex);
    alias = alias_of(program);
    if (alias && alias->text)
        build = build_of(alias->text, options);
    known = build && build->program;
    if (build && !known && note) {
        *build = (struct build){program, strdup(alias->text), strdup(options)};
        driver.clRetainProgram(program);
    }
    if (known)
        alias->built = build->program;
    pthread_mutex_unlock(&mutex);
    return known;
}

static cl_int CL_API_CALL
cached_clBuildProgram(cl_program program, cl_uint device_count,
                      const cl_device_id *devices, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    const char *key = options ? options : "";
    cl_int error;

    if (!notify && build_known(program, key, false))
        return CL_SUCCESS;
    error = driver.clBuildProgram(program, device_count, devices, options,
                                  notify, user);
    if (error == CL_SUCCESS && !notify)
        build_known(program, key, true);
    return error;
}

static cl_int CL_API_CALL cached_clReleaseProgram(cl_program program)
{
    struct alias *alias;

    pthread_mutex_lock(&mutex);
    alias = alias_of(program);
    if (alias) {
        free(alias->text);
        memset(alias, 0, sizeof *alias);
    }
    pthread_mutex_unlock(&mutex);
    return driver.clReleaseProgram(program);
}

/* ---- queries of programs ---- */

static cl_kernel CL_API_CALL cached_clCreateKernel(cl_program program,
                                                   const char *name,
                                                   cl_int *error)
{
    return driver.clCreateKernel(built_of(program), name, error);
}

static cl_int CL_API_CALL cached_clGetProgramInfo(cl_program program,
                                                  cl_program_info name,
                                                  size_t room, void *value,
                                                  size_t *out_size)
{
    return driver.clGetProgramInfo(built_of(program), name, room, value,
                                   out_size);
}

static cl_int CL_API_CALL cached_clGetProgramBuildInfo(
    cl_program program, cl_device_id device, cl_program_build_info name,
    size_t room, void *value, size_t *out_size)
{
    return driver.clGetProgramBuildInfo(built_of(program), device, name, room,
                                        value, out_size);
}

void object_cache_environment(void)
{
    const char *text = getenv("TANDEM_LAYER_OBJECT_CACHE");

    if (!text || strcmp(text, "1") != 0)
        return;
    driver = target;
    target.clCreateContext = cached_clCreateContext;
    target.clReleaseCommandQueue = cached_clReleaseCommandQueue;
    target.clCreateProgramWithSource = cached_clCreateProgramWithSource;
    target.clBuildProgram = cached_clBuildProgram;
    target.clReleaseProgram = cached_clReleaseProgram;
    target.clCreateKernel = cached_clCreateKernel;
    target.clGetProgramInfo = cached_clGetProgramInfo;
    target.clGetProgramBuildInfo = cached_clGetProgramBuildInfo;
}
