// Polars: a Series over the memory, through Arrow. A Series is immutable to its user.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// One dimension gives a plain column, whose bool is packed to bits; more give a column of Polars' Array type.
inline constexpr Consumer kPolarsTakes[] = {
    {.takes = {.dtypes = kBoolAndNumbers, .devices = kOnHost, .min_rank = 1, .max_rank = 1, .read_only = true},
     .enter = "polars_series",
     .immutable = true,
     .copied_dtypes = dtypes(DType::kBool),
     .note = "Polars has no such type; cast it, or view complex numbers as pairs of floats."},
    {.takes = {.dtypes = kIntegers | kFloats, .devices = kOnHost, .min_rank = 2, .read_only = true},
     .enter = "polars_array",
     .immutable = true,
     .note = "Polars has no such type; cast it, or view it as integers."},
};
inline constexpr Framework kPolars{.name = "polars", .module = "polars", .consumers = kPolarsTakes};

}  // namespace dlbridge::frameworks
