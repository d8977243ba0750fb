#!/bin/bash
# lint.sh: what the compiler cannot check. Prints each offence and ends with 'N passed, N failed'.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

passed=0
failed=0
verdict() {
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL  $2"
    fi
}

mapfile -t sources < <(find decoders analyzer rules tests -name build\* -prune -o -name '*.[ch]' -print | sort)

ban() { # what, pattern
    ! grep -nE "$2" "${sources[@]}"
    verdict $? "$1"
}

ban 'relative include: it goes round the layers' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"\.'
ban 'banned function' '\b(strcpy|strcat|strncpy|v?sprintf|strtok|ato[ifl]|sscanf|gmtime|localtime)\('

for file in "${sources[@]}"; do
    clang-format --dry-run -Werror "$file" 2>&1 | head -n 12
    verdict "${PIPESTATUS[0]}" "$file is not formatted (clang-format -i $file)"
done

for script in .ci/packages .ci/run samples/demo samples/record/make tests/run tests/*.sh; do
    bash -n "$script"
    verdict $? "$script is no valid bash"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
