# For check.sh and test.sh, which read this file first (`. peers/beside.sh`), with the target directory in $target: a command beside
# another one, of which nothing is left when the script ends, whatever ends it.

# Two such scripts in one clone would replace each other's files. flock keeps the lock; no program that a script starts has it.
if [ -z "${ROUNDEL_LOCKED:-}" ]; then
  status=0
  ROUNDEL_LOCKED=yes flock --close --nonblock --conflict-exit-code 75 "$target/make.lock" sh "peers/$(basename "$0")" "$@" || status=$?
  [ $status -ne 75 ] || echo "another make check or make test runs in this clone (lsof $target/make.lock says which)" >&2
  exit $status
fi
unset ROUNDEL_LOCKED

# The leaders of the process groups that beside started.
groups=

# beside COMMAND...: starts a command in a process group of its own, whose number is in $! then.
beside() {
  setsid "$@" &
  groups="$groups $!"
}

# Ends all groups; cargo and nextest end what they have started.
end_groups() {
  for group in $groups; do kill -TERM -- "-$group" 2>/dev/null || :; done
  for group in $groups; do wait "$group" 2>/dev/null || :; done
}
trap end_groups EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
