// Launching kernels by hand: marks, the device-side count, errors.
#include "tensor/launch.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "kernels/tensor_params.h"
#include "tensor/host_array.h"

namespace millrace::test {
namespace {

RandomParams uniform_params(uint64_t n) {
  return {n,
          1,
          2,
          static_cast<uint32_t>(RandomPurpose::TensorOp),
          static_cast<uint32_t>(RandomKind::Uniform),
          0,
          1,
          0};
}

TEST(Launch, RunsAKernelOfTheTable) {
  const auto device = open_checked("cpu:2");
  const Tensor out = Tensor::zeros(*device, {10}, Dtype::F32, "test");
  launch(*device, KernelId::random_fill, 10, {write(out)}, uniform_params(10));
  for (double value : read_blocking(out).values) EXPECT_GT(value, 0);
}

TEST(Launch, QueuesNothingForNoThreads) {
  const auto device = open_checked("cpu:2");
  const Tensor none = Tensor::empty(*device, {0}, Dtype::F32, "test");
  const uint64_t before = device->queue().launches;
  launch(*device, KernelId::random_fill, 0, {write(none)}, uniform_params(0));
  EXPECT_EQ(device->queue().launches, before);
}

TEST(Launch, DoesNotRunWhenTheCountOnTheDeviceIsZero) {
  const auto device = open_checked("cpu:2");
  const Tensor out = Tensor::zeros(*device, {10}, Dtype::F32, "test");
  const Tensor count = Tensor::zeros(*device, {1}, Dtype::U32, "test");
  launch(*device, KernelId::random_fill, 10, count, {write(out)}, uniform_params(10));
  EXPECT_EQ(read_blocking(out).values, std::vector<double>(10, 0.0));
}

TEST(Launch, MarksRefuseWhatAKernelCannotTake) {
  const auto device = open_checked("cpu:2");
  const Tensor x = Tensor::zeros(*device, {2, 3}, Dtype::F32, "test");
  EXPECT_NE(error_of([&] { read(x.transpose(0, 1)); }).find("read: the tensor is not contiguous"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              update(x.unsqueeze(0).expand({2, 2, 3}));
            }).find("expanded"),
            std::string::npos);
  EXPECT_NE(error_of([&] { write(Tensor()); }).find("undefined; called at launch_test.cpp:"),
            std::string::npos);
}

TEST(Launch, FailureNamesTheKernelAndTheCallSite) {
  const auto device = open_checked("cpu:2");
  const Tensor x = Tensor::zeros(*device, {10}, Dtype::F32, "test");
  const std::string message = error_of([&] {
    launch(*device, KernelId::random_fill, 10, {write(x), read(x)}, uniform_params(10));
  });
  EXPECT_NE(message.find("random_fill"), std::string::npos) << message;
  EXPECT_NE(message.find("launch_test.cpp:"), std::string::npos) << message;
}

}  // namespace
}  // namespace millrace::test
