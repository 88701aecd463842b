// The argument block has the layout that the entry points declare.
#include "device/argument_block.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

template <class T>
T at(const ArgumentBlock& block, size_t offset) {
  T value;
  std::memcpy(&value, block.bytes().data() + offset, sizeof(T));
  return value;
}

TEST(ArgumentBlock, HoldsHeadAddressesAndParametersAtTheirOffsets) {
  ArgumentBlock block;
  block.begin(1000);
  block.add_address(0x1122334455667788);
  block.add_address(2);
  const uint64_t params[] = {7, 8};
  block.add_params(std::as_bytes(std::span(params)));
  block.set_count(0x100);
  block.set_scratch(0x200);
  block.set_pass(3, 40);
  ASSERT_EQ(block.bytes().size(), 32u + 16 + 16);
  EXPECT_EQ(at<uint64_t>(block, 0), 1000u);
  EXPECT_EQ(at<uint64_t>(block, 8), 0x100u);
  EXPECT_EQ(at<uint64_t>(block, 16), 0x200u);
  EXPECT_EQ(at<uint32_t>(block, 24), 3u);
  EXPECT_EQ(at<uint32_t>(block, 28), 40u);
  EXPECT_EQ(at<uint64_t>(block, 32), 0x1122334455667788u);
  EXPECT_EQ(at<uint64_t>(block, 40), 2u);
  EXPECT_EQ(at<uint64_t>(block, 56), 8u);
}

TEST(ArgumentBlock, BegunAnewKeepsNothingOfTheLastLaunch) {
  ArgumentBlock block;
  block.begin(1);
  block.add_address(5);
  block.set_count(6);
  block.set_scratch(7);
  block.set_pass(8, 9);
  block.begin(2);
  EXPECT_EQ(block.bytes().size(), 32u);
  EXPECT_EQ(at<uint64_t>(block, 0), 2u);
  EXPECT_EQ(at<uint64_t>(block, 8), 0u);
  EXPECT_EQ(at<uint64_t>(block, 16), 0u);
  EXPECT_EQ(at<uint64_t>(block, 24), 0u);
}

}  // namespace
}  // namespace millrace
