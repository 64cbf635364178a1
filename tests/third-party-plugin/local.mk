# SPDX-License-Identifier: Apache-2.0
# A plugin as others write it. It includes only the public headers.

check_LTLIBRARIES += tandem-third-party.la
tandem_third_party_la_SOURCES = $(tests_third_party_plugin_files)
tandem_third_party_la_CPPFLAGS = -I$(top_srcdir)/plugin-api
tandem_third_party_la_LDFLAGS = $(TEST_MODULE_FLAGS)
