// Rows are moved by as few wide loads and stores as they take, and what is transposed goes tile by tile of whole cache
// lines: each line is read once and written once, and in between elements change places in registers.
#include "ndarray/kernels/host/copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ndarray/kernels/host/move_rows.h"

namespace dlbridge::nd::host_kernels {
namespace {

// Two dims of a loop, n elements in each of some rows. Strides in bytes.
struct Plane {
  std::int64_t n, rows;
  std::int64_t to_step, from_step;
  std::int64_t to_row, from_row;
};
using PlaneCopy = void (*)(char* to, const char* from, const Plane& plane);

void move_rows(char* to, std::int64_t to_row, const char* from, std::int64_t from_row, std::int64_t bytes,
               std::int64_t rows) noexcept {
  move_each_row([=](std::int64_t row) { return to + row * to_row; },
                [=](std::int64_t row) { return from + row * from_row; }, bytes, rows);
}

constexpr int kVector = 16;
struct Pair {  // an element of 16 bytes: a vector holds nothing to exchange
  std::uint64_t first, second;
};

// Of elements of type T: a tile has a cache line of them on each side, or a few lines of the wider ones, so that short
// sides fit in one tile.
template <class T>
constexpr std::int64_t kSide = std::max<std::int64_t>(64 / sizeof(T), 16);
template <class T>
constexpr std::int64_t kLine = kSide<T> * static_cast<std::int64_t>(sizeof(T));

template <class T>
struct Vectors {
  static constexpr int kCount = kVector / sizeof(T);
  using Vector [[gnu::vector_size(kVector)]] = T;

  // The first or the second halves of two vectors, element by element in turns.
  template <int half, int... k>
  static Vector interleave(Vector a, Vector b, std::integer_sequence<int, k...>) noexcept {
    return __builtin_shufflevector(a, b, (half * kCount / 2 + k / 2 + k % 2 * kCount)...);
  }

