# SPDX-License-Identifier: Apache-2.0
# The OpenCL plugin.

if OPENCL
plugin_LTLIBRARIES += tandem-opencl.la
tandem_opencl_la_SOURCES =
tandem_opencl_la_LDFLAGS = $(MODULE_FLAGS)
tandem_opencl_la_LIBADD = libopencl.la libcommon.la $(CLBLAST_LIBS) \
	$(OPENCL_LIBS) $(JANSSON_LIBS)
EXTRA_tandem_opencl_la_DEPENDENCIES = installed_directories.h

# Tests link single files of the plugin from this library.
noinst_LTLIBRARIES += libopencl.la
libopencl_la_SOURCES = $(src_opencl_tree)
nodist_libopencl_la_SOURCES = %D%/plan/kernel_sources.c
libopencl_la_CPPFLAGS = $(AM_CPPFLAGS)

# The plugin finds this program in its own directory.
pluginexecdir = $(plugindir)
pluginexec_PROGRAMS = tandem-compile
tandem_compile_SOURCES = %D%/compile_process/main.c \
	%D%/compile_process/compile_message.c
tandem_compile_LDADD = $(OPENCL_LIBS)
noinst_DATA = .libs/tandem-compile
.libs/tandem-compile: tandem-compile$(EXEEXT)
	@$(MKDIR_P) .libs
	$(AM_V_GEN)ln -sf ../tandem-compile$(EXEEXT) $@

%D%/plan/kernel_sources.c: $(cl_kernels) %D%/plan/embed_kernels.sh
	@$(MKDIR_P) %D%/plan
	$(AM_V_GEN)$(SHELL) $(srcdir)/%D%/plan/embed_kernels.sh \
		$(addprefix $(srcdir)/,$(cl_kernels)) >$@.tmp && mv $@.tmp $@
CLEANFILES += %D%/plan/kernel_sources.c
endif
