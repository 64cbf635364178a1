# SPDX-License-Identifier: Apache-2.0
# The benchmark, which is built and tested, but not installed.

noinst_PROGRAMS += tandem-bench
tandem_bench_SOURCES = %D%/main.c
tandem_bench_LDADD = libbench.la libtools.la libtandem.la libcommon.la \
	$(JANSSON_LIBS)
noinst_LTLIBRARIES += libbench.la
libbench_la_SOURCES = %D%/cold_start_process.c %D%/command_line.c \
	%D%/comparison.c %D%/copy_baseline.c %D%/gemm_case.c %D%/gemm_reference.c \
	%D%/layer_case.c %D%/library_run.c %D%/network.c %D%/network_classifiers.c \
	%D%/network_language.c %D%/network_layers.c %D%/network_reference.c \
	%D%/network_run.c %D%/network_yolo.c %D%/placement_points.c %D%/result_check.c \
	%D%/result_document.c %D%/row_list.c %D%/row_operator.c \
	%D%/seed_value.c %D%/suite_bandwidth.c %D%/suite_cold_start.c %D%/suite_gemm.c \
	%D%/suite_layers.c %D%/suite_networks.c %D%/suite_operators.c \
	%D%/suite_placement.c %D%/suite_runner.c %D%/suite_small_ops.c \
	%D%/suite_user_cases.c
libbench_la_CPPFLAGS = $(AM_CPPFLAGS)
# The baselines without Tandem.
if OPENCL
libbench_la_SOURCES += %D%/clblast_baseline.c %D%/opencl_device_match.c \
	%D%/raw_opencl.c %D%/suite_allocator.c %D%/suite_launch.c \
	%D%/suite_transfer.c
libbench_la_CPPFLAGS += -DBENCH_OPENCL
tandem_bench_LDADD += $(OPENCL_LIBS) $(CLBLAST_LIBS)
endif
if CPU
libbench_la_CPPFLAGS += -DBENCH_CBLAS
tandem_bench_LDADD += $(CBLAS_LIBS)
endif
