/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The golden list of the binary interface: offsets, sizes, alignments, types
 * of the table's entries, enumerators, operators.  Nothing here is ever
 * changed or removed within one major version; what a minor version appends
 * is appended here too, with a line in plugin-api/tandem/CHANGES.  The command
 * "make operators" writes golden_operators.h.
 *
 * Layout columns: 64-bit machines; i386, which aligns 64-bit integers to 4
 * bytes; other 32-bit machines (ARM), which align them to 8.
 *
 * SIZE(struct, size)  ALIGNMENT(struct, alignment)  FIELD(struct, field,
 * offset)  ENTRY(field of struct tandem_backend, type)  VALUE(enumerator,
 * number)  OPERATOR(ID, number, name, class, inputs, outputs, integer
 * attributes, float attributes)
 */

/* ---- layout ---- */

SIZE(tandem_op, 40, 28, 28)
ALIGNMENT(tandem_op, 8, 4, 4)
FIELD(tandem_op, struct_size, 0, 0, 0)
FIELD(tandem_op, id, 8, 4, 4)
FIELD(tandem_op, flags, 12, 8, 8)
FIELD(tandem_op, int_count, 16, 12, 12)
FIELD(tandem_op, float_count, 20, 16, 16)
FIELD(tandem_op, ints, 24, 20, 20)
FIELD(tandem_op, floats, 32, 24, 24)

SIZE(tandem_matrix, 32, 28, 32)
ALIGNMENT(tandem_matrix, 8, 4, 8)
FIELD(tandem_matrix, buffer, 0, 0, 0)
FIELD(tandem_matrix, byte_offset, 8, 4, 8)
FIELD(tandem_matrix, ld, 16, 12, 16)
FIELD(tandem_matrix, batch_stride, 24, 20, 24)

SIZE(tandem_gemm, 208, 188, 208)
ALIGNMENT(tandem_gemm, 8, 4, 8)
FIELD(tandem_gemm, struct_size, 0, 0, 0)
FIELD(tandem_gemm, dtype, 8, 4, 4)
FIELD(tandem_gemm, flags, 12, 8, 8)
FIELD(tandem_gemm, m, 16, 12, 16)
FIELD(tandem_gemm, n, 24, 20, 24)
FIELD(tandem_gemm, k, 32, 28, 32)
FIELD(tandem_gemm, batch, 40, 36, 40)
FIELD(tandem_gemm, alpha, 48, 44, 48)
FIELD(tandem_gemm, beta, 56, 52, 56)
FIELD(tandem_gemm, a, 64, 60, 64)
FIELD(tandem_gemm, b, 96, 88, 96)
FIELD(tandem_gemm, c, 128, 116, 128)
FIELD(tandem_gemm, bias, 160, 144, 160)
FIELD(tandem_gemm, bias_byte_offset, 168, 148, 168)
FIELD(tandem_gemm, bias_kind, 176, 156, 176)
FIELD(tandem_gemm, activation, 180, 160, 180)
FIELD(tandem_gemm, activation_parameter, 184, 164, 184)
FIELD(tandem_gemm, c_dtype, 192, 172, 192)
FIELD(tandem_gemm, reserved, 196, 176, 196)
FIELD(tandem_gemm, activation_parameter2, 200, 180, 200)

SIZE(tandem_device_info, 2144, 2140, 2144)
ALIGNMENT(tandem_device_info, 8, 4, 8)
FIELD(tandem_device_info, struct_size, 0, 0, 0)
FIELD(tandem_device_info, kind, 8, 4, 4)
FIELD(tandem_device_info, caps, 12, 8, 8)
FIELD(tandem_device_info, name, 16, 12, 12)
FIELD(tandem_device_info, vendor, 144, 140, 140)
FIELD(tandem_device_info, platform, 272, 268, 268)
FIELD(tandem_device_info, driver_version, 400, 396, 396)
FIELD(tandem_device_info, uuid, 528, 524, 524)
FIELD(tandem_device_info, pci_address, 544, 540, 540)
FIELD(tandem_device_info, extensions, 568, 564, 564)
FIELD(tandem_device_info, memory_bytes, 1080, 1076, 1080)
FIELD(tandem_device_info, max_alloc_bytes, 1088, 1084, 1088)
FIELD(tandem_device_info, local_memory_bytes, 1096, 1092, 1096)
FIELD(tandem_device_info, compute_units, 1104, 1100, 1104)
FIELD(tandem_device_info, max_work_group_size, 1108, 1104, 1108)
FIELD(tandem_device_info, clock_mhz, 1112, 1108, 1112)
FIELD(tandem_device_info, duplicate_of, 1116, 1112, 1116)
FIELD(tandem_device_info, quirks, 1120, 1116, 1120)

