// The last value of each place of a scatter, by a table of the places: an entry is the largest of what comes to it, and
// the numbers of positions rise. Bytes that meet no cache, of n positions to as many places, elements of s bytes, where
// a random access moves 64: 272 n + 2 s n where the winners among the positions are looked up and written,
// 152 n + 2 s n by entries with the values, 220 n + s n by positions whose values are then fetched. Few positions need
// no table in memory: a block has theirs.
#include <cstdint>

#include "ndarray/kernels/cuda/index_loop.cuh"
#include "ndarray/kernels/cuda/lanes.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kAtOnce = 4;             // positions or places of a thread
constexpr std::int64_t kManyMeet = 4;  // positions a place
constexpr int kFew = 1024;             // positions of a block that finds the last ones by itself

// The last position, counted from 1; of a value that fits, this with its bits below it.
template <int kBytes>
inline constexpr bool holds_value = kBytes >= 1 && kBytes <= 4;
template <int kBytes>
using EntryOf = std::conditional_t<holds_value<kBytes>, unsigned long long, std::uint32_t>;

template <int kBytes>
__device__ typename AccessOf<kBytes>::type value_at(const KeyArgs& args, const unsigned char* values,
                                                    std::int64_t position) {
  return *reinterpret_cast<const typename AccessOf<kBytes>::type*>(
      values + offset_in(args.space.dims, args.space.dims.value_strides, static_cast<std::uint64_t>(position)));
}

// The first that comes to each place of those which a block brings, all of them numbered from 0 in the order of coming.
template <int kMost>
struct BlockPlaces {
  static constexpr unsigned kSlots = 2 * kMost;  // a power of two
  unsigned long long place_of[kSlots];           // counted from 1; 0: of none
  int first[kSlots];

  __device__ void clear() {
    for (unsigned slot = threadIdx.x; slot < kSlots; slot += blockDim.x) {
      place_of[slot] = 0;
      first[slot] = kMost;
    }
    __syncthreads();
  }
  // The slot of the place; after a barrier it says who came first.
  __device__ unsigned note(unsigned long long place, int number) {
    auto slot = static_cast<unsigned>(++place * 0x9e3779b97f4a7c15ULL >> 32) % kSlots;
    for (;; slot = (slot + 1) % kSlots) {
      const unsigned long long there = atomicCAS(&place_of[slot], 0ULL, place);
      if (there == 0 || there == place) break;
    }
    atomicMin(&first[slot], number);
    return slot;
  }
};

// Of a block's positions that go to one place only the last one keeps its entry, since atomic operations on one line of
// memory wait for each other. Done where a lane of a warp shares its place with the first one: to compare them all
// takes longer than the operations on places that few share.
template <class Entry>
__device__ void keep_one_a_block(Entry* table, Entry* const (&to)[kAtOnce], Entry (&entry)[kAtOnce]) {
  __shared__ BlockPlaces<kIndexThreads * kAtOnce> seen;
  const unsigned lane = threadIdx.x % 32;
  unsigned long long place[kAtOnce];
  bool meets = false;
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) {
    place[j] = static_cast<unsigned long long>(to[j] - table);
    meets |= __shfl_sync(kAllLanes, place[j], 0) == place[j] && lane != 0;
  }
  if (__syncthreads_or(meets) == 0) return;
  seen.clear();
  unsigned slot[kAtOnce];
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) {
    if ((__match_any_sync(kAllLanes, place[j]) & ((1U << lane) - 1)) != 0) entry[j] = 0;
    if (entry[j] != 0) slot[j] = seen.note(place[j], static_cast<int>(j * kIndexThreads + threadIdx.x));
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j)
    if (entry[j] != 0 && seen.first[slot[j]] != static_cast<int>(j * kIndexThreads + threadIdx.x)) entry[j] = 0;
}

// From the last position on, so that most of those which meet others, where many do, see that they are not the last
// without an atomic operation.
template <int kBytes, bool kLooksFirst>
__global__ void __launch_bounds__(kIndexThreads)
    note_entries(const __grid_constant__ KeyArgs args, const unsigned char* values, EntryOf<kBytes>* table) {
  using Entry = EntryOf<kBytes>;
  const std::int64_t last = args.space.size - 1 - (std::int64_t{blockIdx.x} * (kIndexThreads * kAtOnce) + threadIdx.x);
  Entry entry[kAtOnce];
  Entry* to[kAtOnce];
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) {
    const std::int64_t position = last - j * kIndexThreads;
    const std::int64_t existing = position < 0 ? 0 : position;  // every load is safe, no entry of it is written
    to[j] = table + key_at(args, existing);
    entry[j] = static_cast<Entry>(position < 0 ? 0 : position + 1);
    if constexpr (holds_value<kBytes>)
      if (position >= 0) entry[j] = entry[j] << 32 | value_at<kBytes>(args, values, position);
  }
  keep_one_a_block(table, to, entry);
  if constexpr (kLooksFirst) {
    Entry seen[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) seen[j] = *static_cast<volatile Entry*>(to[j]);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (seen[j] >= entry[j]) entry[j] = 0;
  }
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j)
    if (entry[j] != 0) atomicMax(to[j], entry[j]);
}

