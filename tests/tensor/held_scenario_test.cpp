// Scenarios of the facade in which trainers wait and Millrace does not, on devices that stand
// still: cat of any inputs (B4), slots (B5), uploads (B1, B2), snapshots (B6, B7), a ring of losses
// (B9). The numbers are those of BACKENDS.md, Appendix B.
#include <gtest/gtest.h>

#include "simulated/simulated_device.h"
#include "tensor/host_array.h"
#include "tensor/ops.h"

namespace millrace::test {
namespace {

using Values = std::vector<double>;

struct HeldDevice {
  const char* name;
  const char* id;
};

/// The facade on a device that does nothing by itself.
class HeldTensors : public ::testing::TestWithParam<HeldDevice> {
 protected:
  void TearDown() override {
    run_everything_blocking();
    if (!on_simulated()) return;
    EXPECT_EQ(simulated::newest_control().problems(), std::vector<std::string>());
  }
  bool on_simulated() const { return device->info().id == "simulated"; }
  /// Lets everything queued run; the one place where a scenario waits.
  void run_everything_blocking() {
    if (on_simulated()) simulated::newest_control().run_all();
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.release"}).or_raise();
  }
  /// 0, 1, 2, ... + `first`, made by queued kernels, so that it is not there yet.
  Tensor produced(const Shape& shape, double first, Layout layout = Layout::Plain) {
    HostArray array{shape, Dtype::F32, Values(shape.numel())};
    for (size_t i = 0; i < array.values.size(); ++i) array.values[i] = static_cast<double>(i);
    const Tensor x = to_device(*device, array, layout);
    add_(x, first);
    return x;
  }
  /// What produced() holds.
  static HostArray value_of(const Shape& shape, double first) {
    HostArray array{shape, Dtype::F32, Values(shape.numel())};
    for (size_t i = 0; i < array.values.size(); ++i) {
      array.values[i] = static_cast<double>(i) + first;
    }
    return array;
  }
  Values after_all(const Ticket& ticket) {
    if (!ticket.ready()) run_everything_blocking();
    const auto* first = reinterpret_cast<const float*>(ticket.bytes().data());
    return {first, first + ticket.bytes().size() / sizeof(float)};
  }