  // A square of as many vectors as each has elements: interleaving the first half of the vectors with the second as
  // often as the count can be halved exchanges rows and columns.
  static void transpose(char* to, std::int64_t to_row, const char* from, std::int64_t from_row) noexcept {
    constexpr std::make_integer_sequence<int, kCount> elements;
    Vector rows[kCount], turned[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) std::memcpy(&rows[i], from + i * from_row, sizeof(Vector));
#pragma GCC unroll 4
    for (int stage = 1; stage < kCount; stage *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount / 2; ++i) {
        turned[2 * i] = interleave<0>(rows[i], rows[i + kCount / 2], elements);
        turned[2 * i + 1] = interleave<1>(rows[i], rows[i + kCount / 2], elements);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) rows[i] = turned[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) std::memcpy(to + i * to_row, &rows[i], sizeof(Vector));
  }
};

// The part of a plane from (column, row) on.
struct Part {
  std::int64_t column, row, wide, tall;
};

// Calls run(part) for the parts of `whole`, squares but for those at the edges: one row of them after the other, for
// lines that are written in order are fetched ahead of the stores.
template <class Run>
void for_each_square(const Part& whole, std::int64_t side, Run run) noexcept {
  const std::int64_t right = whole.column + whole.wide, end = whole.row + whole.tall;
  for (std::int64_t row = whole.row; row < end; row += side)
    for (std::int64_t column = whole.column; column < right; column += side)
      run(Part{column, row, std::min(side, right - column), std::min(side, end - row)});
}

constexpr std::int64_t kPart = 512;  // elements a side: as many rows, each in a page of its own, stay within reach

template <class T>
inline void transpose_tile(char* to, std::int64_t to_row, const char* from, std::int64_t from_row, std::int64_t wide,
                           std::int64_t tall) noexcept {
  constexpr std::int64_t size = sizeof(T), block = Vectors<T>::kCount;
  for (std::int64_t y = 0; y < tall; y += block)
#pragma GCC unroll 1  // more addresses than registers otherwise
    for (std::int64_t x = 0; x < wide; x += block)
      Vectors<T>::transpose(to + y * to_row + x * size, to_row, from + x * from_row + y * size, from_row);
}

// Asks for a tile's lines, to be read or, ahead of stores that would wait for one after the other, to be written.
template <class T, int writes>
inline void fetch_lines(const char* first, std::int64_t row, std::int64_t rows) noexcept {
  for (std::int64_t k = 0; k < rows; ++k)
    for (std::int64_t byte = 0; byte < kLine<T>; byte += 64) __builtin_prefetch(first + k * row + byte, writes);
}

template <class T>
DLBRIDGE_ND_CLONES void copy_transposed(char* to, const char* from, const Plane& plane) {
  constexpr std::int64_t size = sizeof(T), line = kLine<T>, side = kSide<T>;
  alignas(64) char read[side * line] = {};  // the rest of a tile at the edge is turned, too
  alignas(64) char turned[side * line];
  const auto copy_tile = [&](const Part& tile) {
    const char* const source = from + tile.column * plane.from_step + tile.row * size;
    char* const target = to + tile.row * plane.to_row + tile.column * size;
    fetch_lines<T, 1>(target, plane.to_row, tile.tall);
    if (const std::int64_t rest = plane.n - tile.column - side; rest > 0)
      fetch_lines<T, 0>(source + side * plane.from_step, plane.from_step, std::min(side, rest));
    if (tile.wide == side && tile.tall == side)
      return transpose_tile<T>(target, plane.to_row, source, plane.from_step, side, side);
    move_rows(read, line, source, plane.from_step, tile.tall * size, tile.wide);
    transpose_tile<T>(turned, line, read, line, tile.wide, tile.tall);
    move_rows(target, plane.to_row, turned, line, tile.wide * size, tile.tall);
  };
  for_each_square({0, 0, plane.n, plane.rows}, kPart,
                  [&](const Part& part) { for_each_square(part, side, copy_tile); });
}

constexpr std::int64_t kRepeatedBytes = 4096;

// One row many times, side by side: what is there is repeated.
void double_row(char* to, const char* from, std::int64_t bytes, std::int64_t rows) noexcept {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
  for (std::int64_t there = 1; there < rows; there *= 2)
    std::memcpy(to + there * bytes, to, static_cast<std::size_t>(std::min(there, rows - there) * bytes));
}

// One row many times: side by side they are written as blocks of a number of rows; else the row stays in registers, for
// none that is written lies in its copy.
void repeat_row(char* to, std::int64_t to_row, const char* from, std::int64_t bytes, std::int64_t rows) noexcept {
  if (to_row == bytes && rows * bytes <= kRepeatedBytes) return double_row(to, from, bytes, rows);
  alignas(64) char block[kRepeatedBytes];
  const std::int64_t aligned = 64 / std::min<std::int64_t>(64, bytes & -bytes);  // so many rows end with a cache line
  std::int64_t count = to_row == bytes ? std::min(rows, kRepeatedBytes / bytes) : 1;
  if (count > aligned) count -= count % aligned;
  double_row(block, from, bytes, count);
  if (count == 1)
    return move_each_row([=](std::int64_t row) { return to + row * to_row; }, [&](std::int64_t) { return block; },
                         bytes, rows);
  for (std::int64_t row = 0; row < rows; row += count, to += count * bytes)
    std::memcpy(to, block, static_cast<std::size_t>(std::min(count, rows - row) * bytes));
}

template <class T>
DLBRIDGE_ND_CLONES void copy_rows(char* to, const char* from, const Plane& plane) {
  const std::int64_t bytes = plane.n * static_cast<std::int64_t>(sizeof(T));
  if (plane.from_row == 0 && bytes <= kRepeatedBytes / 32) repeat_row(to, plane.to_row, from, bytes, plane.rows);
  else move_rows(to, plane.to_row, from, plane.from_row, bytes, plane.rows);
}

// --- along one dim ---------------------------------------------------------------------------------------------------

template <class T>
inline void move_element(char* to, const char* from) noexcept {
  std::memcpy(to, from, sizeof(T));
}

constexpr std::int64_t kGathered = 64;
constexpr std::int64_t kFewGathered = 16;
constexpr std::int64_t kFewRepeated = 8;

// Calls move<length>(i) for blocks of kGathered or `few` from element number i on, of which the last begins in the one
// before it where n is no multiple. Returns how many elements that were: none where they fill no block.
template <std::int64_t few, class Move>
inline std::int64_t for_each_block(std::int64_t n, Move move) noexcept {
  const auto go = [&]<std::int64_t length>() {
    for (std::int64_t i = 0; i < n; i += length) move.template operator()<length>(std::min(i, n - length));
    return n;
  };
  return n >= kGathered ? go.template operator()<kGathered>() : n >= few ? go.template operator()<few>() : 0;
}

// Elements a constant number of steps apart, as many as a block has: there the compiler finds shuffles.
template <class T, int step>
std::int64_t gather_blocks(char* to, const char* from, std::int64_t n) noexcept {
  constexpr std::int64_t size = sizeof(T);
  return for_each_block<kFewGathered>(n, [=]<std::int64_t length>(std::int64_t i) {
    for (std::int64_t j = 0; j < length; ++j) move_element<T>(to + (i + j) * size, from + (i + j) * step * size);
  });
}

// One element many times, by blocks of a constant length, too.
template <class T>
std::int64_t repeat_blocks(char* to, const char* from, std::int64_t n) noexcept {
  constexpr std::int64_t size = sizeof(T);
  T element;
  std::memcpy(&element, from, sizeof element);
  return for_each_block<kFewRepeated>(n, [=]<std::int64_t length>(std::int64_t i) {
    for (std::int64_t j = 0; j < length; ++j) std::memcpy(to + (i + j) * size, &element, sizeof element);
  });
}

template <class T>
inline void copy_apart(char* to, std::int64_t to_step, const char* from, std::int64_t from_step,
                       std::int64_t n) noexcept {
  constexpr std::int64_t size = sizeof(T);
  std::int64_t done = 0;
  if (to_step == size) {
    if (from_step == 0) done = repeat_blocks<T>(to, from, n);
    else if (from_step == 2 * size) done = gather_blocks<T, 2>(to, from, n);
    else if (from_step == 3 * size) done = gather_blocks<T, 3>(to, from, n);
    else if (from_step == 4 * size) done = gather_blocks<T, 4>(to, from, n);
    else if (from_step == -size) done = gather_blocks<T, -1>(to, from, n);
  }
  to += done * to_step;
  from += done * from_step;
  const std::int64_t to_third = 3 * to_step, from_third = 3 * from_step;
  for (n -= done; n >= 4; n -= 4, to += 4 * to_step, from += 4 * from_step) {
    move_element<T>(to, from);
    move_element<T>(to + to_step, from + from_step);
    move_element<T>(to + 2 * to_step, from + 2 * from_step);
    move_element<T>(to + to_third, from + from_third);
  }
  for (; n > 0; --n, to += to_step, from += from_step) move_element<T>(to, from);
}

// All elements of a row are read before one is written. The plane is a copy: what is written might lie in it, as far as
// the compiler knows.
template <class T, int n>
void copy_few(char* to, const char* from, const Plane plane) noexcept {
  for (std::int64_t row = plane.rows; row > 0; --row, to += plane.to_row, from += plane.from_row) {
    T elements[n];
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k) std::memcpy(&elements[k], from + k * plane.from_step, sizeof(T));
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k) std::memcpy(to + k * plane.to_step, &elements[k], sizeof(T));
  }
}

