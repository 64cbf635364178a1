# SPDX-License-Identifier: Apache-2.0
# The example plugin with scripted misbehaviour.

check_LTLIBRARIES += tandem-scripted.la
tandem_scripted_la_SOURCES = $(src_example_files) \
	$(tests_scripted_plugin_files)
tandem_scripted_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests \
	-Dtandem_backend_query=example_query
tandem_scripted_la_LIBADD = libcommon.la
tandem_scripted_la_LDFLAGS = $(TEST_MODULE_FLAGS)
