# SPDX-License-Identifier: Apache-2.0
# Floating-point environment of the host, NumPy, and CPU quotas.

tests_host_process_libs = libhosttest.la libcommon.la
if CHECK
if CPU
test_programs += test-cpu-count

# The CPU plugin, called by a host that changes the floating-point environment.
check_LTLIBRARIES += tandem-fp-env-wrapper.la
tandem_fp_env_wrapper_la_SOURCES = %D%/fp_env_wrapper_plugin.c
tandem_fp_env_wrapper_la_LDFLAGS = $(TEST_MODULE_FLAGS)
TESTS += %D%/check-dlpack %D%/check-fp-environment %D%/check-numpy
endif
endif