SIZE(tandem_open_options, 48, 28, 28)
ALIGNMENT(tandem_open_options, 8, 4, 4)
FIELD(tandem_open_options, struct_size, 0, 0, 0)
FIELD(tandem_open_options, count, 8, 4, 4)
FIELD(tandem_open_options, reserved, 12, 8, 8)
FIELD(tandem_open_options, keys, 16, 12, 12)
FIELD(tandem_open_options, values, 24, 16, 16)
FIELD(tandem_open_options, log, 32, 20, 20)
FIELD(tandem_open_options, log_user, 40, 24, 24)

SIZE(tandem_alloc_options, 24, 20, 24)
ALIGNMENT(tandem_alloc_options, 8, 4, 8)
FIELD(tandem_alloc_options, struct_size, 0, 0, 0)
FIELD(tandem_alloc_options, bytes, 8, 4, 8)
FIELD(tandem_alloc_options, alignment, 16, 12, 16)
FIELD(tandem_alloc_options, reserved, 20, 16, 20)

SIZE(tandem_memory_stats, 80, 76, 80)
ALIGNMENT(tandem_memory_stats, 8, 4, 8)
FIELD(tandem_memory_stats, struct_size, 0, 0, 0)
FIELD(tandem_memory_stats, allocated_bytes, 8, 4, 8)
FIELD(tandem_memory_stats, cached_bytes, 16, 12, 16)
FIELD(tandem_memory_stats, peak_bytes, 24, 20, 24)
FIELD(tandem_memory_stats, limit_bytes, 32, 28, 32)
FIELD(tandem_memory_stats, alloc_count, 40, 36, 40)
FIELD(tandem_memory_stats, driver_alloc_count, 48, 44, 48)
FIELD(tandem_memory_stats, buffer_count, 56, 52, 56)
FIELD(tandem_memory_stats, cached_kernel_count, 64, 60, 64)
FIELD(tandem_memory_stats, free_bytes, 72, 68, 72)

SIZE(tandem_backend, 304, 156, 156)
ALIGNMENT(tandem_backend, 8, 4, 4)
FIELD(tandem_backend, struct_size, 0, 0, 0)
FIELD(tandem_backend, abi_major, 8, 4, 4)
FIELD(tandem_backend, abi_minor, 12, 8, 8)
FIELD(tandem_backend, name, 16, 12, 12)
FIELD(tandem_backend, version, 24, 16, 16)
FIELD(tandem_backend, last_error, 32, 20, 20)
FIELD(tandem_backend, device_count, 40, 24, 24)
FIELD(tandem_backend, device_describe, 48, 28, 28)
FIELD(tandem_backend, open, 56, 32, 32)
FIELD(tandem_backend, close, 64, 36, 36)
FIELD(tandem_backend, extension, 72, 40, 40)
FIELD(tandem_backend, alloc, 80, 44, 44)
FIELD(tandem_backend, free, 88, 48, 48)
FIELD(tandem_backend, upload, 96, 52, 52)
FIELD(tandem_backend, download, 104, 56, 56)
FIELD(tandem_backend, copy, 112, 60, 60)
FIELD(tandem_backend, fill, 120, 64, 64)
FIELD(tandem_backend, host_alloc, 128, 68, 68)
FIELD(tandem_backend, host_free, 136, 72, 72)
FIELD(tandem_backend, import_host, 144, 76, 76)
FIELD(tandem_backend, map, 152, 80, 80)
FIELD(tandem_backend, unmap, 160, 84, 84)
FIELD(tandem_backend, buffer_seal, 168, 88, 88)
FIELD(tandem_backend, memory_stats, 176, 92, 92)
FIELD(tandem_backend, trim, 184, 96, 96)
FIELD(tandem_backend, prepare, 192, 100, 100)
FIELD(tandem_backend, prepared_wait, 200, 104, 104)
FIELD(tandem_backend, prepared_release, 208, 108, 108)
FIELD(tandem_backend, launch, 216, 112, 112)
FIELD(tandem_backend, gemm, 224, 116, 116)
FIELD(tandem_backend, stream_create, 232, 120, 120)
FIELD(tandem_backend, stream_destroy, 240, 124, 124)
FIELD(tandem_backend, stream_synchronize, 248, 128, 128)
FIELD(tandem_backend, stream_wait_event, 256, 132, 132)
FIELD(tandem_backend, event_record, 264, 136, 136)
FIELD(tandem_backend, event_destroy, 272, 140, 140)
FIELD(tandem_backend, event_wait, 280, 144, 144)
FIELD(tandem_backend, event_callback, 288, 148, 148)
FIELD(tandem_backend, event_elapsed_ns, 296, 152, 152)

