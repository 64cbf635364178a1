/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example plugin (src/example) with scripted misbehaviour. Without a script
 * it is a correct plugin from a third party. The environment variable
 * TANDEM_TEST_PLUGIN contains words with commas between them; each affects the
 * functions or the table of the example plugin, whose name is "example":
 *
 *   name=TEXT      has this name; empty: no text
 *   null, major, newer, size=N, noname, missing=ENTRY, count=STATUS, good
 *                  the table is invalid in this way, or of a later minor
 *                  version, and there is no device
 *   devices=N      has this number of identical devices
 *   many, nodescribe, garbage, noerror
 *                  reports 4294967295 devices, fails to describe them too,
 *                  describes them with invalid data, has no error messages
 *   self-test      is a GPU, whose tune reports the start and the result of a
 *                  self-test if the device was opened for that
 *   unified        shares the host's memory
 *   crash=PLACE, hang=PLACE
 *                  crashes or hangs in device_count (PLACE count), in open, in
 *                  the self-test, or in launches of an operator (PLACE gemm)
 *   open=STATUS, opennull, stream=STATUS
 *                  fails to open a device or to create a stream
 *   status, deaf   transfers and launches return an undefined status, waits
 *                  never return
 *   only=OP+OP     supports only these of add, mul, relu, gemm
 *   even, large, dense, side=N
 *                  does not support a shape with an odd extent, shapes of fewer
 *                  than 4096 elements, tensors that are not contiguous, GEMMs
 *                  with a larger extent
 *   order          returns TANDEM_UNSUPPORTED for invalid shapes
 *   terse          all messages are the same
 *   slow=US        each GEMM takes this many microseconds longer
 *   lose=N         the N-th launch (from 1) on device 0 loses the device
 *   fail=OP        each launch of this operator fails
 *   abort=OP       a launch of this operator ends the process
 *   orphan=OP      a launch of this operator starts a process, which keeps the
 *                  output open for 60 s and then says that it ends, prints its
 *                  id and ends its own process
 *   wrong          add multiplies
 *   offset         ignores the offset of an upload
 *   overwrite      writes the byte after the output of relu
 *   status-order   returns TANDEM_UNSUPPORTED for buffers of other devices
 *
 * Any thread may call it, as the example plugin.
 */
#include <config.h>

#include "common/gemm_operator.h"
#include "example/example.h"

#include "common/last_error.h"
#include "unit/host/required_entries.h"

#include <tandem/extensions.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* plugin.c of the example plugin is compiled with this name for its query. */
#undef tandem_backend_query
const struct tandem_backend *example_query(uint32_t host_abi_major);
TANDEM_EXPORT const struct tandem_backend *
tandem_backend_query(uint32_t host_abi_major);

static const struct tandem_backend *example;
static tandem_log_fn log_line;
static void *log_user;

/* ---- the script ---- */

/*
 * Returns the value of a word of the script, "" if it has no value, or NULL if
 * the script does not contain it.
 */
static const char *setting(const char *word)
{
    const char *text = secure_getenv("TANDEM_TEST_PLUGIN");
    const size_t length = strlen(word);

    for (; text != NULL; text = strchr(text, ',')) {
        text += *text == ',';
        if (strncmp(text, word, length) == 0 &&
            strchr("=,", text[length]) != NULL)
            return text + length + (text[length] == '=');
    }
    return NULL;
}

