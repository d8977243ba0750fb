#!/bin/bash
# golden.sh SSEAUDIT [--update]: every tests/golden/NAME.args, run in samples/, must print exactly NAME.expect
# (standard output, standard error, exit status). Prints a diff for each that differs, and 'N passed, N failed'.
# --update writes what was printed: read the difference before it is committed.
set -u
tool=$(realpath "${1:?the program is missing}")
golden=$(realpath "$(dirname "${BASH_SOURCE[0]}")/golden")
cd "$golden/../../samples" || exit 2
export TZ=UTC LC_ALL=C
unset NO_COLOR

passed=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for args in "$golden"/*.args; do
    name=$(basename "$args" .args)
    mapfile -t words <"$args"
    status=0
    "$tool" "${words[@]}" >"$work/out" 2>"$work/err" </dev/null || status=$?
    {
        cat "$work/out"
        sed 's/^/stderr: /' "$work/err"
        echo "exit $status"
    } >"$work/got"
    if [ "${2-}" = --update ]; then
        cp "$work/got" "$golden/$name.expect"
    fi
    if diff -u "$golden/$name.expect" "$work/got"; then
        passed=$((passed + 1))
        echo "ok    $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