SIZE(tandem_tune_extension, 16, 8, 8)
ALIGNMENT(tandem_tune_extension, 8, 4, 4)
FIELD(tandem_tune_extension, struct_size, 0, 0, 0)
FIELD(tandem_tune_extension, tune, 8, 4, 4)

SIZE(tandem_test_extension, 16, 8, 8)
ALIGNMENT(tandem_test_extension, 8, 4, 4)
FIELD(tandem_test_extension, struct_size, 0, 0, 0)
FIELD(tandem_test_extension, open_keys, 8, 4, 4)

SIZE(tandem_opencl_interop_extension, 56, 28, 28)
ALIGNMENT(tandem_opencl_interop_extension, 8, 4, 4)
FIELD(tandem_opencl_interop_extension, struct_size, 0, 0, 0)
FIELD(tandem_opencl_interop_extension, open_native, 8, 4, 4)
FIELD(tandem_opencl_interop_extension, stream_wrap, 16, 8, 8)
FIELD(tandem_opencl_interop_extension, buffer_wrap, 24, 12, 12)
FIELD(tandem_opencl_interop_extension, device_handles, 32, 16, 16)
FIELD(tandem_opencl_interop_extension, stream_handle, 40, 20, 20)
FIELD(tandem_opencl_interop_extension, buffer_handle, 48, 24, 24)

SIZE(tandem_operand_desc, 160, 160, 160)
ALIGNMENT(tandem_operand_desc, 8, 4, 8)
FIELD(tandem_operand_desc, dtype, 0, 0, 0)
FIELD(tandem_operand_desc, rank, 4, 4, 4)
FIELD(tandem_operand_desc, shape, 8, 8, 8)
FIELD(tandem_operand_desc, strides, 72, 72, 72)
FIELD(tandem_operand_desc, alignment_bytes, 136, 136, 136)
FIELD(tandem_operand_desc, same_as_input, 140, 140, 140)
FIELD(tandem_operand_desc, reserved, 144, 144, 144)

SIZE(tandem_memory, 16, 12, 16)
ALIGNMENT(tandem_memory, 8, 4, 8)
FIELD(tandem_memory, buffer, 0, 0, 0)
FIELD(tandem_memory, byte_offset, 8, 4, 8)

SIZE(tandem_prepared_info, 32, 28, 32)
ALIGNMENT(tandem_prepared_info, 8, 4, 8)
FIELD(tandem_prepared_info, struct_size, 0, 0, 0)
FIELD(tandem_prepared_info, predicted_ns, 8, 4, 8)
FIELD(tandem_prepared_info, temporary_bytes, 16, 12, 16)
FIELD(tandem_prepared_info, is_ready, 24, 20, 24)
FIELD(tandem_prepared_info, reserved, 28, 24, 28)

SIZE(tandem_op_info, 88, 64, 64)
ALIGNMENT(tandem_op_info, 8, 4, 8)
FIELD(tandem_op_info, struct_size, 0, 0, 0)
FIELD(tandem_op_info, id, 8, 4, 4)
FIELD(tandem_op_info, op_class, 12, 8, 8)
FIELD(tandem_op_info, cost_class, 16, 12, 12)
FIELD(tandem_op_info, metric, 20, 16, 16)
FIELD(tandem_op_info, input_count, 24, 20, 20)
FIELD(tandem_op_info, output_count, 28, 24, 24)
FIELD(tandem_op_info, int_count, 32, 28, 28)
FIELD(tandem_op_info, float_count, 36, 32, 32)
FIELD(tandem_op_info, required, 40, 36, 36)
FIELD(tandem_op_info, tolerance, 48, 40, 40)
FIELD(tandem_op_info, name, 56, 48, 48)
FIELD(tandem_op_info, int_names, 64, 52, 52)
FIELD(tandem_op_info, float_names, 72, 56, 56)
FIELD(tandem_op_info, formula, 80, 60, 60)

