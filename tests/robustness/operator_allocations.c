/* SPDX-License-Identifier: Apache-2.0 */
/* Failing allocations in launches; see operator_allocations.h. */
#include "operator_allocations.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "failing_malloc.h"
#include "operator_example.h"
#include "unit/host/support.h"

/* The outputs of a launch without a failed allocation, and of the last one. */
static unsigned char want[TANDEM_MAX_OPERANDS][MAX_EXAMPLE_OUTPUT_BYTES];
static unsigned char got[TANDEM_MAX_OPERANDS][MAX_EXAMPLE_OUTPUT_BYTES];
static uint64_t failures;

static void outputs_read(const struct resident_op *op,
                         unsigned char (*to)[MAX_EXAMPLE_OUTPUT_BYTES])
{
    const struct device_session *session = op->session;

    for (uint32_t i = 0; i < op->c.outputs; i++) {
        const struct tandem_tensor_desc *out = &op->c.out[i];
        const uint64_t bytes = (uint64_t)desc_bytes(out);

        ck_assert_uint_le(bytes, MAX_EXAMPLE_OUTPUT_BYTES);
        OK(session->backend->download(session->stream, out->buffer, 0, to[i],
                                      bytes, 0, TANDEM_TIMEOUT_INFINITE));
    }
}

static enum tandem_status launch_and_wait(struct resident_op *op)
{
    const struct device_session *session = op->session;
    enum tandem_status status, waited;

    allocation_enter();
    status = resident_op_launch(op);
    waited = session->backend->stream_synchronize(session->stream,
                                                  TANDEM_TIMEOUT_INFINITE);
    allocation_leave();
    return status != TANDEM_OK ? status : waited;
}

/*
 * Creates the operands, and launches the operator while allocation n fails. If
 * that was reported, creates them again, because outputs may be inputs, and
 * launches it again. Returns true if an allocation failed. If n is 0, no
 * allocation fails, and the outputs become the wanted ones.
 */
static bool launch_with_failure(struct device_session *session,
                                const struct tandem_op_info *info, size_t shape,
                                uint64_t n)
{
    enum tandem_status status = TANDEM_OUT_OF_MEMORY;
    bool failed = false;

    for (int attempt = 0; attempt < 2 && status != TANDEM_OK; attempt++) {
        struct resident_op op;

        ck_assert(example_build(&op, info, shape));
        OK(resident_op_begin(&op, session));
        OK(example_outputs_clear(&op));
        allocation_fail(attempt == 0 ? n : 0, ALLOCATION_ONCE);
        status = launch_and_wait(&op);
        failed |= allocation_failed() > 0;
        allocation_fail(0, ALLOCATION_ONCE);
        ck_assert_msg(
            status == TANDEM_OK ||
                (attempt == 0 && failed && status == TANDEM_OUT_OF_MEMORY &&
                 session->backend->last_error()[0] != '\0'),
            "%s %s: allocation %" PRIu64 ", attempt %d: %s: %s", info->name,
            example_shape_text(shape), n, attempt, tandem_status_name(status),
            session->backend->last_error());
        if (status == TANDEM_OK)
            outputs_read(&op, n == 0 ? want : got);
        for (uint32_t i = 0; n > 0 && status == TANDEM_OK && i < op.c.outputs;
             i++)
            ck_assert_msg(example_outputs_equal(&op.c.out[i], got[i], want[i]),
                          "%s %s: wrong result after allocation %" PRIu64
                          " failed",
                          info->name, example_shape_text(shape), n);
        resident_op_destroy(&op);
    }
    return failed;
}

/*
 * Starts the threads of a new device, whose allocations would fail for each
 * operator again. Leaves no memory in reserve.
 */
static void threads_start(struct device_session *session)
{
    struct resident_op op;

    ck_assert(example_build(&op, tandem_op_by_id(TANDEM_OP_NEG),
                            FALLBACK_EXAMPLE_SHAPE - 1));
    OK(resident_op_begin(&op, session));
    OK(resident_op_launch(&op));
    resident_op_destroy(&op);
    OK(session->backend->trim(session->device, 0));
}

/* Runs launch_with_failure on a new device. */
static bool device_launch(const struct tandem_backend *backend,
                          const struct tandem_op_info *info, size_t shape,
                          uint64_t n)
{
    const struct tandem_open_options options = {.struct_size = sizeof options};
    struct device_session session = {.backend = backend};
    const uint64_t live = allocation_live();
    bool failed;

    OK(backend->open(0, &options, &session.device));
    OK(backend->stream_create(session.device, 0, &session.stream));
    threads_start(&session);
    failed = launch_with_failure(&session, info, shape, n);
    device_session_close(&session);
    backend->close(session.device);
    ck_assert_msg(
        allocation_live() == live,
        "%s %s: %" PRIu64 " blocks left after allocation %" PRIu64 " failed",
        info->name, example_shape_text(shape), allocation_live() - live, n);
    return failed;
}

static void operator_test(const struct tandem_backend *backend,
                          const struct tandem_op_info *info)
{
    struct resident_op op;
    uint32_t tested = 0;

    for (size_t i = 0;
         i < EXAMPLE_SHAPES && (i < FALLBACK_EXAMPLE_SHAPE || tested == 0);
         i++) {
        uint64_t n = 1;

        if (!example_build(&op, info, i))
            continue;
        tested++;
        device_launch(backend, info, i, 0);
        while (device_launch(backend, info, i, n))
            n++;
        failures += n - 1;
        if (n > 1)
            printf("%s %s: %" PRIu64 " allocations\n", info->name,
                   example_shape_text(i), n - 1);
    }
    ck_assert_msg(tested > 0, "%s has no example", info->name);
}

void operator_allocations_fail(const char *plugins)
{
    const struct tandem_context_options options = {
        .struct_size = sizeof options, .plugin_path = plugins};
    struct tandem_context *context;
    const struct tandem_backend *backend;
    struct tandem_device *device;
    uint32_t cpu;

    OK(tandem_context_create(&options, &context));
    OK(tandem_device_find(context, "cpu", &cpu));
    OK(tandem_device_backend(context, cpu, &backend, &device));
    /* The plugin keeps the memory of this thread's messages. */
    ck_assert_int_eq(backend->open(UINT32_MAX, NULL, &device),
                     TANDEM_NO_DEVICE);
    for (uint32_t id = 1; id < TANDEM_OP_ID_END; id++) {
        const struct tandem_op_info *info = tandem_op_by_id(id);

        if (info != NULL)
            operator_test(backend, info);
    }
    tandem_context_destroy(context);
    ck_assert_uint_gt(failures, 0);
}
