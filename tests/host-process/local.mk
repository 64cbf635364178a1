# SPDX-License-Identifier: Apache-2.0
# Floating-point environment of the host, NumPy, CPU quotas, and the cost of waits.

tests_host_process_libs = libhosttest.la libcommon.la
if CHECK
if CPU
test_programs += test-cpu-count

# The CPU plugin, called by a host that changes the floating-point environment.
check_LTLIBRARIES += tandem-fp-env-wrapper.la
tandem_fp_env_wrapper_la_SOURCES = %D%/fp_env_wrapper_plugin.c
tandem_fp_env_wrapper_la_LDFLAGS = $(TEST_MODULE_FLAGS)
tandem_fp_env_wrapper_la_LIBADD = libcommon.la
TESTS += %D%/check-fp-environment %D%/check-numpy

# Measures the cost of waits with a driver that sleeps in a wait and with a driver
# that does not.
check_PROGRAMS += wait-cost
wait_cost_SOURCES = %D%/wait_cost.c
wait_cost_LDADD = libtools.la libtandem.la -lm
endif
if OPENCL
check_LTLIBRARIES += wait-layer.la
wait_layer_la_SOURCES = %D%/wait_counting_layer.c
wait_layer_la_LDFLAGS = $(LAYER_FLAGS) \
	-export-symbols-regex '^(clGetLayerInfo|clInitLayer|wait_layer_counts)$$'
TESTS += %D%/check-wait-cpu-time
endif
endif
