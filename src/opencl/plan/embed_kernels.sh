#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed_kernels.sh FILE.cl...: prints C source with one string, named
# kernel_source_FILE, for each file that no other file includes. #line directives make
# compiler errors name the .cl file. The string contains each file that it includes,
# directly or indirectly, once.
set -eu
LC_ALL=C
export LC_ALL

# expand FILE ROOT: prints the file with its includes, which are in ROOT.
expand()
{
    awk -v root="$2" '
        function place(number, path) {
            sub(/.*\//, "", path)
            print "#line " number " \"" path "\""
        }
        function expand(path, line, number, found) {
            place(1, path)
            number = 0
            while ((found = (getline line < path)) > 0) {
                number++
                if (line !~ /^#include "/) {
                    print line
                    continue
                }
                sub(/^#include "/, "", line)
                sub(/".*/, "", line)
                if (!included[line]++) {
                    expand(root "/" line)
                    place(number + 1, path)
                } else {
                    print ""
                }
            }
            if (found < 0) {
                print "cannot read " path > "/dev/stderr"
                exit 1
            }
            close(path)
        }
        BEGIN { expand(ARGV[1]) }' "$1"
}

printf '/* SPDX-License-Identifier: Apache-2.0 */\n'
printf '/* Made by src/opencl/plan/embed_kernels.sh. */\n#include <stddef.h>\n'
included=$(sed -n 's/^#include "\(.*\)".*/ \1 /p' "$@")
sources=
for file; do
    case $included in
    *" ${file##*/cl/} "*) continue ;;
    esac
    base=${file##*/}
    root=${file%/cl/*}/cl # folder of the include paths
    printf '\nextern const char kernel_source_%s[];\n' "${base%.cl}"
    printf 'const char kernel_source_%s[] =\n' "${base%.cl}"
    expand "$file" "$root" |
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/'
    printf '    ;\n'
    sources="$sources kernel_source_${base%.cl},"
done
printf '\nextern const char *const kernel_sources[];\n'
printf 'const char *const kernel_sources[] = {%s NULL};\n' "$sources"
