# SPDX-License-Identifier: Apache-2.0
# Tests of the tools' source files.

tests_unit_tools_libs = libscratch.la libbench.la libcl-probe.la libtools.la \
	libtandem.la libcommon.la $(CHECK_LIBS) $(JANSSON_LIBS)
test_bench_CPPFLAGS = $(AM_CPPFLAGS)
if OPENCL
test_bench_CPPFLAGS += -DBENCH_OPENCL
test_bench_LDADD += $(OPENCL_LIBS)
endif
if CHECK
test_programs += $(tests_unit_tools_programs)
endif
