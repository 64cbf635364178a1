# SPDX-License-Identifier: Apache-2.0
# A scripted GPU, whose results the CPU plugin computes.

if CPU
check_LTLIBRARIES += tandem-simulated.la
tandem_simulated_la_SOURCES = $(tests_simulated_device_files)
tandem_simulated_la_LDFLAGS = $(LAYER_FLAGS) -Wl,-z,nodelete \
	-export-symbols-regex '^tandem_(backend_query|sim_counters|sim_release)$$'
tandem_simulated_la_LIBADD = libcommon.la
endif
