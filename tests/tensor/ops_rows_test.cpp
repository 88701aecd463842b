// Concatenation, gathering and scattering of rows, random numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "tensor/host_array.h"
#include "tensor/ops.h"

namespace millrace::test {
namespace {

TEST(Cat, JoinsPartsOfAnyLayoutAlongAnyAxisOnTheDevice) {
  const auto device = open_for_ops();
  for (Dtype dtype : {Dtype::F32, Dtype::U8, Dtype::U64}) {
    for (int dim = 0; dim < 3; ++dim) {
      for (Layout layout : kLayouts) {
        Shape shapes[3] = {Shape(4, 5, 6), Shape(4, 5, 6), Shape(4, 5, 6)};
        shapes[1][dim] = 1;
        shapes[2][dim] = 0;
        std::vector<HostArray> hosts;
        std::vector<Tensor> parts;
        for (uint32_t i = 0; i < 3; ++i) {
          hosts.push_back(make_array(shapes[i], dtype, 0, 200, 31 + i));
          parts.push_back(to_device(*device, hosts.back(), layout));
        }
        const uint64_t waits = waits_of(*device);
        const Tensor joined = cat(parts, dim);
        EXPECT_EQ(waits_of(*device), waits);
        Shape wanted = shapes[0];
        wanted[dim] += 1;
        ASSERT_EQ(joined.shape(), wanted);
        EXPECT_EQ(read_blocking(joined.slice(dim, 0, shapes[0][dim])).values, hosts[0].values);
        EXPECT_EQ(read_blocking(joined.slice(dim, shapes[0][dim], wanted[dim])).values,
                  hosts[1].values);
      }
    }
  }
}

TEST(Gather, PicksRowsAndGivesZerosOutOfRange) {
  const auto device = open_for_ops();
  for (Dtype dtype : {Dtype::F32, Dtype::U8, Dtype::U64}) {
    for (Layout layout : kLayouts) {
      const HostArray table = make_array(Shape(33, 3, 2), dtype, 0, 200, 41);
      const HostArray index = make_array(Shape(20001), Dtype::U32, 0, 34, 42);
      const Tensor x = to_device(*device, table, layout), picks = to_device(*device, index, layout);
      const uint64_t waits = waits_of(*device);
      const Tensor rows = gather(x, picks);
      EXPECT_EQ(waits_of(*device), waits);
      ASSERT_EQ(rows.shape(), Shape(20001, 3, 2));
      const HostArray found = read_blocking(rows);
      for (uint64_t i = 0; i < found.values.size(); ++i) {
        const auto row = static_cast<uint64_t>(index.values[i / 6]);
        ASSERT_EQ(found.values[i], row < 33 ? table.values[row * 6 + i % 6] : 0.0) << i;
      }
    }
  }
  const Tensor none = Tensor::empty(*device, {0, 3}, Dtype::F32, "test");
  const Tensor index = Tensor::zeros(*device, {2}, Dtype::U32, "test");
  EXPECT_EQ(read_blocking(gather(none, index)).values, std::vector<double>(6, 0.0));
  EXPECT_EQ(gather(none, index.slice(0, 0, 0)).shape(), Shape(0, 3));
}

TEST(Scatter, PutsRowsAndPassesOverIndicesOutOfRange) {
  const auto device = open_for_ops();
  const HostArray table = make_array(Shape(5, 2), Dtype::F32, -9, 9, 51);
  const HostArray rows = make_array(Shape(3, 2), Dtype::F32, -9, 9, 52);
  for (Layout layout : kLayouts) {
    const Tensor x = to_device(*device, table);
    const Tensor index = Tensor::from_host(*device, std::vector<uint32_t>{4, 9, 0}, {3}, "test");
    const Tensor from = to_device(*device, rows, layout);
    const uint64_t waits = waits_of(*device);
    scatter_(x, index, from);
    EXPECT_EQ(waits_of(*device), waits);
    std::vector<double> wanted = table.values;
    for (int i = 0; i < 2; ++i) {
      wanted[8 + i] = rows.values[i];
      wanted[i] = rows.values[4 + i];
    }
    EXPECT_EQ(read_blocking(x).values, wanted);
  }
}

TEST(Random, IsAFunctionOfTheElementAlone) {
  const auto device = open_for_ops();
  const uint64_t waits = waits_of(*device);
  const Tensor uniform = random_uniform(*device, {40003}, 7, 3, RandomPurpose::TensorOp, -1, 3);
  const Tensor normal = random_normal(*device, {40003}, 7, 3, RandomPurpose::TensorOp, 5, 2);
  EXPECT_EQ(waits_of(*device), waits);
  const HostArray u = read_blocking(uniform), z = read_blocking(normal);
  // Vulkan promises sin and cos within 2^-11; they are multiplied by 2 and by at most 5.9.
  const double tolerance = device->info().threads > 0 ? 1e-5 : 5.9 * 2 / 2048;
  for (uint32_t i = 0; i < 40003; ++i) {
    const auto words = philox(7, 3, RandomPurpose::TensorOp, i / 4);
    ASSERT_FLOAT_EQ(static_cast<float>(u.values[i]), -1 + 4 * uniform_open(words[i % 4]));
    const auto pair = normal_pair(words[i % 4 / 2 * 2], words[i % 4 / 2 * 2 + 1]);
    ASSERT_NEAR(static_cast<float>(z.values[i]), 5 + 2 * pair[i % 2], tolerance);
  }
  // A shorter tensor holds the same first elements.
  const HostArray head =
      read_blocking(random_normal(*device, {5}, 7, 3, RandomPurpose::TensorOp, 5, 2));
  EXPECT_EQ(head.values, std::vector<double>(z.values.begin(), z.values.begin() + 5));
}

TEST(Random, HasTheMomentsAskedFor) {
  const auto device = open_checked("cpu:2");
  const HostArray u =
      read_blocking(random_uniform(*device, {100000}, 1, 0, RandomPurpose::TensorOp));
  const HostArray z =
      read_blocking(random_normal(*device, {100000}, 1, 0, RandomPurpose::TensorOp));
  double mean_u = 0, mean_z = 0, square_z = 0;
  for (int i = 0; i < 100000; ++i) {
    ASSERT_GT(u.values[i], 0);
    ASSERT_LT(u.values[i], 1);
    mean_u += u.values[i] / 1e5;
    mean_z += z.values[i] / 1e5;
    square_z += z.values[i] * z.values[i] / 1e5;
  }
  // Five standard errors of 100,000 draws.
  EXPECT_NEAR(mean_u, 0.5, 5 * 0.2887 / 316.2);
  EXPECT_NEAR(mean_z, 0, 5 / 316.2);
  EXPECT_NEAR(square_z, 1, 5 * 1.4142 / 316.2);
}

TEST(IterateAffine, ComesToTheClosedForm) {
  const auto device = open_checked("cpu:2");
  constexpr int64_t kElements = 5003;
  for (const uint32_t rounds : {0u, 1u, 100u}) {
    const HostArray x = read_blocking(iterate_affine(*device, kElements, rounds, 0.96875f, 0.5f));
    ASSERT_EQ(x.values.size(), static_cast<size_t>(kElements));
    const double left = std::pow(0.96875, rounds), fixed_point = 0.5 / (1 - 0.96875);
    for (int64_t i = 0; i < kElements; ++i) {
      const double first = static_cast<double>(i) / kElements;
      ASSERT_NEAR(x.values[static_cast<size_t>(i)], fixed_point + (first - fixed_point) * left,
                  1e-5)
          << i << " after " << rounds;
    }
  }
}

}  // namespace
}  // namespace millrace::test
