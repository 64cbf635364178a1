# SPDX-License-Identifier: Apache-2.0
# Sourced by check-amd and check-intel, which set few and all, the targets of
# a short and of a full run, and define
#
#     kernels TARGET UNIT OPTION...
#
# which compiles one unit and prints for each kernel its name, its scratch
# memory in bytes, and what else is worth knowing.  Everything is written into
# $work, below the build directory.

# and ours UNIT, which says whether it is for that vendor, and spilling TARGET,
# which prints a pattern of kernels that may use scratch.

# Every variant that the plugin can ask for, for work-groups of $1 items, or
# the choice that a seed, $2, makes of them.
units_make() {
    work=$PWD/test-cache/${0##*/}-$1
    rm -rf "$work"
    mkdir -p "$work" || exit 99
    tests/offline/variants "$work" "$@" > "$work/list" || exit 1
}

# Prints every kernel of one target; 1 where something is wrong.
target_check() {
    target=$1
    result=0
    while read -r unit variants options; do
        ours "$unit" || continue
        # No word of options holds blanks or patterns.
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
seed=${CONFORMANCE_SEED:-1}
if test "${CONFORMANCE_LEVEL-standard}" = full; then
    targets=$all
    groups='256 64'
    seed=
fi
failed=0
for group in $groups; do
    units_make "$group" $seed
    for target in $targets; do
        target_check "$target" || failed=1
    done
    rm -rf "$work"
done
exit $failed
