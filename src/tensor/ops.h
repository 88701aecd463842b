// The operations on tensors. Each queues device work and returns at once: none waits, none returns
// a number to the host (read_later() does, as a ticket), and cat and copies stay on the device.
//
// Results are new contiguous tensors unless a name ends in `_` (in place) or `_out`. Inputs may be
// any views. Errors raise with the operation, the operands' shapes and dtypes, and the call site.
// The same inputs give the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "base/philox.h"
#include "kernels/tensor_params.h"
#include "tensor/tensor.h"

namespace millrace {

// --- Pointwise, one operand. F32; neg and abs also I32, square also I32 and U32 (wrapping). ---

/// op(x) for the operations without a scalar (Neg to Square).
Tensor unary(UnaryOp op, const Tensor& x, Site site = Site::current());
/// As unary(), into `out` of x's shape and dtype; `out` may be a strided view and may overlap x.
void unary_out(UnaryOp op, const Tensor& out, const Tensor& x, Site site = Site::current());
/// x <- op(x).
void unary_(UnaryOp op, const Tensor& x, Site site = Site::current());

inline Tensor neg(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Neg, x, site);
}
inline Tensor abs(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Abs, x, site);
}
inline Tensor exp(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Exp, x, site);
}
inline Tensor log(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Log, x, site);
}
inline Tensor sqrt(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Sqrt, x, site);
}
inline Tensor sigmoid(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Sigmoid, x, site);
}
inline Tensor reciprocal(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Reciprocal, x, site);
}
inline Tensor square(const Tensor& x, Site site = Site::current()) {
  return unary(UnaryOp::Square, x, site);
}
/// x limited to [low, high]; a NaN stays. F32, I32, U32.
Tensor clamp(const Tensor& x, double low, double high, Site site = Site::current());
void clamp_(const Tensor& x, double low, double high, Site site = Site::current());

// --- Pointwise, two operands of one dtype (F32, I32, U32; div F32 only), broadcast as in NumPy.
//     Integers wrap. min and max give the other operand where one is NaN. ---

Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b, Site site = Site::current());
/// `b` becomes a value of a's dtype; error if it does not fit.
Tensor binary(BinaryOp op, const Tensor& a, double b, Site site = Site::current());
/// a - b and a / b with the scalar first; Sub and Div only.
Tensor binary(BinaryOp op, double a, const Tensor& b, Site site = Site::current());
/// Into `out` of the broadcast shape; `out` may be a strided view and may overlap the operands.
void binary_out(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b,
                Site site = Site::current());
void binary_out(BinaryOp op, const Tensor& out, const Tensor& a, double b,
                Site site = Site::current());
/// a <- a op b; b broadcasts to a.
void binary_(BinaryOp op, const Tensor& a, const Tensor& b, Site site = Site::current());
void binary_(BinaryOp op, const Tensor& a, double b, Site site = Site::current());

/// add(a, b), add(a, 2.0), add_(a, b), add_(a, 2.0), and so for the others.
#define MILLRACE_BINARY_OP(name, op)                                                   \
  inline Tensor name(const Tensor& a, const Tensor& b, Site site = Site::current()) {  \
    return binary(BinaryOp::op, a, b, site);                                           \
  }                                                                                    \
  inline Tensor name(const Tensor& a, double b, Site site = Site::current()) {         \
    return binary(BinaryOp::op, a, b, site);                                           \
  }                                                                                    \
  inline void name##_(const Tensor& a, const Tensor& b, Site site = Site::current()) { \
    binary_(BinaryOp::op, a, b, site);                                                 \
  }                                                                                    \
  inline void name##_(const Tensor& a, double b, Site site = Site::current()) {        \
    binary_(BinaryOp::op, a, b, site);                                                 \
  }
MILLRACE_BINARY_OP(add, Add)
MILLRACE_BINARY_OP(sub, Sub)
MILLRACE_BINARY_OP(mul, Mul)
MILLRACE_BINARY_OP(div, Div)
MILLRACE_BINARY_OP(min, Min)
MILLRACE_BINARY_OP(max, Max)
#undef MILLRACE_BINARY_OP

// --- Comparisons and choices. Truth is U32 1 or 0: masks can be summed and scanned directly. ---