template <class T>
DLBRIDGE_ND_CLONES void copy_plane(char* to, const char* from, const Plane& plane) {
  switch (plane.n) {
    case 2: return copy_few<T, 2>(to, from, plane);
    case 3: return copy_few<T, 3>(to, from, plane);
    case 4: return copy_few<T, 4>(to, from, plane);
    default: break;
  }
  for (std::int64_t row = 0; row < plane.rows; ++row, to += plane.to_row, from += plane.from_row)
    copy_apart<T>(to, plane.to_step, from, plane.from_step, plane.n);
}

template <class T>
bool is_of_equal_bytes(const char* element) noexcept {
  return std::all_of(element + 1, element + sizeof(T), [=](char byte) { return byte == element[0]; });
}

// What lies side by side is moved, and the C library repeats an element: a byte, or what has been written of it.
template <class T>
DLBRIDGE_ND_CLONES void copy_line(char* const* data, const std::int64_t* strides, std::int64_t n) {
  constexpr std::int64_t size = sizeof(T), repeated = kRepeatedBytes / size;
  const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count * size); };
  const bool dense = strides[0] == size;
  if (dense && strides[1] == size) return static_cast<void>(std::memmove(data[0], data[1], bytes(n)));
  const bool repeats = dense && strides[1] == 0;
  if (repeats && n > repeated && is_of_equal_bytes<T>(data[1]))
    return static_cast<void>(std::memset(data[0], data[1][0], bytes(n)));
  const std::int64_t first = repeats ? std::min(n, repeated) : n;
  copy_apart<T>(data[0], strides[0], data[1], strides[1], first);
  for (std::int64_t i = first; i < n; i += repeated)
    std::memcpy(data[0] + i * size, data[0], bytes(std::min(repeated, n - i)));
}

// --- the table -------------------------------------------------------------------------------------------------------

struct Copies {
  InnerLoop line;
  PlaneCopy rows, planes, transposed;
};
template <class T>
constexpr Copies copies_of() noexcept {
  return {&copy_line<T>, &copy_rows<T>, &copy_plane<T>, &copy_transposed<T>};
}