static uint64_t setting_number(const char *word, uint64_t otherwise)
{
    const char *text = setting(word);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static enum tandem_status setting_status(const char *word)
{
    const char *text = setting(word);

    return text != NULL ? (enum tandem_status)atoi(text) : TANDEM_OK;
}

/* Returns true if the list of names after a word contains the name. */
static bool setting_lists(const char *word, const char *name)
{
    const char *list = setting(word);
    const size_t length = strlen(name);

    for (; list != NULL && strchr(",", *list) == NULL; list++)
        if (strncmp(list, name, length) == 0 &&
            strchr("+,", list[length]) != NULL)
            return true;
    return false;
}

/* Crashes or hangs if the script says so. */
static void misbehave(const char *place)
{
    if (setting_lists("crash", place)) {
        signal(SIGSEGV, SIG_DFL); /* A sanitizer's handler would exit. */
        raise(SIGSEGV);
    }
    while (setting_lists("hang", place))
        pause();
}

/* ---- devices ---- */

static const char *last_error(void)
{
    const char *message = last_error_get();

    if (setting("noerror") != NULL)
        return NULL;
    return setting("terse") != NULL && message[0] != '\0' ? "no" : message;
}

static enum tandem_status device_count(uint32_t *out_count)
{
    static const char *const tables[] = {"null",   "major",   "newer", "size",
                                         "noname", "missing", "good",  "name"};
    enum tandem_status status = example->device_count(out_count);

    misbehave("count");
    if (status != TANDEM_OK)
        return status;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (setting(tables[i]) != NULL || setting("count") != NULL) {
            *out_count = 0;
            last_error_set(TANDEM_NO_DEVICE, "the test plugin has no device");
            return setting("count") != NULL ? setting_status("count")
                                            : TANDEM_NO_DEVICE;
        }
    *out_count = setting("many") != NULL || setting("nodescribe") != NULL
                     ? UINT32_MAX
                     : (uint32_t)setting_number("devices", 1);
    return TANDEM_OK;
}

/* Returns the index that the example plugin knows. */
static uint32_t example_index(uint32_t index)
{
    uint32_t count = 0;

    return device_count(&count) == TANDEM_OK && index < count ? 0 : 1;
}

static enum tandem_status device_describe(uint32_t index,
                                          struct tandem_device_info *out_info)
{
    enum tandem_status status;

    if (setting("nodescribe") != NULL || setting("noerror") != NULL)
        return TANDEM_FAILED;
    status = example->device_describe(example_index(index), out_info);
    if (status == TANDEM_OK && setting("garbage") != NULL) {
        memset((char *)out_info + sizeof(size_t), 0xff,
               out_info->struct_size - sizeof(size_t));
        out_info->caps = TANDEM_CAP_ASYNC | TANDEM_CAP_CORE_OPERATORS;
        out_info->duplicate_of = 1000000;
    } else if (status == TANDEM_OK &&
               out_info->struct_size >=
                   TANDEM_SIZE_THROUGH(struct tandem_device_info, name)) {
        snprintf(out_info->name, sizeof out_info->name, "Example %u", index);
        if (setting("self-test") != NULL)
            out_info->kind = TANDEM_DEVICE_GPU;
        if (setting("unified") != NULL)
            out_info->caps |= TANDEM_CAP_UNIFIED_MEMORY;
    }
    return status;
}

static struct tandem_device *self_test_device;

static enum tandem_status device_open(uint32_t index,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    enum tandem_status status =
        example->open(example_index(index), options, out_device);

    misbehave("open");
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; options != NULL && i < options->count; i++)
        if (strcmp(options->keys[i], "self_test_only") == 0)
            self_test_device = *out_device;
    if (options != NULL && options->log != NULL) {
        log_line = options->log;
        log_user = options->log_user;
    }
    /* The index tells the device that a launch loses. */
    object_get(*out_device, DEVICE)->bytes = index;
    status = setting_status("open");
    if (status != TANDEM_OK || setting("opennull") != NULL) {
        example->close(*out_device);
        *out_device =
            status != TANDEM_OK ? (void *)(uintptr_t)0xdead0000 : NULL;
        last_error_set(status, "the device does not open, as scripted");
    }
    return status;
}

/* Like the OpenCL plugin, reports that the self-test starts, and then its
 * result. */
static enum tandem_status tune(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn sink, void *user)
{
    (void)budget_ns;
    if (device != self_test_device)
        return TANDEM_OK;
    sink(user, "sm90a_self_test", "started");
    misbehave("self-test");
    sink(user, "sm90a_self_test", "passed");
    return TANDEM_OK;
}

