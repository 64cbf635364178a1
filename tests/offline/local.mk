# SPDX-License-Identifier: Apache-2.0
# Every kernel variant, compiled for GPUs that are not available.

if OPENCL
check_PROGRAMS += %D%/variants
%C%_variants_SOURCES = %D%/main.c
%C%_variants_LDADD = libvariants.la libopencl.la libcommon.la $(OPENCL_LIBS)
check_LTLIBRARIES += libvariants.la
libvariants_la_SOURCES = $(tests_offline_files)
TESTS += $(tests_offline_checks)
endif
