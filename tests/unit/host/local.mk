# SPDX-License-Identifier: Apache-2.0
# Tests of libtandem.

tests_unit_host_libs = libhosttest.la
libhosttest_la_SOURCES = $(tests_unit_host_files)
libhosttest_la_LIBADD = libtandem.la libscratch.la $(CHECK_LIBS)
test_profile_files_SOURCES += tests/support/failing_writes.c
# A program with more rights than its user gets no LD_LIBRARY_PATH.
test_malformed_plugin_LDFLAGS = $(AM_LDFLAGS) -no-install
if CHECK
check_LTLIBRARIES += libhosttest.la
if CPU
test_programs += $(tests_unit_host_programs)
long_tests += $(tests_unit_host_long)
endif
endif
