// What the front end asks of the kernels: plain structs, and one table of functions with two instances: the host's
// (kernels/host/) and CUDA's (kernels/cuda/, a library of its own that is loaded on first use).
//
// Contract of every function: arguments are valid (the front end has checked shapes, dtypes and devices and dealt with
// overlap); addresses and strides may be unaligned to vectors but are aligned to their dtype; sizes are non-zero unless
// said otherwise. CUDA: the device is current, work is queued on `stream`, nothing blocks the host unless said so.
// Returns 0 or an error code that error_text() explains. Nothing throws, nothing is kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dlbridge/dtype.h"
#include "dlbridge/stream.h"
#include "dlbridge/version.h"
#include "ndarray/kernels/ops.h"

namespace dlbridge::nd {

// "1.22.333" as 1022333: the kernel library may come in a wheel of its own, and one of another release is not called.
consteval int release_number(const char* text) {
  int parts[3] = {}, part = 0;
  for (; *text != 0; ++text) {
    if (*text == '.') ++part;
    else parts[part] = parts[part] * 10 + (*text - '0');
  }
  return parts[0] * 1'000'000 + parts[1] * 1000 + parts[2];
}
inline constexpr int kKernelRelease = release_number(DLBRIDGE_VERSION);

inline constexpr int kMaxOperands = 4;  // out, then up to three inputs
inline constexpr int kLoopDims = 12;    // after merging; more dims are looped over by the front end

// Scratch memory from the stream-ordered pool; lives until the work queued by the call has run. Null: out of memory,
// for which the kernel returns kErrorMemory.
struct Workspace {
  void* (*allocate)(void* context, std::size_t bytes);
  void* context;
  void* get(std::size_t bytes) const { return allocate(context, bytes); }
};

inline constexpr int kErrorMemory = -1;       // a workspace could not be had
inline constexpr int kErrorUnsupported = -2;  // no kernel for these dtypes: a fault of the front end
inline constexpr int kErrorIndex = -3;        // host only: an index array holds an index out of bounds
// Positive: a cudaError_t.

// A value in the compute dtype of the call, in its memory format (bfloat16: the 16 bits).
struct alignas(16) ScalarValue {
  unsigned char bytes[16];
};

// out[i…] = op(in[0][i…], …). Operand 0 is the output. Each operand is read as its own dtype, cast to
// `compute`, and the result (dtype by the op's TypeRule) is cast to the output's dtype; casts are C casts as NumPy
// does them: float to int truncates, to bool is `!= 0`, complex to real drops the imaginary part.
// dims are innermost first, merged where possible, the output's strides ascending and never negative; an operand
// stride of 0 broadcasts. A bit in scalar_mask (bit k: operand k) says that the operand is scalars[k], not memory.
// The output may be exactly an input (same address and strides); no other overlap.
// kWhere: operand 1 is the condition (bool), operands 2 and 3 have dtype `compute`.
struct ElementwiseArgs {
  Op op;
  DType compute;
  std::uint8_t operands;  // with the output: 2, 3 or 4
  std::uint8_t scalar_mask;
  bool contiguous;  // every operand in memory is dense in the loop's order: walk it as 1-D
  DType dtype[kMaxOperands];
  int ndim;  // 0 for one element
  std::int64_t size;
  std::int64_t shape[kLoopDims];
  void* data[kMaxOperands];
  std::int64_t strides[kMaxOperands][kLoopDims];  // bytes
  ScalarValue scalars[kMaxOperands];
  StreamHandle stream;
};

// Copy with cast is kPositive with compute == the output's dtype; its CUDA kernel also finds transposes by itself
// (operand 1's unit stride on another dim than the output's).

// out[k…] = reduce over r… of in[k…, r…]. Kept and reduced dims are separate, each innermost (smallest input
// stride) first and merged. `accumulate`: the dtype to accumulate in (also of mean, var, norm); the result is cast to
// out_dtype. For the arg reductions the reduced position is the sum of r_i * index_strides[i], and out_dtype is int64.
// An empty reduction (a reduced extent of 0) writes the identity; the front end refuses the ops that have none.
struct ReduceArgs {
  ReduceOp op;
  DType in_dtype;
  DType accumulate;
  DType out_dtype;
  int kept_ndim;
  int reduced_ndim;
  std::int64_t kept_size;
  std::int64_t reduced_size;
  std::int64_t kept_shape[kLoopDims];
  std::int64_t kept_in_strides[kLoopDims];   // bytes
  std::int64_t kept_out_strides[kLoopDims];  // bytes
  std::int64_t reduced_shape[kLoopDims];
  std::int64_t reduced_in_strides[kLoopDims];  // bytes
  std::int64_t index_strides[kLoopDims];       // elements, of the C-order position
  const void* in;
  void* out;
  double correction;  // var, std: the divisor is max(n - correction, 0)
  Workspace workspace;
  StreamHandle stream;
};

enum class ScanOp : std::uint8_t { kSum, kProd };

// Inclusive scan along the middle axis of dense C-order arrays (outer, n, inner). in_dtype is cast to out_dtype on
// load; 16-bit floats accumulate in float32.
struct ScanArgs {
  ScanOp op;
  DType in_dtype;
  DType out_dtype;
  std::int64_t outer, n, inner;
  const void* in;
  void* out;
  Workspace workspace;
  StreamHandle stream;
  std::int64_t in_steps[3];  // of the dims, in bytes; CUDA takes what is dense, and does not look at them
};

// Sorts each of `rows` dense rows of n elements. NaN sorts last (also in descending order), complex lexicographically.
// Either output may be null. `indices` are int64 positions within the row; equal keys keep their order when indices
// are asked for or `stable`. keys_out may equal keys_in.
struct SortArgs {
  DType dtype;
  bool descending;
  bool stable;
  std::int64_t rows, n;
  const void* keys_in;
  void* keys_out;
  std::int64_t* indices;
  Workspace workspace;
  StreamHandle stream;
};

inline constexpr int kMaxIndexArrays = 16;

// What becomes of an index beyond its axis.
enum class Bounds : std::uint8_t {
  kRefuse,  // -extent <= i < 0 counts from the end; others the host refuses before anything is written, CUDA clamps
  kWrap,    // it is counted round and round
  kClip,    // it is set to the nearest
};

// Reads or writes x[…, i0, i1, …, …] element by element. The loop runs over the broadcast index space and the
// dims that are not indexed, innermost first as the dense operand lies. Where a scatter's indices repeat, the last one
// in the loop's order is what stays. kErrorIndex: an index is refused, or its axis has no element.
struct IndexArgs {
  int itemsize;  // 1, 2, 4, 8, 16
  int ndim;
  int arrays;  // index arrays
  std::int64_t size;
  std::int64_t shape[kLoopDims];
  void* values;  // gather: written; scatter: read
  std::int64_t value_strides[kLoopDims];
  void* base;                            // x
  std::int64_t base_strides[kLoopDims];  // of the dims that are not indexed; 0 on index dims
  const std::int64_t* index[kMaxIndexArrays];
  std::int64_t index_strides[kMaxIndexArrays][kLoopDims];  // bytes
  std::int64_t extent[kMaxIndexArrays];                    // of the axis that array k indexes
  std::int64_t axis_stride[kMaxIndexArrays];               // bytes of x along that axis
  bool accumulate;  // scatter: combine (dtype) instead of overwrite; duplicates all count
  DType dtype;      // for accumulate
  StreamHandle stream;
  Workspace workspace{};  // CUDA, scatter
  Op combine = Op::kAdd;  // accumulate: kAdd, kMaximum, kMinimum; on the host kMultiply
  Bounds bounds = Bounds::kRefuse;
  bool unique = false;  // one index array, the positions of a mask: they rise, so that no order of writes matters
};

// Positions of the true elements of a dense bool array, in order. `count` gets their number: CUDA blocks for it.
// positions has room for n elements and may be null (count only).
struct NonzeroArgs {
  const void* mask;
  std::int64_t n;
  std::int64_t* positions;
  std::int64_t* count;  // host memory
  Workspace workspace;
  StreamHandle stream;
};

// The runs of equal elements of a dense sorted row, in order; NaNs are equal to each other or not. Each array may be
// null; the first three have room for n. `order`: where each element stood before the row was sorted; null: where it
// stands.
struct RunsArgs {
  DType dtype;  // of integers and bools the unsigned one of their width
  bool equal_nan;
  std::int64_t n;
  const void* sorted;
  const std::int64_t* order;
  void* values;           // the first element of each run
  std::int64_t* first;    // where that stood
  std::int64_t* lengths;  // of the runs
  std::int64_t* inverse;  // n: the run of each element, where it stood
  std::int64_t* count;    // runs, in host memory: CUDA blocks for it
  Workspace workspace;
  StreamHandle stream;
};

// out[j] = number of elements of the sorted row `sorted` (n elements) that are < (side right: <=) values[j],
// or n less that number.
struct SearchArgs {
  DType dtype;
  bool right;
  const void* sorted;
  std::int64_t n;
  const void* values;
  std::int64_t count;
  std::int64_t* out;
  StreamHandle stream;
  std::int64_t sorted_step = 1;  // elements from one of the row, or of the values, to the next
  std::int64_t value_step = 1;
  bool from_end = false;  // n less that number
};

// out[…, i, j] = in[…, i, j] where j - i is at most `diagonal` (lower) or at least that, and 0 elsewhere. Dims are
// innermost first: columns, rows, and others, which are merged. out is dense in C order.
struct TriangleArgs {
  int itemsize;  // 1, 2, 4, 8, 16
  bool lower;
  std::int64_t diagonal;
  int ndim;  // 2 or more
  std::int64_t size;
  std::int64_t shape[kLoopDims];
  std::int64_t strides[kLoopDims];  // of in, bytes
  const void* in;
  void* out;
  StreamHandle stream;
};

inline constexpr int kJoinedParts = 16;

// The rows of out, which is dense: each is a piece of every part, one after the other. What concatenate() and stack()
// give, where the rows are of axis 0 up to the one that they join along, in one dim or two, and a piece of what is
// behind that.
struct JoinArgs {
  int itemsize;  // 1, 2, 4, 8, 16; all data and strides are multiples of it
  int parts;
  std::int64_t rows;
  std::int64_t inner_rows;  // of the inner dim, of which `rows` is a multiple
  const void* in[kJoinedParts];
  std::int64_t lengths[kJoinedParts];        // elements of a piece, at least 1
  std::int64_t outer_strides[kJoinedParts];  // bytes
  std::int64_t row_strides[kJoinedParts];    // of the inner dim, bytes
  std::int64_t strides[kJoinedParts];        // of the elements of a piece, bytes
  void* out;                                 // at a multiple of 16
  StreamHandle stream;
};

enum class PadMode : std::uint8_t { kConstant, kEdge, kWrap, kSymmetric, kReflect };

// `in` with elements before and behind each axis: the constant, or what is there again. Dims are innermost first; out
// is dense in C order. Without an element in `in`, which may be with the constant alone, all is that.
struct PadArgs {
  PadMode mode;
  int itemsize;  // 1, 2, 4, 8, 16; data and strides are multiples of it
  int ndim;      // 1 or more
  std::int64_t size;
  std::int64_t shape[kLoopDims];
  std::int64_t before[kLoopDims];
  std::int64_t extent[kLoopDims];   // of in
  std::int64_t strides[kLoopDims];  // of in, bytes
  ScalarValue value;                // kConstant
  const void* in;
  void* out;  // at a multiple of 16
  StreamHandle stream;
};

enum class DenseOp : std::uint8_t {
  kSplitExponents,   // x = mantissa * 2^exponent: the mantissa, and the exponent as int32; floats
  kSplitWholes,      // what is behind the point, and before it; floats
  kDivide,           // floor_divide and remainder of two; integers and floats
  kIsClose,          // |x - y| <= numbers[0] + numbers[1] * |y| where y is finite, or x == y; flag: or both are NaN
  kReplaceSpecials,  // numbers[0] where x is NaN, numbers[1] where it is infinite, numbers[2] where -infinite; floats
  kReplaceNan,       // numbers[0] where x, or a part of it, is NaN
  kRoundAt,          // x * numbers[0], rounded to a whole number, / numbers[0]; flag: / and *; floats
  kScaleByPowers,    // x * 2^y, rounded once, for whole y; float16, float32, float64
  kPackBits,         // uint8 or bool, a bit each; flag: the first is the lowest of a byte, else the highest
  kUnpackBits,       // the reverse: n bytes to 8 * n
};

// Functions of elements that lie side by side which give two results, have parameters, or take eight at once.
struct DenseArgs {
  DenseOp op;
  DType dtype;  // of the inputs
  bool flag;
  bool repeats[2];  // an input is one element, the same for all; one of two inputs at most, where n is not 1
  std::int64_t n;   // elements of an input
  const void* in[2];
  void* out[2];
  double numbers[3];
  StreamHandle stream;
};

// out[i] = start + i * step in the output's dtype (integers wrap; floats: computed in float64, so that the error does
// not grow with i; real dtypes only). endpoint: the last element is `stop` exactly (linspace).
struct RangeArgs {
  DType dtype;
  std::int64_t n;
  void* out;
  double start, step, stop;
  std::int64_t int_start, int_step;  // used for integer dtypes
  bool endpoint;
  StreamHandle stream;
};

enum class Distribution : std::uint8_t {
  kUniform,      // [a, b), floats
  kNormal,       // mean a, standard deviation b, floats
  kInteger,      // [int_low, int_low + int_range): any integer dtype or bool; int_range 0 means all 2^64
  kExponential,  // scale a
  // By a formula of a uniform number. Loc a + scale b times it:
  kLaplace,
  kLogistic,
  kGumbel,
  kRayleigh,
  kCauchy,
  kPareto,      // of shape a
  kPower,       // of shape a
  kWeibull,     // of shape a
  kTriangular,  // from a over its mode b to c
  kGeometric,   // int64: trials until the first success, of probability a
  // Floats of one counter each, many by rejection
  kGamma,                // of shape a and scale b
  kLogGamma,             // the logarithm, of scale 1
  kBeta,                 // of a and b
  kF,                    // a and b degrees of freedom
  kStandardT,            // a degrees of freedom
  kWald,                 // of mean a and scale b
  kVonMises,             // angles in [-pi, pi] of concentration a around b
  kNoncentralChisquare,  // a degrees of freedom, noncentrality b
  kNoncentralF,          // a and b degrees of freedom, noncentrality c
  // int64 of one counter each
  kPoisson,           // of mean a
  kNegativeBinomial,  // Poisson's with a gamma variate of shape a and scale b as the mean
  kZipf,              // from 1 on, with probabilities in proportion to k ** -a
  kLogseries,         // from 1 on, with probabilities in proportion to a ** k / k
  kBinomial,          // how many of a trials succeed, of probability b
  kHypergeometric,    // how many of a good ones are among c that are drawn of a good and b bad ones
};

constexpr bool gives_counts(Distribution distribution) noexcept {
  return distribution == Distribution::kGeometric || distribution >= Distribution::kPoisson;
}

inline constexpr int kParameters = 3;  // of a distribution, at most

// Philox4x32-10: element i depends on (seed, offset + i, distribution, dtype) alone, on host and device alike; each
// element takes one 128-bit counter's part as kernels/random/philox.h says. Dense output.
struct RandomArgs {
  Distribution distribution;
  DType dtype;
  std::int64_t n;
  void* out;
  std::uint64_t seed;
  std::uint64_t offset;  // counters consumed so far
  double a, b, c;
  const double* arrays[kParameters];  // n of them instead of a, b or c, or null: from kLaplace on
  std::int64_t int_low;
  std::uint64_t int_range;
  StreamHandle stream;
};

// How often each outcome was, a dense row of `outcomes` int64 for each; kernels/random/multinomial.h says of which
// counters. The probabilities are at chances + row * chances_step, those of the last outcome what the others leave.
struct MultinomialArgs {
  std::int64_t rows, outcomes;
  const double* chances;
  std::int64_t chances_step;     // `outcomes`, or 0 where all rows have the same
  double trials;                 // a whole number
  const double* trials_of_rows;  // one for each row instead, or null
  std::int64_t* out;
  std::uint64_t seed;
  std::uint64_t offset;
  StreamHandle stream;
};

// C[b] = A[b] @ B[b]; strides in elements; one of (row, column) stride of A and B each is 1 (or the extent is 1), C is
// row-major dense per batch. dtype is float16, bfloat16, float32, float64, complex64, complex128; integers and bool on
// the host and on CUDA by a plain kernel. float32 is computed in float32, not in a reduced format.
struct MatmulArgs {
  DType dtype;
  std::int64_t batch, m, n, k;
  const void* a;
  std::int64_t a_batch, a_row, a_column;
  const void* b;
  std::int64_t b_batch, b_row, b_column;
  void* c;
  std::int64_t c_batch;
  Workspace workspace;
  StreamHandle stream;
  bool conjugates = false;  // the conjugate of `a` is meant; on the host
};

enum class MatrixOp : std::uint8_t { kCholesky, kDet, kSlogdet, kInv, kSolve };

// Matrices of a stack, or what stands on the right of their equations; strides in bytes.
struct MatrixOperand {
  const void* data;
  std::int64_t row, column;
  std::int64_t stacked[kLoopDims];
};

// Of every matrix of a stack of square ones: the lower factor of a Hermitian one, of which only the lower triangle is
// read; the determinant, or its sign and the logarithm of its size; the inverse; the solutions for b. Each fits into
// the memory that functors/small_matrix.h has for one. Results are dense. kCholesky, kInv and kSolve write `info` as
// LAPACK does: 0, or the column, counted from 1, whose pivot is 0 or whose minor is not positive definite, and then the
// result is nan. The others write none: the determinant of a singular matrix is 0.
struct MatrixArgs {
  MatrixOp op;
  DType dtype;  // float32, float64, complex64, complex128
  int ndim;     // of the stack, innermost first and merged
  std::int64_t n;
  std::int64_t columns;  // of a result: n of kCholesky and kInv, of b of kSolve; 0 of the others
  std::int64_t matrices;
  std::int64_t shape[kLoopDims];
  MatrixOperand a;
  MatrixOperand b;  // kSolve
  void* out;        // (n, columns) a matrix, or the determinant or its sign
  void* logs;       // kSlogdet: real
  std::int32_t* info;
  StreamHandle stream;
};

// Every function pointer is set in both instances.
struct Backend {
  int release;  // kKernelRelease of its build, and the first field in every release
  const char* name;
  int (*elementwise)(const ElementwiseArgs&);
  int (*reduce)(const ReduceArgs&);
  int (*scan)(const ScanArgs&);
  int (*sort)(const SortArgs&);
  int (*gather)(const IndexArgs&);
  int (*scatter)(const IndexArgs&);
  int (*nonzero)(const NonzeroArgs&);
  int (*runs)(const RunsArgs&);
  int (*search)(const SearchArgs&);
  int (*triangle)(const TriangleArgs&);
  int (*join)(const JoinArgs&);
  int (*dense)(const DenseArgs&);
  int (*pad)(const PadArgs&);
  int (*range)(const RangeArgs&);
  int (*random)(const RandomArgs&);
  int (*multinomial)(const MultinomialArgs&);
  int (*matmul)(const MatmulArgs&);
  int (*small_matrices)(const MatrixArgs&);
  const char* (*error_text)(int);
};

extern const Backend kHostBackend;  // kernels/host/backend.cpp

// The one symbol of the CUDA kernel library.
extern "C" const Backend* dlbridge_nd_cuda_backend() noexcept;
inline constexpr const char* kCudaBackendSymbol = "dlbridge_nd_cuda_backend";

}  // namespace dlbridge::nd
