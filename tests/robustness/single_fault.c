/* SPDX-License-Identifier: Apache-2.0 */
/* One device and one stream for tests of single faults; see single_fault.h. */
#include "single_fault.h"

#include "../../tools/common/tensor_call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct plug plug;
struct workload work;
static struct layer_counts before;

void device_open(const char *const *pairs)
{
    memset(&work, 0, sizeof work);
    work.api = plug.api;
    before = plug_counts(&plug);
    ck_assert_msg(workload_open(&work, pairs), "%s", work.failed);
    OK(plug.api->stream_create(work.device, 0, &work.stream));
}

void device_new(const char *key, const char *value)
{
    const char *const pairs[] = {"cache_dir", "", key, value, NULL};

    device_open(pairs);
}

void device_end(void)
{
    plug.script_set(NULL);
    workload_close(&work);
    expect_no_object_left();
}

void expect_no_object_left(void)
{
    const struct layer_counts after = plug_counts(&plug);

    for (int i = 0; i < LAYER_OBJECTS; i++)
        ck_assert_msg(plug_alive(&after, i) == plug_alive(&before, i),
                      "%" PRIu64 " %s left",
                      plug_alive(&after, i) - plug_alive(&before, i),
                      plug_objects[i]);
}

static bool is_freed(const struct layer_counts *start)
{
    const struct layer_counts now = plug_counts(&plug);

    for (int i = 0; i < LAYER_OBJECTS; i++)
        if (plug_alive(&now, i) != plug_alive(start, i))
            return false;
    return true;
}

void expect_freed_later(const struct layer_counts *start)
{
    bool freed = false;

    for (int i = 0; i < 6000 && !freed; i++) {
        device_new(NULL, NULL);
        workload_close(&work);
        freed = is_freed(start);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    ck_assert(freed);
}

void script(enum layer_fault fault, const char *function, const char *text,
            int code)
{
    const struct layer_script wanted = {.fault = fault,
                                        .function = function,
                                        .text = text,
                                        .nth = 1,
                                        .times = UINT64_MAX,
                                        .code = code,
                                        .build_log = "line 1 is wrong\nmore"};

    plug.script_set(&wanted);
}

void script_nth(enum layer_fault fault, const char *function, uint64_t nth,
                uint64_t times, int code)
{
    const struct layer_script wanted = {.fault = fault,
                                        .function = function,
                                        .nth = nth,
                                        .times = times,
                                        .code = code};

    plug.script_set(&wanted);
}

uint64_t calls_of(const char *function)
{
    const char *name;
    uint64_t calls;

    for (uint32_t i = 0; (name = plug.function(i, &calls)); i++)
        if (strcmp(name, function) == 0)
            return calls;
    ck_abort_msg("no function %s", function);
    return 0;
}

struct tandem_buffer *ramp_new(void)
{
    float values[N];
    struct tandem_buffer *buffer;

    fill_ramp(values, N, 1.0f, 1.0f);
    ck_assert(buffer_new(&work, sizeof values, &buffer));
    ck_assert(upload(&work, buffer, values, sizeof values));
    return buffer;
}

enum tandem_status unary(uint32_t id, struct tandem_buffer *buffer)
{
    const struct tandem_tensor_desc tensor = vector(buffer, N);
    const struct tandem_tensor_desc *operand = &tensor;
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return tensors_launch(plug.api, work.device, work.stream, &op, &operand, 1,
                          &operand, 1, 64);
}

enum tandem_status prepare(uint32_t id)
{
    const struct tandem_tensor_desc tensor = vector(NULL, N);
    const struct tandem_tensor_desc *operand = &tensor;
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return tensors_prepare(plug.api, work.device, &op, &operand, 1, &operand, 1,
                           64);
}

enum tandem_status poll_ready(uint32_t id)
{
    const struct tandem_tensor_desc tensor = vector(NULL, N);
    const struct tandem_tensor_desc *operand = &tensor;
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return tensors_poll(plug.api, work.device, &op, &operand, 1, &operand, 1,
                        64);
}

enum tandem_status ready_wait(uint32_t id)
{
    const struct timespec pause = {0, 5000000};
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; i < 12000 && status == TANDEM_NOT_READY; i++) {
        status = poll_ready(id);
        nanosleep(&pause, NULL);
    }
    return status;
}

void expect_message(const char *text)
{
    ck_assert_msg(strstr(plug.api->last_error(), text) != NULL, "\"%s\"",
                  plug.api->last_error());
}

bool is_context_released(void)
{
    const struct layer_counts now = plug_counts(&plug);

    return plug_alive(&now, LAYER_CONTEXT) ==
           plug_alive(&before, LAYER_CONTEXT);
}

enum tandem_status synchronize(void)
{
    return plug.api->stream_synchronize(work.stream, TANDEM_TIMEOUT_INFINITE);
}

/* Runs this program with this value of TANDEM_LAYER_GPU. */
static int run_as(const char *gpu)
{
    const char *self = "/proc/self/exe";
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        setenv("TANDEM_LAYER_GPU", gpu, 1);
        execl(self, self, (char *)NULL);
        _exit(99);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int single_as_gpu(bool discrete)
{
    int status;

    if (getenv("TANDEM_LAYER_GPU"))
        return 0;
    status = run_as("1");
    return status == 0 && discrete ? run_as("discrete") : status;
}
