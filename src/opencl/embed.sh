#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FILE.cl...: prints C source with one string a file, kernel_FILE,
# whose #line makes a compiler's errors name the .cl file.  A file's includes
# are part of its string, but for common.cl, which the plugin puts first.
set -eu
LC_ALL=C
export LC_ALL

# expand FILE ROOT: the file with its includes, which lie in ROOT.
expand()
{
    awk -v root="$2" '
        function place(number, path) {
            sub(/.*\//, "", path)
            print "#line " number " \"" path "\""
        }
        function expand(path, line, number) {
            place(1, path)
            number = 0
            while ((getline line < path) > 0) {
                number++
                if (line !~ /^#include "/ || line ~ /"common[.]cl"/) {
                    print line
                    continue
                }
                sub(/^#include "/, "", line)
                sub(/".*/, "", line)
                expand(root "/" line)
                place(number + 1, path)
            }
            close(path)
        }
        BEGIN { expand(ARGV[1]) }' "$1"
}

printf '/* SPDX-License-Identifier: Apache-2.0 */\n'
printf '/* Made by src/opencl/embed.sh. */\n#include "opencl/kernels.h"\n'
for file; do
    base=${file##*/}
    root=${file%/*}
    printf '\nconst char kernel_%s[] =\n' "${base%.cl}"
    expand "$file" "${root%/nvidia}" |
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/'
    printf '    ;\n'
done