const Copies* copies_for(int itemsize) noexcept {
  static constexpr Copies kCopies[] = {copies_of<std::uint8_t>(),
                                       copies_of<std::uint16_t>(),
                                       copies_of<std::uint32_t>(),
                                       copies_of<std::uint64_t>(),
                                       {&copy_line<Pair>, &copy_rows<Pair>, &copy_plane<Pair>, nullptr}};
  switch (itemsize) {
    case 1: return &kCopies[0];
    case 2: return &kCopies[1];
    case 4: return &kCopies[2];
    case 8: return &kCopies[3];
    case 16: return &kCopies[4];
    default: return nullptr;
  }
}

// Calls the copy for each index of the dims beside the first and `second`.
void for_each_plane(const KernelLoop& loop, int second, PlaneCopy copy) noexcept {
  const auto stride = [&](int operand, int dim) { return dim < loop.ndim ? loop.strides[operand][dim] : 0; };
  const Plane plane{loop.shape[0],     second < loop.ndim ? loop.shape[second] : 1,
                    stride(0, 0),      stride(1, 0),
                    stride(0, second), stride(1, second)};
  char* to = loop.data[0];
  const char* from = loop.data[1];
  std::int64_t position[kTiledDims] = {};
  for (;;) {
    copy(to, from, plane);
    int d = 1;
    for (; d < loop.ndim; ++d) {
      if (d == second) continue;
      to += loop.strides[0][d];
      from += loop.strides[1][d];
      if (++position[d] < loop.shape[d]) break;
      to -= loop.strides[0][d] * loop.shape[d];
      from -= loop.strides[1][d] * loop.shape[d];
      position[d] = 0;
    }
    if (d >= loop.ndim) return;
  }
}

constexpr std::int64_t kLeastSide = 8;  // of what is transposed: short of it the longer dim is walked

// The dim along which the source lies dense where the first is that of the target; 0 for none, and where the source
// repeats an element along the first.
int transposed_dim(const KernelLoop& loop, int itemsize) noexcept {
  if (loop.shape[0] < kLeastSide || loop.strides[0][0] != itemsize || loop.strides[1][0] == 0) return 0;
  for (int d = 1; d < loop.ndim; ++d)
    if (loop.strides[1][d] == itemsize) return loop.shape[d] < kLeastSide ? 0 : d;
  return 0;
}

constexpr std::int64_t kEnoughRows = 16;

// The dim along which dense rows follow each other: the second, or the longest where the second has few.
int rows_dim(const KernelLoop& loop) noexcept {
  if (loop.ndim < 3 || loop.shape[1] >= kEnoughRows) return 1;
  return static_cast<int>(std::max_element(loop.shape + 1, loop.shape + loop.ndim) - loop.shape);
}

// Where other dims lie inside that of the rows, so many rows at a time that their lines are still near when the next
// index of those dims comes to them.
void copy_row_blocks(const KernelLoop& loop, PlaneCopy copy) noexcept {
  constexpr std::int64_t kBlockBytes = 16384;
  const int dim = rows_dim(loop);
  if (dim == 1) return for_each_plane(loop, dim, copy);
  const std::int64_t rows = loop.shape[dim], step = std::abs(loop.strides[0][dim]);
  const std::int64_t block = std::max(kBlockBytes / std::max<std::int64_t>(step, 1), kEnoughRows);
  for (std::int64_t done = 0; done < rows; done += block)
    for_each_plane(slice_dim(loop, dim, done, std::min(done + block, rows)), dim, copy);
}

// The dim along which rows follow each other that cost more in calls than in work; 0 where these are none, or few.
int short_rows_dim(const KernelLoop& loop) noexcept {
  constexpr std::int64_t kFew = 4, kShort = 64;
  if (loop.ndim < 2 || loop.shape[0] > kShort || (loop.shape[0] > kFew && loop.shape[0] < kLeastSide)) return 0;
  const int rows = loop.shape[0] <= kFew ? 1 : rows_dim(loop);
  return loop.shape[rows] >= kEnoughRows ? rows : 0;
}

}  // namespace

InnerLoop copy_loop(int itemsize) noexcept {
  const Copies* const copies = copies_for(itemsize);
  return copies != nullptr ? copies->line : nullptr;
}

bool copy_planes(const KernelLoop& loop, int itemsize) noexcept {
  const Copies* const copies = copies_for(itemsize);
  if (copies == nullptr || loop.ndim == 0) return false;
  if (loop.strides[0][0] == itemsize && loop.strides[1][0] == itemsize) {
    copy_row_blocks(loop, copies->rows);
  } else if (const int across = transposed_dim(loop, itemsize); across != 0 && copies->transposed != nullptr) {
    for_each_plane(loop, across, copies->transposed);
  } else if (const int rows = short_rows_dim(loop); rows != 0) {
    for_each_plane(loop, rows, copies->planes);
  } else {
    return false;
  }
  return true;
}

}  // namespace dlbridge::nd::host_kernels
