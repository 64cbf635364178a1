# SPDX-License-Identifier: Apache-2.0
# Tests of src/common.

tests_unit_common_libs = libcommon.la $(CHECK_LIBS)
test_secure_file_SOURCES += tests/support/failing_writes.c
if CHECK
test_programs += $(tests_unit_common_programs)
endif
