// Eight functions and a class that take arrays, three dtypes among them. Neither pybind11 nor nanobind is known here.
#pragma once

#include <dlbridge/arg.h>

#include <cstdint>
#include <vector>

namespace whole {

using namespace dlbridge;
using Numbers = Arg<const any_of<float, double, std::int32_t>, rank<1>>;

double total(const Numbers& a);
Result scaled(const Numbers& a, double by);  // in the caller's framework
Arg<float, rank<1>> negate(Arg<float, rank<1>> a);
double dot(const Arg<const double, rank<1>>& a, const Arg<const double, rank<1>>& b);
void copy_into(const Arg<const float, shape<dyn, 2>>& a, const Arg<float, shape<dyn, 2>, c_contig>& out);
As<"numpy"> column_sums(const Arg<const float, rank<2>, may_convert>& a);
Tensor filled(std::int64_t n, double value);
int axes(const Tensor& any);

class Sum {
 public:
  explicit Sum(const Arg<const double, rank<1>>& first);
  void add(const Arg<const double, rank<1>>& a);
  Tensor values();  // lent: whoever shows it keeps this

 private:
  std::vector<double> values_;
};

}  // namespace whole
