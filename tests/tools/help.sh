#!/usr/bin/env bash
# Every program of tools/ says with --help what it is for, and does nothing else.
cd "$(dirname "$0")/../.." || exit 1
status=0
for program in tools/*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  said=$(timeout 20 "$program" --help 2>/dev/null </dev/null) || { echo "$program --help: exit code $?" >&2; status=1; }
  [ ${#said} -gt 60 ] || { echo "$program --help says nothing" >&2; status=1; }
done
exit $status
