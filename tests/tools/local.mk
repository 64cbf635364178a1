# SPDX-License-Identifier: Apache-2.0
# The tools with plugins and drivers that crash, and wrong results.

# An OpenCL driver that fails in the way that its file name says.
if OPENCL
check_LTLIBRARIES += icd.la
icd_la_SOURCES = %D%/crashing_icd.c
icd_la_LDFLAGS = $(LAYER_FLAGS) \
	-export-symbols-regex '^clGetExtensionFunctionAddress$$'
endif
TESTS += $(tests_tools_checks)
