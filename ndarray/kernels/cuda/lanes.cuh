// Values of any size from one lane of a warp to another, word by word.
#pragma once

#include <cstring>

namespace dlbridge::nd::cuda_kernels {

inline constexpr unsigned kAllLanes = 0xffffffffu;

template <class T, class Shuffle>
__device__ inline T shuffle_words(T value, Shuffle shuffle) {
  constexpr int kWords = sizeof(T) / 4;
  static_assert(sizeof(T) % 4 == 0);
  unsigned words[kWords];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = shuffle(words[i]);
  memcpy(&value, words, sizeof(T));
  return value;
}
template <class T>
__device__ inline T shuffle_up(T value, int delta, int width) {
  return shuffle_words(value,
                       [=](unsigned w) { return __shfl_up_sync(kAllLanes, w, static_cast<unsigned>(delta), width); });
}
template <class T>
__device__ inline T shuffle_down(T value, int delta, int width) {
  return shuffle_words(value,
                       [=](unsigned w) { return __shfl_down_sync(kAllLanes, w, static_cast<unsigned>(delta), width); });
}
template <class T>
__device__ inline T shuffle_from(T value, int lane, int width) {
  return shuffle_words(value, [=](unsigned w) { return __shfl_sync(kAllLanes, w, lane, width); });
}

}  // namespace dlbridge::nd::cuda_kernels