static const void *extension(const char *name)
{
    static const struct tandem_tune_extension table = {sizeof(table), tune};

    return strcmp(name, TANDEM_EXTENSION_TUNE) == 0 ? &table : NULL;
}

static enum tandem_status stream_create(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream)
{
    const enum tandem_status status = setting_status("stream");

    if (status == TANDEM_OK)
        return example->stream_create(device, flags, out_stream);
    *out_stream = (void *)(uintptr_t)0xdead0000;
    return status;
}

/* ---- transfers and waits ---- */

/* Returns the status unless the script replaces it. */
static enum tandem_status answer(enum tandem_status status)
{
    return setting("status") != NULL ? (enum tandem_status)12345 : status;
}

/* Ends a wait, or never returns. */
static enum tandem_status wait_end(enum tandem_status status)
{
    if (setting("deaf") != NULL) {
        log_line(log_user, TANDEM_LOG_WARNING, "waits for ever");
        for (;;)
            pause();
    }
    return answer(status);
}

static enum tandem_status upload(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags)
{
    return answer(example->upload(stream, buffer,
                                  setting("offset") != NULL ? 0 : offset,
                                  source, bytes, flags));
}

static enum tandem_status download(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, void *target,
                                   uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns)
{
    return wait_end(example->download(stream, buffer, offset, target, bytes,
                                      flags, timeout_ns));
}

static enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                             uint64_t timeout_ns)
{
    return wait_end(example->stream_synchronize(stream, timeout_ns));
}

static enum tandem_status event_wait(struct tandem_event *event,
                                     uint64_t timeout_ns)
{
    return wait_end(example->event_wait(event, timeout_ns));
}

/* ---- what is supported ---- */

static bool op_is_excluded(const char *name)
{
    return setting("only") != NULL && !setting_lists("only", name);
}

static const char *op_name(uint32_t id)
{
    return id == TANDEM_OP_ADD ? "add" : id == TANDEM_OP_MUL ? "mul" : "relu";
}

static bool tensor_is_excluded(const struct tandem_tensor_desc *tensor)
{
    int64_t elements = 1;
    bool odd = false, strided = false;

    for (uint32_t i = tensor->rank; i-- > 0;) {
        strided |= tensor->shape[i] != 1 && tensor->strides[i] != elements;
        odd |= tensor->shape[i] % 2 != 0;
        elements *= tensor->shape[i];
    }
    return (setting("even") != NULL && odd) ||
           (setting("large") != NULL && elements < 4096) ||
           (setting("dense") != NULL && strided);
}

/* Decides about a call that the example plugin supports. */
static enum tandem_status
op_restrict(const struct tandem_op *op,
            const struct tandem_tensor_desc *const *inputs,
            uint32_t input_count, const struct tandem_tensor_desc *output)
{
    bool excluded =
        op_is_excluded(op_name(op->id)) || tensor_is_excluded(output);

    for (uint32_t i = 0; i < input_count; i++)
        excluded |= inputs[i] != NULL && tensor_is_excluded(inputs[i]);
    return excluded ? last_error_set(TANDEM_UNSUPPORTED, "as scripted")
                    : TANDEM_OK;
}

static enum tandem_status gemm_restrict(const struct tandem_gemm *gemm)
{
    const int64_t most = (int64_t)setting_number("side", 4096);

    /* An empty product has no sizes when it is an operator. */
    if (gemm->m == 0 || gemm->n == 0)
        return op_is_excluded("gemm") || setting("large") != NULL
                   ? last_error_set(TANDEM_UNSUPPORTED, "as scripted")
                   : TANDEM_OK;
    return op_is_excluded("gemm") || gemm->m > most || gemm->n > most ||
                   gemm->k > most ||
                   (setting("even") != NULL &&
                    (gemm->m | gemm->n | gemm->k) % 2 != 0) ||
                   (setting("large") != NULL &&
                    gemm->m * gemm->n * gemm->k < 4096)
               ? last_error_set(TANDEM_UNSUPPORTED, "as scripted")
               : TANDEM_OK;
}

/* ---- launches ---- */

