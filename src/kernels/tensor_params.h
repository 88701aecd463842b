// Parameter blocks of the tensor facade's kernels: plain data, the same bytes on every device.
#pragma once

#include <cstdint>

namespace millrace {

/// Most dimensions that a strided kernel takes.
constexpr int kTensorMaxRank = 6;
/// Elements that one work item of reduce_chunks folds; the fan-in of the reduction tree.
constexpr uint64_t kReduceChunk = 1024;
/// Elements per block of the scan.
constexpr uint64_t kScanBlock = 4096;
/// Elements per block of the radix sort, and the widest digit in bits.
constexpr uint64_t kSortBlock = 16384;
constexpr uint32_t kSortMaxDigitBits = 8;

/// What tensor_unary computes from x, and from the scalars a and b where they are named.
enum class UnaryOp : uint32_t {
  Neg,
  Abs,
  Exp,
  Log,
  Sqrt,
  Sigmoid,
  Reciprocal,
  Square,
  AddScalar,       // x + a
  SubScalar,       // x - a
  MulScalar,       // x * a
  DivScalar,       // x / a
  MinScalar,       // min(x, a)
  MaxScalar,       // max(x, a)
  SubFromScalar,   // a - x
  DivideScalarBy,  // a / x
  Clamp,           // x < a ? a : x > b ? b : x
};

enum class BinaryOp : uint32_t { Add, Sub, Mul, Div, Min, Max };
enum class CompareOp : uint32_t { Eq, Lt, Le };
enum class ReduceOp : uint32_t { Sum, Min, Max };
enum class RandomKind : uint32_t { Uniform, Normal };

/// The pointwise kernels: n elements in row-major order of `shape`, each operand with its strides
/// in elements (0 repeats). Dtypes are values of Dtype. Operand order is that of the bindings.
struct PointwiseParams {
  uint64_t n;
  uint32_t op;         // UnaryOp, BinaryOp or CompareOp; unused by the others
  uint32_t rank;       // 1..6
  uint32_t dtype;      // of the inputs
  uint32_t out_dtype;  // of the output (tensor_cast)
  uint32_t a_bits;     // scalar a in the element type; low word of tensor_fill's pattern
  uint32_t b_bits;     // scalar b; high word of tensor_fill's pattern
  uint64_t shape[kTensorMaxRank];
  uint64_t strides[4][kTensorMaxRank];
};
static_assert(sizeof(PointwiseParams) == 272);

/// reduce_chunks: in [outer, length, inner] -> out [outer, ceil(length / kReduceChunk), inner].
struct ReduceParams {
  uint64_t outer;
  uint64_t length;
  uint64_t inner;
  uint32_t op;     // ReduceOp
  uint32_t dtype;  // F32, I32 or U32
  float scale;     // F32 only: multiplies the result
  uint32_t padding;
};
static_assert(sizeof(ReduceParams) == 40);

/// tensor_gather and tensor_scatter.
struct IndexedRowsParams {
  uint64_t n_indices;
  uint64_t n_rows;  // of the table
  uint64_t row_bytes;
  uint32_t element_bytes;  // of the dtype
  uint32_t padding;
};
static_assert(sizeof(IndexedRowsParams) == 32);

/// scan_block_sums, scan_sums and scan_apply.
struct ScanParams {
  uint64_t n;  // elements; fewer where a count is bound
  uint32_t has_count;
  uint32_t padding;
};
static_assert(sizeof(ScanParams) == 16);

/// radix_sort_pairs.
struct RadixSortParams {
  uint64_t n;          // pairs; fewer where a count is bound
  uint32_t key_bytes;  // 4 or 8
  uint32_t begin_bit;
  uint32_t end_bit;
  uint32_t has_count;
};
static_assert(sizeof(RadixSortParams) == 24);

/// random_fill: element i is a function of (seed, step, purpose, i) alone.
struct RandomParams {
  uint64_t n;
  uint64_t seed;
  uint32_t step;
  uint32_t purpose;  // RandomPurpose
  uint32_t kind;     // RandomKind
  float a;           // lower bound or mean
  float b;           // width or standard deviation
  uint32_t padding;
};
static_assert(sizeof(RandomParams) == 40);

/// iterate_affine: x <- a x + b, `rounds` times.
struct IterateAffineParams {
  uint64_t n;
  uint32_t rounds;
  float a, b;
  uint32_t padding;
};
static_assert(sizeof(IterateAffineParams) == 24);

/// add_u32, the device self-test kernel.
struct AddU32Params {
  uint32_t value = 0;
  uint32_t pad = 0;
};

}  // namespace millrace
