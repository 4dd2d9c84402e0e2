// From a distribution and a dtype to the functor that makes the elements of one counter.
#pragma once

#include "ndarray/kernels/random/counts.h"

namespace dlbridge::nd::philox {

// Calls f(sampler) with the distribution that args ask for; kErrorUnsupported for a dtype that it does not have.
template <class F>
int visit_sampler(const RandomArgs& args, F&& f) {
  const auto of_floats = [&]<template <class> class Sampler>() {
    return visit_dtype<kFloatSet>(args.dtype, [&]<class T>() { return f(Sampler<T>::make(args)); }, kErrorUnsupported);
  };
  const auto of_counts = [&]<class Law>() {
    return args.dtype == DType::kInt64 ? f(Variates<std::int64_t, Law>::make(args)) : kErrorUnsupported;
  };
  switch (args.distribution) {
    case Distribution::kUniform:
      return Unit<float>::serves(args) ? of_floats.template operator()<Unit>()
                                       : of_floats.template operator()<Uniform>();
    case Distribution::kNormal: return of_floats.template operator()<Normal>();
    case Distribution::kExponential: return of_floats.template operator()<Exponential>();
    case Distribution::kLaplace:
    case Distribution::kLogistic:
    case Distribution::kGumbel:
    case Distribution::kRayleigh:
    case Distribution::kCauchy: return of_floats.template operator()<Quantile>();
    case Distribution::kGamma:
    case Distribution::kLogGamma: return of_floats.template operator()<GammaVariates>();
    case Distribution::kVonMises: return of_floats.template operator()<VonMisesVariates>();
    case Distribution::kPoisson: return of_counts.template operator()<Poisson>();
    case Distribution::kNegativeBinomial: return of_counts.template operator()<NegativeBinomial>();
    case Distribution::kZipf: return of_counts.template operator()<Zipf>();
    case Distribution::kInteger: break;
    default: return kErrorUnsupported;
  }
  // Signed and unsigned integers wrap alike: the bits of the unsigned type serve both.
  const auto integer = [&]<class T>() {
    return Integer<T>::serves(args) ? f(Integer<T>::make(args)) : kErrorUnsupported;
  };
  if (args.dtype == DType::kBool) return integer.template operator()<bool>();
  if (!contains(kIntSet, args.dtype)) return kErrorUnsupported;
  switch (info(args.dtype).itemsize) {
    case 1: return integer.template operator()<std::uint8_t>();
    case 2: return integer.template operator()<std::uint16_t>();
    case 4: return integer.template operator()<std::uint32_t>();
    default: return integer.template operator()<std::uint64_t>();
  }
}

}  // namespace dlbridge::nd::philox
