#!/usr/bin/env bash
# Builds tests/consumer against an installed Weft and runs it, alone and as two ranks under the installed weftrun.
# usage: check.sh cmake|pkg-config PREFIX COMPILER WORK_FOLDER
set -euo pipefail

how=$1 prefix=$2 compiler=$3 work=$4
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
rm -rf "$work"
mkdir -p "$work"

case "$how" in
  cmake)
    cmake -G Ninja -S "$here" -B "$work" -D CMAKE_CXX_COMPILER="$compiler" -D CMAKE_PREFIX_PATH="$prefix" \
      -D CMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
    cmake --build "$work"
    "$work/runtime_only" ;;
  pkg-config)
    PKG_CONFIG_PATH="$(dirname "$(find "$prefix" -name weft.pc)")"
    export PKG_CONFIG_PATH
    read -r -a compile_flags < <(pkg-config --cflags weft)
    "$compiler" -std=c++20 -Wall -Wextra -Werror "${compile_flags[@]}" -c "$here/main.cpp" -o "$work/main.o"
    for static in "" --static; do
      read -r -a flags < <(pkg-config $static --libs weft)
      "$compiler" "$work/main.o" -o "$work/consumer" "${flags[@]}" \
        -Wl,-rpath,"$(pkg-config --variable=libdir weft)"
    done ;;
  *) echo "check.sh: cmake or pkg-config, not '$how'" >&2; exit 2 ;;
esac
"$work/consumer"
if [[ -x $prefix/bin/weftrun ]]; then "$prefix/bin/weftrun" -n 2 "$work/consumer"; fi
echo "consumer by $how with $compiler: runs"
