# SPDX-License-Identifier: Apache-2.0
# The skeleton of a plugin.

check_LTLIBRARIES += tandem-null.la
tandem_null_la_SOURCES = %D%/plugin.c
tandem_null_la_LDFLAGS = $(TEST_MODULE_FLAGS)
