#!/usr/bin/env bash
# What CI cannot do: the build, every test, the differential, the self-test runner, compute-sanitizer and the benchmarks
# on a machine with a GPU. All logs and results go to the folder given; a step that fails does not stop the others.
#
#   tests/gpu/run.sh FOLDER seal           build, every step that has not run on these sources, on all GPUs at once, and
#                                          the seal; two_gpus only where there are two, else the seal keeps its last run
#   tests/gpu/run.sh FOLDER STEP...        build pack kernels tests two_gpus load runner_busy differential fuzz memcheck
#                                          racecheck synccheck memcheck_differential; for speed kernels_bench latency
#                                          memory gpu small_calls sweep
#
# Nothing is fetched: the Python on the PATH (or $PYTHON) must hold the build requirements of pyproject.toml,
# pytest-xdist, and what frameworks are to take part. Wheels of what it lacks may lie in the folder $DLBRIDGE_WHEELS.
# A build takes minutes of a GPU's time. `run.sh FOLDER pack` makes one anywhere, for the same Python:
# FOLDER/built.tar.xz, which `build` takes where $DLBRIDGE_BUILT names it.
set -uo pipefail

out="$(mkdir -p "$1" && cd "$1" && pwd)" || exit 2
shift
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
python="${PYTHON:-python3}"
site="${DLBRIDGE_SITE:-$root/build/gpu-site}"  # what is installed here lies beside the Python, not in it
export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false  # JAX would take three quarters of the GPU from the others
cd "$root" || exit 2

# --- the build: the extension, the CUDA kernels and their test programs. The package runs where it lies. --------------
compile() {
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DDLBRIDGE_CUDA=ON -DDLBRIDGE_KERNEL_TESTS=ON \
    -DPython_EXECUTABLE="$(command -v "$python")" || return
  cmake --build build/gpu -j "$(env -u OMP_NUM_THREADS nproc)"  # nproc heeds that, too
}
# The programs hold the same kernels: a window over all of them keeps these once.
pack() {
  compile && "$python" tests/gpu/seal.py sources >build/gpu/sources.json &&
    tar -C build/gpu -cf - sources.json ndarray/libdlbridge_kernels.so \
      $(cd build/gpu && echo _core*.so tests/cuda/kernels/kernels_test_*) |
    xz --lzma2=preset=3,dict=256MiB >"$out/built.tar.xz"
}
unpack() {
  mkdir -p build/gpu && tar -xf "$DLBRIDGE_BUILT" -C build/gpu || return
  "$python" tests/gpu/seal.py sources | cmp - build/gpu/sources.json && return
  echo "$DLBRIDGE_BUILT was built of other sources"
  return 1
}
build() {
  rm -rf "$site" build/gpu && mkdir -p "$site"
  if [[ -n ${DLBRIDGE_WHEELS:-} ]]; then
    "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$DLBRIDGE_WHEELS"/*.whl || return
  fi
  if [[ -n ${DLBRIDGE_BUILT:-} ]]; then unpack; else compile; fi || return
  rm -rf "$site/dlbridge" && cp -r python/dlbridge "$site/dlbridge" && rm -f "$site"/dlbridge/*.so &&
    cp build/gpu/_core*.so build/gpu/ndarray/libdlbridge_kernels.so "$site/dlbridge/" &&
    cp --parents ndarray/kernels/*.h ndarray/kernels/functors/*.h "$site/dlbridge/nd/_kernels/device/" &&
    "$python" -c 'import dlbridge.nd as nd; print(nd.cuda.is_available(), nd.arange(3))'
}

# --- right ------------------------------------------------------------------------------------------------------------
# All kernel programs side by side: `each_program COMMAND... {} OPTION...`, where {} stands for the program.
each_program() {
  local pids=() logs=() failures=0 program i
  for program in build/gpu/tests/cuda/kernels/kernels_test_*; do
    logs+=("$out/$step-${program##*kernels_test_}.txt")
    timeout "${PROGRAM_SECONDS:-520}" "${@/\{\}/$program}" >"${logs[-1]}" 2>&1 &
    pids+=($!)
  done
  for i in "${!pids[@]}"; do
    wait "${pids[$i]}" || { failures=$((failures + 1)); echo "FAILED: exit $?"; }
    echo "== ${logs[$i]##*/}" && tail -n 40 "${logs[$i]}" && rm "${logs[$i]}"
  done
  echo "${#pids[@]} programs, $failures failures"
  return "$failures"
}
kernels() { each_program {}; }
sanitized_kernels() { each_program compute-sanitizer --tool "$1" --error-exitcode 99 {} --small; }
memcheck() { sanitized_kernels memcheck; }
racecheck() { sanitized_kernels racecheck; }
synccheck() { sanitized_kernels synccheck; }

