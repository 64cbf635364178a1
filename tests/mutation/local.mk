# SPDX-License-Identifier: Apache-2.0
# Checks that the tests of a folder detect small changes of its sources.

dist_scripts += %D%/folders
check-mutations:
	@"$${PYTHON:-python3}" '$(srcdir)/%D%/check-mutations' \
	    --source='$(srcdir)' $(MUTATION_FLAGS) '$(FOLDER)'
.PHONY: check-mutations