SIZE(tandem_context_options, 96, 60, 60)
ALIGNMENT(tandem_context_options, 8, 4, 4)
FIELD(tandem_context_options, struct_size, 0, 0, 0)
FIELD(tandem_context_options, plugin_path, 8, 4, 4)
FIELD(tandem_context_options, profile_path, 16, 8, 8)
FIELD(tandem_context_options, device, 24, 12, 12)
FIELD(tandem_context_options, open_keys, 32, 16, 16)
FIELD(tandem_context_options, open_values, 40, 20, 20)
FIELD(tandem_context_options, open_count, 48, 24, 24)
FIELD(tandem_context_options, deterministic, 52, 28, 28)
FIELD(tandem_context_options, log_level, 56, 32, 32)
FIELD(tandem_context_options, time_operators, 60, 36, 36)
FIELD(tandem_context_options, log, 64, 40, 40)
FIELD(tandem_context_options, log_user, 72, 44, 44)
FIELD(tandem_context_options, hang_timeout_ms, 80, 48, 48)
FIELD(tandem_context_options, reserved, 84, 52, 52)
FIELD(tandem_context_options, backends, 88, 56, 56)

SIZE(tandem_matmul_options, 64, 52, 64)
ALIGNMENT(tandem_matmul_options, 8, 4, 8)
FIELD(tandem_matmul_options, struct_size, 0, 0, 0)
FIELD(tandem_matmul_options, alpha, 8, 4, 8)
FIELD(tandem_matmul_options, beta, 16, 12, 16)
FIELD(tandem_matmul_options, bias, 24, 20, 24)
FIELD(tandem_matmul_options, activation, 32, 24, 28)
FIELD(tandem_matmul_options, flags, 36, 28, 32)
FIELD(tandem_matmul_options, activation_parameter, 40, 32, 40)
FIELD(tandem_matmul_options, device, 48, 40, 48)
FIELD(tandem_matmul_options, activation_parameter2, 56, 44, 56)

SIZE(tandem_candidate, 72, 72, 72)
ALIGNMENT(tandem_candidate, 8, 4, 8)
FIELD(tandem_candidate, device, 0, 0, 0)
FIELD(tandem_candidate, status, 4, 4, 4)
FIELD(tandem_candidate, ready, 8, 8, 8)
FIELD(tandem_candidate, calibrated, 12, 12, 12)
FIELD(tandem_candidate, wait_ns, 16, 16, 16)
FIELD(tandem_candidate, transfer_ns, 24, 24, 24)
FIELD(tandem_candidate, launch_ns, 32, 32, 32)
FIELD(tandem_candidate, execute_ns, 40, 40, 40)
FIELD(tandem_candidate, download_ns, 48, 48, 48)
FIELD(tandem_candidate, compile_ns, 56, 56, 56)
FIELD(tandem_candidate, predicted_ns, 64, 64, 64)

SIZE(tandem_explanation, 1208, 1204, 1208)
ALIGNMENT(tandem_explanation, 8, 4, 8)
FIELD(tandem_explanation, struct_size, 0, 0, 0)
FIELD(tandem_explanation, op, 8, 4, 4)
FIELD(tandem_explanation, cost_class, 12, 8, 8)
FIELD(tandem_explanation, elements, 16, 12, 16)
FIELD(tandem_explanation, bytes, 24, 20, 24)
FIELD(tandem_explanation, chosen, 32, 28, 32)
FIELD(tandem_explanation, forced, 36, 32, 36)
FIELD(tandem_explanation, measured_ns, 40, 36, 40)
FIELD(tandem_explanation, candidate_count, 48, 44, 48)
FIELD(tandem_explanation, reserved, 52, 48, 52)
FIELD(tandem_explanation, candidates, 56, 52, 56)

