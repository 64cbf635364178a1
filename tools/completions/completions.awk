# SPDX-License-Identifier: Apache-2.0
# Prints the completion of a program for a shell, from the table of its options in its
# source, an array of struct option:
#
#     awk -v program=NAME -v shell=bash|zsh -f completions.awk SOURCE.c
/^ *\{"[a-z-]+", (no|required|optional)_argument,/ {
    split($0, part, /[",]+ */)
    name[++count] = part[2]
    kind[count] = part[3]
}
function bash_words(    i, words) {
    for (i = 1; i <= count; i++)
        words = words " --" name[i] (kind[i] == "required_argument" ? "=" : "")
    return substr(words, 2)
}
END {
    if (count == 0) {
        print "completions.awk: no options in " FILENAME > "/dev/stderr"
        exit 1
    }
    if (shell == "bash") {
        function_name = "_" program
        gsub(/-/, "_", function_name)
        print "# bash completion of " program
        print function_name "() {"
        print "    local word=${COMP_WORDS[COMP_CWORD]}"
        print "    if [[ $word == -* ]]; then"
        print "        COMPREPLY=($(compgen -W '" bash_words() "' -- \"$word\"))"
        print "        [[ ${COMPREPLY-} == *= ]] && compopt -o nospace"
        print "    else"
        print "        COMPREPLY=($(compgen -f -- \"$word\"))"
        print "    fi"
        print "}"
        print "complete -F " function_name " " program
    } else {
        print "#compdef " program
        printf "_arguments -S"
        for (i = 1; i <= count; i++) {
            suffix = kind[i] == "required_argument" ? "=:value:_files" : \
                kind[i] == "optional_argument" ? "=-::value:_files" : ""
            printf " \\\n    '--%s%s'", name[i], suffix
        }
        print " \\\n    '*:file:_files'"
    }
}
