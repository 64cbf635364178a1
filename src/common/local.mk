# SPDX-License-Identifier: Apache-2.0
# Code that libtandem, the plugins and the tools share.

noinst_LTLIBRARIES += libcommon.la
libcommon_la_SOURCES = $(src_common_files)
