# SPDX-License-Identifier: Apache-2.0
# Tests of the CPU plugin's source files.

tests_unit_cpu_libs = libhosttest.la $(cpu_libraries) libcommon.la $(CBLAS_LIBS) $(SLEEF_LIBS) -lm
test_threadless_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
test_job_counts_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pool_run,--wrap=cblas_sgemm
if CHECK
if CPU
test_programs += test-thread-pool test-reduce test-blas-fork test-job-counts
# The test replaces pthread_create, as the sanitizers do.
if !SANITIZERS
test_programs += test-threadless
endif
endif
endif
