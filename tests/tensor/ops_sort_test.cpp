// Prefix sums and sorting, with and without a count that only the device knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tensor/host_array.h"
#include "tensor/ops.h"

namespace millrace::test {
namespace {

Tensor count_tensor(Device& device, uint32_t count) {
  return Tensor::full(device, {1}, Dtype::U32, count, "test");
}

// 4096 is a block of the scan, 16384 one of the sort.
const int64_t kCounts[] = {1, 2, 255, 4096, 4097, 16384, 16385, 50001};

TEST(Scan, IsTheExclusivePrefixSumWithItsTotal) {
  const auto device = open_for_ops();
  for (int64_t n : kCounts) {
    for (Layout layout : kLayouts) {
      SCOPED_TRACE(std::to_string(n) + " " + to_string(layout));
      const HostArray host = make_array(Shape(n), Dtype::U32, 0, 4e9, 61);
      const Tensor x = to_device(*device, host, layout);
      const uint64_t waits = waits_of(*device);
      const Scan scan = exclusive_scan(x);
      EXPECT_EQ(waits_of(*device), waits);
      const HostArray offsets = read_blocking(scan.offsets);
      uint64_t running = 0;
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(offsets.values[i], static_cast<uint32_t>(running));
        running += static_cast<uint64_t>(host.values[i]);
      }
      EXPECT_EQ(read_blocking(scan.total).values[0], static_cast<double>(running));
    }
  }
  const Scan empty = exclusive_scan(Tensor::empty(*device, {0}, Dtype::U32, "test"));
  EXPECT_EQ(read_blocking(empty.total).values[0], 0);
}

TEST(Scan, StopsAtTheCountOnTheDevice) {
  const auto device = open_for_ops();
  const HostArray host = make_array(Shape(9000), Dtype::U32, 0, 9, 62);
  const Tensor x = to_device(*device, host);
  for (uint32_t count : {0u, 1u, 4096u, 5000u, 9000u, 1000000u}) {
    const Scan scan = exclusive_scan(x, count_tensor(*device, count));
    const HostArray offsets = read_blocking(scan.offsets);
    const uint64_t n = std::min<uint64_t>(count, 9000);
    double running = 0;
    for (uint64_t i = 0; i < n; ++i) {
      ASSERT_EQ(offsets.values[i], running);
      running += host.values[i];
    }
    EXPECT_EQ(read_blocking(scan.total).values[0], running) << count;
  }
}

struct Bits {
  Dtype dtype;
  int begin, end;
  double high;  // of the keys: few values make many ties
};

const Bits kBits[] = {
    {Dtype::U32, 0, 32, 4294967295.0}, {Dtype::U32, 0, 32, 20},  {Dtype::U32, 0, 11, 4095},
    {Dtype::U32, 3, 15, 65535},        {Dtype::U32, 7, 7, 999},  {Dtype::U64, 0, 64, 9e15},
    {Dtype::U64, 20, 53, 9e15},        {Dtype::U64, 0, 64, 300}, {Dtype::U64, 0, 48, 2e14},
};

/// The pairs of the first n elements, sorted by the bits with std::stable_sort.
std::vector<uint32_t> sorted_order(const HostArray& keys, uint64_t n, const Bits& bits) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  const int width = bits.end - bits.begin;
  const auto digit = [&](uint32_t i) {
    const auto key = static_cast<uint64_t>(keys.values[i]) >> bits.begin;
    return width == 64 ? key : key & ((uint64_t{1} << width) - 1);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return digit(a) < digit(b); });
  return order;
}

void expect_sorted(const SortedPairs& sorted, const HostArray& keys, uint64_t n, const Bits& bits) {
  const std::vector<uint32_t> order = sorted_order(keys, n, bits);
  const HostArray found_keys = read_blocking(sorted.keys), values = read_blocking(sorted.values);
  for (uint64_t i = 0; i < n; ++i) {
    ASSERT_EQ(values.values[i], order[i] + 1000.0) << i;
    ASSERT_EQ(found_keys.values[i], keys.values[order[i]]) << i;
  }
}

Tensor numbered(Device& device, int64_t n) {
  std::vector<uint32_t> values(n);
  std::iota(values.begin(), values.end(), 1000u);
  return Tensor::from_host(device, values, {n}, "test");
}

TEST(RadixSort, EqualsStableSortOnTheBitsAskedFor) {
  const auto device = open_for_ops();
  for (const Bits& bits : kBits) {
    for (int64_t n : kCounts) {
      SCOPED_TRACE(std::to_string(n) + " " + to_string(bits.dtype) + " " +
                   std::to_string(bits.begin) + ".." + std::to_string(bits.end));
      const HostArray keys = make_array(Shape(n), bits.dtype, 0, bits.high, 71);
      const Tensor x = to_device(*device, keys, n % 2 ? Layout::Strided : Layout::Plain);
      const Tensor values = numbered(*device, n);
      const uint64_t waits = waits_of(*device);
      const SortedPairs sorted = radix_sort_pairs(x, values, {}, bits.begin, bits.end);
      EXPECT_EQ(waits_of(*device), waits);
      expect_sorted(sorted, keys, n, bits);
      EXPECT_EQ(read_blocking(x).values, keys.values) << "the input was written";
    }
  }
}

TEST(RadixSort, StopsAtTheCountOnTheDevice) {
  const auto device = open_for_ops();
  const Bits bits{Dtype::U64, 0, 40, 1e12};
  const HostArray keys = make_array(Shape(40000), bits.dtype, 0, bits.high, 72);
  const Tensor x = to_device(*device, keys), values = numbered(*device, 40000);
  for (uint32_t count : {0u, 1u, 16385u, 40000u, 4000000000u}) {
    SCOPED_TRACE(count);
    const SortedPairs sorted =
        radix_sort_pairs(x, values, count_tensor(*device, count), bits.begin, bits.end);
    expect_sorted(sorted, keys, std::min<uint64_t>(count, 40000), bits);
  }
}

TEST(RadixSort, TakesNoPairs) {
  const auto device = open_checked("cpu:2");
  const Tensor none = Tensor::empty(*device, {0}, Dtype::U32, "test");
  EXPECT_EQ(radix_sort_pairs(none, none).keys.numel(), 0u);
}

}  // namespace
}  // namespace millrace::test
