/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a process that belongs to its host: signal handlers,
 * environment, directory, locale, floating-point environment, threads, files.
 * Steps change it, check that the library did not, and print results to be
 * compared with those in another state.
 */
#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __SSE__
#include <xmmintrin.h>
#define FLUSHING 0x8040u /* Flushes subnormal results and operands. */
#endif

#include "process_case.h"

extern char **environ;

/* ---- changes by the host ---- */

static void signal_ignore(int number)
{
    (void)number;
}

static void step_own_state(void)
{
    const struct sigaction own = {.sa_handler = signal_ignore};

    sigaction(SIGUSR1, &own, NULL);
    sigaction(SIGFPE, &own, NULL);
    umask(037);
}

/* Limits the process to one of its CPUs. */
static void step_one_cpu(void)
{
    cpu_set_t all, one;
    int processor = 0;

    MUST(sched_getaffinity(0, sizeof all, &all) == 0);
    while (!CPU_ISSET(processor, &all))
        processor++;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    MUST(sched_setaffinity(0, sizeof one, &one) == 0);
}

static void step_traps(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(step_argument ? FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW
                                 : FE_ALL_EXCEPT);
}

/* "round=down", "round=up" or "round=toward-zero". */
static void step_round(void)
{
    fesetround(strcmp(step_argument, "down") == 0 ? FE_DOWNWARD
               : strcmp(step_argument, "up") == 0 ? FE_UPWARD
                                                  : FE_TOWARDZERO);
}

static unsigned flushing_read(void)
{
#ifdef __SSE__
    return _mm_getcsr() & FLUSHING;
#else
    return 0;
#endif
}

static void step_flush(void)
{
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | FLUSHING);
#endif
}

/* The locale must not use a decimal point. */
static void decimal_point_check(void)
{
    char text[16];

    snprintf(text, sizeof text, "%.1f", 0.5);
    MUST(strcmp(text, "0.5") != 0);
}

static void step_locale(void)
{
    MUST(setlocale(LC_ALL, step_argument) != NULL);
    decimal_point_check();
}

static void step_thread_locale(void)
{
    const locale_t locale = newlocale(LC_ALL_MASK, step_argument, (locale_t)0);

    MUST(locale != (locale_t)0);
    uselocale(locale);
    decimal_point_check();
}

/* ---- the state ---- */

#define SIGNALS 65

static struct state {
    struct sigaction actions[SIGNALS];
    sigset_t blocked;  /* In the calling thread. */
    char *environment; /* Each line is between two newlines. */
    char directory[4096], locale[512];
    locale_t thread_locale;
    mode_t umask;
    int timer_slack, rounding, traps;
    unsigned flushing;
} before;

static char *environment_read(void)
{
    size_t bytes = 2;
    char *text, *end;

    for (char **line = environ; *line; line++)
        bytes += strlen(*line) + 1;
    text = calloc(1, bytes);
    MUST(text != NULL);
    end = stpcpy(text, "\n");
    for (char **line = environ; *line; line++)
        end += sprintf(end, "%s\n", *line);
    return text;
}

static void state_read(struct state *out)
{
    memset(out, 0, sizeof *out);
    out->rounding = fegetround();
    out->traps = fegetexcept();
    out->flushing = flushing_read();
    for (int i = 1; i < SIGNALS; i++)
        sigaction(i, NULL, &out->actions[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &out->blocked);
    out->environment = environment_read();
    MUST(getcwd(out->directory, sizeof out->directory) != NULL);
    snprintf(out->locale, sizeof out->locale, "%s", setlocale(LC_ALL, NULL));
    out->thread_locale = uselocale((locale_t)0);
    out->umask = umask(022);
    umask(out->umask);
    out->timer_slack = prctl(PR_GET_TIMERSLACK);
}

static void step_state(void)
{
    state_read(&before);
}

/* The C library does not change the unused end of a mask. */
static bool masks_differ(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < SIGNALS; i++)
        if (sigismember(a, i) != sigismember(b, i))
            return true;
    return false;
}

/* Prints the names of the variables in the lines of `text` that `other` does
 * not contain. */
static void names_print(const char *text, const char *other)
{
    char line[8192];

    for (text++; *text != '\0'; text += strcspn(text, "\n") + 1) {
        snprintf(line, sizeof line, "\n%.*s\n", (int)strcspn(text, "\n"), text);
        if (!strstr(other, line))
            printf(" %.*s", (int)strcspn(text, "=\n"), text);
    }
}

/*
 * Prints the signals whose handlers changed and the environment variables that
 * changed, because a driver may change these. Nothing else may have changed.
 * Restores the default floating-point environment.
 */
