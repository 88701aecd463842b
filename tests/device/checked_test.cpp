// The checking wrapper: each planted error is caught and named.
#include "device/device_helpers.h"

namespace millrace {
namespace {

using testing::add;
using testing::bytes_of;
using testing::open_or_die;
using testing::whole;

class Checked : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = make_checked(open_or_die("cpu:1"));
    a_ = device_->allocate(64, "a").or_raise();
    b_ = device_->allocate(64, "b").or_raise();
  }

  /// Queues add_u32 with these bindings and parameter bytes.
  Result<void> launch(std::vector<Binding> bindings, size_t params_bytes = sizeof(AddU32Params),
                      Slice count = {}) {
    return device_->launch({.kernel = KernelId::add_u32,
                            .threads = 4,
                            .count = count,
                            .bindings = bindings,
                            .params = std::span(params_).first(params_bytes)});
  }

  template <class T>
  static void expect_error(const Result<T>& result, const std::vector<std::string>& parts) {
    ASSERT_FALSE(result.ok());
    for (const std::string& part : parts) {
      EXPECT_NE(result.error().message.find(part), std::string::npos)
          << "'" << part << "' is not in: " << result.error().message;
    }
  }

  std::unique_ptr<Device> device_;
  BufferId a_;
  BufferId b_;
  std::vector<std::byte> params_ = std::vector<std::byte>(64);
};

TEST_F(Checked, CorrectUsePasses) {
  device_->upload(whole(a_, 64), bytes_of(std::vector<uint32_t>(16, 1))).or_raise();
  add(*device_, whole(a_, 64), 2).or_raise();
  device_->copy({a_, 0, 32}, {a_, 32, 32}).or_raise();
  device_->fill({b_, 60, 4}, 3).or_raise();
  device_->fill({b_, 64, 0}, 3).or_raise();
  EXPECT_EQ(testing::read_blocking(*device_, {a_, 0, 4}), std::vector<uint32_t>{3});
  device_->release(a_);
}

TEST_F(Checked, NamesTheKernelTheBindingAndTheSite) {
  expect_error(launch({{{a_, 32, 64}, Access::ReadWrite}}),
               {"add_u32", "binding 0", "checked_test.cpp:", "passes the end"});
}

TEST_F(Checked, CatchesReleasedAndUnknownBuffers) {
  device_->release(a_);
  const BufferId next = device_->allocate(64, "next").or_raise();
  expect_error(add(*device_, whole(a_, 64), 1), {"binding 0", "not live"});
  expect_error(device_->fill(whole(a_, 64), 1), {"fill", "not live"});
  expect_error(device_->download(whole(a_, 64)), {"download", "not live"});
  expect_error(device_->download(whole({}, 4)), {"not live"});
  EXPECT_THROW(device_->release(a_), Exception);
  device_->release(next);
}

TEST_F(Checked, CatchesRangesThatWrapAround) {
  expect_error(device_->fill({a_, 8, UINT64_MAX - 4}, 0), {"passes the end"});
  expect_error(device_->fill({a_, UINT64_MAX, 4}, 0), {"passes the end"});
}

TEST_F(Checked, CatchesWrongAccessAndBindingCounts) {
  expect_error(launch({{whole(a_, 64), Access::Read}}), {"binding 0", "'r'", "'x'"});
  expect_error(launch({}), {"binding 0 is missing"});
  expect_error(launch({{whole(a_, 64), Access::ReadWrite}, {whole(b_, 64), Access::ReadWrite}}),
               {"binding 1 is one too many"});
}

TEST_F(Checked, CatchesWrongParameterSizes) {
  expect_error(launch({{whole(a_, 64), Access::ReadWrite}}, 4), {"4 bytes of parameters", "8"});
}

TEST_F(Checked, CatchesBadCounts) {
  const std::vector<Binding> bindings = {{whole(a_, 64), Access::ReadWrite}};
  expect_error(launch(bindings, 8, {b_, 0, 8}), {"count"});
  expect_error(launch(bindings, 8, {b_, 2, 4}), {"count"});
  expect_error(launch(bindings, 8, {a_, 4, 4}), {"overlaps the count"});
  EXPECT_TRUE(launch(bindings, 8, {b_, 4, 4}).ok());
}

TEST_F(Checked, CatchesBadCopiesFillsAndUploads) {
  expect_error(device_->copy({a_, 0, 32}, {a_, 16, 32}), {"overlap"});
  expect_error(device_->copy({a_, 0, 32}, {b_, 0, 16}), {"sizes"});
  expect_error(device_->fill({a_, 2, 4}, 0), {"multiples of 4"});
  expect_error(device_->fill({a_, 0, 6}, 0), {"multiples of 4"});
  expect_error(device_->upload(whole(a_, 64), bytes_of(std::vector<uint32_t>(3))), {"12 bytes"});
  expect_error(device_->allocate(0, "nothing"), {"0 bytes", "nothing"});
  expect_error(device_->wait_blocking(99, {WaitReason::Test, "test.future"}),
               {"test.future", "99"});
}

}  // namespace
}  // namespace millrace
