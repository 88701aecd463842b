// Zero-copy views: every function returns a tensor on the same storage.
#include <fmt/format.h>

#include "tensor/check.h"
#include "tensor/tensor.h"

namespace millrace {

Tensor Tensor::reshape(const Shape& shape, Site site) const {
  require_operands("reshape", {this}, site);
  Shape wanted = shape;
  int unknown = -1;
  uint64_t known = 1;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] >= 0) {
      known *= static_cast<uint64_t>(shape[dim]);
    } else if (shape[dim] == -1 && unknown < 0) {
      unknown = dim;
    } else {
      fail("reshape", "at most one extent may be -1, none less; asked " + shape.str(), {this},
           site);
    }
  }
  if (unknown >= 0 && known > 0) wanted[unknown] = static_cast<int64_t>(numel() / known);
  if ((unknown >= 0 && known == 0) || wanted.numel() != numel()) {
    fail("reshape", fmt::format("{} elements do not make {}", numel(), shape.str()), {this}, site);
  }
  if (!is_contiguous()) {
    fail("reshape", "the tensor is not contiguous; call contiguous() first", {this}, site);
  }
  Tensor out = *this;
  out.shape_ = wanted;
  int64_t stride = 1;
  for (int dim = wanted.rank() - 1; dim >= 0; --dim) {
    out.strides_[dim] = stride;
    stride *= wanted[dim] > 0 ? wanted[dim] : 1;
  }
  return out;
}

Tensor Tensor::slice(int dim, int64_t begin, int64_t end, Site site) const {
  require_operands("slice", {this}, site);
  dim = require_dim("slice", dim, rank(), {this}, site);
  if (begin < 0 || begin > end || end > shape_[dim]) {
    fail("slice", fmt::format("[{},{}) is outside dimension {}", begin, end, dim), {this}, site);
  }
  Tensor out = *this;
  out.shape_[dim] = end - begin;
  if (out.numel() > 0) out.offset_ += static_cast<uint64_t>(begin * strides_[dim]);
  return out;
}

Tensor Tensor::transpose(int a, int b, Site site) const {
  require_operands("transpose", {this}, site);
  a = require_dim("transpose", a, rank(), {this}, site);
  b = require_dim("transpose", b, rank(), {this}, site);
  Tensor out = *this;
  std::swap(out.shape_[a], out.shape_[b]);
  std::swap(out.strides_[a], out.strides_[b]);
  return out;
}

Tensor Tensor::permute(std::initializer_list<int> dims, Site site) const {
  require_operands("permute", {this}, site);
  if (static_cast<int>(dims.size()) != rank()) {
    fail("permute", fmt::format("{} dimensions given, {} needed", dims.size(), rank()), {this},
         site);
  }
  Tensor out = *this;
  uint32_t seen = 0;
  int to = 0;
  for (int dim : dims) {
    const int from = require_dim("permute", dim, rank(), {this}, site);
    if (seen >> from & 1u) fail("permute", fmt::format("{} given twice", dim), {this}, site);
    seen |= 1u << from;
    out.shape_[to] = shape_[from];
    out.strides_[to++] = strides_[from];
  }
  return out;
}

Tensor Tensor::expand(const Shape& shape, Site site) const {
  require_operands("expand", {this}, site);
  const int added = shape.rank() - rank();
  if (added < 0) fail("expand", "asked for a lower rank, " + shape.str(), {this}, site);
  Tensor out = *this;
  out.shape_ = shape;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    const int64_t extent = dim < added ? 1 : shape_[dim - added];
    if (shape[dim] < 0 || (extent != 1 && extent != shape[dim])) {
      fail("expand", "cannot expand to " + shape.str(), {this}, site);
    }
    out.strides_[dim] = extent == 1 && shape[dim] != 1 ? 0
                        : dim < added                  ? 1
                                                       : strides_[dim - added];
  }
  return out;
}

Tensor Tensor::squeeze(int dim, Site site) const {
  require_operands("squeeze", {this}, site);
  dim = require_dim("squeeze", dim, rank(), {this}, site);
  if (shape_[dim] != 1) {
    fail("squeeze", fmt::format("dimension {} is not of extent 1", dim), {this}, site);
  }
  return select(dim, 0, site);
}

Tensor Tensor::unsqueeze(int dim, Site site) const {
  require_operands("unsqueeze", {this}, site);
  if (rank() == kMaxRank) fail("unsqueeze", "the rank is at its limit", {this}, site);
  dim = require_dim("unsqueeze", dim, rank() + 1, {this}, site);
  std::array<int64_t, kMaxRank> extents{};
  Tensor out = *this;
  for (int to = 0; to <= rank(); ++to) {
    const int from = to < dim ? to : to - 1;
    extents[to] = to == dim ? 1 : shape_[from];
    out.strides_[to] = to == dim ? 1 : strides_[from];
  }
  out.shape_ = Shape(extents, rank() + 1);
  return out;
}

Tensor Tensor::select(int dim, int64_t index, Site site) const {
  require_operands("select", {this}, site);
  dim = require_dim("select", dim, rank(), {this}, site);
  if (index < 0 || index >= shape_[dim]) {
    fail("select", fmt::format("{} is outside dimension {}", index, dim), {this}, site);
  }
  std::array<int64_t, kMaxRank> extents{};
  Tensor out = *this;
  for (int to = 0; to < rank() - 1; ++to) {
    const int from = to < dim ? to : to + 1;
    extents[to] = shape_[from];
    out.strides_[to] = strides_[from];
  }
  out.shape_ = Shape(extents, rank() - 1);
  if (out.numel() > 0) out.offset_ += static_cast<uint64_t>(index * strides_[dim]);
  return out;
}

}  // namespace millrace