/// Operands of one dtype (any), broadcast. A comparison with NaN is 0.
Tensor compare(CompareOp op, const Tensor& a, const Tensor& b, Site site = Site::current());
inline Tensor eq(const Tensor& a, const Tensor& b, Site site = Site::current()) {
  return compare(CompareOp::Eq, a, b, site);
}
inline Tensor lt(const Tensor& a, const Tensor& b, Site site = Site::current()) {
  return compare(CompareOp::Lt, a, b, site);
}
inline Tensor le(const Tensor& a, const Tensor& b, Site site = Site::current()) {
  return compare(CompareOp::Le, a, b, site);
}
/// condition != 0 ? a : b; condition U32, a and b of one dtype (any), all broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b,
             Site site = Site::current());
/// x as `dtype`. Integers modulo 2^bits; F32 to integer towards zero, saturating, NaN to 0.
/// A tensor that has the dtype already is returned as it is.
Tensor cast(const Tensor& x, Dtype dtype, Site site = Site::current());

// --- Reductions: F32, I32, U32 (integers wrap), by a fixed tree of fan-in 1024. ---

/// Over all elements, to a device scalar [1]. An empty sum is 0. Min and Max pass over NaN.
/// Error: minimum, maximum or mean of no elements; mean of an integer tensor.
Tensor reduce_sum(const Tensor& x, Site site = Site::current());
Tensor reduce_min(const Tensor& x, Site site = Site::current());
Tensor reduce_max(const Tensor& x, Site site = Site::current());
Tensor reduce_mean(const Tensor& x, Site site = Site::current());
/// Over dimension `dim`, which the result lacks.
Tensor reduce_sum(const Tensor& x, int dim, Site site = Site::current());
Tensor reduce_min(const Tensor& x, int dim, Site site = Site::current());
Tensor reduce_max(const Tensor& x, int dim, Site site = Site::current());
Tensor reduce_mean(const Tensor& x, int dim, Site site = Site::current());

// --- Rows ---

/// The parts one after another along `dim`; other extents and dtypes equal. At least one part.
Tensor cat(std::span<const Tensor> parts, int dim, Site site = Site::current());
Tensor cat(std::initializer_list<Tensor> parts, int dim, Site site = Site::current());
/// out[i,...] = table[index[i],...]; table [R,...] of any dtype, index [M] U32. Rows whose index is
/// out of range are zero.
Tensor gather(const Tensor& table, const Tensor& index, Site site = Site::current());
/// table[index[i],...] = rows[i,...]; table contiguous, index [M] U32, rows [M,...]. The indices
/// must be distinct: with equal ones the result is any mixture. An index out of range writes
/// nothing.
void scatter_(const Tensor& table, const Tensor& index, const Tensor& rows,
              Site site = Site::current());

// --- Scan and sort. `count`, a U32 [1] on the device, limits the work to the first count elements;
//     what lies past it in the results is undefined. No caller needs the count on the host. ---

struct Scan {
  Tensor offsets;  // [N] U32, the low 32 bits
  Tensor total;    // [1] U64
};
/// offsets[i] = x[0] + ... + x[i-1] for x [N] U32.
Scan exclusive_scan(const Tensor& x, const Tensor& count = {}, Site site = Site::current());

struct SortedPairs {
  Tensor keys;    // [N], dtype of the keys
  Tensor values;  // [N] U32
};
/// Pairs in rising order of bits [begin_bit, end_bit) of the key, equal ones in their old order.
/// keys [N] U32 or U64, values [N] U32, N < 2^32. end_bit < 0: all bits.
SortedPairs radix_sort_pairs(const Tensor& keys, const Tensor& values, const Tensor& count = {},
                             int begin_bit = 0, int end_bit = -1, Site site = Site::current());

// --- Random numbers: F32, element i a function of (seed, step, purpose, i) alone. ---

/// In the open interval (low, high).
Tensor random_uniform(Device& device, const Shape& shape, uint64_t seed, uint32_t step,
                      RandomPurpose purpose, float low = 0, float high = 1,
                      Site site = Site::current());
Tensor random_normal(Device& device, const Shape& shape, uint64_t seed, uint32_t step,
                     RandomPurpose purpose, float mean = 0, float deviation = 1,
                     Site site = Site::current());

// --- Measuring ---

/// x <- a x + b, `rounds` times, on each of `n` elements (n < 2^32), element i beginning as i / n:
/// 2 n rounds floating-point operations and next to no memory. [n] F32.
Tensor iterate_affine(Device& device, int64_t n, uint32_t rounds, float a, float b,
                      Site site = Site::current());

}  // namespace millrace
