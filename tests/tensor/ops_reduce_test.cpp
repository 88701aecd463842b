// Reductions: value against float64, and the same bits for any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tensor/host_array.h"
#include "tensor/ops.h"

namespace millrace::test {
namespace {

struct Row {
  const char* name;
  Tensor (*all)(const Tensor& x, Site site);
  Tensor (*along)(const Tensor& x, int dim, Site site);
  double (*reference)(const std::vector<double>& x);
};

double sum_of(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value;
  return sum;
}

const Row kRows[] = {
    {"sum", reduce_sum, reduce_sum, sum_of},
    {"mean", reduce_mean, reduce_mean,
     [](const std::vector<double>& x) { return sum_of(x) / static_cast<double>(x.size()); }},
    {"min", reduce_min, reduce_min,
     [](const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); }},
    {"max", reduce_max, reduce_max,
     [](const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }},
};

// One past a chunk (1024), one past a second level (1024^2 is left to the large test), and odd
// ones.
const Shape kShapes[] = {Shape(1),       Shape(15),      Shape(1025),      Shape(40001),
                         Shape(3, 1025), Shape(2049, 3), Shape(5, 1030, 7)};

TEST(Reduce, OverAllEqualsTheReferenceAndNeverWaits) {
  const auto device = open_for_ops();
  for (const Row& row : kRows) {
    for (const Shape& shape : kShapes) {
      for (Layout layout : kLayouts) {
        SCOPED_TRACE(std::string(row.name) + " " + shape.str() + " " + to_string(layout));
        const HostArray host = make_array(shape, Dtype::F32, -1, 3, 21);
        const Tensor x = to_device(*device, host, layout);
        const uint64_t waits = waits_of(*device);
        const Tensor result = row.all(x, Site::current());
        EXPECT_EQ(waits_of(*device), waits);
        ASSERT_EQ(result.shape(), Shape(1));
        const double wanted = row.reference(host.values);
        EXPECT_NEAR(read_blocking(result).values[0], wanted, 1e-5 * std::fabs(wanted));
      }
    }
  }
}

TEST(Reduce, AlongADimensionEqualsTheReference) {
  const auto device = open_for_ops();
  for (const Row& row : kRows) {
    for (const Shape& shape : kShapes) {
      for (int dim = 0; dim < shape.rank(); ++dim) {
        SCOPED_TRACE(std::string(row.name) + " " + shape.str() + " along " + std::to_string(dim));
        const HostArray host = make_array(shape, Dtype::F32, -1, 3, 22);
        const HostArray found = read_blocking(
            row.along(to_device(*device, host, Layout::Transposed), dim, Site::current()));
        uint64_t inner = 1, outer = 1;
        for (int i = 0; i < shape.rank(); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : shape[i];
        ASSERT_EQ(found.values.size(), outer * inner);
        for (uint64_t i = 0; i < outer * inner; ++i) {
          std::vector<double> line;
          for (int64_t k = 0; k < shape[dim]; ++k) {
            line.push_back(host.values[(i / inner * shape[dim] + k) * inner + i % inner]);
          }
          const double wanted = row.reference(line);
          ASSERT_NEAR(found.values[i], wanted, 1e-5 * std::max(1.0, std::fabs(wanted)));
        }
      }
    }
  }
}

TEST(Reduce, GivesTheSameBitsForAnyNumberOfThreads) {
  // Three levels of the tree, and values whose sum depends on the order.
  const HostArray host = make_array(Shape(1024 * 1024 + 77), Dtype::F32, -1000, 1000, 23);
  std::vector<std::vector<double>> results;
  for (const char* id : {"cpu:1", "cpu:2", "cpu:2"}) {
    const auto device = open_checked(id);
    const Tensor x = to_device(*device, host);
    const Tensor rows = x.slice(0, 0, 1024 * 1024).reshape({1024, -1});
    results.push_back(
        read_blocking(
            cat({reduce_sum(x), reduce_mean(x), reduce_sum(rows, 0), reduce_sum(rows, 1)}, 0))
            .values);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Reduce, SumsIntegersAndEmptyTensors) {
  const auto device = open_checked("cpu:2");
  const HostArray host = make_array(Shape(5000), Dtype::U32, 0, 9, 24);
  EXPECT_EQ(read_blocking(reduce_sum(to_device(*device, host))).values[0], sum_of(host.values));
  const Tensor none = Tensor::empty(*device, {0, 3}, Dtype::F32, "test");
  EXPECT_EQ(read_blocking(reduce_sum(none)).values, (std::vector<double>{0}));
  EXPECT_EQ(read_blocking(reduce_sum(none, 0)).values, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(reduce_sum(none, 1).shape(), Shape(0));
}

}  // namespace
}  // namespace millrace::test
