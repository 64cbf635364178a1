# SPDX-License-Identifier: Apache-2.0
# Tests of the execution provider for ONNX Runtime, in Python.

TESTS += $(tests_onnxruntime_checks)
