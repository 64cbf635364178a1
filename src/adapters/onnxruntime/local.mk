# SPDX-License-Identifier: Apache-2.0
# The execution provider for ONNX Runtime.

# The provider is not installed in plugindir, because the loader opens each
# tandem-*.so there.
if ONNXRUNTIME_PROVIDER
provider_LTLIBRARIES = %D%/tandem-onnxruntime.la
noinst_LTLIBRARIES += libonnxruntime-provider.la
libonnxruntime_provider_la_SOURCES = $(src_adapters_onnxruntime_files)
%C%_tandem_onnxruntime_la_SOURCES =
# nodelete: ONNX Runtime unloads the library when a program unregisters it, but
# sessions that still exist call its functions.
# libtool links the file libtandem.la with a fixed path of libtandem, and then
# installs the provider only in the configured directory. The linker gets the shared
# library instead. The provider finds libtandem in the parent of its own directory.
%C%_tandem_onnxruntime_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-shared $(TANDEM_DEFS) \
	-export-symbols-regex '^(CreateEpFactories|ReleaseEpFactory)$$' \
	-Wl,-z,nodelete -Wl,.libs/libtandem.so -Wl,-rpath,'$$ORIGIN/..'
%C%_tandem_onnxruntime_la_LIBADD = libonnxruntime-provider.la
EXTRA_%C%_tandem_onnxruntime_la_DEPENDENCIES = libtandem.la %D%/libtandem.so.0 \
	installed_directories.h
# In the build directory, this link is in that parent directory.
%D%/libtandem.so.0: libtandem.la
	$(AM_V_GEN)$(LN_S) -f ../../../.libs/$(@F) $@
CLEANFILES += %D%/libtandem.so.0

# Prints the operators that the provider supports.
noinst_PROGRAMS += docs/list-onnx-operators
docs_list_onnx_operators_SOURCES = docs/list_onnx_operators.c
docs_list_onnx_operators_LDADD = libonnxruntime-provider.la libtandem.la
endif
