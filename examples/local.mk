# SPDX-License-Identifier: Apache-2.0
# Example programs, which are also installed as sources.

noinst_PROGRAMS += %D%/minimal-host %D%/first-steps %D%/attributes \
	%D%/digits/digits
%C%_minimal_host_SOURCES = %D%/minimal-host.c
%C%_minimal_host_LDADD =
%C%_first_steps_SOURCES = %D%/first-steps.c
%C%_attributes_SOURCES = %D%/attributes.c
%C%_digits_digits_SOURCES = $(examples_digits_files)
%C%_digits_digits_CPPFLAGS = $(AM_CPPFLAGS) \
	-DDIGITS_DATA='"$(abs_top_srcdir)/%D%/digits/digits.csv"'
dist_pkgdata_DATA = %D%/digits/digits.csv
TESTS += $(examples_checks) $(examples_digits_checks)