/* Starts a process that keeps the output of this process open, and ends. */
static _Noreturn void orphan_leave(void)
{
    const pid_t child = fork();

    if (child == 0) {
        sleep(60);
        fputs("orphan ends\n", stderr);
        _exit(0);
    }
    fprintf(stderr, "orphan %d\n", (int)child);
    _exit(0);
}

/* Loses the device or fails the launch if the script says so. */
static enum tandem_status launch_begin(struct object *device, const char *op)
{
    static atomic_uint_fast64_t launches;

    if (device->bytes == 0 && atomic_fetch_add(&launches, 1) + 1 >=
                                  setting_number("lose", UINT64_MAX)) {
        device->lost = true;
        return last_error_set(TANDEM_DEVICE_LOST, "the device is gone");
    }
    if (setting_lists("abort", op))
        abort();
    if (setting_lists("orphan", op))
        orphan_leave();
    misbehave(op);
    if (setting_lists("fail", op))
        return last_error_set(TANDEM_FAILED, "the device could not");
    return TANDEM_OK;
}

static struct object *stream_device(const struct tandem_stream *stream)
{
    struct object *object = object_get(stream, STREAM);

    return object != NULL ? object->device : NULL;
}

/* Checks a launch of gemm. A NULL device means that the stream is invalid. */
static enum tandem_status gemm_begin(struct object *device,
                                     const struct tandem_gemm *gemm)
{
    enum tandem_status status;

    if (device == NULL)
        return TANDEM_INVALID_ARGUMENT;
    status = gemm_check(gemm, device);
    if (status != TANDEM_OK && setting("status-order") != NULL &&
        strstr(last_error_get(), "another device") != NULL)
        return TANDEM_UNSUPPORTED;
    if (status == TANDEM_INVALID_ARGUMENT && setting("order") != NULL &&
        gemm != NULL &&
        (gemm->m < 0 || gemm->n < 0 || gemm->k < 0 || gemm->batch < 1))
        return last_error_set(TANDEM_UNSUPPORTED, "not valid or not supported");
    if (status == TANDEM_OK)
        status = gemm_restrict(gemm);
    return status == TANDEM_OK ? launch_begin(device, "gemm") : status;
}

static enum tandem_status gemm(struct tandem_stream *stream,
                               const struct tandem_gemm *product)
{
    const uint64_t us = setting_number("slow", 0);
    const struct timespec pause_time = {(time_t)(us / 1000000),
                                        (long)(us % 1000000 * 1000)};
    enum tandem_status status = gemm_begin(stream_device(stream), product);

    if (status == TANDEM_OK)
        status = example->gemm(stream, product);
    if (status == TANDEM_OK && us > 0)
        nanosleep(&pause_time, NULL);
    return status;
}

/* ---- prepared operators ---- */

/* Decides about a call that the example plugin supports. */
static enum tandem_status call_restrict(const struct prepared_call *call)
{
    const struct op_call checked = {.info = call->info,
                                    .op = &call->op,
                                    .inputs = call->inputs,
                                    .outputs = call->outputs,
                                    .input_count = call->input_count,
                                    .output_count = call->output_count};
    struct tandem_gemm product;
    enum tandem_status status;

    if (call->op.id != TANDEM_OP_GEMM)
        return op_restrict(&call->op, call->inputs, call->input_count,
                           call->outputs[0]);
    status = gemm_from_call(&checked, &product);
    return status == TANDEM_OK ? gemm_restrict(&product) : status;
}

static enum tandem_status op_prepare_scripted(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_prepared_info *out_info,
    struct tandem_prepared **out_prepared)
{
    const bool query = (flags & TANDEM_PREPARE_QUERY) != 0;
    struct tandem_prepared *prepared = NULL;
    enum tandem_status status =
        example->prepare(device, op, inputs, input_count, outputs, output_count,
                         flags & ~(uint32_t)TANDEM_PREPARE_QUERY, out_info,
                         query ? &prepared : out_prepared);

