// visit(): the view of an argument of one of several dtypes.
#pragma once

#include <type_traits>
#include <utility>

#include "dlbridge/python/argument.h"

namespace dlbridge {

namespace detail {
struct Visit {
  template <class T>
  struct Elements;
  template <class... E>
  struct Elements<any_of<E...>> {
    template <class Argument, class Function>
    static decltype(auto) visit(const Argument& argument, Function&& function) {
      return Visit::visit<Argument, Function, E...>(argument, std::forward<Function>(function));
    }
  };
  template <class... E>
  struct Elements<const any_of<E...>> {
    template <class Argument, class Function>
    static decltype(auto) visit(const Argument& argument, Function&& function) {
      return Visit::visit<Argument, Function, const E...>(argument, std::forward<Function>(function));
    }
  };

 private:
  template <class Argument, class E>
  using View = TensorView<E, Argument::kRank, typename Argument::Layout, typename Argument::Device>;

  template <class Argument, class Function, class First, class... Rest>
  static decltype(auto) visit(const Argument& argument, Function&& function) {
    using Return = std::invoke_result_t<Function, View<Argument, First>>;
    static_assert((std::is_same_v<Return, std::invoke_result_t<Function, View<Argument, Rest>>> && ...),
                  "visit: the function returns another type for another element type. Name the one that fits all of "
                  "them: [](auto view) -> double { ... }");
    Tensor t;
    argument.kept_.describe(t);
    return visit_as<Return, Argument, Function, First, Rest...>(t, std::forward<Function>(function));
  }
  // The argument is of one of the dtypes: the last one needs no question.
  template <class Return, class Argument, class Function, class First, class... Rest>
  static Return visit_as(const Tensor& t, Function&& function) {
    if constexpr (sizeof...(Rest) > 0) {
      if (t.dtype().id != dtype_of_v<First>)
        return visit_as<Return, Argument, Function, Rest...>(t, std::forward<Function>(function));
    }
    return std::forward<Function>(function)(View<Argument, First>::unchecked(t));
  }
};
}  // namespace detail

// function(view), with the view of the dtype that the argument is of: for each of any_of<...> it is compiled once. The
// view is good as long as the argument is. Host memory only; it is ready.
//   def(m, "sum", [](Arg<const any_of<float, double>> a) { return visit(a, [](auto view) -> double { ... }); });
template <class T, Constraint... Constraints, class Function>
  requires detail::kIsAnyOf<T>
auto visit(const Arg<T, Constraints...>& argument, Function&& function) {
  static_assert(Arg<T, Constraints...>::Device::kHost,
                "device memory may still be written to by its producer: name the "
                "stream that you use it on, visit(a, stream, function)");
  return detail::Visit::Elements<T>::visit(argument, std::forward<Function>(function));
}
// The same for any memory, ready for work that is queued on `stream` later. Throws Error. Needs no GIL.
template <class T, Constraint... Constraints, class Function>
  requires detail::kIsAnyOf<T>
auto visit(const Arg<T, Constraints...>& argument, stream_ref stream, Function&& function) {
  argument.order(stream);
  return detail::Visit::Elements<T>::visit(argument, std::forward<Function>(function));
}

}  // namespace dlbridge
