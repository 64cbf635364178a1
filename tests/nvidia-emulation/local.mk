# SPDX-License-Identifier: Apache-2.0
# Kernels with NVIDIA's instructions, emulated on the CPU.

if OPENCL
emulator_sources = %D%/host_compiled_kernel.c %D%/ptx_emulator.c \
	%D%/ptx_sm90a_emulator.c
check_PROGRAMS += %D%/gemm-emulation %D%/operator-emulation
%C%_gemm_emulation_SOURCES = %D%/gemm_emulation.c $(emulator_sources)
%C%_gemm_emulation_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
%C%_gemm_emulation_LDADD = libopencl.la libcommon.la -ldl -lm
%C%_operator_emulation_SOURCES = %D%/operator_emulation.c $(emulator_sources)
%C%_operator_emulation_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
%C%_operator_emulation_LDADD = libconformance.la libopencl.la libcommon.la -ldl -lm
TESTS += $(tests_nvidia_emulation_checks)
endif
