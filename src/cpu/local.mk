# SPDX-License-Identifier: Apache-2.0
# The CPU plugin.

noinst_LTLIBRARIES += $(cpu_libraries)
if CPU
plugin_LTLIBRARIES += tandem-cpu.la
cpu_libraries = libcpu.la
endif
tandem_cpu_la_SOURCES =
tandem_cpu_la_LDFLAGS = $(MODULE_FLAGS)
tandem_cpu_la_LIBADD = $(cpu_libraries) libcommon.la $(CBLAS_LIBS) $(SLEEF_LIBS)
EXTRA_tandem_cpu_la_DEPENDENCIES = installed_directories.h

libcpu_la_SOURCES = $(src_cpu_files) $(src_cpu_attention_files) \
	$(src_cpu_conv_files) $(src_cpu_gemm_files) $(src_cpu_kernels_files) $(src_cpu_threads_files)
libcpu_la_CPPFLAGS = $(AM_CPPFLAGS)
libcpu_la_CFLAGS = $(AM_CFLAGS) $(VECTORIZE_CFLAGS)

# There is one library for each instruction set, compiled from the same sources.
# The macro TANDEM_SIMD_<set> selects the vectors (src/cpu/simd/vector.h), because
# the compiler's own macros depend on the user's CFLAGS, such as -march=native.
# The code that chooses a library at run time is compiled without these flags.
simd_cflags = $(AM_CFLAGS) $(VECTORIZE_CFLAGS) $(SLEEF_CFLAGS)
if X86
if CPU
cpu_libraries += libcpu-avx512.la libcpu-avx2.la
endif
libcpu_la_CPPFLAGS += -DTANDEM_CPU_X86
libcpu_avx2_la_SOURCES = $(src_cpu_simd_files)
libcpu_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DTANDEM_SIMD_AVX2
libcpu_avx2_la_CFLAGS = $(simd_cflags) -mavx2 -mfma -mf16c
libcpu_avx512_la_SOURCES = $(src_cpu_simd_files)
libcpu_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DTANDEM_SIMD_AVX512
libcpu_avx512_la_CFLAGS = $(libcpu_avx2_la_CFLAGS) -mavx512f -mavx512dq \
	-mavx512bw -mavx512vl
endif
if AARCH64
if CPU
cpu_libraries += libcpu-neon.la
endif
libcpu_la_CPPFLAGS += -DTANDEM_CPU_NEON
libcpu_neon_la_SOURCES = $(src_cpu_simd_files)
libcpu_neon_la_CPPFLAGS = $(AM_CPPFLAGS) -DTANDEM_SIMD_NEON
libcpu_neon_la_CFLAGS = $(simd_cflags)
endif
