// tensor_binary, tensor_binary_in_place, tensor_compare: out[i] = a[i] op b[i], broadcasting.
// Shapes    out, a, b: p.shape, up to 6 dimensions with strides, 0 repeats; in place: out is a.
// Units     none.
// Threads   one per element.
// Writes    every element of out, and nothing between the elements of a strided one.
// Numerics  F32 in float32; integers wrap; Div is F32 only. Min and Max: the other operand where
//           one is NaN. Comparisons give U32 0 or 1; with NaN, 0.
// Source    none: definitions.
// Test      tests/tensor/ops_test.cpp: exact.
#include "kernels/arithmetic.h"
#include "kernels/kernel.h"
#include "kernels/strided.h"

namespace millrace::kernels {
namespace {

template <int kA, int kB, class T>
void apply(const PointwiseParams& p, T* out, const T* a, const T* b) {
  const auto map = [&](const auto& f) { map_binary<0, kA, kB>(p, out, a, b, f); };
  switch (static_cast<BinaryOp>(p.op)) {
    case BinaryOp::Add:
      return map([](T x, T y) { return add(x, y); });
    case BinaryOp::Sub:
      return map([](T x, T y) { return subtract(x, y); });
    case BinaryOp::Mul:
      return map([](T x, T y) { return multiply(x, y); });
    case BinaryOp::Min:
      return map([](T x, T y) { return minimum(x, y); });
    case BinaryOp::Max:
      return map([](T x, T y) { return maximum(x, y); });
    case BinaryOp::Div:
      if constexpr (std::is_same_v<T, float>) return map([](T x, T y) { return x / y; });
      return;
  }
}

}  // namespace

void tensor_binary(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  with_word_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    apply<1, 2>(p, call.buffer<T>(0), call.buffer<const T>(1), call.buffer<const T>(2));
  });
}

void tensor_binary_in_place(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  with_word_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    apply<0, 1>(p, call.buffer<T>(0), call.buffer<const T>(0), call.buffer<const T>(1));
  });
}

void tensor_compare(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  auto* out = call.buffer<uint32_t>(0);
  with_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* a = call.buffer<const T>(1);
    const T* b = call.buffer<const T>(2);
    const auto map = [&](const auto& f) { map_binary<0, 1, 2>(p, out, a, b, f); };
    switch (static_cast<CompareOp>(p.op)) {
      case CompareOp::Eq:
        return map([](T x, T y) -> uint32_t { return x == y; });
      case CompareOp::Lt:
        return map([](T x, T y) -> uint32_t { return x < y; });
      case CompareOp::Le:
        return map([](T x, T y) -> uint32_t { return x <= y; });
    }
  });
}

}  // namespace millrace::kernels
