# SPDX-License-Identifier: Apache-2.0
# The NEON files of the CPU plugin in an emulator.

if CPU
TESTS += $(tests_neon_emulation_checks)
endif
