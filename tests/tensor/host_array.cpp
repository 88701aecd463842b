// Host copies of tensors for the tensor tests.
#include "tensor/host_array.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/philox.h"
#include "simulated/substitute.h"

namespace millrace::test {
namespace {

template <class T>
Tensor upload_as(Device& device, const HostArray& array, const Shape& shape) {
  const std::vector<T> values(array.values.begin(), array.values.end());
  return Tensor::from_host(device, values, shape, "test");
}

template <class T>
void append(const Ticket& ticket, std::vector<double>* values) {
  const auto bytes = ticket.bytes();
  const T* first = reinterpret_cast<const T*>(bytes.data());
  values->assign(first, first + bytes.size() / sizeof(T));
}

Tensor upload_plain(Device& device, const HostArray& array) {
  switch (array.dtype) {
    case Dtype::F32:
      return upload_as<float>(device, array, array.shape);
    case Dtype::I32:
      return upload_as<int32_t>(device, array, array.shape);
    case Dtype::U32:
      return upload_as<uint32_t>(device, array, array.shape);
    case Dtype::U8:
      return upload_as<uint8_t>(device, array, array.shape);
    case Dtype::U64:
      return upload_as<uint64_t>(device, array, array.shape);
  }
  return {};
}

/// Swaps the first and last dimension of a host array.
HostArray swap_ends(const HostArray& array) {
  HostArray out = array;
  const int last = array.shape.rank() - 1;
  std::swap(out.shape[0], out.shape[last]);
  for (uint64_t i = 0; i < array.values.size(); ++i) {
    std::array<int64_t, kMaxRank> index{};
    uint64_t rest = i;
    for (int dim = last; dim >= 0; --dim) {
      index[dim] = static_cast<int64_t>(rest % array.shape[dim]);
      rest /= array.shape[dim];
    }
    std::swap(index[0], index[last]);
    uint64_t place = 0;
    for (int dim = 0; dim <= last; ++dim) place = place * out.shape[dim] + index[dim];
    out.values[place] = array.values[i];
  }
  return out;
}

}  // namespace

std::unique_ptr<Device> open_checked(const std::string& id) {
  return make_checked(open_device(simulated::test_device(id)).or_raise());
}

std::unique_ptr<Device> open_for_ops() {
  return open_checked(std::getenv("MILLRACE_TEST_DEVICE") != nullptr ? "cpu:2" : "cpu:2,lazy");
}

const char* to_string(Layout layout) {
  constexpr const char* kNames[] = {"plain", "transposed", "sliced", "strided"};
  return kNames[static_cast<int>(layout)];
}

HostArray make_array(const Shape& shape, Dtype dtype, double low, double high, uint32_t seed) {
  HostArray array{shape, dtype, std::vector<double>(shape.numel())};
  for (uint64_t i = 0; i < array.values.size(); ++i) {
    const auto words = philox(seed, 0, RandomPurpose::Synthetic, static_cast<uint32_t>(i));
    const double value = low + (high - low) * (words[0] / 4294967296.0);
    array.values[i] = dtype == Dtype::F32 ? static_cast<float>(value) : std::round(value);
  }
  return array;
}

Tensor to_device(Device& device, const HostArray& array, Layout layout) {
  const int rank = array.shape.rank();
  if (layout == Layout::Plain || rank == 0) return upload_plain(device, array);
  if (layout == Layout::Transposed) {
    return upload_plain(device, swap_ends(array)).transpose(0, rank - 1);
  }
  Shape outer = array.shape;
  if (layout == Layout::Sliced) {
    outer[0] += 2;
    const Tensor storage = Tensor::full(device, outer, array.dtype, 77, "test");
    const Tensor view = storage.slice(0, 1, 1 + array.shape[0]);
    view.copy_(upload_plain(device, array));
    return view;
  }
  std::array<int64_t, kMaxRank> extents{};
  for (int dim = 0; dim < rank; ++dim) extents[dim] = array.shape[dim];
  extents[rank] = 2;
  const Tensor storage = Tensor::full(device, Shape(extents, rank + 1), array.dtype, 77, "test");
  const Tensor view = storage.select(rank, 1);
  view.copy_(upload_plain(device, array));
  return view;
}

HostArray read_blocking(const Tensor& tensor) {
  HostArray out{tensor.shape(), tensor.dtype(), {}};
  if (tensor.numel() == 0) return out;
  Device& device = tensor.device();
  const Ticket ticket = read_later(tensor);
  device.submit();
  device.wait_blocking(ticket.point(), {WaitReason::Test, "test.read"}).or_raise();
  switch (tensor.dtype()) {
    case Dtype::F32:
      append<float>(ticket, &out.values);
      break;
    case Dtype::I32:
      append<int32_t>(ticket, &out.values);
      break;
    case Dtype::U32:
      append<uint32_t>(ticket, &out.values);
      break;
    case Dtype::U8:
      append<uint8_t>(ticket, &out.values);
      break;
    case Dtype::U64:
      append<uint64_t>(ticket, &out.values);
      break;
  }
  return out;
}

uint64_t waits_of(Device& device) {
  uint64_t count = 0;
  for (int reason = 0; reason < kWaitReasonCount; ++reason) {
    count += device.ledger().count(static_cast<WaitReason>(reason));
  }
  return count;
}

uint64_t broadcast_index(uint64_t i, const Shape& out, const Shape& shape) {
  uint64_t place = 0, step = 1;
  for (int dim = out.rank() - 1, own = shape.rank() - 1; own >= 0; --dim, --own) {
    const uint64_t index = i % out[dim];
    i /= out[dim];
    if (shape[own] != 1) place += index * step;
    step *= shape[own];
  }
  return place;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Exception& exception) {
    return exception.error().message;
  }
  return "";
}

}  // namespace millrace::test
