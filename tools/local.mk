# SPDX-License-Identifier: Apache-2.0
# cl-probe, and what it shares with the benchmark.

noinst_LTLIBRARIES += libtools.la
libtools_la_SOURCES = $(tools_common_files)

bin_PROGRAMS += cl-probe
cl_probe_SOURCES = %D%/cl-probe/main.c
cl_probe_LDADD = libcl-probe.la libtools.la libtandem.la libcommon.la \
	$(JANSSON_LIBS) -lpthread
noinst_LTLIBRARIES += libcl-probe.la
libcl_probe_la_SOURCES = $(tools_cl_probe_files)
man_MANS += docs/man/cl-probe.1
