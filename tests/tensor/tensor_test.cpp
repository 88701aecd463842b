// Tensor: storage, views, transfers and their errors.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tensor/host_array.h"
#include "tensor/ops.h"

namespace millrace::test {
namespace {

using Values = std::vector<double>;

/// 0, 1, 2, ... of the given shape.
Tensor counting(Device& device, const Shape& shape) {
  std::vector<float> values(shape.numel());
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from_host(device, values, shape, "test");
}

uint64_t in_use(Device& device) { return device.memory().in_use_bytes; }

TEST(Shape, PrintsComparesAndCounts) {
  const uint64_t n = 5;
  EXPECT_EQ(Shape(n, 3).str(), "[5,3]");
  EXPECT_EQ(Shape().str(), "[]");
  EXPECT_EQ(Shape().numel(), 1u);
  EXPECT_EQ(Shape(5, 0, 3).numel(), 0u);
  EXPECT_EQ(Shape(2, 3), Shape(2u, int64_t{3}));
  EXPECT_FALSE(Shape(2, 3) == Shape(2, 3, 1));
}

TEST(Tensor, SharesStorageAndReleasesItWithTheLastView) {
  const auto device = open_checked("cpu:2");
  const uint64_t before = in_use(*device);
  Tensor view;
  {
    Tensor a = Tensor::zeros(*device, {1000}, Dtype::F32, "test");
    view = a.slice(0, 10, 20);
    const Tensor copy = a;
    copy.fill_(3);
  }
  EXPECT_GE(in_use(*device), before + 4000);
  EXPECT_EQ(read_blocking(view).values, Values(10, 3.0));
  view = {};
  EXPECT_EQ(in_use(*device), before);
  EXPECT_FALSE(view.defined());
}

TEST(Tensor, FillsEveryDtypeAndOddSize) {
  const auto device = open_checked("cpu:2");
  for (Dtype dtype : {Dtype::F32, Dtype::I32, Dtype::U32, Dtype::U8, Dtype::U64}) {
    for (int64_t n : {0, 1, 3, 1027}) {
      const Tensor x = Tensor::full(*device, {n + 2}, dtype, 1, "test");
      x.slice(0, 1, n + 1).fill_(200);
      const Values found = read_blocking(x).values;
      Values wanted(n + 2, 200.0);
      wanted.front() = wanted.back() = 1;
      EXPECT_EQ(found, wanted) << to_string(dtype) << " " << n;
    }
  }
  const Tensor large = Tensor::full(*device, {3}, Dtype::U64, 1e13 + 1, "test");
  EXPECT_EQ(read_blocking(large).values, Values(3, 1e13 + 1));
  const Tensor negative = Tensor::full(*device, {3}, Dtype::I32, -5, "test");
  EXPECT_EQ(read_blocking(negative).values, Values(3, -5.0));
}

TEST(Tensor, ViewsShowTheSameElements) {
  const auto device = open_checked("cpu:2");
  const Tensor x = counting(*device, {2, 3, 4});
  EXPECT_EQ(read_blocking(x.slice(1, 1, 3)).values,
            (Values{4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(read_blocking(x.select(2, 3)).values, (Values{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(read_blocking(x.select(0, 1).transpose(0, 1)).values,
            (Values{12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23}));
  EXPECT_EQ(x.permute({2, 0, 1}).shape(), Shape(4, 2, 3));
  EXPECT_EQ(read_blocking(x.permute({2, 0, 1}).select(0, 1)).values, (Values{1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(x.reshape({-1, 6}).shape(), Shape(4, 6));
  EXPECT_EQ(x.unsqueeze(-1).shape(), Shape(2, 3, 4, 1));
  EXPECT_EQ(x.unsqueeze(0).squeeze(0).shape(), x.shape());
  const Tensor wide = x.select(0, 0).select(1, 0).unsqueeze(1).expand({2, 3, 2});
  EXPECT_EQ(read_blocking(wide).values, (Values{0, 0, 4, 4, 8, 8, 0, 0, 4, 4, 8, 8}));
  EXPECT_TRUE(x.slice(0, 1, 2).is_contiguous());
  EXPECT_FALSE(x.slice(2, 0, 2).is_contiguous());
  EXPECT_EQ(x.slice(0, 1, 2).slice().offset, 48u);
  EXPECT_EQ(x.select(0, 1).extent().bytes, 48u);
  EXPECT_EQ(read_blocking(counting(*device, Shape())).values, Values{0});
}

TEST(Tensor, UploadsAtAnyTimeAndIntoStridedViews) {
  const auto device = open_checked("cpu:2,lazy");
  const Tensor x = counting(*device, {3, 2});
  const Tensor doubled = mul(x, 2.0);
  const uint64_t waits = waits_of(*device);
  std::vector<float> column = {7, 8, 9};
  x.select(1, 1).upload(column);  // while the product is still queued
  std::fill(column.begin(), column.end(), -1.0f);
  EXPECT_EQ(waits_of(*device), waits);
  EXPECT_EQ(read_blocking(doubled).values, (Values{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(read_blocking(x).values, (Values{0, 7, 2, 8, 4, 9}));
}

TEST(Tensor, TicketsHoldTheValueAtTheirPlaceInTheQueue) {
  const auto device = open_checked("cpu:2,lazy");
  Tensor x = Tensor::full(*device, {4}, Dtype::U32, 5, "test");
  add_(x, 1.0);
  const uint64_t waits = waits_of(*device);
  const Ticket before = read_later(x);
  x.fill_(9);
  x = {};
  const Tensor reused = Tensor::full(*device, {4}, Dtype::U32, 77, "test");
  EXPECT_EQ(waits_of(*device), waits);
  EXPECT_FALSE(before.ready());
  EXPECT_EQ(read_blocking(reused).values, Values(4, 77.0));
  ASSERT_TRUE(before.ready());
  EXPECT_EQ(before.as<uint32_t>(), 6u);
}

TEST(Tensor, CopiesBetweenLayoutsAndOverlappingViews) {
  const auto device = open_checked("cpu:2");
  for (Layout from : kLayouts) {
    for (Layout to : kLayouts) {
      const HostArray host = make_array(Shape(37, 5, 3), Dtype::U8, 0, 255, 3);
      const Tensor target = to_device(*device, make_array(host.shape, Dtype::U8, 0, 9, 4), to);
      target.copy_(to_device(*device, host, from));
      EXPECT_EQ(read_blocking(target).values, host.values) << to_string(from) << to_string(to);
    }
  }
  const Tensor x = counting(*device, {6});
  x.slice(0, 1, 6).copy_(x.slice(0, 0, 5));
  EXPECT_EQ(read_blocking(x).values, (Values{0, 0, 1, 2, 3, 4}));
  const Tensor square = counting(*device, {2, 2});
  square.copy_(square.transpose(0, 1));
  EXPECT_EQ(read_blocking(square).values, (Values{0, 2, 1, 3}));
  square.copy_(counting(*device, {2}));
  EXPECT_EQ(read_blocking(square).values, (Values{0, 1, 0, 1}));
}

TEST(Tensor, ErrorsNameTheOperandAndTheCallSite) {
  const auto device = open_checked("cpu:2");
  const Tensor x = counting(*device, {2, 3});
  struct Bad {
    std::function<void()> call;
    const char* message;
  };
  const Bad cases[] = {
      {[&] { Tensor().contiguous(); }, "contiguous: an operand is undefined"},
      {[&] {
         x.reshape({4, 2});
       },
       "reshape: 6 elements do not make [4,2]; operands [2,3] F32; called at tensor_test.cpp:"},
      {[&] {
         x.reshape({-1, -1});
       },
       "at most one extent may be -1"},
      {[&] { x.transpose(0, 1).reshape({6}); }, "not contiguous; call contiguous() first"},
      {[&] { x.transpose(0, 1).slice(); }, "slice: the tensor is not contiguous"},
      {[&] { x.slice(1, 2, 4); }, "slice: [2,4) is outside dimension 1"},
      {[&] { x.select(2, 0); }, "select: dimension 2 is outside a rank of 2"},
      {[&] {
         x.permute({0, 0});
       },
       "permute: 0 given twice"},
      {[&] { x.squeeze(0); }, "squeeze: dimension 0 is not of extent 1"},
      {[&] {
         x.expand({3, 3});
       },
       "expand: cannot expand to [3,3]"},
      {[&] {
         x.unsqueeze(0).expand({4, 2, 3}).fill_(0);
       },
       "an expanded view cannot be written"},
      {[&] {
         x.unsqueeze(0).expand({4, 2, 3}).copy_(x);
       },
       "an expanded view cannot be written"},
      {[&] { x.upload(std::vector<float>(5)); }, "upload: 20 bytes given, 24 needed"},
      {[&] { x.upload(std::vector<uint32_t>(6)); }, "upload: needs U32, found F32"},
      {[&] {
         x.copy_(counting(*device, {3, 2}));
       },
       "copy_: shapes do not broadcast"},
      {[&] { x.select(0, 0).copy_(x); }, "the source does not broadcast to the destination"},
      {[&] { cast(x, Dtype::U8).fill_(256); }, "fill_: 256 is not a value of U8"},
      {[&] { read_later(x.slice(0, 0, 0)); }, "read_later: the tensor has no elements"},
      {[&] {
         Tensor::empty(*device, {2, -1}, Dtype::F32, "test");
       },
       "negative extent in [2,-1]"},
  };
  for (const Bad& bad : cases) {
    EXPECT_NE(error_of(bad.call).find(bad.message), std::string::npos)
        << "wanted: " << bad.message << "\nfound:  " << error_of(bad.call);
  }
}

TEST(Tensor, RunningOutOfMemoryIsATypedErrorWithShapeAndLabel) {
  const auto device = open_checked("cpu:1,memory=100000000");
  try {
    Tensor::empty(*device, {1000, 1000, 1000}, Dtype::F32, "huge");
    FAIL() << "no error";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code, ErrorCode::OutOfMemory);
    EXPECT_NE(exception.error().message.find("[1000,1000,1000] F32 (huge)"), std::string::npos)
        << exception.error().message;
  }
}

}  // namespace
}  // namespace millrace::test
