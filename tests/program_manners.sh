#!/usr/bin/env bash
# Shows that a program explains itself and refuses what it does not know.
# usage: program_manners.sh PROGRAM [SUBCOMMAND]
set -euo pipefail

program=$1
shift
subcommand=("$@")
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# expect CODE ARGS...: runs the program and compares its exit code.
expect() {
  local expected=$1 code=0
  shift
  "$program" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  if [[ $code -ne $expected ]]; then
    echo "$program $*: exit code $code, expected $expected; standard error:"
    cat "$work/err"
    exit 1
  fi
}

expect 0 --help
if ! grep -q . "$work/out"; then echo "$program --help says nothing on standard output"; exit 1; fi
if [[ -s $work/err ]]; then echo "$program --help writes to standard error:"; cat "$work/err"; exit 1; fi

expect 2 "${subcommand[@]}" --no-such-flag
refused="$program ${subcommand[*]} --no-such-flag"
if ! grep -qe '--no-such-flag' "$work/err"; then
  echo "$refused: the flag is not named on standard error:"
  cat "$work/err"
  exit 1
fi
if [[ -s $work/out ]]; then echo "$refused writes to standard output:"; cat "$work/out"; exit 1; fi
echo "$program: manners kept"
