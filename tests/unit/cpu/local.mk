# SPDX-License-Identifier: Apache-2.0
# Tests of the CPU plugin's source files.

tests_unit_cpu_libs = libhosttest.la libcpu.la libcommon.la $(CBLAS_LIBS) -lm
test_threadless_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
if CHECK
if CPU
test_programs += test-thread-pool test-reduce test-blas-fork
# The test replaces pthread_create, as the sanitizers do.
if !SANITIZERS
test_programs += test-threadless
endif
endif
endif