static void step_changes(void)
{
    struct state after;

    state_read(&after);
    fesetenv(FE_DFL_ENV);
    MUST(after.rounding == before.rounding);
    MUST(after.traps == before.traps);
    MUST(after.flushing == before.flushing);
    MUST(!masks_differ(&before.blocked, &after.blocked));
    MUST(strcmp(before.directory, after.directory) == 0);
    MUST(strcmp(before.locale, after.locale) == 0);
    MUST(before.thread_locale == after.thread_locale);
    MUST(before.umask == after.umask);
    MUST(before.timer_slack == after.timer_slack);
    printf("changes:");
    for (int i = 1; i < SIGNALS; i++)
        if (before.actions[i].sa_handler != after.actions[i].sa_handler ||
            before.actions[i].sa_flags != after.actions[i].sa_flags ||
            masks_differ(&before.actions[i].sa_mask, &after.actions[i].sa_mask))
            printf(" %d", i);
    names_print(before.environment, after.environment);
    names_print(after.environment, before.environment);
    printf("\n");
    free(after.environment);
}

static void step_driver(void)
{
    MUST(driver_use != NULL);
    driver_use();
}

/* ---- threads ---- */

uint32_t threads_read(struct thread out[MAX_THREADS])
{
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    uint32_t count = 0;

    MUST(directory != NULL);
    while ((entry = readdir(directory)) && count < MAX_THREADS) {
        struct thread *thread = &out[count];
        const pid_t id = (pid_t)atoi(entry->d_name);
        unsigned long long blocked = 0;
        char path[64], line[256];
        bool is_found = false;
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)id);
        if (id == 0 || id == gettid() || !(file = fopen(path, "re")))
            continue;
        while (fgets(line, sizeof line, file)) {
            sscanf(line, "Name: %15s", thread->name);
            is_found |= sscanf(line, "SigBlk: %llx", &blocked) == 1;
        }
        fclose(file);
        thread->blocked = blocked;
        if (is_found && sched_getaffinity(id, sizeof thread->processors,
                                          &thread->processors) == 0)
            count++;
    }
    closedir(directory);
    return count;
}

/* "helpers=none" or "helpers=some": checks the threads of the CPU plugin. */
static void step_helpers(void)
{
    static struct thread threads[MAX_THREADS];
    const uint32_t count = threads_read(threads);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t helpers = 0;

    for (uint32_t i = 0; i < count; i++)
        helpers += strcmp(threads[i].name, "tandem-cpu") == 0;
    MUST(helpers < processors);
    if (strcmp(step_argument, "none") == 0)
        MUST(helpers == 0);
    else
        MUST(helpers > 0 || processors == 1);
}

/* No thread may run on a CPU that is forbidden to this thread. */
static void step_pinned(void)
{
    static struct thread threads[MAX_THREADS];
    const uint32_t count = threads_read(threads);
    cpu_set_t own;

    MUST(sched_getaffinity(0, sizeof own, &own) == 0);
    for (uint32_t i = 0; i < count; i++)
        MUST(CPU_EQUAL(&threads[i].processors, &own));
}

