# SPDX-License-Identifier: Apache-2.0
# Tests of libtandem with the OpenCL plugin.

tests_unit_host_opencl_libs = libhosttest.la -lm
if CHECK
if CPU
if OPENCL
test_programs += $(tests_unit_host_opencl_programs)
endif
endif
endif
