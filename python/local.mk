# SPDX-License-Identifier: Apache-2.0
# The Python package onnxruntime-ep-tandem.

# Needs pip and the package index, unless wheel/tools exists.
wheel: dist
	$(srcdir)/%D%/make-wheel $(distdir).tar.xz wheel
clean-local: clean-wheel
clean-wheel:
	rm -rf wheel
.PHONY: wheel clean-wheel
