// DuckDB: a relation over the memory, through Arrow; a query reads it when it runs.
#pragma once

#include "frameworks/framework.h"

namespace dlbridge::frameworks {

// Two dimensions give a column of arrays of a fixed size; more would be flattened.
inline constexpr Consumer kDuckdbTakes[] = {
    {.takes = {.dtypes = kIntegers | dtypes(DType::kFloat32, DType::kFloat64),
               .devices = kOnHost,
               .min_rank = 1,
               .max_rank = 2,
               .read_only = true},
     .enter = "duckdb_relation",
     .immutable = true,
     .note = "DuckDB has no such number, and Arrow packs bools to bits; cast it, or view it as integers."}};
inline constexpr Framework kDuckdb{.name = "duckdb", .module = "duckdb", .consumers = kDuckdbTakes};

}  // namespace dlbridge::frameworks
