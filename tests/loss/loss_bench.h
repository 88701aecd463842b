// A loss on a device: its tensors, and what tests put in and read back.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/philox.h"
#include "kernels/splat_params.h"
#include "loss/photometric.h"
#include "simulated/substitute.h"
#include "tensor/launch.h"

namespace millrace::test {

/// The `i`-th random number of set `set`, in (0,1).
inline float random_at(uint32_t set, uint32_t i) {
  return uniform_open(philox(29, set, RandomPurpose::Synthetic, i)[0]);
}

/// What a test decides, with pictures that are smooth with noise on them.
struct LossCase {
  LossCase(uint32_t w, uint32_t h) : width(w), height(h) {
    const uint32_t n = w * h;
    for (uint32_t i = 0; i < 3 * n; ++i) {
      const double wave = 0.5 + 0.35 * std::sin(0.37 * (i % w) + 0.21 * (i / w) + i / n);
      target.push_back(static_cast<uint8_t>(255 * (0.75 * wave + 0.2 * random_at(1, i))));
      image.push_back(static_cast<float>(wave + 0.3 * random_at(2, i) - 0.1));
      raw.push_back(static_cast<float>(0.8 * wave + 0.3 * random_at(3, i)));
    }
    step.transaction = 4;
    step.ssim_weight = 0.3f;
    totals.base = totals.weight = static_cast<float>(n);
  }
  size_t n() const { return size_t{width} * height; }

  uint32_t width, height;
  std::vector<float> image, raw;  // [3,H,W]
  std::vector<uint8_t> target;    // [3,H,W]
  std::vector<float> weight;      // [H,W], or empty
  std::vector<uint8_t> mask, structure;
  StepBlock step = {};
  LossTotals totals = {};
  bool with_raw = false, with_error = false, accepted = true;
};

struct LossOutput {
  StepMetrics metrics;
  std::vector<float> d_image, d_raw, error;
};

/// The words of a record.
template <class Record>
std::vector<uint32_t> words_of(const Record& record) {
  std::vector<uint32_t> words(sizeof(record) / 4);
  std::memcpy(words.data(), &record, sizeof(record));
  return words;
}
template <class Record>
Tensor upload_record(Device& device, const Record& record) {
  return Tensor::from_host(device, words_of(record), Shape{sizeof(record) / 4}, "test");
}
inline std::vector<float> floats_of(const Ticket& ticket, size_t n) {
  std::vector<float> values(n);
  std::memcpy(values.data(), ticket.bytes().data(), n * sizeof(float));
  return values;
}

/// A device of the kind that is tested, and a control record of a step that was accepted or not.
struct LossBench {
  explicit LossBench(const StepBlock& block, bool accepted)
      : device(make_checked(open_device(simulated::test_device("cpu:2")).or_raise())),
        step(upload_record(*device, block)) {
    Control record = {};
    record.gate.accepted = accepted ? block.transaction : kNoTransaction;
    control = upload_record(*device, record);
  }
  Tensor full(uint64_t n, float value) {
    return Tensor::full(*device, Shape{n}, Dtype::F32, value, "test");
  }
  void wait_blocking() {
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.loss"}).or_raise();
  }

  std::unique_ptr<Device> device;
  Tensor step, control;
};

/// The loss of a case; what a refused step leaves alone is 7.
inline LossOutput device_loss(const LossCase& c) {
  LossBench bench(c.step, c.accepted);
  Device& device = *bench.device;
  const uint64_t n = c.n(), n_bands = (c.height + kLossBand - 1) / kLossBand;
  const auto floats = [&](const std::vector<float>& values) {
    return Tensor::from_host(device, values, Shape{values.size()}, "test");
  };
  const auto bytes = [&](const std::vector<uint8_t>& values) {
    return values.empty() ? Tensor() : Tensor::from_host(device, values, Shape{n}, "test");
  };
  const Tensor image = floats(c.image), raw = floats(c.raw);
  const Tensor target = Tensor::from_host(device, c.target, Shape{3 * n}, "test");
  const Tensor weight = c.weight.empty() ? Tensor() : floats(c.weight);
  const Tensor totals = upload_record(device, c.totals);
  const Tensor mask = bytes(c.mask), structure = bytes(c.structure);
  const Tensor maps = bench.full(12 * n, 7), partials = bench.full(3 * n_bands * kLossSums, 7);
  const Tensor d_image = bench.full(3 * n, 7), d_raw = bench.full(3 * n, 7);
  const Tensor error = bench.full(n, 7);
  PhotometricLoss loss = {bench.step, bench.control, image,   target,  maps,
                          partials,   d_image,       c.width, c.height};
  if (weight.defined()) {
    loss.weight = &weight;
    loss.totals = &totals;
  }
  if (c.with_raw) {
    loss.raw = &raw;
    loss.d_raw = &d_raw;
  }
  if (c.with_error) loss.error_map = &error;
  if (mask.defined()) loss.mask = &mask;
  if (structure.defined()) loss.structure = &structure;
  photometric_loss(loss);
  const Ticket tickets[] = {read_later(bench.control), read_later(d_image), read_later(d_raw),
                            read_later(error)};
  bench.wait_blocking();
  return {tickets[0].as<Control>().metrics, floats_of(tickets[1], 3 * n),
          floats_of(tickets[2], 3 * n), floats_of(tickets[3], n)};
}

}  // namespace millrace::test
