// Tensor: storage, factories, transfers.
#include "tensor/tensor.h"

#include <fmt/format.h>

#include "base/pooled_allocator.h"
#include "tensor/check.h"
#include "tensor/pointwise.h"

namespace millrace {

const char* to_string(Dtype dtype) {
  constexpr const char* kNames[] = {"F32", "I32", "U32", "U8", "U64"};
  return kNames[static_cast<uint32_t>(dtype)];
}

uint64_t Shape::numel() const {
  uint64_t product = 1;
  for (int dim = 0; dim < rank_; ++dim) product *= static_cast<uint64_t>(extents_[dim]);
  return product;
}

bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int dim = 0; dim < rank_; ++dim) {
    if (extents_[dim] != other.extents_[dim]) return false;
  }
  return true;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int dim = 0; dim < rank_; ++dim) {
    if (dim > 0) text += ',';
    text += std::to_string(extents_[dim]);
  }
  return text + "]";
}

struct Tensor::Storage {
  Storage(Device& owner, BufferId id, uint64_t size) : device(&owner), buffer(id), bytes(size) {}
  ~Storage() { device->release(buffer); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device* device;
  BufferId buffer;
  uint64_t bytes;
};

Tensor Tensor::empty(Device& device, const Shape& shape, Dtype dtype, const char* label,
                     Site site) {
  Tensor out;
  out.shape_ = shape;
  out.dtype_ = dtype;
  int64_t stride = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    if (shape[dim] < 0) fail("empty", "negative extent in " + shape.str(), {}, site);
    out.strides_[dim] = stride;
    stride *= shape[dim] > 0 ? shape[dim] : 1;
  }
  // Whole words, and at least one, so that any tensor can be filled and bound.
  const uint64_t bytes = out.bytes() == 0 ? 4 : (out.bytes() + 3) / 4 * 4;
  Result<BufferId> buffer = device.allocate(bytes, label);
  if (!buffer.ok()) {
    raise({buffer.error().code,
           fmt::format("empty {} {} ({}): {}; called at {}", shape.str(), to_string(dtype), label,
                       buffer.error().message, describe(site))});
  }
  // Every step makes and drops tensors: their records come from a pool, as their memory does.
  out.storage_ =
      std::allocate_shared<Storage>(PooledAllocator<Storage>(), device, buffer.value(), bytes);
  return out;
}

Tensor Tensor::zeros(Device& device, const Shape& shape, Dtype dtype, const char* label,
                     Site site) {
  return full(device, shape, dtype, 0.0, label, site);
}

Tensor Tensor::full(Device& device, const Shape& shape, Dtype dtype, double value,
                    const char* label, Site site) {
  Tensor out = empty(device, shape, dtype, label, site);
  out.fill_(value, site);
  return out;
}

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;
  int64_t stride = 1;
  for (int dim = rank() - 1; dim >= 0; --dim) {
    if (shape_[dim] == 1) continue;
    if (strides_[dim] != stride) return false;
    stride *= shape_[dim];
  }
  return true;
}

bool Tensor::is_expanded() const {
  for (int dim = 0; dim < rank(); ++dim) {
    if (shape_[dim] > 1 && strides_[dim] == 0) return true;
  }
  return false;
}

Device& Tensor::device() const {
  if (!defined()) fail("device", "the tensor is undefined", {}, Site::current());
  return *storage_->device;
}

Slice Tensor::slice(Site site) const {
  if (!defined()) fail("slice", "the tensor is undefined", {}, site);
  if (!is_contiguous()) fail("slice", "the tensor is not contiguous", {this}, site);
  return extent();
}

Slice Tensor::extent() const {
  if (!defined()) fail("extent", "the tensor is undefined", {}, Site::current());
  const uint64_t size = dtype_bytes(dtype_);
  if (numel() == 0) return {storage_->buffer, 0, 0};
  int64_t last = 0;
  for (int dim = 0; dim < rank(); ++dim) last += (shape_[dim] - 1) * strides_[dim];
  return {storage_->buffer, offset_ * size, (static_cast<uint64_t>(last) + 1) * size};
}

