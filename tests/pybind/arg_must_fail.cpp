// What Arg does not let through, beside what it does. Compiles as it stands; with DLBRIDGE_MUST_FAIL each REFUSED line is
// an error, for the reason in the `// expect:` line before it (test_cpp_extension.py).
#include <dlbridge/pybind11.h>

#ifdef DLBRIDGE_MUST_FAIL
#define REFUSED(...) __VA_ARGS__
#else
#define REFUSED(...)
#endif

namespace {

using namespace dlbridge;

using Read = Arg<const float, rank<2>>;
using Write = Arg<float, rank<2>>;
using OnGpu = Arg<const float, rank<2>, on_cuda>;
using Anything = Arg<const void>;

[[maybe_unused]] float sum(TensorView<const float, 2> v) { return v(0, 0); }
[[maybe_unused]] void fill(TensorView<float, 2> v) { v(0, 0) = 1; }

[[maybe_unused]] void elements(const Read& read, const Write& write) {
  sum(read.view()), sum(write.view()), fill(write.view());
  write.view()(0, 0) = read.view()(0, 0);
  // expect: could not convert .*const float|no matching function for call to 'fill'
  REFUSED(fill(read.view());)
  // expect: assignment of read-only location|cannot assign to return value
  REFUSED(read.view()(0, 0) = 1;)
  // expect: no match for call|no matching function for call to object
  REFUSED(write.view()(0);)
}

[[maybe_unused]] void one_owner(Read read) {
  const Read moved = std::move(read);
  // expect: use of deleted function .*Arg\(const|implicitly-deleted copy constructor of
  REFUSED(const Read copied = moved;)
}

[[maybe_unused]] void streams(const OnGpu& gpu, const Anything& anything, stream_ref stream) {
  static_cast<void>(gpu.view(stream));
  static_cast<void>(anything.tensor());
  // expect: name the stream that you use it on
  REFUSED(static_cast<void>(gpu.view());)
  // expect: any dtype: ask for the elements with
  REFUSED(static_cast<void>(anything.view());)
}

[[maybe_unused]] Arg<const float, may_convert> converted(Arg<const float, may_convert> a) { return a; }
// expect: a writable argument is never converted
REFUSED([[maybe_unused]] Arg<float, may_convert> lost(Arg<float, may_convert> a) { return a; })

[[maybe_unused]] Arg<float, c_contig, on_cpu> placed(Arg<float, c_contig, on_cpu> a) { return a; }
// expect: an argument has one layout
REFUSED([[maybe_unused]] Arg<float, c_contig, f_contig> twice(Arg<float, c_contig, f_contig> a) { return a; })
// expect: an argument has one device constraint
REFUSED([[maybe_unused]] Arg<float, on_cpu, on_cuda> both(Arg<float, on_cpu, on_cuda> a) { return a; })
// expect: template constraint failure|constraints not satisfied
REFUSED([[maybe_unused]] void unknown(Arg<float, int>* a);)

}  // namespace