# The oracle's BLAS, PyTorch and the ndarray on the host would take all cores in every worker: N threads each.
threads() { OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 OMP_NUM_THREADS="$1" "${@:2}"; }
suite() {
  DLBRIDGE_FAILURES="$out/$step-failures.txt" threads 1 \
    "$python" -m pytest -q -ra -n "${WORKERS:-6}" --dist worksteal -p no:cacheprovider "$@"
}
tests() { suite --durations=15; }
two_gpus() { suite tests/python/nd/test_nd_two_gpus.py tests/python/test_gpu_copies.py; }

# Runs a command while two other processes keep the GPU busy: those of $BUSY_PIDS, or its own.
beside_load() {
  local busy=() own=() status pid
  read -ra busy <<<"${BUSY_PIDS:-}"
  if [[ ${#busy[@]} -eq 0 ]]; then
    "$python" tests/gpu/busy.py & own+=($!)
    "$python" tests/gpu/busy.py & own+=($!)
    busy=("${own[@]}")
  fi
  "$@"
  status=$?
  for pid in "${busy[@]}"; do kill -0 "$pid" || status=98; done  # they ended: nothing was busy
  [[ ${#own[@]} -eq 0 ]] || { kill "${own[@]}" && wait "${own[@]}" 2>/dev/null; }
  return "$status"
}
# `rounds N COMMAND...`; past $LOAD_SECONDS no further one begins, by the time that the longest so far took.
rounds() {
  local failures=0 round begin longest=0
  for round in $(seq "$1"); do
    [[ $((SECONDS + longest)) -le ${LOAD_SECONDS:-999999} ]] || break
    begin=$SECONDS
    echo "== round $round" && "${@:2}" || failures=$((failures + 1))
    [[ $((SECONDS - begin)) -le $longest ]] || longest=$((SECONDS - begin))
  done
  return "$failures"
}
# $LOAD_LANES suites of six workers at a time, which share the rounds: they are load for one another, too.
load_lanes() {
  local pids=() lane failures=0 lanes="${LOAD_LANES:-1}"
  for lane in $(seq "$lanes"); do
    rounds $(((${ROUNDS:-10} + lanes - lane) / lanes)) suite -m gpu --durations=25 >"$out/load-$lane.txt" 2>&1 & pids+=($!)
  done
  for lane in "${!pids[@]}"; do wait "${pids[$lane]}" || failures=$((failures + 1)); done
  cat "$out"/load-*.txt
  return "$failures"
}
# What all of them take of the GPU's memory, every two seconds: a suite beside others must not want all of it.
load() {
  local memory
  nvidia-smi --query-gpu=memory.used --format=csv,noheader -l 2 >"$out/load-memory.txt" & memory=$!
  beside_load load_lanes
  local status=$?
  kill "$memory" && wait "$memory" 2>/dev/null
  echo "GPU memory in use at most: $(sort -n "$out/load-memory.txt" | tail -n 1)"
  return "$status"
}
runner_busy() { beside_load rounds "${RUNNER_ROUNDS:-20}" "$python" -m dlbridge --plain -v; }

differential() {
  threads 2 "$python" tests/gpu/differential.py --seconds "${DIFFERENTIAL_SECONDS:-360}" --jobs "${JOBS:-6}"
}
fuzz() { threads 2 "$python" tests/fuzz/nd_programs.py --device cuda --seconds "${FUZZ_SECONDS:-1800}"; }
# Memory errors of ours would be in kernels, in copies, and in views that outlive their memory.
memcheck_differential() {
  threads 2 compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 99 --target-processes all \
    "$python" tests/gpu/differential.py --seconds "${MEMCHECK_SECONDS:-240}" --jobs "${JOBS:-6}" --every 50
}

# --- fast -------------------------------------------------------------------------------------------------------------
kernels_bench() {
  for program in build/gpu/tests/cuda/kernels/kernels_test_*; do timeout 300 "$program" --bench || return; done
}
gpu() { "$python" benchmarks/gpu.py --out "$out" --seconds "${GPU_SECONDS:-0.5}"; }
small_calls() { "$python" benchmarks/small_calls.py --out "$out"; }
sweep() { "$python" benchmarks/sweep.py --device cuda --out "$out/sweep.jsonl" --seconds "${SWEEP_SECONDS:-480}"; }
latency() { "$python" benchmarks/latency.py --out "$out" --seconds "${LATENCY_SECONDS:-40}"; }
memory() { "$python" benchmarks/memory.py --out "$out" --count "${MEMORY_COUNT:-1000000}"; }

# --- steps ------------------------------------------------------------------------------------------------------------
run_step() {
  local begin=$SECONDS status
  step="$1"
  "$step" >"$out/$step.log" 2>&1
  status=$?
  printf '%-22s exit %d, %d s\n' "$step" "$status" $((SECONDS - begin)) | tee -a "$out/summary.txt"
  [[ $step =~ ^(build|pack)$ ]] || "$python" tests/gpu/seal.py note "$out" "$step" "$status" $((SECONDS - begin))
  return "$status"
}
run_steps() {
  local failed=()
  for name in "$@"; do run_step "$name" || failed+=("$name"); done
  [[ ${#failed[@]} -eq 0 ]] || printf 'failed: %s\n' "${failed[*]}" | tee -a "$out/summary.txt"
  return "${#failed[@]}"
}

# Lanes of steps side by side, divided by commas, each with a folder of its own and its GPU before the colon: what is
# wrong is found beside other work, too. Lanes of one step share what there is of it. The suite does not run beside the
# rounds under load on one GPU, which gave no further context with the processes that both start, nor on one host of four
# GPUs with all other steps, where its tests ran into their limits. On a single GPU the rounds run alone first, and the
# sanitizers by themselves at the end, for all together would want more than its memory.
seal() {
  run_step build || { tail -n 40 "$out/build.log"; return 1; }
  local count phases phase lane lanes step steps pids stale base="$out" script="$root/tests/gpu/run.sh"
  count="$("$python" -c 'from dlbridge import _core; print(_core.cuda_info()["device_count"])')"
  local checks="kernels racecheck memcheck synccheck memcheck_differential"
  case "$count" in
    1) phases=("0:load" "0:tests differential,0:runner_busy,0:fuzz" "0:$checks") ;;
    2 | 3) phases=("0:tests differential,1:$checks,1:runner_busy,0:fuzz" "0:load,1:load,1:fuzz") ;;
    *)
      phases=("0:tests differential,1:$checks,2:runner_busy,3:runner_busy,2:fuzz,3:fuzz")
      phases+=("0:load,1:load,2:load,3:load,0:fuzz,1:fuzz")
      ;;
  esac
  stale=" $("$python" tests/gpu/seal.py stale) "
  [[ $stale == *" load "* || $count -lt 2 ]] || phases=("$(IFS=,; printf %s "${phases[*]}")")
  share() { grep -o ":$1" <<<"${phases[*]}" | awk -v all="$2" 'END { print int((all + NR - 1) / NR) }'; }
  ROUNDS=$(share load "${ROUNDS:-10}") RUNNER_ROUNDS=$(share runner_busy "${RUNNER_ROUNDS:-20}")
  FUZZ_SECONDS=$(share fuzz "${FUZZ_SECONDS:-1800}")
  export ROUNDS RUNNER_ROUNDS FUZZ_SECONDS
  for phase in "${phases[@]}"; do
    pids=()
    IFS=, read -ra lanes <<<"$phase"
    for lane in "${lanes[@]}"; do
      steps=()
      for step in ${lane#*:}; do [[ $stale != *" $step "* ]] || steps+=("$step"); done
      [[ ${#steps[@]} -gt 0 ]] || continue
      CUDA_VISIBLE_DEVICES="${lane%%:*}" bash "$script" "$base/${lane//[: ]/-}" "${steps[@]}" & pids+=($!)
    done
    for lane in "${!pids[@]}"; do wait "${pids[$lane]}"; done
  done
  [[ $count -lt 2 || $stale != *" two_gpus "* ]] || bash "$script" "$base/both" two_gpus
  cat "$base"/*/summary.txt
  "$python" tests/gpu/seal.py write "$base" && cp tests/gpu/seal.json "$base/"
}

[[ $# -gt 0 ]] || set -- seal
if [[ $1 == seal ]]; then seal; else run_steps "$@"; fi
