# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts check-* of this directory. They set `few` and `all`, the targets
# of a short and of a full run, may set `part` (a short run compiles one of `part`
# variants that a seed selects), and define
#
#     kernels TARGET FILE OPTION...
#
# which compiles a variant, a file in the directory $work with options, and prints a
# line: the kernel's name, its scratch memory in bytes, and other facts;
#
#     ours FILE
#
# which returns true if GPUs of that vendor run the kernels of the file; and
#
#     spilling TARGET
#
# which prints a pattern of the kernels that may use scratch memory.

# make_variants GROUP [SEED]: writes all variants for work-groups of GROUP items, or a
# subset, of which it lists one of `part` variants of each kernel.
make_variants() {
    work=$PWD/test-cache/${0##*/}-$1
    rm -rf "$work"
    mkdir -p "$work" || exit 99
    tests/offline/variants "$work" "$@" > "$work/variants" || exit 1
}

# check_target TARGET SHIFT: compiles one of `part` variants of each kernel, selected by
# SHIFT, prints all kernels, and returns false if one is wrong.
check_target() {
    target=$1
    result=0
    awk -v part="$part" -v shift="$2" '
        { kernel = $1 " " $3 }
        (count[kernel]++ + shift) % part == 0' "$work/variants" > "$work/list"
    : > "$work/kernels"
    while read -r file options; do
        ours "$file" || continue
        # No option contains blanks or patterns.
        if ! kernels "$target" "$file" $options > "$work/kernel"; then
            echo "$target: $file does not compile with $options"
            result=1
        elif test ! -s "$work/kernel"; then
            echo "$target: $file has no kernel with $options"
            result=1
        fi
        cat "$work/kernel" >> "$work/kernels"
    done < "$work/list"
    sed "s/^/$target /" "$work/kernels"
    awk -v target="$target" -v spilling="$(spilling "$target")" '
        { kernels++ }
        $2 != 0 && $1 !~ spilling { print target ": " $1 " uses " $2 " bytes of scratch"; bad++ }
        END {
            print target ": " kernels - bad " passed, " bad + 0 " failed, 0 skipped"
            exit bad || !kernels
        }' "$work/kernels" || result=1
    return $result
}

targets=$few
groups=256
subset=${CONFORMANCE_SEED:-1}
: "${part=1}"
shift=0
if test "${CONFORMANCE_LEVEL-standard}" = full; then
    targets=$all
    groups='256 64'
    subset=
    shift=${CONFORMANCE_SEED:-1}
    part=1
    # Each variant compiles for one target, with another seed for another target.
    test -n "${OFFLINE_ALL_TARGETS-}" || part=$(echo $all | wc -w)
fi
failed=0
for group in $groups; do
    make_variants "$group" $subset
    for target in $targets; do
        check_target "$target" "$shift" || failed=1
        test -n "$subset" || shift=$((shift + 1))
    done
    rm -rf "$work"
done
exit $failed