  std::unique_ptr<Device> device = open_checked(GetParam().id);
};

constexpr HeldDevice kHeldDevices[] = {{"CpuLazy", "cpu:2,lazy"},
                                       {"SimulatedStalled", "simulated:stall,host,ranges"},
                                       {"SimulatedPoisoned", "simulated:stall,checks"}};
#define MILLRACE_ON_HELD_DEVICES(suite)                                  \
  INSTANTIATE_TEST_SUITE_P(On, suite, ::testing::ValuesIn(kHeldDevices), \
                           [](const auto& info) { return std::string(info.param.name); })

using Cat = HeldTensors;
using SlotTensors = HeldTensors;
using UploadedTensors = HeldTensors;
using LateReads = HeldTensors;
using LossRing = HeldTensors;
MILLRACE_ON_HELD_DEVICES(Cat);
MILLRACE_ON_HELD_DEVICES(SlotTensors);
MILLRACE_ON_HELD_DEVICES(UploadedTensors);
MILLRACE_ON_HELD_DEVICES(LateReads);
MILLRACE_ON_HELD_DEVICES(LossRing);

/// The reference of cat: `parts` along `dim`, on the host.
Values concatenated(const std::vector<HostArray>& parts, int dim) {
  Shape shape = parts[0].shape;
  shape[dim] = 0;
  for (const HostArray& part : parts) shape[dim] += part.shape[dim];
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < dim; ++i) outer *= shape[i];
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  Values out;
  for (int64_t o = 0; o < outer; ++o) {
    for (const HostArray& part : parts) {
      const auto begin = part.values.begin() + o * part.shape[dim] * inner;
      out.insert(out.end(), begin, begin + part.shape[dim] * inner);
    }
  }
  return out;
}

// --- B4 ---

TEST_P(Cat, OfQueuedProducersAlongAnyDimensionAndOfAnyLayoutNeverWaits) {  // B4
  for (int dim = 0; dim < 3; ++dim) {
    for (const Layout layout : kLayouts) {
      Shape first(2, 3, 4), second(2, 3, 4), third(2, 3, 4);
      second[dim] = 5;
      third[dim] = 1;
      const uint64_t waits = waits_of(*device);
      const Tensor a = produced(first, 100, layout), b = produced(second, 200),
                   c = produced(third, 300, layout);
      const Tensor joined = cat({a, b, c}, dim);
      const Ticket ticket = read_later(joined);
      EXPECT_EQ(waits_of(*device), waits) << "cat along " << dim << ", " << to_string(layout);
      EXPECT_FALSE(ticket.ready()) << "the producers were to stand still";
      EXPECT_EQ(
          after_all(ticket),
          concatenated({value_of(first, 100), value_of(second, 200), value_of(third, 300)}, dim))
          << "cat along " << dim << ", " << to_string(layout);
    }
  }
}

TEST_P(Cat, OfManyInputsNeverWaits) {  // issue 3905: cat of k inputs
  std::vector<Tensor> parts;
  std::vector<HostArray> wanted;
  for (int i = 0; i < 40; ++i) {
    const Shape shape(1 + i % 3, 5);
    parts.push_back(produced(shape, 10.0 * i));
    wanted.push_back(value_of(shape, 10.0 * i));
  }
  const Tensor joined = cat(parts, 0);
  parts.clear();  // the inputs are freed while their copies are queued
  const Ticket ticket = read_later(joined);
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(after_all(ticket), concatenated(wanted, 0));
}

TEST_P(Cat, ThatGrowsItsOwnInputStepAfterStepNeverWaits) {  // B4: capacity-growing inputs
  Tensor grown = produced(Shape(1, 4), 0);
  std::vector<HostArray> wanted = {value_of(Shape(1, 4), 0)};
  for (int i = 1; i < 12; ++i) {
    const Shape rows(i, 4);
    grown = cat({grown, produced(rows, 100.0 * i)}, 0);  // the old storage goes while in use
    wanted.push_back(value_of(rows, 100.0 * i));
  }
  const Ticket ticket = read_later(grown);
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(device->poll(), 0u) << "the device was to stand still";
  EXPECT_EQ(after_all(ticket), concatenated(wanted, 0));
}

TEST_P(Cat, OfATensorThatIsOverwrittenNextHasItsOldValue) {
  const Tensor a = produced(Shape(2, 3), 1), b = produced(Shape(2, 2), 50);
  const Tensor joined = cat({a, b, a}, 1);
  a.fill_(-1);
  b.upload(std::vector<float>{-2, -2, -2, -2});
  const Ticket ticket = read_later(joined);
  EXPECT_EQ(waits_of(*device), 0u);
  const HostArray old_a = value_of(Shape(2, 3), 1), old_b = value_of(Shape(2, 2), 50);
  EXPECT_EQ(after_all(ticket), concatenated({old_a, old_b, old_a}, 1));
}

// --- B5 ---

TEST_P(SlotTensors, OfOneStorageAreReadAndWrittenWhileTheOtherIsInUse) {  // B5
  const Tensor both =
      Tensor::from_host(*device, std::vector<float>{1, 1, 2, 2}, Shape(2, 2), "slots");
  const Tensor a = both.select(0, 0), b = both.select(0, 1);
  mul_(a, 3.0);
  const Ticket seen = read_later(b);
  ASSERT_TRUE(seen.ready()) << "slot b waited for the kernel on slot a";
  EXPECT_EQ(after_all(seen), Values(2, 2.0));
  b.upload(std::vector<float>{7, 8});
  const Ticket again = read_later(b);
  ASSERT_TRUE(again.ready());
  EXPECT_EQ(after_all(again), (Values{7, 8}));
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(after_all(read_later(a)), (Values{3, 3}));
}

TEST_P(SlotTensors, OfStorageOfTheirOwnAreReadWhileTheOtherIsInUse) {  // B5
  const Tensor a = Tensor::from_host(*device, std::vector<float>{1, 1}, Shape(2), "slots");
  const Tensor b = Tensor::from_host(*device, std::vector<float>{2, 2}, Shape(2), "slots");
  mul_(a, 3.0);
  const Ticket seen = read_later(b);
  ASSERT_TRUE(seen.ready()) << "slot b waited for the kernel on slot a";
  EXPECT_EQ(after_all(seen), Values(2, 2.0));
  EXPECT_EQ(waits_of(*device), 0u);
}

TEST_P(SlotTensors, AccumulateInTurnWithoutMixing) {
  // The write pattern of per-view corrections: a gradient that adds up and a counter, one per slot.
  constexpr int kViews = 3, kSteps = 12;
  const Tensor gradients = Tensor::zeros(*device, Shape(kViews, 2), Dtype::F32, "slots");
  const Tensor counters = Tensor::zeros(*device, Shape(kViews), Dtype::F32, "slots");
  for (int step = 0; step < kSteps; ++step) {
    const int view = (step * 2) % kViews;
    add_(gradients.select(0, view), 1.0 + step);
    add_(counters.slice(0, view, view + 1), 1.0);
  }
  const Ticket sums = read_later(gradients), counts = read_later(counters);
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(after_all(sums), (Values{22, 22, 30, 30, 26, 26}));
  EXPECT_EQ(after_all(counts), (Values{4, 4, 4}));
}

// --- B1, B2 ---

TEST_P(UploadedTensors, SmallOnesOntoRecycledBlocksNeverWait) {  // B1, issue 3905
  std::vector<Ticket> sums;
  const uint64_t reserved = device->memory().reserved_bytes;
  for (int step = 0; step < 20; ++step) {
    const std::vector<float> crop(16, static_cast<float>(step));
    const Tensor box = Tensor::from_host(*device, crop, Shape(4, 4), "crop box");
    sums.push_back(read_later(reduce_sum(box)));
    // The box is freed here, while its sum is queued.
  }
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_LE(device->memory().reserved_bytes, reserved + 4 * 256) << "nothing was recycled";
  for (int step = 0; step < 20; ++step) EXPECT_EQ(after_all(sums[step]), Values{16.0 * step});
}

TEST_P(UploadedTensors, UsedBetweenUploadsShowEachValueInOrder) {  // B2
  const Tensor x = produced(Shape(3), 1);
  std::vector<Ticket> seen = {read_later(mul(x, 2.0))};
  for (int i = 1; i <= 3; ++i) {
    x.upload(std::vector<float>(3, 10.0f * static_cast<float>(i)));
    seen.push_back(read_later(mul(x, 2.0)));
  }
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(after_all(seen[0]), (Values{2, 4, 6}));
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(after_all(seen[i]), Values(3, 20.0 * i));
}

TEST_P(UploadedTensors, InStridedViewsNeverWait) {
  const Tensor x = produced(Shape(3, 2), 1);
  x.select(1, 1).upload(std::vector<float>{-1, -2, -3});
  const Ticket seen = read_later(x);
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(after_all(seen), (Values{1, -1, 3, -2, 5, -3}));
}

// --- B6, B7 ---

TEST_P(LateReads, OfATensorThatQueuedOpsOnlyReadAreReadyAtOnce) {  // B6
  const Tensor x = produced(Shape(4), 1);
  run_everything_blocking();
  const uint64_t waits = waits_of(*device);
  const Tensor y = mul(x, 2.0), z = reduce_sum(x), w = cat({x, x}, 0);
  const Ticket ticket = read_later(x);
  ASSERT_TRUE(ticket.ready()) << "a read waited for other readers";
  EXPECT_EQ(after_all(ticket), (Values{1, 2, 3, 4}));
  EXPECT_EQ(waits_of(*device), waits);
}

TEST_P(LateReads, KeepTheirValueWhenTheTensorIsOverwrittenAndFreed) {  // B7
  Ticket plain, strided;
  {
    const Tensor x = produced(Shape(2, 3), 1);
    plain = read_later(x);
    strided = read_later(x.transpose(0, 1));
    x.fill_(-1);
  }
  const Tensor next = Tensor::full(*device, Shape(2, 3), Dtype::F32, 9, "next");
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(after_all(plain), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(after_all(strided), (Values{1, 4, 2, 5, 3, 6}));
}

// --- B9 ---

TEST_P(LossRing, DrainedLateDropsNoLoss) {  // B9
  constexpr int kSlots = 5, kSteps = 10 * kSlots;
  const Tensor ring = Tensor::zeros(*device, Shape(kSlots), Dtype::F32, "losses");
  const Tensor loss = Tensor::zeros(*device, Shape(1), Dtype::F32, "losses");
  std::vector<Ticket> tickets;
  for (int step = 0; step < kSteps; ++step) {
    add_(loss, 1.0);
    const Tensor slot = ring.slice(0, step % kSlots, step % kSlots + 1);
    slot.copy_(loss);
    tickets.push_back(read_later(slot));
  }
  EXPECT_EQ(waits_of(*device), 0u);
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(after_all(tickets[step]), Values{step + 1.0});
  }
}

// --- I3 ---

TEST_P(LateReads, OfEveryKindOfOpComeWithoutAWait) {  // I3
  const Tensor x = produced(Shape(64), 1);
  const Tensor keys = Tensor::from_host(*device, std::vector<uint32_t>{3, 1, 2}, Shape(3), "keys");
  add_(keys, 1.0);
  const Scan scan = exclusive_scan(keys);
  const SortedPairs sorted = radix_sort_pairs(keys, scan.offsets);
  const Tensor picked = gather(x, sorted.keys);
  scatter_(x, sorted.values, picked);
  const Tensor chosen = where(lt(x, add(x, 1.0)), x, neg(x));
  const Ticket ticket = read_later(reduce_sum(clamp(chosen, 0, 1e6)));
  EXPECT_EQ(waits_of(*device), 0u);
  EXPECT_EQ(device->poll(), 0u) << "the device was to stand still";
  // Keys 4, 2, 3 have offsets 0, 4, 6. In rising order they pick 3, 4, 5 and put them over the 5, 7
  // and 1 of 1 + ... + 64.
  EXPECT_EQ(after_all(ticket), Values{2080 - 13 + 12});
}

}  // namespace
}  // namespace millrace::test
