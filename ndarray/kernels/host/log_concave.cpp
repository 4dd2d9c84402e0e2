#include "ndarray/kernels/host/log_concave.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <optional>

#include "ndarray/kernels/host/philox_lanes.h"
#include "ndarray/kernels/random/counts.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

// log(k!) - (k log k - k), of the rest of Stirling's formula.
double stirling_rest(double k) noexcept {
  static const std::array<double, 16> kFirst = [] {
    std::array<double, 16> first{};
    for (int i = 1; i < 16; ++i) first[static_cast<std::size_t>(i)] = std::lgamma(i + 1.0) - i * std::log(i) + i;
    return first;
  }();
  if (k < 16) return kFirst[static_cast<std::size_t>(std::max(k, 0.0))];
  const double y = 1 / (k * k);
  const double series = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188)))) / k;
  return 0.5 * std::log(6.283185307179586 * k) + series;
}

double deviance(double k, double mean) noexcept {
  if (!(mean > 0)) return k > 0 ? kInfinity : 0;
  if (!(k > 0)) return mean;
  const double t = (k - mean) / mean;
  return mean * ((1 + t) * std::log1p(t) - t);
}

double log_binomial(double k, double n, double p) noexcept {
  const double rests = stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k);
  return rests - deviance(k, n * p) - deviance(n - k, n * (1 - p));
}

double log_hypergeometric(double k, double good, double bad, double drawn) noexcept {
  const double total = good + bad, p = drawn / (total > 0 ? total : 1);
  return log_binomial(k, good, p) + log_binomial(drawn - k, bad, p) - log_binomial(drawn, total, p);
}

}  // namespace

LogConcave::LogConcave(CountLaw kind, const double (&parameters)[kMostParameters]) noexcept : law(kind) {
  std::copy_n(parameters, kMostParameters, of);
  switch (law) {
    case CountLaw::kPoisson:
      low = 0;
      high = philox::kLargestCount;
      mode = std::floor(of[0]);
      break;
    case CountLaw::kBinomial:
      of[0] = std::floor(of[0]);
      low = 0;
      high = of[0];
      mode = std::floor((of[0] + 1) * of[1]);
      break;
    case CountLaw::kHypergeometric: {
      for (double& count : of) count = std::floor(count);
      const double good = of[0], bad = of[1], drawn = of[2];
      low = std::max(drawn - bad, 0.0);
      high = std::min(good, drawn);
      mode = std::floor((drawn + 1) * (good + 1) / (good + bad + 2));
      break;
    }
  }
  mode = std::min(std::max(mode, low), high);
  height = log_probability(mode);
  peak = std::exp(height);
}

double LogConcave::log_probability(double k) const noexcept {
  switch (law) {
    case CountLaw::kPoisson: return -deviance(k, of[0]) - stirling_rest(k);
    case CountLaw::kBinomial: return log_binomial(k, of[0], of[1]);
    default: return log_hypergeometric(k, of[0], of[1], of[2]);
  }
}

TableSpan table_span(const LogConcave& law) noexcept {
  const double reach = 41 / law.peak;
  const double first = std::floor(std::max(law.low, law.mode - reach));
  return {first, std::floor(std::min(law.high, law.mode + reach)) - first + 1};
}

void sum_probabilities(const LogConcave& law, double first, std::int64_t entries, double* sums) noexcept {
  double sum = 0;
  for (std::int64_t i = 0; i < entries; ++i)
    sums[i] = sum += std::exp(law.log_probability(first + static_cast<double>(i)));
  for (std::int64_t i = 0; i < entries; ++i) sums[i] /= sum;
}

namespace {

// A law and the heights of counts around its mode, each computed when it is asked for first.
class Known {
 public:
  Known(CountLaw law, const double (&given)[kMostParameters]) noexcept : law_(law, given) {
    std::copy_n(given, kMostParameters, given_);
    std::fill_n(heights_, kWidth, kNaN);
  }

  bool is_of(const double (&given)[kMostParameters]) const noexcept {
    return std::equal(given, given + kMostParameters, given_);
  }
  const LogConcave& law() const noexcept { return law_; }
  double height(double k) noexcept {
    const double place = k - law_.mode + kWidth / 2;
    if (!(place >= 0 && place < kWidth)) return law_.log_probability(k);
    double& found = heights_[static_cast<int>(place)];
    if (std::isnan(found)) found = law_.log_probability(k);
    return found;
  }

