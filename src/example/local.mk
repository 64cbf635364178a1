# SPDX-License-Identifier: Apache-2.0
# The example plugin.

check_LTLIBRARIES += tandem-example.la
tandem_example_la_SOURCES = $(src_example_files)
tandem_example_la_LIBADD = libcommon.la
tandem_example_la_LDFLAGS = $(TEST_MODULE_FLAGS)
