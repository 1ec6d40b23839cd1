#!/bin/sh
# cargo-nextest starts each test by this script (.config/nextest.toml): in a temporary directory of its own, in which a test that
# passes must leave nothing.
set -u
# What the programs that we compare with would take from the environment of whoever runs the tests.
unset RRD_DEFAULT_FONT RRDCACHED_ADDRESS LD_LIBRARY_PATH LD_PRELOAD
# The name is short because the paths of UNIX sockets are limited. Some tests run as another user and must write there.
files=$(mktemp -d "${TMPDIR:-/tmp}/XXXX") && chmod 1777 "$files" || exit 1
TMPDIR=$files "$@"
status=$?
if [ "$status" = 0 ]; then
  # A process that has been told to end may still have files.
  for _ in $(seq 50); do
    rmdir "$files" 2>/dev/null && exit 0
    sleep 0.1
  done
  echo "peers/one-test.sh: the test passed, and left files:" >&2
  find "$files" -mindepth 1 | head -20 >&2
  status=1
fi
rm -rf --one-file-system "$files" 2>/dev/null
exit "$status"
