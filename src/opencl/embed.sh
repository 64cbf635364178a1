#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FILE.cl...: prints C source with one string a file, kernel_FILE,
# whose #line makes a compiler's errors name the .cl file.
set -eu
LC_ALL=C
export LC_ALL
printf '/* SPDX-License-Identifier: Apache-2.0 */\n'
printf '/* Made by src/opencl/embed.sh. */\n#include "opencl/kernels.h"\n'
for file; do
    base=${file##*/}
    printf '\nconst char kernel_%s[] =\n    "#line 1 \\"%s\\"\\n"\n' \
        "${base%.cl}" "$base"
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$file"
    printf '    ;\n'
done
