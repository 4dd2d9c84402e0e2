#include <dlbridge/converters/std.h>

int main() {
  const dlbridge::Tensor t = dlbridge::from(std::vector<int>{0, 1});
  return t.view<const int, 1>()(0);
}
