// Scenario: steady work on the CPU device allocates nothing on the recording thread. This binary
// counts calls of operator new for it.
#include <cstdlib>
#include <new>

#include "device/device_helpers.h"

namespace {

thread_local bool counting = false;
thread_local int n_allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++n_allocations;
  void* address = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

}  // namespace

// The whole family, plain, array and nothrow: a sanitizer brings its own of each that is missing
// here, and reports memory that one family gave and the other took back.
using std::align_val_t;
using std::nothrow_t;
using std::size_t;

void* operator new(size_t bytes) { return allocate(bytes, 16); }
void* operator new[](size_t bytes) { return allocate(bytes, 16); }
void* operator new(size_t bytes, align_val_t to) {
  return allocate(bytes, static_cast<size_t>(to));
}
void* operator new[](size_t bytes, align_val_t to) {
  return allocate(bytes, static_cast<size_t>(to));
}
void* operator new(size_t bytes, const nothrow_t&) noexcept { return allocate(bytes, 16); }
void* operator new[](size_t bytes, const nothrow_t&) noexcept { return allocate(bytes, 16); }
void operator delete(void* address) noexcept { std::free(address); }
void operator delete[](void* address) noexcept { std::free(address); }
void operator delete(void* address, size_t) noexcept { std::free(address); }
void operator delete[](void* address, size_t) noexcept { std::free(address); }
void operator delete(void* address, align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, align_val_t) noexcept { std::free(address); }
void operator delete(void* address, size_t, align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, size_t, align_val_t) noexcept { std::free(address); }

namespace millrace {
namespace {

using testing::add;
using testing::whole;

/// What a training step does to a device: temporaries, launches, an upload, and a ticket read late.
void step(Device& device, BufferId state, Ticket* last) {
  const uint32_t numbers[4] = {1, 2, 3, 4};
  const BufferId temporary = device.allocate(5000, "temporary").or_raise();
  device.fill(whole(temporary, 5000), 1).or_raise();
  device.upload({state, 0, 16}, std::as_bytes(std::span(numbers))).or_raise();
  for (int i = 0; i < 30; ++i) add(device, whole(state, 4096), 1).or_raise();
  device.copy({temporary, 0, 64}, {state, 0, 64}).or_raise();
  const Ticket ticket = device.download({temporary, 0, 64}).or_raise();
  device.release(temporary);
  device.wait_blocking(last->point(), {WaitReason::Pacing, "test.pacing"}).or_raise();
  *last = ticket;
}

TEST(SteadyAllocation, ASteadyStepAllocatesNothingOnTheRecordingThread) {
  const auto device = open_device("cpu:2,lazy").or_raise();
  const BufferId state = device->allocate(4096, "state").or_raise();
  device->fill(whole(state, 4096), 0).or_raise();
  Ticket last = device->download({state, 0, 64}).or_raise();
  for (int i = 0; i < 30; ++i) step(*device, state, &last);
  counting = true;
  n_allocations = 0;
  delete new int(1);
  EXPECT_EQ(n_allocations, 1) << "the counter does not count";
  n_allocations = 0;
  for (int i = 0; i < 100; ++i) step(*device, state, &last);
  counting = false;
  EXPECT_EQ(n_allocations, 0);
  device->release(state);
}

}  // namespace
}  // namespace millrace
