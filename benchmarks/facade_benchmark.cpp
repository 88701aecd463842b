// What the recording thread pays for one call of the facade; the device's own work is not part of
// it.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/splat_params.h"
#include "kernels/tensor_params.h"
#include "tensor/launch.h"
#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace millrace {
namespace {

// Empties the queue now and then, outside the timing, so that it neither grows without end nor runs
// dry.
class PacedDevice {
 public:
  PacedDevice() : device_(open_device("cpu").or_raise()) {}
  Device& get() { return *device_; }
  void pace_blocking(benchmark::State& state) {
    constexpr int kBatch = 256;
    if (++queued_ % kBatch != 0) return;
    state.PauseTiming();
    device_->wait_blocking(device_->submit(), {WaitReason::Test, "benchmark"}).or_raise();
    state.ResumeTiming();
  }

 private:
  std::unique_ptr<Device> device_;
  int queued_ = 0;
};

void launch_one_binding(benchmark::State& state) {
  PacedDevice device;
  const Tensor tensor = Tensor::zeros(device.get(), Shape{1}, Dtype::U32, "benchmark");
  for (auto _ : state) {
    launch(device.get(), KernelId::add_u32, 1, {update(tensor)}, AddU32Params{1, 0});
    device.pace_blocking(state);
  }
}
BENCHMARK(launch_one_binding);

// As many bindings as a training step's largest launch. The count on the device is 0, so that the
// kernel does nothing.
void launch_thirteen_bindings(benchmark::State& state) {
  PacedDevice device;
  const Tensor none = Tensor::zeros(device.get(), Shape{1}, Dtype::U32, "benchmark");
  std::vector<Tensor> t;
  for (int i = 0; i < 13; ++i) {
    t.push_back(Tensor::zeros(device.get(), Shape{64, 14, 32}, Dtype::F32, "benchmark"));
  }
  for (auto _ : state) {
    launch(device.get(), KernelId::project_backward, 2048, none,
           {read(t[0]), read(t[1]), update(t[2]), read(t[3]), read(t[4]), read(t[5]), update(t[6]),
            update(t[7]), update(t[8]), update(t[9]), update(t[10]), update(t[11]), update(t[12])},
           BackwardParams{});
    device.pace_blocking(state);
  }
}
BENCHMARK(launch_thirteen_bindings);

// One launch and the five temporary tensors that it needs.
void sort_with_its_temporaries(benchmark::State& state) {
  PacedDevice device;
  const Tensor none = Tensor::zeros(device.get(), Shape{1}, Dtype::U32, "benchmark");
  const Tensor keys = Tensor::zeros(device.get(), Shape{4096}, Dtype::U32, "benchmark");
  const Tensor values = Tensor::zeros(device.get(), Shape{4096}, Dtype::U32, "benchmark");
  for (auto _ : state) {
    benchmark::DoNotOptimize(radix_sort_pairs(keys, values, none));
    device.pace_blocking(state);
  }
}
BENCHMARK(sort_with_its_temporaries);

void small_upload(benchmark::State& state) {
  PacedDevice device;
  const Tensor tensor = Tensor::zeros(device.get(), Shape{26}, Dtype::U32, "benchmark");
  const std::vector<uint32_t> words(26, 7);
  for (auto _ : state) {
    tensor.upload(words);
    device.pace_blocking(state);
  }
}
BENCHMARK(small_upload);

void read_later_of_a_record(benchmark::State& state) {
  PacedDevice device;
  const Tensor tensor = Tensor::zeros(device.get(), Shape{32}, Dtype::U32, "benchmark");
  for (auto _ : state) {
    benchmark::DoNotOptimize(read_later(tensor));
    device.pace_blocking(state);
  }
}
BENCHMARK(read_later_of_a_record);

}  // namespace
}  // namespace millrace

BENCHMARK_MAIN();
