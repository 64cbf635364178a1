# SPDX-License-Identifier: Apache-2.0
# What quickstart prints, what configure accepts, and the installed files.

TESTS += $(tests_install_checks)
long_tests += $(tests_install_long)
installcheck-local:
	CC='$(CC)' SANITIZE='$(TANDEM_LDFLAGS)' PKG_CONFIG='$(PKG_CONFIG)' \
	srcdir='$(srcdir)' bindir='$(bindir)' libdir='$(libdir)' \
	plugindir='$(plugindir)' pkgdatadir='$(pkgdatadir)' \
	docdir='$(docdir)' programs='$(bin_PROGRAMS)' $(srcdir)/%D%/run-installcheck
