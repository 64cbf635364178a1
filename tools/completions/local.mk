# SPDX-License-Identifier: Apache-2.0
# Completions of the installed programs for bash and zsh, from their option tables.

bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
bashcompletion_DATA = %D%/cl-probe %D%/tandem-conformance
zshcompletion_DATA = %D%/_cl-probe %D%/_tandem-conformance
EXTRA_DIST += %D%/completions.awk
CLEANFILES += $(bashcompletion_DATA) $(zshcompletion_DATA)
# $(1) is the shell, $(2) the file with the program's options.
write_completion = $(AM_V_GEN)$(MKDIR_P) %D% && \
	program=$(@F) && $(AWK) -v shell=$(1) -v program="$${program\#_}" \
	    -f $(srcdir)/%D%/completions.awk $(srcdir)/$(2) >$@.new && mv $@.new $@
probe_options = tools/cl-probe/main.c
conformance_options = tests/conformance/options.c
%D%/cl-probe: $(probe_options) %D%/completions.awk
	$(call write_completion,bash,$(probe_options))
%D%/_cl-probe: $(probe_options) %D%/completions.awk
	$(call write_completion,zsh,$(probe_options))
%D%/tandem-conformance: $(conformance_options) %D%/completions.awk
	$(call write_completion,bash,$(conformance_options))
%D%/_tandem-conformance: $(conformance_options) %D%/completions.awk
	$(call write_completion,zsh,$(conformance_options))