 private:
  static constexpr int kWidth = 32;
  LogConcave law_;
  double given_[kMostParameters];
  double heights_[kWidth];
};

// The laws of the latest parameters: elements of an array are often of few of them.
class Laws {
 public:
  static std::unique_ptr<Laws> make(CountLaw law) noexcept {
    return std::unique_ptr<Laws>(new (std::nothrow) Laws(law));
  }

  Known& find(const double (&given)[kMostParameters]) noexcept {
    if (latest_ != nullptr && latest_->is_of(given)) return *latest_;
    std::uint64_t hash = 0;
    for (const double value : given) hash = (hash ^ bits_as<std::uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    const auto place = static_cast<std::size_t>(hash >> 58);
    if (!known_[place] || !known_[place]->is_of(given)) known_[place].emplace(law_, given);
    return *(latest_ = &*known_[place]);
  }

 private:
  explicit Laws(CountLaw law) noexcept : law_(law) {}
  CountLaw law_;
  Known* latest_ = nullptr;
  std::array<std::optional<Known>, 64> known_;
};

// The words of one round: five arrays of one number an element, one after the other.
class Words {
 public:
  static constexpr int kArrays = 5;
  Words(std::uint64_t seed, std::uint64_t offset, std::int64_t n) noexcept
      : keys_(philox::make_keys(seed)), offset_(offset), each_((static_cast<std::uint64_t>(n) + 1) / 2) {}

  std::uint64_t used() const noexcept { return kArrays * each_; }
  // The words of the next 2 kLanes elements.
  void advance() noexcept {
    for (std::uint64_t array = 0; array < kArrays; ++array) generate(keys_, offset_ + array * each_, lanes_[array]);
    offset_ += kLanes;
  }
  std::uint64_t word(int array, std::int64_t element) const noexcept {
    return philox::word64(lanes_[array].block(static_cast<int>(element / 2)), static_cast<int>(element % 2));
  }
  // In (0, 1).
  double uniform(int array, std::int64_t element) const noexcept {
    const double u = static_cast<double>(word(array, element) >> 11) * 0x1p-53;
    return std::min(std::max(u, 0x1p-54), 1 - 0x1p-53);
  }
  double exponential(int array, std::int64_t element) const noexcept {
    return philox::minus_log(philox::open_unit(word(array, element)));
  }

 private:
  philox::Keys keys_;
  std::uint64_t offset_, each_;
  Lanes lanes_[kArrays];
};

// A count, and whether it holds: under min(1, exp(1 - peak * |k - mode|)) times the peak (Devroye 1987).
bool propose(Known& known, const Words& words, std::int64_t i, double& k) noexcept {
  const LogConcave& law = known.law();
  const double width = 1 + law.peak / 2;
  const bool flat = words.uniform(0, i) * (1 + width) <= width;
  const double y = (flat ? width * words.uniform(2, i) : width + words.exponential(1, i)) / law.peak;
  k = law.mode + (words.uniform(3, i) < 0.5 ? -1.0 : 1.0) * std::nearbyint(y);
  if (!(k >= law.low && k <= law.high)) return false;
  const double height = known.height(k) - law.height, most = std::min(width - law.peak * y, 0.0);
  return most <= height || std::log(words.uniform(4, i)) + most <= height;
}

}  // namespace

bool draw_counts(const CountsArgs& args) noexcept {
  const std::unique_ptr<std::int64_t[]> rest(new (std::nothrow) std::int64_t[static_cast<std::size_t>(args.n)]);
  const std::unique_ptr<Laws> laws = Laws::make(args.law);
  if (rest == nullptr || laws == nullptr) return false;
  std::uint64_t offset = 0;
  bool first = true;
  for (std::int64_t n = args.n, left; n > 0; n = left, first = false) {
    Words words(args.seed, offset, n);
    left = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i % (2 * kLanes) == 0) words.advance();
      const std::int64_t element = first ? i : rest[static_cast<std::size_t>(i)];
      double given[kMostParameters];
      for (int j = 0; j < kMostParameters; ++j) given[j] = args.parameters[j][args.one_for_all[j] ? 0 : element];
      if (!propose(laws->find(given), words, i % (2 * kLanes), args.out[element]))
        rest[static_cast<std::size_t>(left++)] = element;
    }
    offset += words.used();
  }
  return true;
}

}  // namespace dlbridge::nd::host_kernels
