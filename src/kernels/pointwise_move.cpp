// tensor_copy, tensor_fill, tensor_where, tensor_cast: elements moved or converted one by one.
//   copy: out[i] = x[i]       fill: out[i] = pattern
//   where: out[i] = condition[i] != 0 ? a[i] : b[i]       cast: out[i] = out_dtype(x[i])
// Shapes    all: p.shape with strides of up to 6 dimensions. condition: U32.
// Units     none.
// Threads   one per element.
// Writes    every element of out, and nothing between the elements of a strided one.
// Numerics  casts between integers are modulo 2^bits; F32 to integer goes towards zero and
//           saturates, NaN to 0.
// Source    none: definitions.
// Test      tests/tensor/ops_test.cpp and tensor_test.cpp: exact.
#include "kernels/arithmetic.h"
#include "kernels/kernel.h"
#include "kernels/strided.h"

namespace millrace::kernels {
namespace {

/// Calls f with an unsigned integer of the dtype's size: moving needs no arithmetic.
template <class F>
void with_bits_type(uint32_t dtype, const F& f) {
  if (dtype == 3)
    f(uint8_t{});
  else if (dtype == 4)
    f(uint64_t{});
  else
    f(uint32_t{});
}

}  // namespace

void tensor_copy(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  with_bits_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    map_unary<0, 1>(p, call.buffer<T>(0), call.buffer<const T>(1), [](T x) { return x; });
  });
}

void tensor_fill(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  const uint64_t pattern = p.a_bits | static_cast<uint64_t>(p.b_bits) << 32;
  with_bits_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T value = static_cast<T>(pattern);
    map_unary<0, 0>(p, call.buffer<T>(0), call.buffer<const T>(0), [value](T) { return value; });
  });
}

void tensor_where(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  const auto* condition = call.buffer<const uint32_t>(1);
  const uint32_t last = p.rank - 1;
  with_bits_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = call.buffer<T>(0);
    const T* a = call.buffer<const T>(2);
    const T* b = call.buffer<const T>(3);
    for_each_run<4>(p, [&](const std::array<uint64_t, 4>& o, uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) {
        out[o[0] + i * p.strides[0][last]] = condition[o[1] + i * p.strides[1][last]] != 0
                                                 ? a[o[2] + i * p.strides[2][last]]
                                                 : b[o[3] + i * p.strides[3][last]];
      }
    });
  });
}

void tensor_cast(const KernelCall& call) {
  const auto& p = call.params_as<PointwiseParams>();
  with_type(p.out_dtype, [&](auto to) {
    using Out = decltype(to);
    with_type(p.dtype, [&](auto from) {
      using In = decltype(from);
      map_unary<0, 1>(p, call.buffer<Out>(0), call.buffer<const In>(1),
                      [](In x) { return convert<Out>(x); });
    });
  });
}

}  // namespace millrace::kernels
