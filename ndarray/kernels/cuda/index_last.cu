// The last value of each place of a scatter, by a table of the places: an entry is the largest of what comes to it, and
// the numbers of positions rise. Bytes that meet no cache, of n positions to as many places, elements of s bytes, where
// a random access moves 64: 272 n + 2 s n where the winners among the positions are looked up and written,
// 152 n + 2 s n by entries with the values, 220 n + s n by positions whose values are then fetched.
#include <cstdint>

#include "ndarray/kernels/cuda/index_loop.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kAtOnce = 4;             // positions or places of a thread
constexpr std::int64_t kManyMeet = 4;  // positions a place

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
  EntryOf<kBytes>* table = nullptr;
  if (const int rc = note<holds_value<kBytes> ? kBytes : 0>(loop, args, table); rc != 0) return rc;
  write_places<kBytes><<<blocks_for(args.places, kAtOnce), kIndexThreads, 0, stream_of(loop)>>>(
      args, static_cast<const unsigned char*>(loop.values), static_cast<unsigned char*>(loop.base), table);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int note_last(const IndexArgs& loop, const KeyArgs& args, std::uint32_t*& last) { return note<0>(loop, args, last); }

bool scatters_by_place(const IndexArgs& loop, const KeyArgs& args) {
  const auto is_still = [](std::int64_t stride) { return stride == 0; };
  return loop.arrays == 1 && std::all_of(loop.base_strides, loop.base_strides + loop.ndim, is_still) &&
         table_pays(args);
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
