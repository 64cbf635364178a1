# SPDX-License-Identifier: Apache-2.0
# libtandem.

lib_LTLIBRARIES += libtandem.la
libtandem_la_SOURCES = $(src_host_tree)
# The library is never unloaded: the records of threads and the fork handler
# outlive a dlclose.
libtandem_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(LIBTANDEM_VERSION_INFO) \
	$(TANDEM_DEFS) -Wl,-z,nodelete
libtandem_la_LIBADD = libcommon.la $(JANSSON_LIBS)
if VERSION_SCRIPT
libtandem_la_LDFLAGS += -Wl,--version-script=$(srcdir)/%D%/libtandem.map
else
libtandem_la_LDFLAGS += -export-symbols-regex '^tandem_'
endif
# The .la files of libraries hold the directory to which libtool installs them.
libtandem_la_DEPENDENCIES = libcommon.la %D%/libtandem.map installed_directories.h
