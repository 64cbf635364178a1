# SPDX-License-Identifier: Apache-2.0
# Promises of our plugins beyond the public header.

tests_plugin_libs = libtools.la $(CHECK_LIBS)
if CHECK
test_programs += $(tests_plugin_programs)
endif
TESTS += $(tests_plugin_checks)
