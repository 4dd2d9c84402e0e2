#!/usr/bin/env bash
# What CI cannot do: the build, every test, the self-test runner, the benchmarks and compute-sanitizer on a machine with
# a GPU. All logs and results go to the folder given; a step that fails does not stop the others.
#
#   tests/gpu/run.sh FOLDER [STEP...]      by default: build kernels tests runner latency memory gpu small_calls sanitizer
#                                          kernels_bench
#
# Nothing is fetched: the Python on the PATH (or $PYTHON) must hold the build requirements of pyproject.toml, and what
# frameworks are to take part. Wheels of what it lacks may lie in the folder $DLBRIDGE_WHEELS.
set -uo pipefail

out="$(mkdir -p "$1" && cd "$1" && pwd)" || exit 2
shift
steps=("$@")
[[ ${#steps[@]} -gt 0 ]] || steps=(build kernels tests runner latency memory gpu small_calls sanitizer kernels_bench)
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
python="${PYTHON:-python3}"
site="${DLBRIDGE_SITE:-$root/build/gpu-site}"  # what is installed here lies beside the Python, not in it
export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false  # JAX would take three quarters of the GPU from the others
cd "$root" || exit 2

# One build of everything: the extension, the CUDA kernels and their test programs. The package runs where it lies.
build() {
  rm -rf "$site" build/gpu
  if [[ -n ${DLBRIDGE_WHEELS:-} ]]; then
    "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$DLBRIDGE_WHEELS"/*.whl || return
  fi
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DDLBRIDGE_CUDA=ON -DDLBRIDGE_KERNEL_TESTS=ON \
    -DPython_EXECUTABLE="$(command -v "$python")" || return
  cmake --build build/gpu -j "$(nproc)" || return
  rm -rf "$site/dlbridge" && cp -r python/dlbridge "$site/dlbridge" && rm -f "$site"/dlbridge/*.so &&
    cp build/gpu/_core*.so build/gpu/ndarray/libdlbridge_kernels.so "$site/dlbridge/" &&
    "$python" -c 'import dlbridge.nd as nd; print(nd.cuda.is_available(), nd.arange(3))'
}
run_kernels() {
  local failures=0 program
  for program in build/gpu/tests/cuda/kernels/kernels_test_*; do
    echo "== $program $*"
    timeout 300 "$program" "$@" || failures=$((failures + 1))
  done
  return "$failures"
}
kernels() { run_kernels; }
kernels_bench() { run_kernels --bench; }
gpu() { "$python" benchmarks/gpu.py --out "$out" --seconds "${GPU_SECONDS:-0.5}"; }
small_calls() { "$python" benchmarks/small_calls.py --out "$out"; }
nd() { "$python" -m pytest -q -ra -p no:cacheprovider --durations=10 tests/python/nd; }
kernel_sanitizer() {
  local failures=0 program
  for program in build/gpu/tests/cuda/kernels/kernels_test_*; do
    for tool in memcheck racecheck; do
      timeout 400 compute-sanitizer --tool "$tool" --error-exitcode 99 "$program" --small || failures=$((failures + 1))
    done
  done
  return "$failures"
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
