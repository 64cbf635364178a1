# SPDX-License-Identifier: Apache-2.0
# Promises of our plugins beyond the public header.

tests_plugin_libs = libconformance.la $(CHECK_LIBS) -lm
test_plugin_SOURCES += $(tests_plugin_files)
if CHECK
test_programs += $(tests_plugin_programs)
endif
