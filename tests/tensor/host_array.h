// HostArray: a host copy of a tensor for references, seeded inputs, and the views that tests feed
// to ops.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "tensor/tensor.h"

namespace millrace::test {

/// Values as float64: exact for F32, I32, U32, U8 and for U64 below 2^53.
struct HostArray {
  Shape shape;
  Dtype dtype = Dtype::F32;
  std::vector<double> values;  // row-major
};

/// Opens `id` behind the argument checks.
std::unique_ptr<Device> open_checked(const std::string& id);
/// The device that ops are tested on, behind the argument checks: a lazy one, which runs nothing
/// until a wait asks for it, so that an op that waited would show; or that of MILLRACE_TEST_DEVICE.
std::unique_ptr<Device> open_for_ops();

/// Values in [low, high] from a hash of the index; integers for integer dtypes.
HostArray make_array(const Shape& shape, Dtype dtype, double low, double high, uint32_t seed);

/// How a tensor lies in its storage.
enum class Layout { Plain, Transposed, Sliced, Strided };
constexpr Layout kLayouts[] = {Layout::Plain, Layout::Transposed, Layout::Sliced, Layout::Strided};
const char* to_string(Layout layout);

/// `array` on the device, as a view of the given layout: Transposed reverses the dimensions in
/// storage, Sliced sits inside a storage larger by two in the first dimension, Strided takes every
/// other element of the last one.
Tensor to_device(Device& device, const HostArray& array, Layout layout = Layout::Plain);

/// The tensor's elements, waiting for them with reason Test. An empty tensor gives no values.
HostArray read_blocking(const Tensor& tensor);

/// Waits of all reasons so far.
uint64_t waits_of(Device& device);

/// Row-major index of the element of `shape` that index `i` of `out` broadcasts to.
uint64_t broadcast_index(uint64_t i, const Shape& out, const Shape& shape);

/// The message of the Exception that `body` raises; empty if it raises none.
std::string error_of(const std::function<void()>& body);

}  // namespace millrace::test
