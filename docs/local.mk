# SPDX-License-Identifier: Apache-2.0
# The installed documentation.

noinst_PROGRAMS += %D%/list-operators
%C%_list_operators_SOURCES = %D%/list_operators.c \
	%D%/list_operator_classes.h
%C%_list_operators_LDADD =
TESTS += $(docs_checks)

nobase_dist_doc_DATA = README.md NEWS LICENSE AUTHORS CONTRIBUTING.md \
	$(docs_documents) %D%/baselines/h200.json %D%/baselines/h200.svg \
	%D%/baselines/networks.json \
	examples/first-steps.c examples/attributes.c examples/minimal-host.c \
	$(examples_digits_files) $(examples_digits_documents) \
	plugin-api/tandem/CHANGES $(tandeminclude_HEADERS)

# The manual pages name the version, the directory for all users that is compiled in,
# and the file of the driver blocklist.
EXTRA_DIST += %D%/man/cl-probe.1.in %D%/man/tandem-conformance.1.in
CLEANFILES += $(man_MANS)
%D%/man/cl-probe.1: %D%/man/cl-probe.1.in
%D%/man/tandem-conformance.1: %D%/man/tandem-conformance.1.in
%D%/man/cl-probe.1 %D%/man/tandem-conformance.1: installed_directories.h \
		src/common/driver_blocklist.h Makefile
	$(AM_V_GEN)$(MKDIR_P) %D%/man && \
	text() { sed -n "s/^#define $$1 \"\(.*\)\"$$/\1/p" "$$2" | \
	    sed 's/[\\&|]/\\&/g; s/-/\\\\-/g'; } && \
	sed -e "s|@version@|$(PACKAGE_VERSION)|" \
	    -e "s|@statedir@|$$(text STATEDIR installed_directories.h)|" \
	    -e "s|@blocklist@|$$(text DRIVER_RECORD_NAME \
	        $(srcdir)/src/common/driver_blocklist.h)|" \
	    $(srcdir)/$@.in >$@.new && mv $@.new $@

# The example plugin and the argument checks, to be copied: docs/writing-a-plugin.md.
pluginexampledir = $(docdir)/examples/plugin
nobase_dist_pluginexample_DATA = $(src_example_files) $(op_class_files) \
	src/common/argument_check.c src/common/argument_check.h \
	src/common/tensor_extent.c src/common/tensor_extent.h \
	src/common/prepared_call.c src/common/prepared_call.h \
	src/common/gemm_operator.c src/common/gemm_operator.h \
	src/common/handle_pool.c src/common/handle_pool.h \
	src/common/atfork.c src/common/atfork.h \
	src/common/last_error.c src/common/last_error.h \
	src/common/operator_table.c src/common/operator_table.h \
	src/common/resize_coordinates.c src/common/resize_coordinates.h \
	src/common/topk_key.h src/common/pad_space.h \
	src/common/iteration_space.h \
	src/common/tensor_desc.h \
	src/common/tensor_overlap.c src/common/tensor_overlap.h \
	src/common/thread_local.h \
	src/common/thread_state_guard.c src/common/thread_state_guard.h \
	src/common/struct_size.c src/common/struct_size.h

# Writes docs/operators.md, docs/onnx-operators.md and the golden list of
# operators from the operator tables.
operators: $(noinst_PROGRAMS)
	%D%/list-operators > $(srcdir)/%D%/operators.md
	%D%/list-operators golden > $(srcdir)/tests/abi/golden_operators.h
	list=%D%/list-onnx-operators; test ! -f $$list || \
	    $$list > $(srcdir)/%D%/onnx-operators.md
.PHONY: operators

# The pages as a site, in html/.
html-local:
	sphinx-build -q -W --keep-going -n -d $(builddir)/html/.cache $(srcdir)/%D% $(builddir)/html
	@echo "made html/index.html"
clean-local: clean-html
clean-html:
	rm -rf html
.PHONY: clean-html
