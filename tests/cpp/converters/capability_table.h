// The rows of the table in docs/converters.md, made from the capabilities themselves. Each converter's test checks that
// its rows stand in the page; with DLBRIDGE_CAPABILITY_ROWS set it prints them (tools/write_capability_table.py).
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "dlbridge/caps.h"

namespace dlbridge::test {

struct CapabilityRow {
  caps c;
  std::string dtypes = {};  // "T" where it is the element type of a template; empty: as the capabilities say
  std::string rank = {};    // "N" where it is a parameter of the template
};

inline std::string shortened(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

inline std::string capability_row(const CapabilityRow& row) {
  const caps& c = row.c;
  static constexpr const char* kSources[] = {"-", "moves in", "takes a count", "`borrow()`"};
  static constexpr const char* kResults[] = {"-", "shares, owns", "shares, `Held`", "copies"};
  const std::string rank = c.min_rank == c.max_rank ? std::to_string(c.min_rank)
                                                    : std::to_string(c.min_rank) + "-" + std::to_string(c.max_rank);
  std::string out = "| `" + std::string(c.name) + "` | " + kSources[static_cast<int>(c.source)] + " | " +
                    kResults[static_cast<int>(c.result)] + " | ";
  if (c.result == result_kind::none) return out + "- | - | - | - | - | - | - |";
  out += (row.dtypes.empty() ? shortened(dtypes_text(c.dtypes), " or ", " ") : row.dtypes) + " | " +
         shortened(devices_text(c.devices), " or ", " ") + " | " + (row.rank.empty() ? rank : row.rank) + " | " +
         std::string(stride_rule_text(c.strides)) + " | " +
         (c.alignment != 0 ? std::to_string(c.alignment)
          : c.misaligned   ? "any"
                           : "element") +
         " | ";
  out += c.result == result_kind::copy ? "copied" : c.read_only ? "kept" : "refused";
  out += c.overlap ? ", broadcasts kept | " : " | ";
  return out + (c.consumes_on_error ? "consumes |" : "leaves it |");
}

// What a converter's test says of its types.
inline void expect_documented(const std::vector<CapabilityRow>& rows) {
  std::ifstream file(DLBRIDGE_CONVERTER_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  for (const CapabilityRow& row : rows) {
    const std::string text = capability_row(row);
    if (std::getenv("DLBRIDGE_CAPABILITY_ROWS") != nullptr) {
      std::printf("%s\n", text.c_str());
      continue;
    }
    EXPECT_NE(page.str().find(text + "\n"), std::string::npos) << "docs/converters.md has no row\n"
                                                               << text << "\nrun tools/write_capability_table.py";
  }
}

}  // namespace dlbridge::test
