# SPDX-License-Identifier: Apache-2.0
# Tests of the OpenCL plugin's source files.

if CHECK
if OPENCL
tests_unit_opencl_libs = libopencl-test.la libvariants.la libopencl.la \
	libcommon.la $(CHECK_LIBS) $(JANSSON_LIBS) $(OPENCL_LIBS) -lm -lpthread
check_LTLIBRARIES += libopencl-test.la
libopencl_test_la_SOURCES = %D%/support.c tools/common/tensor_call.c
test_programs += $(tests_unit_opencl_programs)

check_PROGRAMS += %D%/variant-runner %D%/cold-start-loop
%C%_variant_runner_SOURCES = %D%/variant_runner.c
%C%_variant_runner_LDADD = libvariants.la libopencl.la libcommon.la \
	$(OPENCL_LIBS) -lm
%C%_cold_start_loop_SOURCES = %D%/cold_start_loop.c %D%/cold_start_calls.c
%C%_cold_start_loop_LDADD = libopencl-test.la $(CHECK_LIBS)
TESTS += $(tests_unit_opencl_checks)
endif
endif
