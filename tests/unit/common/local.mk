# SPDX-License-Identifier: Apache-2.0
# Tests of src/common.

tests_unit_common_libs = libscratch.la libcommon.la $(CHECK_LIBS)
libscratch_la_SOURCES = tests/support/scratch_directory.c
test_secure_file_SOURCES += tests/support/failing_writes.c
if CHECK
check_LTLIBRARIES += libscratch.la
test_programs += $(tests_unit_common_programs)
endif
