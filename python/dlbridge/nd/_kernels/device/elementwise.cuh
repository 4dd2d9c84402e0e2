// What the generated elementwise kernels share: vectors of one load, division by a constant, raw arrays.
#ifndef DLBRIDGE_ELEMENTWISE_CUH
#define DLBRIDGE_ELEMENTWISE_CUH

template <class T, int N>
struct alignas(sizeof(T) * N) DlbridgeVector {
  T lane[N];
};

// A word of the argument block as a value of T.
template <class T>
DLBRIDGE_FN T dlbridge_value(const unsigned long long* words) {
  T out;
  const unsigned char* from = reinterpret_cast<const unsigned char*>(words);
  unsigned char* to = reinterpret_cast<unsigned char*>(&out);
  for (unsigned k = 0; k < sizeof(T); ++k) to[k] = from[k];
  return out;
}

template <class T>
DLBRIDGE_FN T& dlbridge_at(char* base, long long offset_bytes) {
  return *reinterpret_cast<T*>(base + offset_bytes);
}

DLBRIDGE_FN unsigned dlbridge_high_word(unsigned a, unsigned b) {
#ifdef __CUDACC__
  return __umulhi(a, b);
#else
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
#endif
}

// index / extent for a 31-bit index: the word holds extent | magic << 32, the next one the shift.
DLBRIDGE_FN unsigned dlbridge_divide(unsigned index, const unsigned long long* words) {
  const unsigned magic = static_cast<unsigned>(words[0] >> 32);
  return (dlbridge_high_word(index, magic) + index) >> static_cast<unsigned>(words[1]);
}

// A `raw` argument: any element of the array, whatever the loop is at. Words: address (given as `base`, too: only of a
// parameter can the compiler tell that it is global memory), size, then extents and byte strides, outermost first.
template <class T, int NDIM, bool DENSE>
struct DlbridgeRaw {
  char* base;
  const unsigned long long* words;
  DLBRIDGE_FN long long size() const { return static_cast<long long>(words[1]); }
  DLBRIDGE_FN const long long* shape() const { return reinterpret_cast<const long long*>(words + 2); }
  DLBRIDGE_FN const long long* strides() const { return reinterpret_cast<const long long*>(words + 2 + NDIM); }
  DLBRIDGE_FN T& operator[](long long index) const {
    if (DENSE) return dlbridge_at<T>(base, index * static_cast<long long>(sizeof(T)));
    long long offset = 0;
    for (int axis = NDIM - 1; axis > 0; --axis) {
      offset += index % shape()[axis] * strides()[axis];
      index /= shape()[axis];
    }
    if (NDIM > 0) offset += index * strides()[0];
    return dlbridge_at<T>(base, offset);
  }
  DLBRIDGE_FN T& operator[](const long long* indices) const {  // one an axis
    long long offset = 0;
    for (int axis = 0; axis < NDIM; ++axis) offset += indices[axis] * strides()[axis];
    return dlbridge_at<T>(base, offset);
  }
};

// `_ind`: where the loop is. Words: the extents of the whole index space, outermost first.
template <int NDIM>
struct DlbridgeIndex {
  const unsigned long long* extents;
  long long total;
  long long index[NDIM == 0 ? 1 : NDIM];
  DLBRIDGE_FN void set(long long linear) {
    for (int axis = NDIM - 1; axis >= 0; --axis) {
      const long long extent = static_cast<long long>(extents[axis]);
      index[axis] = linear % extent;
      linear /= extent;
    }
  }
  DLBRIDGE_FN long long size() const { return total; }
  DLBRIDGE_FN const long long* get() const { return index; }
  DLBRIDGE_FN long long operator[](int axis) const { return index[axis]; }
};

#endif  // DLBRIDGE_ELEMENTWISE_CUH
