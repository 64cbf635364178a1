# SPDX-License-Identifier: Apache-2.0
# The scripted plugin: a GPU, whose results the CPU plugin computes, and a
# third-party plugin, whose results the example plugin computes.

if CPU
check_LTLIBRARIES += tandem-simulated.la
tandem_simulated_la_SOURCES = $(tests_simulated_device_files)
tandem_simulated_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tandem_simulated_la_LDFLAGS = $(LAYER_FLAGS) -Wl,-z,nodelete \
	-export-symbols-regex '^tandem_(backend_query|sim_counters|sim_release)$$'
tandem_simulated_la_LIBADD = libcommon.la
endif

check_LTLIBRARIES += tandem-scripted.la
tandem_scripted_la_SOURCES = $(src_example_files) $(tests_simulated_device_files)
tandem_scripted_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests \
	-DEXAMPLE_INNER -Dtandem_backend_query=example_query
tandem_scripted_la_LDFLAGS = $(TEST_MODULE_FLAGS)
tandem_scripted_la_LIBADD = libcommon.la
