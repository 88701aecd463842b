// Arithmetic with every case defined: integers wrap, minima and maxima have a rule for NaN.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace millrace::kernels {

/// The type in which T is added and multiplied: unsigned for integers, so that overflow wraps.
template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, int32_t>, uint32_t, T>;

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
T subtract(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <class T>
T multiply(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

/// The smaller; the other one where one is NaN, as GPUs do.
template <class T>
T minimum(T a, T b) {
  return a < b || b != b ? a : b;
}
template <class T>
T maximum(T a, T b) {
  return a > b || b != b ? a : b;
}

/// Between integers modulo 2^bits; float to integer towards zero, saturating, NaN to 0.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    if (!(x == x)) return 0;
    // max() of 32 and 64 bits rounds up as a float, so equality is already out of range.
    if (x >= static_cast<float>(std::numeric_limits<To>::max())) {
      return std::numeric_limits<To>::max();
    }
    if (x <= static_cast<float>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// Calls f(T{}) with the host type of a Dtype value; 32-bit types only.
template <class F>
void with_word_type(uint32_t dtype, const F& f) {
  if (dtype == 0) f(float{});
  if (dtype == 1) f(int32_t{});
  if (dtype == 2) f(uint32_t{});
}

/// As with_word_type, for every dtype.
template <class F>
void with_type(uint32_t dtype, const F& f) {
  with_word_type(dtype, f);
  if (dtype == 3) f(uint8_t{});
  if (dtype == 4) f(uint64_t{});
}

}  // namespace millrace::kernels
