# SPDX-License-Identifier: Apache-2.0
# Parsers of files with arbitrary bytes. The script compiles the fuzzers.

TESTS += $(tests_fuzz_checks)