/* Sanitizers enlarge stack frames. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMALL_BYTES ((size_t)1 << 20)
#else
#define SMALL_BYTES ((size_t)64 << 10)
#endif

static void step_values(void);

static void *small_main(void *unused)
{
    (void)unused;
    client_open(&client);
    step_values();
    client_work(&client);
    client_close(&client);
    return NULL;
}

/* Loads the plugins and works in a thread with a small stack. */
static void step_small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, SMALL_BYTES) == 0);
    MUST(pthread_create(&thread, &attributes, small_main, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
}

/* ---- files ---- */

struct files {
    uint32_t count;
    uint32_t inherited; /* Descriptors above 2 without FD_CLOEXEC. */
};
static struct files files_before;

static struct files files_read(void)
{
    DIR *directory = opendir("/proc/self/fd");
    struct files files = {0, 0};
    struct dirent *entry;

    MUST(directory != NULL);
    while ((entry = readdir(directory))) {
        const int file = atoi(entry->d_name);

        if (entry->d_name[0] == '.' || file == dirfd(directory))
            continue;
        files.count++;
        files.inherited += file > 2 && !(fcntl(file, F_GETFD) & FD_CLOEXEC);
    }
    closedir(directory);
    return files;
}

static void step_files(void)
{
    files_before = files_read();
}

/* An exec must not inherit files of the library. */
static void step_files_not_inherited(void)
{
    MUST(files_read().inherited == files_before.inherited);
}

static void step_files_closed(void)
{
    MUST(files_read().count == files_before.count);
}

/* Opens files with the numbers of the standard streams, which are closed. */
static void step_own_streams(void)
{
    prints_warnings = false;
    for (int i = 0; i < 3; i++)
        if (memfd_create("stream", 0) != i)
            _exit(4);
}

/* The output of steps is still in the buffer of stdout. */
static void step_nothing_printed(void)
{
    struct stat status;

    for (int i = 0; i < 3; i++)
        if (fstat(i, &status) != 0 || status.st_size != 0)
            _exit(5);
}

/* ---- values ---- */

/* Enough elements to use the CPU plugin's worker threads. */
#define ROWS 1024
#define COLUMNS 256
#define SIDE 96

/* Fills both inputs with bit patterns of all kinds; special ones are more
 * frequent. The host's floating-point environment does not change them. */
static void inputs_fill(float *const inputs[2])
{
    static const float special[] = {
        0.0f,       -0.0f,    1.0f / 0.0f, -1.0f / 0.0f, 0x1.fffffep127f,
        1e-45f,     -1e-40f,  0x1p-126f,   1.0f,         -1.0f,
        1e30f,      88.7228f, -104.0f,     0.5f,         3.0f,
        0.0f / 0.0f};
    uint32_t state = 1;
    fenv_t host;

    fegetenv(&host);
    fesetenv(FE_DFL_ENV);
    for (int i = 0; i < 2 * ROWS * COLUMNS; i++) {
        float *out = &inputs[i % 2][i / 2];

        state = state * 1664525u + 1013904223u;
        *out = state >> 29 == 0 ? special[state >> 20 & 15]
                                : (float)(int32_t)state * 0x1p-28f;
        if (state >> 29 == 1)
            *out *= 1e-38f;
    }
    fesetenv(&host);
}

static struct tandem_tensor *matrix_wrap(float *data, int64_t rows,
                                         int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    struct tandem_tensor *tensor = NULL;

    OK(tandem_tensor_wrap(client.context, data, TANDEM_F32, 2, shape, NULL, 0,
                          &tensor));
    return tensor;
}

/* Waits for the tensor, destroys it, and prints the FNV-1a hash of its bits,
 * with the same value for all NaNs. */
static void hash_print(struct tandem_tensor *tensor, const float *data,
                       int64_t count, uint32_t op)
{
    uint64_t hash = 0xcbf29ce484222325u;

    OK(tandem_tensor_sync(tensor, TANDEM_TIMEOUT_INFINITE));
    tandem_tensor_destroy(tensor);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = 0x7fc00000;

        if (data[i] == data[i])
            memcpy(&bits, &data[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    printf("operator %u: %016llx\n", op, (unsigned long long)hash);
}

/* Prints hashes of results of operators of each kind. */
static void step_values(void)
{
    static const uint32_t ops[] = {
        TANDEM_OP_ADD,   TANDEM_OP_MUL,        TANDEM_OP_DIV,
        TANDEM_OP_SQRT,  TANDEM_OP_EXP,        TANDEM_OP_LOG,
        TANDEM_OP_TANH,  TANDEM_OP_RECIPROCAL, TANDEM_OP_SIGMOID,
        TANDEM_OP_ROUND, TANDEM_OP_SOFTMAX};
    static float a[ROWS * COLUMNS], b[ROWS * COLUMNS], y[ROWS * COLUMNS];
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = client.device};
    const int64_t axis = -1;
    struct tandem_tensor *inputs[2], *output;

    inputs_fill((float *const[]){a, b});
    inputs[0] = matrix_wrap(a, ROWS, COLUMNS);
    inputs[1] = matrix_wrap(b, ROWS, COLUMNS);
    for (uint32_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const struct tandem_op op = {.struct_size = sizeof op,
                                     .id = ops[i],
                                     .ints = &axis,
                                     .int_count = ops[i] == TANDEM_OP_SOFTMAX};

        output = matrix_wrap(y, ROWS, COLUMNS);
        OK(tandem_run(client.context, &op, inputs, i < 3 ? 2 : 1, &output, 1,
                      TANDEM_RUN_ON(client.device)));
        hash_print(output, y, ROWS * COLUMNS, op.id);
    }
    tandem_tensor_destroy(inputs[0]);
    tandem_tensor_destroy(inputs[1]);
    inputs[0] = matrix_wrap(a, SIDE, SIDE);
    inputs[1] = matrix_wrap(b, SIDE, SIDE);
    output = matrix_wrap(y, SIDE, SIDE);
    OK(tandem_matmul(client.context, &options, inputs[0], inputs[1], output));
    hash_print(output, y, SIDE * SIDE, TANDEM_OP_GEMM);
    tandem_tensor_destroy(inputs[0]);
    tandem_tensor_destroy(inputs[1]);
}

const struct step state_steps[] = {
    {"own-state", .run = step_own_state},
    {"one-cpu", .run = step_one_cpu},
    {"traps", .run = step_traps},
    {"round", .run = step_round},
    {"flush", .run = step_flush},
    {"locale", .run = step_locale},
    {"thread-locale", .run = step_thread_locale},
    {"state", .run = step_state},
    {"changes", .run = step_changes},
    {"driver", .run = step_driver},
    {"helpers", .run = step_helpers},
    {"pinned", .run = step_pinned},
    {"small-stack", .run = step_small_stack},
    {"files", .run = step_files},
    {"files-not-inherited", .run = step_files_not_inherited},
    {"files-closed", .run = step_files_closed},
    {"own-streams", .run = step_own_streams},
    {"nothing-printed", .run = step_nothing_printed},
    {"values", .run = step_values},
    {NULL},
};
