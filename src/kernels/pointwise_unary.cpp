// tensor_unary, tensor_unary_in_place: out[i] = op(x[i]), with scalars a and b where op has them.
// Shapes    out, x: p.shape with strides of up to 6 dimensions; in place: one operand.
// Units     none.
// Threads   one per element.
// Writes    every element of out, and nothing between the elements of a strided one.
// Numerics  F32 in float32; integers wrap. Log and Sqrt of negatives, and x/0, follow IEEE 754.
//           Clamp keeps NaN.
// Source    none: definitions.
// Test      tests/tensor/ops_test.cpp: exact, but 6e-7 relative where float32 libm rounds.
#include <bit>
#include <cmath>

#include "kernels/arithmetic.h"
#include "kernels/kernel.h"
#include "kernels/strided.h"

namespace millrace::kernels {
namespace {

template <int kIn, class T>
void apply(const PointwiseParams& p, T* out, const T* in) {
  const T a = std::bit_cast<T>(p.a_bits), b = std::bit_cast<T>(p.b_bits);
  const auto map = [&](const auto& f) { map_unary<0, kIn>(p, out, in, f); };
  const auto op = static_cast<UnaryOp>(p.op);
  switch (op) {
    case UnaryOp::Neg:
      return map(
          [](T x) { return std::is_same_v<T, float> ? multiply(x, T(-1)) : subtract(T(0), x); });
    case UnaryOp::Square:
      return map([](T x) { return multiply(x, x); });
    case UnaryOp::AddScalar:
      return map([a](T x) { return add(x, a); });
    case UnaryOp::SubScalar:
      return map([a](T x) { return subtract(x, a); });
    case UnaryOp::MulScalar:
      return map([a](T x) { return multiply(x, a); });
    case UnaryOp::MinScalar:
      return map([a](T x) { return minimum(x, a); });
    case UnaryOp::MaxScalar:
      return map([a](T x) { return maximum(x, a); });
    case UnaryOp::SubFromScalar:
      return map([a](T x) { return subtract(a, x); });
    case UnaryOp::Clamp:
      return map([a, b](T x) { return x < a ? a : x > b ? b : x; });
    case UnaryOp::Abs:
      return map([](T x) {
        if constexpr (std::is_same_v<T, float>)
          return std::fabs(x);
        else if constexpr (std::is_same_v<T, int32_t>)
          return x < 0 ? subtract(T(0), x) : x;
        else
          return x;
      });
    default:
      break;
  }
  if constexpr (std::is_same_v<T, float>) {
    switch (op) {
      case UnaryOp::Exp:
        return map([](float x) { return std::exp(x); });
      case UnaryOp::Log:
        return map([](float x) { return std::log(x); });
      case UnaryOp::Sqrt:
        return map([](float x) { return std::sqrt(x); });
      case UnaryOp::Sigmoid:
        return map([](float x) { return 1.0f / (1.0f + std::exp(-x)); });
      case UnaryOp::Reciprocal:
        return map([](float x) { return 1.0f / x; });
      case UnaryOp::DivScalar:
        return map([a](float x) { return x / a; });
      case UnaryOp::DivideScalarBy:
        return map([a](float x) { return a / x; });
      default:
        break;
    }
  }
}

}  // namespace

void tensor_unary(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  with_word_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    apply<1>(p, call.buffer<T>(0), call.buffer<const T>(1));
  });
}

void tensor_unary_in_place(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  with_word_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    apply<0>(p, call.buffer<T>(0), call.buffer<const T>(0));
  });
}

}  // namespace millrace::kernels
