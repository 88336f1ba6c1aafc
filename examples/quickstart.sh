#!/usr/bin/env bash
# Builds build/release and trains a network on handwritten digits with two ranks. Arguments go to train_digits.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
# shellcheck source=../cmake/packages.sh
source "$root/cmake/packages.sh"

cd "$root"
weft_require_packages "${weft_build_packages[@]}"

mkdir -p build
run_quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log"
    weft_say "quickstart: $1 failed; its whole output is in $log" >&2
    exit 1
  fi
}

weft_say "quickstart: building build/release (minutes the first time, seconds the next)"
# The tests are another command's business; a tree that has them configured keeps them.
if [[ ! -f build/release/build.ninja ]]; then
  run_quietly build/release.configure.log cmake --preset release -D WEFT_BUILD_TESTS=OFF
fi
run_quietly build/release.build.log cmake --build build/release --target weftrun train_digits
weft_say "quickstart: build/release/bin/weftrun -n 2 --prefix off build/release/bin/train_digits $*"
exec build/release/bin/weftrun -n 2 --prefix off build/release/bin/train_digits "$@"
