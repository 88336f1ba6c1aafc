#!/usr/bin/env bash
# Builds and runs every test lane that this machine can run. The last line is the sum of all lanes:
# "N passed, N failed" or "N passed, N failed, N skipped".
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
# shellcheck source=../cmake/packages.sh
source "$root/cmake/packages.sh"

usage() {
  cat <<'TEXT'
usage: tests/run.sh [--quick] [--lane NAME]... [--help]

Lanes, each in build/NAME:
  release  g++ -O3: unit, multiprocess and program tests, tidy, header install and consumer builds
  debug    g++ -Og: the same tests with debug assertions, and every header compiled alone (only when asked for)
  clang    clang++-19 -O3: compiled with its warnings as errors, and every header compiled alone; no tests run
  asan     clang++-19, AddressSanitizer and UndefinedBehaviorSanitizer
  tsan     clang++-19, ThreadSanitizer

  --quick      the release lane only
  --lane NAME  this lane only; may be given several times
Without options: release, clang, asan, tsan. Missing distribution packages are installed (root or sudo).
Exit code: 0 all passed, 1 something failed, 2 bad use or a package that cannot be installed.
TEXT
}

lanes=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --help|-h) usage; exit 0 ;;
    --quick) lanes+=(release) ;;
    --lane)
      case "${2:-}" in
        release|debug|clang|asan|tsan) lanes+=("$2") ;;
        *) printf 'tests/run.sh: no lane "%s"; see --help\n' "${2:-}" >&2; exit 2 ;;
      esac
      shift ;;
    *) printf 'tests/run.sh: unknown option "%s"; see --help\n' "$1" >&2; exit 2 ;;
  esac
  shift
done
if [[ ${#lanes[@]} -eq 0 ]]; then lanes=(release clang asan tsan); fi

cd "$root"
weft_require_packages "${weft_build_packages[@]}" "${weft_test_packages[@]}"

export UBSAN_OPTIONS=print_stacktrace=1
jobs="$(nproc)"
passed=0 failed=0 skipped=0

# count LANE STATUS: adds what ctest wrote about a lane to the sums; STATUS is its exit code.
count() {
  local lane=$1 status=$2 report
  report="$(tests/lane_report.py "$lane" "build/$lane.junit.xml" 2>&1 || true)"
  weft_say "$report"
  if [[ $report =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
    if [[ $status -ne 0 && ${BASH_REMATCH[2]} -eq 0 || ${BASH_REMATCH[1]} -eq 0 ]]; then
      weft_say "lane $lane: FAILED: ctest ended with exit code $status after ${BASH_REMATCH[1]} passed tests"
      failed=$((failed + 1))
    fi
  else
    weft_say "lane $lane: FAILED: no result from ctest (build/$lane.test.log)"
    failed=$((failed + 1))
  fi
}

# run_lane NAME CMAKE_ARGS...: configure, build, and (except for clang) test.
run_lane() {
  local lane=$1 log="build/$1.test.log" status=0 began=$SECONDS built
  shift
  weft_say "=== lane $lane"
  if ! cmake --preset "$lane" "$@" >"build/$lane.configure.log" 2>&1; then
    tail -n 30 "build/$lane.configure.log"
    weft_say "lane $lane: FAILED: configure (build/$lane.configure.log)"
    failed=$((failed + 1))
    return
  fi
  grep '^-- weft:' "build/$lane.configure.log" | sed "s/^-- weft:/lane $lane:/" || true
  if ! cmake --build "build/$lane" -j "$jobs" >"build/$lane.build.log" 2>&1; then
    grep -E -A 12 'FAILED:|error:' "build/$lane.build.log" | head -n 80 || true
    weft_say "lane $lane: FAILED: build (build/$lane.build.log)"
    failed=$((failed + 1))
    return
  fi
  built=$((SECONDS - began))
  if [[ $lane == clang ]]; then
    passed=$((passed + 1))
    weft_say "lane $lane: built without a warning in $built s; its tests run in asan and tsan"
    return
  fi
  rm -f "build/$lane.junit.xml"
  ctest --test-dir "build/$lane" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$root/build/$lane.junit.xml" >"$log" 2>&1 </dev/null || status=$?
  if [[ $status -ne 0 ]]; then
    grep -vE '^ *[0-9]+/[0-9]+ Test +#.*(Passed|Skipped)|^ *Start +[0-9]+:' "$log" | tail -n 400 || true
  fi
  weft_say "lane $lane: built in $built s, tested in $((SECONDS - began - built)) s"
  count "$lane" "$status"
}

mkdir -p build
clang_sought=no
for lane in "${lanes[@]}"; do
  case "$lane" in
    release|debug) run_lane "$lane" -D WEFT_BUILD_TESTS=ON ;;
    *)
      if [[ $clang_sought == no ]]; then
        weft_find_clang
        clang_sought=yes
        if [[ -n $weft_clang_note ]]; then weft_say "clang: $weft_clang_note"; fi
      fi
      if [[ -z $weft_clang ]]; then
        weft_say "=== lane $lane"
        weft_say "lane $lane: skipped: $weft_clang_note"
        skipped=$((skipped + 1))
        continue
      fi
      if [[ $lane == clang ]]; then tests=OFF; else tests=ON; fi
      run_lane "$lane" -D "CMAKE_CXX_COMPILER=$weft_clang" -D "WEFT_BUILD_TESTS=$tests" ;;
  esac
done

if [[ $skipped -gt 0 ]]; then
  weft_say "$passed passed, $failed failed, $skipped skipped"
else
  weft_say "$passed passed, $failed failed"
fi
[[ $failed -eq 0 ]]