bool Tensor::overlaps(const Tensor& other) const {
  if (!defined() || storage_ != other.storage_) return false;
  const Slice a = extent(), b = other.extent();
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

Tensor Tensor::contiguous(Site site) const {
  require_operands("contiguous", {this}, site);
  if (is_contiguous()) return *this;
  Tensor out = empty(device(), shape_, dtype_, "contiguous", site);
  out.copy_(*this, site);
  return out;
}

void Tensor::upload_bytes(std::span<const std::byte> values, Dtype dtype, Site site) const {
  require_operands("upload", {this}, site);
  require_dtype("upload", *this, dtype, {this}, site);
  require_writable("upload", *this, {this}, site);
  if (values.size() != bytes()) {
    fail("upload", fmt::format("{} bytes given, {} needed", values.size(), bytes()), {this}, site);
  }
  if (values.empty()) return;
  if (!is_contiguous()) {
    Tensor staged = empty(device(), shape_, dtype_, "upload", site);
    staged.upload_bytes(values, dtype, site);
    copy_(staged, site);
    return;
  }
  Result<void> queued = device().upload(extent(), values);
  if (!queued.ok()) fail("upload", queued.error().message, {this}, site, queued.error().code);
}

void Tensor::fill_(double value, Site site) const {
  require_operands("fill_", {this}, site);
  require_writable("fill_", *this, {this}, site);
  const uint64_t bits = scalar_bits("fill_", value, dtype_, {this}, site);
  if (numel() == 0) return;
  uint64_t pattern = bits;
  if (dtype_ == Dtype::U8) pattern = bits * 0x01010101u;
  if (dtype_ != Dtype::U64) pattern |= pattern << 32;
  const auto word = static_cast<uint32_t>(pattern);
  const Slice range = extent();
  const bool words = is_contiguous() && range.offset % 4 == 0 && range.bytes % 4 == 0;
  if (words && word == static_cast<uint32_t>(pattern >> 32)) {
    Result<void> queued = device().fill(range, word);
    if (!queued.ok()) fail("fill_", queued.error().message, {this}, site, queued.error().code);
    return;
  }
  PointwiseParams params = pointwise_params({this}, shape_);
  params.a_bits = word;
  params.b_bits = static_cast<uint32_t>(pattern >> 32);
  launch(device(), KernelId::tensor_fill, params.n, {update_strided(*this, site)}, params, site);
}

void Tensor::copy_(const Tensor& src, Site site) const {
  require_operands("copy_", {this, &src}, site);
  require_dtype("copy_", src, dtype_, {this, &src}, site);
  require_writable("copy_", *this, {this, &src}, site);
  if (broadcast_shape("copy_", {this, &src}, site) != shape_) {
    fail("copy_", "the source does not broadcast to the destination", {this, &src}, site);
  }
  if (numel() == 0) return;
  if (overlaps(src)) {
    Tensor aside = empty(device(), src.shape(), dtype_, "copy", site);
    aside.copy_(src, site);
    copy_(aside, site);
    return;
  }
  const Tensor from = src.expand(shape_, site);
  if (is_contiguous() && from.is_contiguous()) {
    Result<void> queued = device().copy(extent(), from.extent());
    if (!queued.ok())
      fail("copy_", queued.error().message, {this, &src}, site, queued.error().code);
    return;
  }
  const PointwiseParams params = pointwise_params({this, &from}, shape_);
  launch(device(), KernelId::tensor_copy, params.n,
         {update_strided(*this, site), read_strided(from, site)}, params, site);
}

Ticket read_later(const Tensor& tensor, Site site) {
  require_operands("read_later", {&tensor}, site);
  if (tensor.numel() == 0) fail("read_later", "the tensor has no elements", {&tensor}, site);
  const Tensor packed = tensor.contiguous(site);
  Result<Ticket> ticket = packed.device().download(packed.extent());
  if (!ticket.ok()) {
    fail("read_later", ticket.error().message, {&tensor}, site, ticket.error().code);
  }
  return std::move(ticket).value();
}

}  // namespace millrace
