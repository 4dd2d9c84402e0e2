#include "functions.h"

#include <dlbridge/converters/std.h>
#include <dlbridge/empty.h>

#include <span>
#include <utility>

namespace whole {

double total(const Numbers& a) {
  return visit(a, [](auto view) -> double {
    double sum = 0;
    for (const auto x : view) sum += static_cast<double>(x);
    return sum;
  });
}

Result scaled(const Numbers& a, double by) {
  return like(a, visit(a, [by](auto view) -> Tensor {
                using T = typename decltype(view)::value_type;
                Tensor out = empty<T>(view.extents());
                const auto to = out.template view<T, 1>();
                for (std::int64_t i = 0; i < to.extent(0); ++i)
                  to(i) = static_cast<T>(by * static_cast<double>(view(i)));
                return out;
              }));
}

Arg<float, rank<1>> negate(Arg<float, rank<1>> a) {
  for (float& x : a.view()) x = -x;
  return a;
}

double dot(const Arg<const double, rank<1>>& a, const Arg<const double, rank<1>>& b) {
  const auto x = a.view(), y = b.view();
  double sum = 0;
  for (std::int64_t i = 0; i < x.extent(0); ++i) sum += x(i) * y.at(i);
  return sum;
}

void copy_into(const Arg<const float, shape<dyn, 2>>& a, const Arg<float, shape<dyn, 2>, c_contig>& out) {
  const auto from = a.view();
  const auto to = out.view();
  for (std::int64_t i = 0; i < from.extent(0); ++i)
    for (std::int64_t j = 0; j < 2; ++j) to.at(i, j) = from(i, j);
}

As<"numpy"> column_sums(const Arg<const float, rank<2>, may_convert>& a) {
  const auto from = a.view();
  Tensor out = empty<double>({from.extent(1)});
  const auto to = out.view<double, 1>();
  for (std::int64_t j = 0; j < from.extent(1); ++j) {
    to(j) = 0;
    for (std::int64_t i = 0; i < from.extent(0); ++i) to(j) += static_cast<double>(from(i, j));
  }
  return as<"numpy">(std::move(out));
}

Tensor filled(std::int64_t n, double value) { return from(std::vector<double>(static_cast<std::size_t>(n), value)); }

int axes(const Tensor& any) { return any.dl.ndim; }

Sum::Sum(const Arg<const double, rank<1>>& first) {
  for (const double x : first.view()) values_.push_back(x);
}

void Sum::add(const Arg<const double, rank<1>>& a) {
  const auto view = a.view();
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += view.at(static_cast<std::int64_t>(i));
}

Tensor Sum::values() { return from(borrow(std::span(values_), unowned)); }

}  // namespace whole