template <int kBytes>
__global__ void __launch_bounds__(kIndexThreads)
    write_places(const __grid_constant__ KeyArgs args, const unsigned char* values, unsigned char* base,
                 const EntryOf<kBytes>* table) {
  using Access = typename AccessOf<kBytes>::type;
  const std::int64_t first = std::int64_t{blockIdx.x} * (kIndexThreads * kAtOnce) + threadIdx.x;
  EntryOf<kBytes> entry[kAtOnce];
  Access value[kAtOnce];
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) {
    const std::int64_t place = first + j * kIndexThreads;
    entry[j] = place < args.places ? table[place] : 0;
  }
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) {
    if (entry[j] == 0) continue;
    if constexpr (holds_value<kBytes>) value[j] = static_cast<Access>(entry[j]);
    else value[j] = value_at<kBytes>(args, values, std::int64_t{entry[j]} - 1);
  }
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j)
    if (entry[j] != 0)
      *reinterpret_cast<Access*>(base + (first + j * kIndexThreads) * args.space.array[0].axis_stride) = value[j];
}

// The same for few positions, one a thread, the last one first.
template <int kBytes>
__global__ void __launch_bounds__(kFew)
    scatter_few(const __grid_constant__ KeyArgs args, const unsigned char* values, unsigned char* base) {
  __shared__ BlockPlaces<kFew> seen;
  seen.clear();
  const int number = static_cast<int>(threadIdx.x);
  const std::int64_t position = args.space.size - 1 - number, place = position < 0 ? 0 : key_at(args, position);
  const unsigned slot = position < 0 ? 0 : seen.note(static_cast<unsigned long long>(place), number);
  __syncthreads();
  if (position >= 0 && seen.first[slot] == number)
    *reinterpret_cast<typename AccessOf<kBytes>::type*>(base + place * args.space.array[0].axis_stride) =
        value_at<kBytes>(args, values, position);
}

// kBytes: of the values that the entries hold; 0: none.
template <int kBytes>
int note(const IndexArgs& loop, const KeyArgs& args, EntryOf<kBytes>*& table) {
  table = take<EntryOf<kBytes>>(loop.workspace, args.places);
  if (table == nullptr) return kErrorMemory;
  const auto bytes = static_cast<std::size_t>(args.places) * sizeof *table;
  if (const auto rc = cudaMemsetAsync(table, 0, bytes, stream_of(loop)); rc != cudaSuccess) return static_cast<int>(rc);
  const unsigned blocks = blocks_for(args.space.size, kAtOnce);
  const auto* values = static_cast<const unsigned char*>(loop.values);
  if (args.space.size >= args.places * kManyMeet)
    note_entries<kBytes, true><<<blocks, kIndexThreads, 0, stream_of(loop)>>>(args, values, table);
  else note_entries<kBytes, false><<<blocks, kIndexThreads, 0, stream_of(loop)>>>(args, values, table);
  return static_cast<int>(cudaGetLastError());
}

template <int kBytes>
int scatter_elements(const IndexArgs& loop, const KeyArgs& args) {
  const auto* values = static_cast<const unsigned char*>(loop.values);
  auto* base = static_cast<unsigned char*>(loop.base);
  if (args.space.size <= kFew) {
    const auto threads = static_cast<unsigned>(args.space.size + 31) / 32 * 32;
    scatter_few<kBytes><<<1, threads, 0, stream_of(loop)>>>(args, values, base);
    return static_cast<int>(cudaGetLastError());
  }
  EntryOf<kBytes>* table = nullptr;
  if (const int rc = note<holds_value<kBytes> ? kBytes : 0>(loop, args, table); rc != 0) return rc;
  write_places<kBytes>
      <<<blocks_for(args.places, kAtOnce), kIndexThreads, 0, stream_of(loop)>>>(args, values, base, table);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int note_last(const IndexArgs& loop, const KeyArgs& args, std::uint32_t*& last) { return note<0>(loop, args, last); }

bool scatters_by_place(const IndexArgs& loop, const KeyArgs& args) {
  const auto is_still = [](std::int64_t stride) { return stride == 0; };
  return loop.arrays == 1 && std::all_of(loop.base_strides, loop.base_strides + loop.ndim, is_still) &&
         (args.space.size <= kFew || table_pays(args));
}

int scatter_by_place(const IndexArgs& loop, const KeyArgs& args) {
  switch (loop.itemsize) {
    case 1: return scatter_elements<1>(loop, args);
    case 2: return scatter_elements<2>(loop, args);
    case 4: return scatter_elements<4>(loop, args);
    case 8: return scatter_elements<8>(loop, args);
    case 16: return scatter_elements<16>(loop, args);
    default: return kErrorUnsupported;
  }
}

}  // namespace dlbridge::nd::cuda_kernels
