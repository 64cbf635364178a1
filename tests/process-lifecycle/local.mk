# SPDX-License-Identifier: Apache-2.0
# Threads, forks, signals and ends of a process.

if CPU
check_PROGRAMS += lifecycle-program late-dlopen thread-stress
lifecycle_program_SOURCES = %D%/lifecycle_program.c %D%/concurrent_processes.c \
	%D%/process_exit.c %D%/process_fork.c %D%/process_signal.c
late_dlopen_SOURCES = %D%/late_dlopen.c
late_dlopen_LDADD =
thread_stress_SOURCES = %D%/thread_stress.c %D%/thread_stress_operation.c \
	%D%/thread_stress_tensor.c
TESTS += $(tests_process_lifecycle_checks)
endif
