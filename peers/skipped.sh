#!/bin/sh
# Prints which tests were skipped and why, from the file that they wrote to.
set -eu
[ -s "$1" ] || exit 0
echo "$(wc -l <"$1") tests were skipped, wholly or in part:" >&2
sort "$1" | sed 's/^/  /' >&2
