# SPDX-License-Identifier: Apache-2.0
# The conformance suite with the random calls. It includes nothing of src, which it tests.

bin_PROGRAMS += tandem-conformance
tandem_conformance_SOURCES = %D%/main.c
tandem_conformance_CPPFLAGS = $(conformance_cppflags)
tandem_conformance_LDADD = libconformance.la -lm
noinst_LTLIBRARIES += libconformance.la
libconformance_la_SOURCES = $(tests_conformance_files) \
	tools/common/program_options.c tools/common/program_output.c \
	tools/common/progress_bar.c tools/common/tensor_call.c \
	tools/common/text_wrap.c
libconformance_la_CPPFLAGS = $(conformance_cppflags)
conformance_cppflags = -I$(top_srcdir)/plugin-api
man_MANS += docs/man/tandem-conformance.1
TESTS += $(tests_conformance_checks)
