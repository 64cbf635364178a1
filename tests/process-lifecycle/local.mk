# SPDX-License-Identifier: Apache-2.0
# Threads, forks, signals, ends and the state of a process.

if CPU
check_PROGRAMS += process-case late-dlopen thread-stress
process_case_files = %D%/process_case.c %D%/process_devices.c \
	%D%/process_exit.c %D%/process_fork.c %D%/process_profile.c \
	%D%/process_signal.c %D%/process_state.c
if OPENCL
process_case_files += %D%/opencl_driver.c
endif
process_case_SOURCES = $(process_case_files)
# Flags of its own give the program objects of its own.
process_case_CFLAGS = $(AM_CFLAGS)
# The same as a module, which late-dlopen loads together with the library.
check_LTLIBRARIES += process-module.la
process_module_la_SOURCES = $(process_case_files)
process_module_la_LDFLAGS = $(LAYER_FLAGS)
process_module_la_LIBADD = libtandem.la
late_dlopen_SOURCES = %D%/late_dlopen.c
late_dlopen_LDADD =
thread_stress_SOURCES = %D%/thread_stress.c
TESTS += $(tests_process_lifecycle_checks)
endif
