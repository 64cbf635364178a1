# SPDX-License-Identifier: Apache-2.0
# Debian packages, from a clone. The tarball does not contain this folder, because
# Debian adds it.

deb: dist
	$(srcdir)/%D%/make-deb $(distdir).tar.xz deb
clean-local: clean-deb
clean-deb:
	rm -rf deb
.PHONY: deb clean-deb
