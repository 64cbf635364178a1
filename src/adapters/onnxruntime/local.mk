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
%C%_tandem_onnxruntime_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-shared $(TANDEM_DEFS) \
	-export-symbols-regex '^(CreateEpFactories|ReleaseEpFactory)$$' \
	-Wl,-z,nodelete
%C%_tandem_onnxruntime_la_LIBADD = libonnxruntime-provider.la libtandem.la

# Prints the operators that the provider supports.
noinst_PROGRAMS += docs/list-onnx-operators
docs_list_onnx_operators_SOURCES = docs/list_onnx_operators.c
docs_list_onnx_operators_LDADD = libonnxruntime-provider.la libtandem.la
endif
