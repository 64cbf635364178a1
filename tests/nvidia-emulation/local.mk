# SPDX-License-Identifier: Apache-2.0
# Kernels with NVIDIA's instructions, emulated on the CPU.

if OPENCL
emulator_sources = %D%/host_compiled_kernel.c %D%/ptx_emulator.c \
	%D%/ptx_sm90a_emulator.c
check_PROGRAMS += %D%/gemm-emulation %D%/row-kernel-emulation \
	%D%/attention-emulation
%C%_gemm_emulation_SOURCES = %D%/gemm_emulation.c $(emulator_sources)
%C%_gemm_emulation_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
%C%_gemm_emulation_LDADD = libopencl.la libcommon.la -ldl -lm
%C%_row_kernel_emulation_SOURCES = %D%/row_kernel_emulation.c $(emulator_sources)
%C%_row_kernel_emulation_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
%C%_row_kernel_emulation_LDADD = libopencl.la libcommon.la -ldl -lm
%C%_attention_emulation_SOURCES = %D%/attention_emulation.c $(emulator_sources)
%C%_attention_emulation_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
%C%_attention_emulation_LDADD = libopencl.la libcommon.la -ldl -lm
TESTS += $(tests_nvidia_emulation_checks)
endif
