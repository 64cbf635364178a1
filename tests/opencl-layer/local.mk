# SPDX-License-Identifier: Apache-2.0
# An OpenCL layer that counts objects and lets calls fail.

if OPENCL
check_LTLIBRARIES += opencl-layer.la
opencl_layer_la_SOURCES = %D%/error_codes.c %D%/command.c %D%/fault.c \
	%D%/fault_plugin.c %D%/guard_pages.c %D%/deferred_submission.c %D%/kernel.c %D%/layer.c \
	%D%/object_cache.c %D%/object.c %D%/command_faults.c \
	%D%/noncoherent_import.c
opencl_layer_la_LDFLAGS = $(LAYER_FLAGS) \
	-export-symbols-regex '^(clGetLayerInfo|clInitLayer|tandem_backend_query|layer_(counts_read|set_fault|release|hanging|defer_submission|function|call|failed|codes))$$'
endif
