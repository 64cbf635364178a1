# SPDX-License-Identifier: Apache-2.0
# Failing allocations and OpenCL calls, limits, and leaks.

tests_robustness_libs = libplugin-under-layer.la libtools.la libhosttest.la \
	libcommon.la -lm

if CHECK
if CPU
test_programs += test-memory-limit
# These tests define malloc, which a sanitizer does, too; valgrind does not run
# such programs.
if !SANITIZERS
test_programs += test-allocation-failure
TESTS += %D%/check-valgrind
long_tests += %D%/long-allocation-sweep
endif
if OPENCL
test_programs += test-object-leak test-unified-memory
TESTS += %D%/check-rusticl
endif
endif
endif
test_allocation_failure_SOURCES += %D%/heap_tracking.c %D%/host_workload.c \
	%D%/operator_example.c
test_allocation_failure_LDFLAGS = $(AM_LDFLAGS) -export-dynamic

if OPENCL
check_LTLIBRARIES += libplugin-under-layer.la
libplugin_under_layer_la_SOURCES = %D%/plugin_under_layer.c \
	%D%/opencl_workload.c %D%/call_sequence.c
TESTS += %D%/check-faults-gpu %D%/check-async-error
long_tests += %D%/long-fault-sweep
if CHECK
libplugin_under_layer_la_SOURCES += %D%/single_fault.c
test_programs += test-faults test-enumeration \
	test-transfer-path \
	test-deferred-submission test-import test-last-group-combine \
	test-async-error test-memory test-compile-lock \
	test-compile-process \
	test-never-completing-command test-wait-calls
if CPU
test_programs += test-host-faults
endif
endif
endif
sweep_sources = %D%/fault_sweep.c %D%/heap_tracking.c
test_faults_SOURCES += $(sweep_sources) %D%/operator_example.c
test_host_faults_SOURCES += $(sweep_sources) %D%/host_workload.c
test_never_completing_command_SOURCES += tests/opencl-layer/fake_clock.c

# check-sanitized runs in a build with a sanitizer: with ThreadSanitizer only
# tests of code that is instrumented, which drivers are not; with the others all
# tests that run our code.
UNSANITIZED = docs/% tools/% tests/abi/check-headers tests/abi/check-symbols \
	tests/structure/% tests/offline/% tests/neon-emulation/% tests/fuzz/% \
	tests/host-process/check-% tests/conformance/check-oclgrind \
	tests/unit/opencl/check-variants tests/install/check-prefixes
THREAD_SANITIZED = test-argument-check test-context test-tensor test-failure \
	test-hang-timeout $(tests_process_lifecycle_checks) \
	tests/conformance/check-cpu-generic tests/conformance/check-cpu-avx2 \
	tests/conformance/check-simulated
check-sanitized: all
	@case '$(TANDEM_LDFLAGS)' in \
	*=thread*) tests='$(THREAD_SANITIZED)' ;; \
	*) tests='$(filter-out $(UNSANITIZED),$(TESTS))' ;; \
	esac; \
	$(MAKE) check TESTS="$$tests"

# Builds with each sanitizer and runs check-sanitized there.
check-sanitizers:
	srcdir='$(srcdir)' CC='$(CC)' $(srcdir)/%D%/run-sanitizers
clean-local: clean-sanitizers
clean-sanitizers:
	rm -rf sanitizers
.PHONY: check-sanitized check-sanitizers clean-sanitizers
