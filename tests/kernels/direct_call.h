// Calling a CPU kernel directly on host arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/splat_params.h"

namespace millrace::test {

/// The address and size of an array or of one record, whatever its constness: a kernel's table row
/// says what it may write.
struct HostBinding {
  std::byte* data;
  uint64_t bytes;

  template <class T>
  HostBinding(std::vector<T>& values)  // NOLINT: implicit by design
      : data(reinterpret_cast<std::byte*>(values.data())), bytes(values.size() * sizeof(T)) {}
  template <class T>
  HostBinding(T& record)  // NOLINT: implicit by design
      : data(reinterpret_cast<std::byte*>(&record)), bytes(sizeof(T)) {}
};

/// Runs `kernel` on `bindings`, in the order of its head comment.
template <class Params>
void call_kernel(kernels::CpuKernel kernel, uint64_t threads, const Params& params,
                 std::initializer_list<HostBinding> bindings) {
  std::vector<std::byte*> addresses;
  std::vector<uint64_t> sizes;
  for (const HostBinding& binding : bindings) {
    addresses.push_back(binding.data);
    sizes.push_back(binding.bytes);
  }
  kernel({threads, reinterpret_cast<const std::byte*>(&params), addresses, sizes});
}

/// A control record with an open gate and `rows` live rows.
inline Control open_control(uint32_t rows) {
  Control control = {};
  control.gate.accepted = control.gate.committed = kNoTransaction;
  control.counts.rows = rows;
  return control;
}

inline StepBlock block_of(uint64_t transaction, uint32_t epoch = 0) {
  StepBlock block = {};
  block.transaction = transaction;
  block.epoch = epoch;
  return block;
}

}  // namespace millrace::test
