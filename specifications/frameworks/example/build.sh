#!/bin/sh
# Builds a framework's benchmark program: build.sh REPOSITORY DESTINATION, as FAI-PEP's repo driver calls it.
# A folder named like the platform, with a build.sh of its own, would take the place of this one there.
set -eu
[ $# -eq 2 ] || { echo "usage: build.sh REPOSITORY DESTINATION" >&2; exit 2; }
mkdir -p "$2"
"${CC:-cc}" -O2 -o "$2/benchmark" "$1/benchmark.c"