/* ---- types of the table's entries ---- */

ENTRY(last_error, const char *(*)(void))
ENTRY(device_count, enum tandem_status (*)(uint32_t *))
ENTRY(device_describe,
      enum tandem_status (*)(uint32_t, struct tandem_device_info *))
ENTRY(open, enum tandem_status (*)(uint32_t, const struct tandem_open_options *,
                                   struct tandem_device **))
ENTRY(close, void (*)(struct tandem_device *))
ENTRY(extension, const void *(*)(const char *))
ENTRY(alloc, enum tandem_status (*)(struct tandem_device *,
                                    const struct tandem_alloc_options *,
                                    struct tandem_buffer **))
ENTRY(free, void (*)(struct tandem_buffer *))
ENTRY(upload,
      enum tandem_status (*)(struct tandem_stream *, struct tandem_buffer *,
                             uint64_t, const void *, uint64_t, uint32_t))
ENTRY(download,
      enum tandem_status (*)(struct tandem_stream *, struct tandem_buffer *,
                             uint64_t, void *, uint64_t, uint32_t, uint64_t))
ENTRY(copy, enum tandem_status (*)(struct tandem_stream *,
                                   struct tandem_buffer *, uint64_t,
                                   struct tandem_buffer *, uint64_t, uint64_t))
ENTRY(fill,
      enum tandem_status (*)(struct tandem_stream *, struct tandem_buffer *,
                             uint64_t, uint64_t, const void *, uint32_t))
ENTRY(host_alloc,
      enum tandem_status (*)(struct tandem_device *, uint64_t, void **))
ENTRY(host_free, void (*)(struct tandem_device *, void *))
ENTRY(import_host, enum tandem_status (*)(struct tandem_device *, void *,
                                          uint64_t, tandem_release_fn, void *,
                                          struct tandem_buffer **))
ENTRY(map,
      enum tandem_status (*)(struct tandem_stream *, struct tandem_buffer *,
                             uint64_t, uint64_t, uint32_t, uint64_t, void **))
ENTRY(unmap, enum tandem_status (*)(struct tandem_stream *,
                                    struct tandem_buffer *, void *))
ENTRY(buffer_seal, enum tandem_status (*)(struct tandem_buffer *))
ENTRY(memory_stats, enum tandem_status (*)(struct tandem_device *,
                                           struct tandem_memory_stats *))
ENTRY(trim, enum tandem_status (*)(struct tandem_device *, uint64_t))
ENTRY(prepare,
      enum tandem_status (*)(struct tandem_device *, const struct tandem_op *,
                             const struct tandem_operand_desc *const *,
                             uint32_t,
                             const struct tandem_operand_desc *const *,
                             uint32_t, uint32_t, struct tandem_prepared_info *,
                             struct tandem_prepared **))
ENTRY(prepared_wait, enum tandem_status (*)(struct tandem_prepared *, uint64_t))
ENTRY(prepared_release, void (*)(struct tandem_prepared *))
ENTRY(launch,
      enum tandem_status (*)(struct tandem_stream *, struct tandem_prepared *,
                             const struct tandem_memory *, uint32_t,
                             const double *, uint32_t))
ENTRY(gemm, enum tandem_status (*)(struct tandem_stream *,
                                   const struct tandem_gemm *))
ENTRY(stream_create, enum tandem_status (*)(struct tandem_device *, uint32_t,
                                            struct tandem_stream **))
ENTRY(stream_destroy, void (*)(struct tandem_stream *))
ENTRY(stream_synchronize,
      enum tandem_status (*)(struct tandem_stream *, uint64_t))
ENTRY(stream_wait_event,
      enum tandem_status (*)(struct tandem_stream *, struct tandem_event *))
ENTRY(event_record,
      enum tandem_status (*)(struct tandem_stream *, struct tandem_event **))
ENTRY(event_destroy, void (*)(struct tandem_event *))
ENTRY(event_wait, enum tandem_status (*)(struct tandem_event *, uint64_t))
ENTRY(event_callback, enum tandem_status (*)(struct tandem_event *,
                                             tandem_event_fn, void *))
ENTRY(event_elapsed_ns,
      enum tandem_status (*)(struct tandem_event *, struct tandem_event *,
                             uint64_t *))

/* ---- enumerators ---- */

