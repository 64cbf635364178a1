# SPDX-License-Identifier: Apache-2.0
# The layout of the public structs, the headers and the exported symbols.

tests_abi_libs = $(CHECK_LIBS)
test_abi_SOURCES += %D%/layout.c
if CHECK
test_programs += $(tests_abi_programs)
endif
TESTS += $(tests_abi_checks)
