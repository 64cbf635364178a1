# SPDX-License-Identifier: Apache-2.0
# The test driver, and the targets that run tests.

LOG_DRIVER = $(SHELL) $(srcdir)/%D%/test-driver
TESTS += $(tests_harness_checks)
# The condition is never true. It makes automake write rules for these tests.
if LONG_TESTS_ONLY
TESTS += $(long_tests)
endif
# Without libcheck most tests cannot be built. One skipped test stands for them.
if !CHECK
TESTS += tests/skip-without-check
endif

# Each test uses the plugins of the build directory, one OpenCL platform (the CPU)
# and caches of its own instead of the user's. With small tensors nearly all of the
# time is compilation, which PoCL does two to four times as fast without optimization.
# Tests that need optimized kernels clear POCL_EXTRA_BUILD_FLAGS, and the full level
# uses those.
AM_TESTS_ENVIRONMENT = \
	TANDEM_PLUGIN_PATH='$(abs_builddir)/.libs'; export TANDEM_PLUGIN_PATH; \
	XDG_CACHE_HOME='$(abs_builddir)/test-cache'; export XDG_CACHE_HOME; \
	POCL_CACHE_DIR='$(abs_builddir)/pocl-cache'; export POCL_CACHE_DIR; \
	mkdir -p "$$XDG_CACHE_HOME" "$$POCL_CACHE_DIR"; \
	OCL_ICD_VENDORS="$${OCL_ICD_VENDORS-/etc/OpenCL/vendors/pocl.icd}"; \
	export OCL_ICD_VENDORS; \
	test "$$CONFORMANCE_LEVEL" = full || { \
	    : "$${POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable}"; \
	    export POCL_EXTRA_BUILD_FLAGS; }; \
	CK_DEFAULT_TIMEOUT=120; export CK_DEFAULT_TIMEOUT; \
	CC='$(CC)'; export CC; \
	SANITIZE='$(TANDEM_LDFLAGS)'; export SANITIZE; \
	$(SANITIZER_ENVIRONMENT)
if SANITIZERS
# LLVM in a driver gives threads signal stacks, which AddressSanitizer would
# unmap as its own when the threads end. The time limits of tests are four times
# as long.
SANITIZER_ENVIRONMENT = \
	CK_TIMEOUT_MULTIPLIER=4; export CK_TIMEOUT_MULTIPLIER; \
	ASAN_OPTIONS="$$ASAN_OPTIONS:allocator_may_return_null=1"; \
	ASAN_OPTIONS="$$ASAN_OPTIONS:use_sigaltstack=0"; \
	LSAN_OPTIONS="$$LSAN_OPTIONS:use_tls=0:print_suppressions=0"; \
	LSAN_OPTIONS="$$LSAN_OPTIONS:suppressions=$(abs_srcdir)/tests/robustness/lsan.supp"; \
	TSAN_OPTIONS="$$TSAN_OPTIONS:suppressions=$(abs_srcdir)/tests/robustness/tsan.supp"; \
	export ASAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS;
endif
clean-local: clean-test-caches
clean-test-caches:
	rm -rf test-cache pocl-cache
.PHONY: clean-test-caches

# The tests that tests/expected-counts lists as NAME@full, at the level "full".
LONG_TESTS = $(filter $(shell sed -n 's/@full .*//p' \
	$(srcdir)/tests/expected-counts),$(TESTS) $(long_tests))
check-long:
	CONFORMANCE_LEVEL=full TEST_LEVEL=full TEST_SECONDS=21600 \
	    $(MAKE) check TESTS='$(LONG_TESTS)'

list-tests:
	@printf '%s\n' $(TESTS)
list-long-tests:
	@printf '%s\n' $(LONG_TESTS)

# Records how many cases the tests of the last make check had.
update-expected:
	'$(srcdir)'/%D%/update-expected . > tests-expected.new
	mv tests-expected.new '$(srcdir)'/tests/expected-counts

# Prints the lines of src/ that the tests reach, and fails below 90 %. Needs gcovr
# and a build with --enable-coverage.
coverage:
	@grep -q coverage config.status || \
	    { echo "configure with --enable-coverage first" >&2; exit 1; }
	find . -name '*.gcda' -exec rm -f {} +
	$(MAKE) check
	$(MAKE) check-long
	gcovr --gcov-ignore-parse-errors --root '$(srcdir)' --filter '$(abs_srcdir)/src/' \
	    --fail-under-line 90 '$(builddir)'
.PHONY: check-long coverage list-long-tests list-tests update-expected