VALUE(TANDEM_OK, 0u)
VALUE(TANDEM_INVALID_ARGUMENT, 1u)
VALUE(TANDEM_UNSUPPORTED, 2u)
VALUE(TANDEM_NO_DEVICE, 3u)
VALUE(TANDEM_OUT_OF_MEMORY, 4u)
VALUE(TANDEM_NOT_READY, 5u)
VALUE(TANDEM_DEVICE_LOST, 6u)
VALUE(TANDEM_FAILED, 7u)
VALUE(TANDEM_I8, 8u)
VALUE(TANDEM_I16, 16u)
VALUE(TANDEM_I32, 32u)
VALUE(TANDEM_I64, 64u)
VALUE(TANDEM_U8, 264u)
VALUE(TANDEM_U16, 272u)
VALUE(TANDEM_U32, 288u)
VALUE(TANDEM_U64, 320u)
VALUE(TANDEM_F16, 528u)
VALUE(TANDEM_F32, 544u)
VALUE(TANDEM_F64, 576u)
VALUE(TANDEM_BF16, 1040u)
VALUE(TANDEM_BOOL, 1544u)
VALUE(TANDEM_METRIC_EXACT, 1u)
VALUE(TANDEM_METRIC_ULP, 2u)
VALUE(TANDEM_METRIC_ULP_PLUS_INPUT, 3u)
VALUE(TANDEM_METRIC_SUM, 4u)
VALUE(TANDEM_METRIC_LOG_SUM_EXP, 5u)
VALUE(TANDEM_METRIC_SOFTMAX, 6u)
VALUE(TANDEM_METRIC_PROD, 7u)
VALUE(TANDEM_METRIC_GEMM, 8u)
VALUE(TANDEM_METRIC_TERM_MAGNITUDE, 9u)
VALUE(TANDEM_OP_ALLOW_NONDETERMINISM, 1u)
VALUE(TANDEM_OP_ALLOW_TF32, 2u)
VALUE(TANDEM_OP_ALLOW_NORMWISE_ERROR, 4u)
VALUE(TANDEM_GEMM_TRANSPOSE_A, 1u)
VALUE(TANDEM_GEMM_TRANSPOSE_B, 2u)
VALUE(TANDEM_GEMM_ALLOW_TF32, 4u)
VALUE(TANDEM_GEMM_ALLOW_NORMWISE_ERROR, 8u)
VALUE(TANDEM_BIAS_NONE, 0u)
VALUE(TANDEM_BIAS_PER_COLUMN, 1u)
VALUE(TANDEM_BIAS_PER_ROW, 2u)
VALUE(TANDEM_DEVICE_CPU, 1u)
VALUE(TANDEM_DEVICE_GPU, 2u)
VALUE(TANDEM_DEVICE_ACCELERATOR, 3u)
VALUE(TANDEM_CAP_F64, 1u)
VALUE(TANDEM_CAP_F16_ARITHMETIC, 2u)
VALUE(TANDEM_CAP_ZERO_COPY_IMPORT, 4u)
VALUE(TANDEM_CAP_ASYNC, 8u)
VALUE(TANDEM_CAP_JIT_COMPILATION, 16u)
VALUE(TANDEM_CAP_PROFILING, 32u)
VALUE(TANDEM_CAP_CORE_OPERATORS, 128u)
VALUE(TANDEM_CAP_F16_BF16_STORAGE, 512u)
VALUE(TANDEM_CAP_UNIFIED_MEMORY, 1024u)
VALUE(TANDEM_LOG_ERROR, 1u)
VALUE(TANDEM_LOG_WARNING, 2u)
VALUE(TANDEM_LOG_INFO, 3u)
VALUE(TANDEM_LOG_DEBUG, 4u)
VALUE(TANDEM_TRANSFER_ASYNC, 1u)
VALUE(TANDEM_MAP_READ, 1u)
VALUE(TANDEM_MAP_WRITE, 2u)
VALUE(TANDEM_STREAM_PROFILING, 1u)
VALUE(TANDEM_PREPARE_QUERY, 1u)
VALUE(TANDEM_PREPARE_COMPILE_NOW, 2u)
VALUE(TANDEM_TENSOR_READ_ONLY, 1u)

/* ---- classes and operators ---- */

#include "golden_operators.h"
