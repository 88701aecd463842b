// Checks of the tensor facade.
#include "tensor/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace millrace {

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return tensor.shape().str() + " " + to_string(tensor.dtype());
}

std::string describe(const Site& site) {
  const char* slash = std::strrchr(site.file_name(), '/');
  return fmt::format("{}:{}", slash ? slash + 1 : site.file_name(), site.line());
}

void fail(const char* op, const std::string& what, std::initializer_list<const Tensor*> operands,
          const Site& site, ErrorCode code) {
  std::string message = fmt::format("{}: {}", op, what);
  const char* separator = "; operands ";
  for (const Tensor* operand : operands) {
    message += separator + describe(*operand);
    separator = ", ";
  }
  raise({code, message + "; called at " + describe(site)});
}

void require_operands(const char* op, std::initializer_list<const Tensor*> operands,
                      const Site& site) {
  const Device* device = nullptr;
  for (const Tensor* operand : operands) {
    if (!operand->defined()) fail(op, "an operand is undefined", operands, site);
    if (!device) device = &operand->device();
    if (device != &operand->device()) fail(op, "operands on two devices", operands, site);
  }
}

void require_dtype(const char* op, const Tensor& tensor, Dtype dtype,
                   std::initializer_list<const Tensor*> operands, const Site& site) {
  if (tensor.dtype() == dtype) return;
  fail(op, fmt::format("needs {}, found {}", to_string(dtype), to_string(tensor.dtype())), operands,
       site);
}

int require_dim(const char* op, int dim, int rank, std::initializer_list<const Tensor*> operands,
                const Site& site) {
  if (dim < -rank || dim >= rank) {
    fail(op, fmt::format("dimension {} is outside a rank of {}", dim, rank), operands, site);
  }
  return dim < 0 ? dim + rank : dim;
}

void require_writable(const char* op, const Tensor& tensor,
                      std::initializer_list<const Tensor*> operands, const Site& site) {
  if (tensor.is_expanded()) {
    fail(op, "an expanded view cannot be written; write its source", operands, site);
  }
}

void require_count(const char* op, const Tensor& count,
                   std::initializer_list<const Tensor*> operands, const Site& site) {
  if (count.dtype() != Dtype::U32 || count.numel() != 1) {
    fail(op, "the count must be U32 [1], found " + describe(count), operands, site);
  }
}

Shape broadcast_shape(const char* op, std::initializer_list<const Tensor*> operands,
                      const Site& site) {
  int rank = 0;
  for (const Tensor* operand : operands) rank = std::max(rank, operand->rank());
  std::array<int64_t, kMaxRank> extents;
  extents.fill(1);
  for (const Tensor* operand : operands) {
    for (int dim = 0; dim < operand->rank(); ++dim) {
      const int64_t extent = operand->size(dim);
      int64_t& common = extents[rank - operand->rank() + dim];
      if (extent == 1 || extent == common) continue;
      if (common != 1) fail(op, "shapes do not broadcast", operands, site);
      common = extent;
    }
  }
  return Shape(extents, rank);
}

uint64_t scalar_bits(const char* op, double value, Dtype dtype,
                     std::initializer_list<const Tensor*> operands, const Site& site) {
  if (dtype == Dtype::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const double low = dtype == Dtype::I32 ? -2147483648.0 : 0.0;
  const double high = dtype == Dtype::U8    ? 255.0
                      : dtype == Dtype::I32 ? 2147483647.0
                      : dtype == Dtype::U32 ? 4294967295.0
                                            : 9007199254740992.0;  // 2^53: exact in a double
  if (!(value >= low && value <= high) || value != std::floor(value)) {
    fail(op, fmt::format("{} is not a value of {}", value, to_string(dtype)), operands, site);
  }
  if (dtype == Dtype::I32) return static_cast<uint32_t>(static_cast<int32_t>(value));
  return static_cast<uint64_t>(value);
}

}  // namespace millrace
