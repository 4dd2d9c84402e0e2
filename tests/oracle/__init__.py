"""What the differential driver and the fuzzer of ndarray programs share: inputs, thresholds, rules of comparison."""
