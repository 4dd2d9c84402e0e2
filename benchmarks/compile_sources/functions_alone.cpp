#include <dlbridge/arg.h>

using namespace dlbridge;

float first(const Arg<float, rank<1>>& a) { return a.view()(0); }
double row(const Arg<const double, shape<dyn, 3>, c_contig>& a, int i) { return a.view()(i, 0); }
void copy(const Arg<const float, rank<2>>& a, const Arg<float, rank<2>>& b) { b.view()(0, 0) = a.view()(0, 0); }