    if (status != TANDEM_OK)
        return status;
    if (!query)
        prepared = *out_prepared;
    status = call_restrict(object_get(prepared, PREPARED)->call);
    if (query || status != TANDEM_OK)
        example->prepared_release(prepared);
    if (status != TANDEM_OK && !query)
        *out_prepared = NULL;
    return status;
}

static enum tandem_status
prepared_launch_scripted(struct tandem_stream *stream,
                         struct tandem_prepared *prepared,
                         const struct tandem_memory *memory, uint32_t count,
                         const double *scalars, uint32_t scalar_count)
{
    const struct object *operator= object_get(prepared, PREPARED);
    struct object *device = stream_device(stream);
    const uint64_t us = setting_number("slow", 0);
    const struct timespec pause_time = {(time_t)(us / 1000000),
                                        (long)(us % 1000000 * 1000)};
    enum tandem_status status;
    struct tandem_op *op;
    uint32_t id;

    if (operator== NULL || device == NULL)
        return TANDEM_INVALID_ARGUMENT;
    op = &operator->call->op;
    id = op->id;
    status = launch_begin(device, id == TANDEM_OP_GEMM ? "gemm" : op_name(id));
    if (status != TANDEM_OK)
        return status;
    if (id == TANDEM_OP_ADD && setting("wrong") != NULL)
        op->id = TANDEM_OP_MUL;
    status =
        example->launch(stream, prepared, memory, count, scalars, scalar_count);
    op->id = id;
    if (status == TANDEM_INVALID_ARGUMENT && setting("status-order") != NULL &&
        strstr(last_error_get(), "another device") != NULL)
        return TANDEM_UNSUPPORTED;
    if (id == TANDEM_OP_RELU && setting("overwrite") != NULL &&
        status == TANDEM_OK && memory[1].byte_offset > 0)
        object_get(memory[1].buffer, BUFFER)
            ->memory[memory[1].byte_offset - 1] ^= 0xff;
    if (id == TANDEM_OP_GEMM && status == TANDEM_OK && us > 0)
        nanosleep(&pause_time, NULL);
    return answer(status);
}

/* ---- the table ---- */

static void never_called(void)
{
}

/* The table of a later minor version, which is longer. */
static struct {
    struct tandem_backend table;
    void (*later[4])(void);
} backend;
static char name[64];

#define ENTRY_SET(entry) table->entry = (__typeof__(table->entry))never_called;
#define ENTRY_DROP(entry)                                                      \
    if (strcmp(missing, #entry) == 0)                                          \
        table->entry = NULL;

static void table_fill(struct tandem_backend *table)
{
    *table = *example;
    table->last_error = last_error;
    table->device_count = device_count;
    table->device_describe = device_describe;
    table->open = device_open;
    table->upload = upload;
    table->download = download;
    table->gemm = gemm;
    table->prepare = op_prepare_scripted;
    table->launch = prepared_launch_scripted;
    table->stream_create = stream_create;
    if (setting("self-test") != NULL)
        table->extension = extension;
    table->stream_synchronize = stream_synchronize;
    table->event_wait = event_wait;
    snprintf(name, sizeof name, "%s", example->name);
    if (setting("name") != NULL)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(setting("name"), ","),
                 setting("name"));
    table->name = setting("noname") != NULL ? NULL : name;
}

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    struct tandem_backend *table = &backend.table;
    const char *missing = setting("missing");

    if (example_query(host_abi_major) == NULL || setting("null") != NULL)
        return NULL;
    example = example_query(TANDEM_ABI_MAJOR);
    memset(&backend, 0, sizeof backend);
    table_fill(table);
    if (setting("major") != NULL)
        table->abi_major = TANDEM_ABI_MAJOR + 1;
    if (setting("newer") != NULL) {
        table->abi_minor = TANDEM_ABI_MINOR + 7;
        table->struct_size = sizeof backend;
    }
    table->struct_size = setting_number("size", table->struct_size);
    if (missing != NULL) {
        OPTIONAL_ENTRIES(ENTRY_SET)
        REQUIRED_ENTRIES(ENTRY_DROP)
        OPTIONAL_ENTRIES(ENTRY_DROP)
    }
    return table;
}
