# SPDX-License-Identifier: Apache-2.0
# How many cases a test ran, by what it prints.  Read by the scripts beside it.

# count LOG: "CASES SKIPPED" of all summaries in the log: libcheck's, the
# conformance suite's (cases that passed), those of sweeps of faults (cases that
# had one), of the fuzzers, of compiled kernels and samples, of
# threads' operations.  "- -" where there is none.
count() {
    awk '
    /^[0-9]+%: Checks: [0-9]+, Failures: / {
        sub(/,/, "", $3); cases += $3; any = 1
    }
    /^ *[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
        cases += $1; skipped += $5; any = 1
    }
    /^[0-9]+ calls, [0-9]+ cases, [0-9]+ of them with a fault, / {
        cases += $5; any = 1
    }
    /^Done [0-9]+ runs in / || /^[a-z0-9_]+: [0-9]+ kernels$/ {
        cases += $2; any = 1
    }
    /^[0-9]+ samples, / || /^[0-9]+ operations of [0-9]+ threads on / {
        cases += $1; any = 1
    }
    END { if (any) print cases + 0, skipped + 0; else print "- -" }' "$1"
}

# expected NAME FILE: "CASES SKIPPED" as recorded; nothing where it is not.
expected() {
    awk -v name="$1" '$1 == name { print $2, $3 }' "$2"
}

# counts_judge NAME "CASES SKIPPED" FILE: says what is wrong with the counts of
# a test that passed, and returns 1; counts_least=1: one case will do.
counts_judge() {
    counts_name=$1 counts_file=$3
    # shellcheck disable=SC2046,SC2086 # words
    set -- $2 $(expected "$counts_name" "$counts_file")
    test "$#" -eq 4 && test "$3" != - || return 0
    if test "$1" = -; then
        echo "$counts_name: no case was counted, at least $3 are recorded"
        return 1
    fi
    if test "$1" -lt "${counts_least:-$3}"; then
        echo "$counts_name: $1 cases ran, at least $3 are recorded"
        return 1
    fi
    if test "$2" -gt "$4"; then
        echo "$counts_name: $2 cases were skipped, at most $4 are recorded"
        return 1
    fi
}
