# For check.sh and test.sh, which read this file first (`. peers/beside.sh`), with the target directory in $target: commands side by
# side, of which nothing is left when the script ends, whatever ends it.

# Two such scripts in one clone would replace each other's files.
exec 9>"$target/make.lock"
flock --nonblock 9 || {
  echo "another make check or make test runs in this clone, or a program that it started (lsof $target/make.lock says which)" >&2
  exit 1
}

# The leaders of the process groups that beside started.
groups=

# beside COMMAND...: starts a command in a process group of its own, whose number is in $! then. It has not the lock, which a program
# that a test leaves would keep; nor one of test.sh.
beside() {
  setsid "$@" 8>&- 9>&- &
  groups="$groups $!"
}

# Ends all groups; cargo and nextest end what they have started.
end_groups() {
  for group in $groups; do kill -TERM "-$group" 2>/dev/null || :; done
  for group in $groups; do wait "$group" 2>/dev/null || :; done
}
# A second signal must not end the cleanup.
trap "trap '' INT TERM HUP; end_groups" EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
