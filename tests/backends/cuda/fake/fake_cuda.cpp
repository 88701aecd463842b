// The fake driver library: the functions that the CUDA backend uses, in host memory.
#include "backends/cuda/fake/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/fake/stream_engine.h"

namespace millrace::cuda {

// Each function gets the driver's symbol for a name, so that its parameters are checked against
// what the backend calls.
#define MILLRACE_CUDA_FUNCTION(member, symbol, ...) \
  __attribute__((visibility("default"))) Status fake_##member(__VA_ARGS__) __asm__(symbol);
#define MILLRACE_CUDA_OPTIONAL(member, symbol, ...) \
  MILLRACE_CUDA_FUNCTION(member, symbol, __VA_ARGS__)
#include "backends/cuda/driver_functions.inc"
#undef MILLRACE_CUDA_FUNCTION
#undef MILLRACE_CUDA_OPTIONAL

namespace {

using fake::FakeEvent;

/// Lives as long as the process: a device that never ended may still use it.
fake::StreamEngine& engine() {
  static auto* const kEngine = new fake::StreamEngine;
  return *kEngine;
}

thread_local bool has_context = false;
constexpr auto kInvalidContext = static_cast<Status>(201);

/// Kernel functions are their names, kept for ever.
const char* name_of(Function function) { return reinterpret_cast<const char*>(function); }

Status check_context() { return has_context ? Status::Ok : kInvalidContext; }

class Control final : public fake::FakeCuda {
 public:
  void hold() override {
    const std::lock_guard lock(engine().mutex);
    engine().held = true;
    engine().allowance = 0;
  }
  void release() override {
    {
      const std::lock_guard lock(engine().mutex);
      engine().held = false;
    }
    engine().changed.notify_all();
  }
  void run(uint64_t n) override {
    {
      const std::lock_guard lock(engine().mutex);
      engine().allowance += n;
    }
    engine().changed.notify_all();
  }
  void fail_allocations(uint64_t skip, uint64_t times) override {
    const std::lock_guard lock(engine().mutex);
    engine().allocation_rule = {skip, times, Status::OutOfMemory};
  }
  void refuse_launch(uint64_t skip, Status status) override {
    const std::lock_guard lock(engine().mutex);
    engine().launch_rule = {skip, 1, status};
  }
  void fault_kernel(uint64_t skip, Status status) override {
    const std::lock_guard lock(engine().mutex);
    engine().kernel_rule = {skip, 1, status};
  }
  void set_devices(int n) override {
    const std::lock_guard lock(engine().mutex);
    engine().n_devices = n;
  }
  void set_memory_pools(bool has_pools) override {
    const std::lock_guard lock(engine().mutex);
    engine().has_pools = has_pools;
  }
  void set_runner(fake::Runner runner) override {
    const std::lock_guard lock(engine().mutex);
    engine().runner = runner;
  }
  fake::Counts counts() override {
    const std::lock_guard lock(engine().mutex);
    fake::Counts all = engine().counts;
    all.live_blocks = engine().device_blocks.size();
    all.live_pinned = engine().pinned_blocks.size();
    return all;
  }
  uint64_t stopping_calls_of_this_thread() override {
    const std::lock_guard lock(engine().mutex);
    return engine().stopping_calls[std::this_thread::get_id()];
  }
  uint64_t bytes_behind(uint64_t address) override { return engine().bytes_behind(address); }
  void reset() override {
    release();
    std::unique_lock lock(engine().mutex);
    engine().changed.wait(lock, [] { return engine().counts.queued == 0; });
    engine().sticky = Status::Ok;
    engine().n_devices = 1;
    engine().has_pools = true;
    engine().allocation_rule = engine().launch_rule = engine().kernel_rule = {};
    engine().counts.launches = engine().counts.allocations = 0;
    engine().stopping_calls.clear();
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) fake::FakeCuda* millrace_fake_cuda() {
  static auto* const kControl = new Control;
  return kControl;
}

// --- The library and its devices ---

Status fake_init(unsigned) { return Status::Ok; }
Status fake_driver_get_version(int* version) {
  *version = 13000;
  return Status::Ok;
}
Status fake_get_error_name(Status status, const char** text) {
  *text = status == Status::IllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : status == Status::OutOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
                                           : "CUDA_ERROR_OF_THE_FAKE";
  return Status::Ok;
}
Status fake_get_error_string(Status, const char** text) {
  *text = "an error of the fake driver";
  return Status::Ok;
}
Status fake_device_get_count(int* count) {
  const std::lock_guard lock(engine().mutex);
  *count = engine().n_devices;
  return Status::Ok;
}
Status fake_device_get(DeviceNumber* device, int ordinal) {
  *device = ordinal;
  return Status::Ok;
}
Status fake_device_get_name(char* name, int size, DeviceNumber) {
  std::snprintf(name, static_cast<size_t>(size), "Fake CUDA device");
  return Status::Ok;
}
Status fake_device_total_memory(size_t* bytes, DeviceNumber) {
  *bytes = size_t{4} << 30;
  return Status::Ok;
}
Status fake_device_get_attribute(int* value, Attribute attribute, DeviceNumber) {
  *value = attribute == Attribute::Processors     ? 4
           : attribute == Attribute::ComputeMajor ? 9
           : attribute == Attribute::MemoryPools  ? engine().has_pools
           : attribute == Attribute::MaxGridX     ? 0x7fffffff
                                                  : 0;
  return Status::Ok;
}

// --- Contexts, streams, events ---

Status fake_primary_context_set_flags(DeviceNumber, unsigned) { return Status::Ok; }
Status fake_primary_context_retain(Context* context, DeviceNumber) {
  const std::lock_guard lock(engine().mutex);
  // A new primary context knows nothing of its predecessor's fault.
  if (engine().counts.retained++ == 0) engine().sticky = Status::Ok;
  *context = reinterpret_cast<Context>(&engine());
  return Status::Ok;
}
Status fake_primary_context_release(DeviceNumber) {
  const std::lock_guard lock(engine().mutex);
  --engine().counts.retained;
  return Status::Ok;
}
Status fake_context_set_current(Context context) {
  has_context = context != nullptr;
  return Status::Ok;
}
Status fake_stream_create(Stream* stream, unsigned) {
  *stream = reinterpret_cast<Stream>(&engine());
  return check_context();
}
Status fake_stream_destroy(Stream) { return Status::Ok; }
Status fake_event_create(Event* event, unsigned) {
  if (!has_context) return kInvalidContext;
  const std::lock_guard lock(engine().mutex);
  ++engine().counts.live_events;
  *event = reinterpret_cast<Event>(new FakeEvent);
  return Status::Ok;
}
Status fake_event_destroy(Event event) {
  const std::lock_guard lock(engine().mutex);
  --engine().counts.live_events;
  delete reinterpret_cast<FakeEvent*>(event);
  return Status::Ok;
}
Status fake_event_record(Event event, Stream) {
  if (!has_context) return kInvalidContext;
  return engine().record(reinterpret_cast<FakeEvent*>(event));
}
Status fake_event_synchronize(Event event) {
  if (!has_context) return kInvalidContext;
  return engine().synchronize(reinterpret_cast<FakeEvent*>(event));
}
Status fake_event_elapsed_time(float* ms, Event begin, Event end) {
  const std::lock_guard lock(engine().mutex);
  if (engine().sticky != Status::Ok) return engine().sticky;
  const auto* from = reinterpret_cast<FakeEvent*>(begin);
  const auto* to = reinterpret_cast<FakeEvent*>(end);
  if (from->passed < from->recorded || to->passed < to->recorded) return Status::NotReady;
  *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return Status::Ok;
}

// --- Memory ---

// A real driver's plain allocation and freeing, and its freeing of pinned memory, may stop the
// caller until the device is idle.
Status fake_memory_allocate(DevicePointer* pointer, size_t bytes) {
  engine().count_stop_if_busy();
  uint64_t address = 0;
  const Status status = engine().allocate(bytes, &engine().device_blocks, &address);
  *pointer = address;
  return status;
}
Status fake_memory_allocate_async(DevicePointer* pointer, size_t bytes, Stream) {
  uint64_t address = 0;
  const Status status = engine().allocate(bytes, &engine().device_blocks, &address);
  *pointer = address;
  return status;
}
Status fake_memory_free(DevicePointer pointer) {
  if (!engine().has_pools) engine().count_stop_if_busy();
  return engine().free(&engine().device_blocks, pointer);
}
Status fake_host_allocate(void** pointer, size_t bytes, unsigned) {
  uint64_t address = 0;
  const Status status = engine().allocate(bytes, &engine().pinned_blocks, &address);
  *pointer = reinterpret_cast<void*>(address);
  return status;
}
Status fake_host_free(void* pointer) {
  engine().count_stop_if_busy();
  return engine().free(&engine().pinned_blocks, reinterpret_cast<uint64_t>(pointer));
}
Status fake_device_get_memory_pool(MemoryPool* pool, DeviceNumber) {
  *pool = reinterpret_cast<MemoryPool>(&engine());
  return Status::Ok;
}
Status fake_memory_pool_trim(MemoryPool, size_t) { return Status::Ok; }

// --- Queued work ---

namespace {

/// Copies when it runs, if both ranges are there by then.
Status queue_copy(uint64_t to, const fake::BlockMap& to_blocks, uint64_t from,
                  const fake::BlockMap& from_blocks, size_t bytes) {
  if (!has_context) return kInvalidContext;
  return engine().push([=, &to_blocks, &from_blocks] {
    if (!engine().lies_in(to_blocks, to, bytes) || !engine().lies_in(from_blocks, from, bytes)) {
      return Status::IllegalAddress;
    }
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return Status::Ok;
  });
}

}  // namespace

Status fake_copy_to_device(DevicePointer to, const void* from, size_t bytes, Stream) {
  return queue_copy(to, engine().device_blocks, reinterpret_cast<uint64_t>(from),
                    engine().pinned_blocks, bytes);
}
Status fake_copy_to_host(void* to, DevicePointer from, size_t bytes, Stream) {
  return queue_copy(reinterpret_cast<uint64_t>(to), engine().pinned_blocks, from,
                    engine().device_blocks, bytes);
}
Status fake_copy_on_device(DevicePointer to, DevicePointer from, size_t bytes, Stream) {
  return queue_copy(to, engine().device_blocks, from, engine().device_blocks, bytes);
}
Status fake_set_words(DevicePointer to, unsigned pattern, size_t words, Stream) {
  if (!has_context) return kInvalidContext;
  return engine().push([=] {
    if (!engine().lies_in(engine().device_blocks, to, 4 * words)) return Status::IllegalAddress;
    std::fill_n(reinterpret_cast<uint32_t*>(to), words, pattern);
    return Status::Ok;
  });
}
Status fake_launch_kernel(Function function, unsigned grid_x, unsigned, unsigned, unsigned block_x,
                          unsigned, unsigned, unsigned, Stream, void**, void** extra) {
  if (!has_context) return kInvalidContext;
  const bool in_order = extra[0] == reinterpret_cast<void*>(kLaunchBuffer) &&
                        extra[2] == reinterpret_cast<void*>(kLaunchBufferSize) &&
                        extra[4] == reinterpret_cast<void*>(kLaunchEnd);
  if (!in_order || grid_x == 0 || block_x == 0 || block_x > 1024) return Status::InvalidValue;
  const auto* begin = static_cast<const std::byte*>(extra[1]);
  std::vector<std::byte> arguments(begin, begin + *static_cast<size_t*>(extra[3]));
  {
    const std::lock_guard lock(engine().mutex);
    if (engine().launch_rule.applies()) return engine().launch_rule.status;
    ++engine().counts.launches;
  }
  return engine().push([function, grid_x, arguments = std::move(arguments)] {
    fake::Runner runner = nullptr;
    {
      const std::lock_guard lock(engine().mutex);
      if (engine().kernel_rule.applies()) return engine().kernel_rule.status;
      runner = engine().runner;
    }
    if (runner == nullptr) return Status::NotFound;
    return runner(name_of(function), arguments.data(), arguments.size(), grid_x);
  });
}

// --- Code ---

Status fake_module_load_data(Module* module, const void* image) {
  if (!has_context) return kInvalidContext;
  if (image == nullptr) return Status::InvalidValue;
  const std::lock_guard lock(engine().mutex);
  ++engine().counts.modules;
  *module = reinterpret_cast<Module>(&engine());
  return Status::Ok;
}
Status fake_module_unload(Module) {
  const std::lock_guard lock(engine().mutex);
  --engine().counts.modules;
  return Status::Ok;
}
Status fake_module_get_function(Function* function, Module, const char* name) {
  static auto* const kNames = new std::set<std::string>;
  const std::lock_guard lock(engine().mutex);
  *function = reinterpret_cast<Function>(const_cast<char*>(kNames->insert(name).first->c_str()));
  return Status::Ok;
}
Status fake_function_load(Function) { return Status::Ok; }
Status fake_occupancy(int* blocks, Function, int, size_t) {
  *blocks = 2;
  return Status::Ok;
}

}  // namespace millrace::cuda
