#!/usr/bin/env bash
# What CI cannot do: the build, every test, the self-test runner, the benchmarks and compute-sanitizer on a machine with
# a GPU. All logs and results go to the folder given; a step that fails does not stop the others.
#
#   tests/gpu/run.sh FOLDER [STEP...]      steps: build tests runner latency memory sanitizer; by default all
#
# Nothing is fetched: the Python on the PATH (or $PYTHON) must hold the build requirements of pyproject.toml, and what
# frameworks are to take part. Wheels of what it lacks may lie in the folder $DLBRIDGE_WHEELS.
set -uo pipefail

out="$(mkdir -p "$1" && cd "$1" && pwd)" || exit 2
shift
steps=("$@")
[[ ${#steps[@]} -gt 0 ]] || steps=(build tests runner latency memory sanitizer)
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
python="${PYTHON:-python3}"
site="${DLBRIDGE_SITE:-$root/build/gpu-site}"  # what is installed here lies beside the Python, not in it
export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false  # JAX would take three quarters of the GPU from the others
cd "$root" || exit 2

build() {
  rm -rf "$site"
  if [[ -n ${DLBRIDGE_WHEELS:-} ]]; then
    "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$DLBRIDGE_WHEELS"/*.whl || return
  fi
  CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)" \
    "$python" -m pip install -q --no-index --no-deps --no-build-isolation --target "$site" .
}
tests() { "$python" -m pytest -q -ra --junitxml="$out/tests.xml" -p no:cacheprovider --durations=15; }
runner() { "$python" -m dlbridge -v; }
latency() { "$python" benchmarks/latency.py --out "$out" --seconds "${LATENCY_SECONDS:-40}"; }
memory() { "$python" benchmarks/memory.py --out "$out" --count "${MEMORY_COUNT:-1000000}"; }
# Memory errors of ours would be in copies and in views that outlive their memory; a race of ours is not its subject.
sanitizer() {
  # Frameworks probe the driver with calls that fail on purpose: those are no findings.
  compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 99 --target-processes all \
    "$python" -m pytest -q -p no:cacheprovider tests/python/test_gpu_exchange.py tests/python/test_gpu_copies.py \
    -k "${SANITIZER_TESTS:-test_copy or test_managed or test_pinned or test_strides or (test_every_producer and not jax)}"
}

failed=()
for step in "${steps[@]}"; do
  begin=$SECONDS
  "$step" >"$out/$step.log" 2>&1
  status=$?
  printf '%-10s exit %d, %d s\n' "$step" "$status" $((SECONDS - begin)) | tee -a "$out/summary.txt"
  [[ $status -eq 0 ]] || failed+=("$step")
done
[[ ${#failed[@]} -eq 0 ]] || printf 'failed: %s\n' "${failed[*]}" | tee -a "$out/summary.txt"
exit "${#failed[@]}"
