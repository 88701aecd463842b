// Shorthands for tests that drive a device by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kernels/tensor_params.h"

namespace millrace::testing {

/// Opens a device or fails the test; "cpu:2,lazy" runs work only as far as a wait asks for.
inline std::unique_ptr<Device> open_or_die(const std::string& id) {
  return open_device(id).or_raise();
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

inline Slice whole(BufferId buffer, uint64_t bytes) { return {buffer, 0, bytes}; }

/// Queues data <- data + value.
inline Result<void> add(Device& device, Slice data, uint32_t value, Slice count = {},
                        SourceLocation site = SourceLocation::current()) {
  const AddU32Params params{.value = value};
  const Binding bindings[] = {{data, Access::ReadWrite}};
  return device.launch({.kernel = KernelId::add_u32,
                        .threads = data.bytes / 4,
                        .count = count,
                        .bindings = bindings,
                        .params = std::as_bytes(std::span(&params, 1)),
                        .site = site});
}

inline std::vector<uint32_t> values_of(const Ticket& ticket) {
  std::vector<uint32_t> values(ticket.bytes().size() / 4);
  std::memcpy(values.data(), ticket.bytes().data(), values.size() * 4);
  return values;
}

/// The values of `from` after all queued work; a wait for reason Test.
inline std::vector<uint32_t> read_blocking(Device& device, Slice from) {
  const Ticket ticket = device.download(from).or_raise();
  device.wait_blocking(device.submit(), {WaitReason::Test, "test.read"}).or_raise();
  EXPECT_TRUE(ticket.ready());
  return values_of(ticket);
}

}  // namespace millrace::testing
