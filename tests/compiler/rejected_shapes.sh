#!/bin/sh
# rejected_shapes.sh COMPILER SOURCE INCLUDE_DIR: tells which shapes of SOURCE the compiler takes. Fails only when the
# control does not compile: then nothing that it says means anything.
set -u
compiler=$1 source=$2 include=$3
errors=$(mktemp) || exit 1
trap 'rm -f "$errors"' EXIT

state() {
  if "$compiler" -std=c++20 -O1 -w -I"$include" -DSHAPE="$1" -fsyntax-only "$source" 2>"$errors" &&
    "$compiler" -std=c++20 -O1 -w -I"$include" -DSHAPE="$1" -S -o /dev/null "$source" 2>"$errors"; then
    echo works
  elif grep -qi 'internal compiler error\|PLEASE submit a bug report\|Stack dump' "$errors"; then
    echo 'broken: internal compiler error'
  else
    echo "broken: rejected: $(grep -m1 'error' "$errors" | sed 's/.*error: //')"
  fi
}

control=$(state 0)
echo "probe: control: $control"
if [ "$control" != works ]; then
  cat "$errors" >&2
  exit 1
fi
echo "probe: forbidden: an initializer list inside co_await           $(state 1)"
echo "probe: forbidden: an initializer list of strings in co_await    $(state 2)"
echo "probe: forbidden: co_await in a statement expression            $(state 3)"
echo "probe: forbidden: [[no_unique_address]] made by a call          $(state 4)"
