# SPDX-License-Identifier: Apache-2.0
# What quickstart prints, what configure accepts, and the installed files.
# configured_libdir is libdir without the prefix= of the command line.

TESTS += $(tests_install_checks)
long_tests += $(tests_install_long)
installcheck-local:
	CC='$(CC)' SANITIZE='$(TANDEM_LDFLAGS)' PKG_CONFIG='$(PKG_CONFIG)' \
	srcdir='$(srcdir)' bindir='$(bindir)' libdir='$(libdir)' \
	configured_libdir='$(patsubst $(prefix)/%,@prefix@/%,$(libdir))' \
	plugindir='$(plugindir)' pkgdatadir='$(pkgdatadir)' \
	docdir='$(docdir)' programs='$(bin_PROGRAMS)' $(srcdir)/%D%/run-installcheck
