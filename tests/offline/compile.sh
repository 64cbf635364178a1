# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts check-* of this directory. They set `few` and `all`, the targets
# of a short and of a full run, may set `part` (a short run compiles one of `part`
# variants that a seed selects), and define
#
#     kernels TARGET UNIT OPTION...
#
# which compiles a unit in the directory $work and prints a line for each kernel: its
# name, its scratch memory in bytes, and other facts;
#
#     ours UNIT
#
# which returns true if GPUs of that vendor run the unit; and
#
#     spilling TARGET
#
# which prints a pattern of the kernels that may use scratch memory.

# make_units GROUP [SEED PART]: writes the units, with all variants for work-groups of
# GROUP items or the subset that SEED and PART select.
make_units() {
    work=$PWD/test-cache/${0##*/}-$1
    rm -rf "$work"
    mkdir -p "$work" || exit 99
    tests/offline/variants "$work" "$@" > "$work/list" || exit 1
}

# check_target TARGET: prints all kernels, and returns false if one is wrong.
check_target() {
    target=$1
    result=0
    while read -r unit variants options; do
        ours "$unit" || continue
        # No option contains blanks or patterns.
        if ! kernels "$target" "$unit" $options > "$work/$unit.kernels"; then
            echo "$target: $unit does not compile"
            result=1
        elif test "$(wc -l < "$work/$unit.kernels")" -lt "$variants"; then
            echo "$target: $unit has fewer kernels than its $variants variants"
            result=1
        fi
        sed "s/^/$target ${unit%.cl} /" "$work/$unit.kernels"
    done < "$work/list"
    cat "$work"/*.kernels | awk -v target="$target" -v spilling="$(spilling "$target")" '
        { kernels++ }
        $2 != 0 && $1 !~ spilling { print target ": " $1 " uses " $2 " bytes of scratch"; bad++ }
        END {
            print target ": " kernels - bad " passed, " bad + 0 " failed, 0 skipped"
            exit bad || !kernels
        }' || result=1
    return $result
}

targets=$few
groups=256
subset="${CONFORMANCE_SEED:-1} ${part:-1}"
if test "${CONFORMANCE_LEVEL-standard}" = full; then
    targets=$all
    groups='256 64'
    subset=
fi
failed=0
for group in $groups; do
    make_units "$group" $subset
    for target in $targets; do
        check_target "$target" || failed=1
    done
    rm -rf "$work"
done
exit $failed
