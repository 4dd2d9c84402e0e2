// From a distribution and a dtype to the functor that makes the elements of one counter.
#pragma once

#include "ndarray/kernels/random/binomial.h"
#include "ndarray/kernels/random/noncentral.h"
#include "ndarray/kernels/random/normals.h"

namespace dlbridge::nd::philox {

// Calls f(sampler) with the distribution that args ask for; kErrorUnsupported for a dtype that it does not have.
template <class F>
int visit_sampler(const RandomArgs& args, F&& f) {
  const auto of_floats = [&]<template <class> class Sampler>() {
    return visit_dtype<kFloatSet>(args.dtype, [&]<class T>() { return f(Sampler<T>::make(args)); }, kErrorUnsupported);
  };
  const auto floats = [&]<class Law>() {
    return visit_dtype<kFloatSet>(
        args.dtype, [&]<class T>() { return f(Variates<T, Law>::make(args)); }, kErrorUnsupported);
  };
  const auto counts = [&]<class Sampler>() {
    return args.dtype == DType::kInt64 ? f(Sampler::make(args)) : kErrorUnsupported;
  };
  const auto counts_of = [&]<class Law>() { return counts.template operator()<Variates<std::int64_t, Law>>(); };
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
    case Distribution::kCauchy:
    case Distribution::kPareto:
    case Distribution::kPower:
    case Distribution::kWeibull:
    case Distribution::kTriangular: return of_floats.template operator()<Quantile>();
    case Distribution::kGeometric: return counts.template operator()<Quantile<std::int64_t>>();
    case Distribution::kGamma: return floats.template operator()<Gamma>();
    case Distribution::kLogGamma: return floats.template operator()<LogGamma>();
    case Distribution::kBeta: return floats.template operator()<Beta>();
    case Distribution::kF: return floats.template operator()<FisherF>();
    case Distribution::kStandardT: return floats.template operator()<StudentT>();
    case Distribution::kWald: return floats.template operator()<Wald>();
    case Distribution::kVonMises: return floats.template operator()<VonMises>();
    case Distribution::kNoncentralChisquare: return floats.template operator()<NoncentralChisquare>();
    case Distribution::kNoncentralF: return floats.template operator()<NoncentralF>();
    case Distribution::kPoisson: return counts_of.template operator()<Poisson>();
    case Distribution::kNegativeBinomial: return counts_of.template operator()<NegativeBinomial>();
    case Distribution::kZipf: return counts_of.template operator()<Zipf>();
    case Distribution::kLogseries: return counts_of.template operator()<Logseries>();
    case Distribution::kBinomial: return counts_of.template operator()<Binomial>();
    case Distribution::kHypergeometric: return counts_of.template operator()<Hypergeometric>();
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
