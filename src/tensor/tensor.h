// Tensor: a typed, shaped view of device memory. Copies and views share storage; no call waits.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/source_location.h"
#include "device/device.h"

namespace millrace {

/// Element type. The values are the `dtype` field of kernel parameter blocks.
enum class Dtype : uint32_t { F32 = 0, I32 = 1, U32 = 2, U8 = 3, U64 = 4 };

/// Size of one element in bytes.
constexpr uint64_t dtype_bytes(Dtype dtype) {
  return dtype == Dtype::U8 ? 1 : dtype == Dtype::U64 ? 8 : 4;
}
const char* to_string(Dtype dtype);

/// The Dtype of a host type; other types do not compile.
template <class T>
constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return Dtype::F32;
  else if constexpr (std::is_same_v<T, int32_t>)
    return Dtype::I32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return Dtype::U32;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return Dtype::U8;
  else {
    static_assert(std::is_same_v<T, uint64_t>, "no Dtype for this type");
    return Dtype::U64;
  }
}

constexpr int kMaxRank = 6;

/// Up to six extents, row-major. No extents: a scalar of one element.
class Shape {
 public:
  Shape() = default;
  /// Shape{n, 3}: any integer types; implicit so that `{n, 3}` can be passed.
  template <std::integral... Extents>
  Shape(Extents... extents)  // NOLINT: implicit by design
      requires(sizeof...(Extents) >= 1 && sizeof...(Extents) <= kMaxRank)
      : extents_{static_cast<int64_t>(extents)...}, rank_(sizeof...(Extents)) {}
  /// The first `rank` of `extents`.
  Shape(const std::array<int64_t, kMaxRank>& extents, int rank) : extents_(extents), rank_(rank) {}

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return extents_[dim]; }
  int64_t& operator[](int dim) { return extents_[dim]; }
  /// The product of the extents.
  uint64_t numel() const;
  bool operator==(const Shape& other) const;
  /// "[N,3]"; "[]" for a scalar.
  std::string str() const;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

/// Distance between neighbours along each dimension, in elements.
using Strides = std::array<int64_t, kMaxRank>;

/// Where an operation was called; every facade function takes one as its last, defaulted argument.
using Site = SourceLocation;

/// A typed, shaped view of device memory. A value type: copies and views share the storage, which
/// goes back to the device with the last of them. The device must outlive its tensors.
/// Every function raises (Internal) with the operation, the shapes and dtypes, and the call site.
class Tensor {
 public:
  /// No storage; only defined(), assignment and destruction are allowed.
  Tensor() = default;

  /// Contents undefined. `label` is a literal that groups the memory in MemoryStats.
  /// Errors: a negative extent; OutOfMemory.
  static Tensor empty(Device& device, const Shape& shape, Dtype dtype, const char* label,
                      Site site = Site::current());
  static Tensor zeros(Device& device, const Shape& shape, Dtype dtype, const char* label,
                      Site site = Site::current());
  /// Every element is `value`, converted to `dtype`. Error: `value` does not fit an integer dtype.
  static Tensor full(Device& device, const Shape& shape, Dtype dtype, double value,
                     const char* label, Site site = Site::current());
  /// A device copy of `values` (consumed on return), row-major. Error: sizes differ.
  template <class T>
  static Tensor from_host(Device& device, std::span<const T> values, const Shape& shape,
                          const char* label, Site site = Site::current()) {
    Tensor out = empty(device, shape, dtype_of<T>(), label, site);
    out.upload_bytes(std::as_bytes(values), dtype_of<T>(), site);
    return out;
  }
  template <class T>
  static Tensor from_host(Device& device, const std::vector<T>& values, const Shape& shape,
                          const char* label, Site site = Site::current()) {
    return from_host(device, std::span<const T>(values), shape, label, site);
  }

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  /// Extent of dimension `dim`.
  int64_t size(int dim) const { return shape_[dim]; }
  /// Only the first rank() entries mean anything. An expanded dimension has stride 0.
  const Strides& strides() const { return strides_; }
  Dtype dtype() const { return dtype_; }
  uint64_t numel() const { return shape_.numel(); }
  /// numel() times the element size.
  uint64_t bytes() const { return numel() * dtype_bytes(dtype_); }
  /// Row-major without gaps; a view may begin anywhere in its storage.
  bool is_contiguous() const;
  /// Some dimension of more than one element has stride 0: such a view cannot be written.
  bool is_expanded() const;
  Device& device() const;
  /// The byte range. Error: not contiguous.
  Slice slice(Site site = Site::current()) const;
  /// The smallest byte range that holds every element, gaps of a strided view included.
  Slice extent() const;
  /// Whether a write to one may be seen by the other.
  bool overlaps(const Tensor& other) const;

  // Views: no device work; they share this tensor's storage. Negative `dim` counts from the end.
  /// Same elements, other shape; one extent may be -1. Error: counts differ, or not contiguous.
  Tensor reshape(const Shape& shape, Site site = Site::current()) const;
  /// Elements [begin, end) of dimension `dim`.
  Tensor slice(int dim, int64_t begin, int64_t end, Site site = Site::current()) const;
  Tensor transpose(int a, int b, Site site = Site::current()) const;
  /// Dimension i of the result is dimension dims[i] of this.
  Tensor permute(std::initializer_list<int> dims, Site site = Site::current()) const;
  /// Repeats dimensions of extent 1 (and missing leading ones) without copying. Refuses writes.
  Tensor expand(const Shape& shape, Site site = Site::current()) const;
  /// Drops dimension `dim`, which must have extent 1.
  Tensor squeeze(int dim, Site site = Site::current()) const;
  /// Inserts an extent of 1 before dimension `dim` (rank() is allowed).
  Tensor unsqueeze(int dim, Site site = Site::current()) const;
  /// Element `index` of dimension `dim`; the result has one dimension less.
  Tensor select(int dim, int64_t index, Site site = Site::current()) const;

  // Device work, queued in call order.
  /// This tensor if contiguous, otherwise a copy made on the device.
  Tensor contiguous(Site site = Site::current()) const;
  /// Queues a transfer of `values` (consumed on return) into this tensor, strided or not; allowed
  /// at any time, whatever queued work still uses the old contents.
  template <class T>
  void upload(std::span<const T> values, Site site = Site::current()) const {
    upload_bytes(std::as_bytes(values), dtype_of<T>(), site);
  }
  template <class T>
  void upload(const std::vector<T>& values, Site site = Site::current()) const {
    upload(std::span<const T>(values), site);
  }
  /// Sets every element to `value`, converted to dtype(). Error: does not fit an integer dtype.
  void fill_(double value, Site site = Site::current()) const;
  /// Copies `src` (broadcast to this shape, same dtype) here; overlapping views are allowed.
  void copy_(const Tensor& src, Site site = Site::current()) const;

 private:
  struct Storage;

  void upload_bytes(std::span<const std::byte> bytes, Dtype dtype, Site site) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Strides strides_{};
  uint64_t offset_ = 0;  // elements
  Dtype dtype_ = Dtype::F32;
};

/// The only way to the host: a ticket for the elements of `tensor`, row-major, as they are at this
/// place in queue order. Strided views are gathered on the device first. Never waits.
/// Error: no elements.
Ticket read_later(const Tensor& tensor, Site site = Site::current());

/// "[N,3] F32", for error messages; "undefined" for a tensor without storage.
std::string describe(const Tensor& tensor);
/// "file.cpp:12", for error messages.
std::string describe(const Site& site);

}  // namespace millrace
