# Shared by quickstart, run-tests and .ci/run (sourced, not run): quiet steps whose output shows on failure.

# quietly TITLE COMMAND... : runs the command; prints one line, and all of its output if it fails.
quietly() {
  local title=$1 log status=0 begin=$SECONDS
  shift
  log=$(mktemp)
  "$@" </dev/null >"$log" 2>&1 || status=$?
  if ((status)); then
    cat "$log" >&2
    echo "$title failed (exit $status) after $((SECONDS - begin)) s" >&2
  else
    echo "$title: $((SECONDS - begin)) s"
  fi
  rm -f "$log"
  return "$status"
}

# configure PRESET [CMake options]
configure() {
  quietly "configure $1" cmake --preset "$@"
}

# build PRESET [TARGET...]: at most one job per GiB and a half of free memory, so that small machines finish.
build() {
  local preset=$1 jobs free_mib
  shift
  jobs=$(nproc 2>/dev/null || echo 2)
  free_mib=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo 2>/dev/null || echo 0)
  if ((free_mib > 0 && free_mib / 1536 < jobs)); then jobs=$((free_mib / 1536)); fi
  ((jobs > 0)) || jobs=1
  quietly "build $preset" cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}
