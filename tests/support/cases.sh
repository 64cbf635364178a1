# SPDX-License-Identifier: Apache-2.0
# Functions of test scripts that count cases. The scripts source this file, and end
# with "summary", whose line tests/harness/test-driver reads. A case is one call of
# "expect" or of "pass", or a failure.
cases=0 failures=0

# pass: counts a case, which a later "fail" turns into a failed one.
pass() {
    cases=$((cases + 1))
}

# fail TEXT...: counts a failure, and prints the text and the last output, of which
# $shown is the file if it is not $work/out.
fail() {
    echo "FAILED: $*"
    for file in "${shown:-${work-}/out}" "${work-}/err"; do
        test ! -f "$file" || tail -n 20 "$file" | cut -c 1-300 |
            sed "s/^/  ${file##*/}: /"
    done
    failures=$((failures + 1))
}

# expect STATUS COMMAND...: runs the command, within $limit seconds if that is set,
# and checks its exit status. The output is in $work/out and $work/err.
expect() {
    wanted=$1
    shift
    pass
    ${limit:+timeout -s KILL "$limit"} "$@" >"$work/out" 2>"$work/err"
    got=$?
    test "$got" = "$wanted" || fail "$*: exit status $got, not $wanted"
}

# says PATTERN, complains PATTERN: check the output of the last command.
says() {
    grep -q -e "$1" "$work/out" || fail "does not say \"$1\""
}
complains() {
    grep -q -e "$1" "$work/err" || fail "does not complain \"$1\""
}

# summary: prints the counts. Fails if a case failed or none passed.
summary() {
    passed=$((cases > failures ? cases - failures : 0))
    echo "$passed passed, $failures failed, 0 skipped"
    test "$failures" -eq 0 && test "$passed" -gt 0
}
