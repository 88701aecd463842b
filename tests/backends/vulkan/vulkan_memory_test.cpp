// Vulkan memory: slabs, large blocks, limits and rings.
#include "backends/vulkan/vulkan_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace millrace::vulkan {
namespace {

constexpr uint64_t kSlab = uint64_t{1} << 20;

class Memory : public ::testing::Test {
 protected:
  uint64_t create(uint64_t bytes) { return memory.create(bytes).or_raise(); }

  const std::unique_ptr<VulkanContext> context = VulkanContext::open({.validate = true}).or_raise();
  VulkanMemory memory{context.get(), MemoryUse::Buffers, kSlab};
};

TEST_F(Memory, SmallBlocksShareASlabAndAreApart) {
  const uint64_t a = create(256), b = create(512), c = create(256);
  EXPECT_EQ(memory.n_slabs(), 1u);
  EXPECT_EQ(block_of(b).address(), block_of(a).address() + 256);
  EXPECT_EQ(block_of(c).address(), block_of(b).address() + 512);
  EXPECT_EQ(block_of(a).address() % 256, 0u);
  for (const auto& [handle, bytes] : {std::pair(a, 256), {b, 512}, {c, 256}}) {
    memory.destroy(handle, bytes);
  }
  EXPECT_EQ(memory.n_slabs(), 0u) << "a slab without blocks is given back";
}

TEST_F(Memory, AGapIsUsedAgainAndGapsThatTouchBecomeOne) {
  const uint64_t keep = create(256), a = create(256), b = create(256), c = create(256);
  const uint64_t address = block_of(a).address();
  memory.destroy(a, 256);
  memory.destroy(c, 256);
  memory.destroy(b, 256);
  const uint64_t wide = create(768);
  EXPECT_EQ(block_of(wide).address(), address);
  memory.destroy(wide, 768);
  memory.destroy(keep, 256);
  EXPECT_EQ(memory.n_slabs(), 0u);
}

TEST_F(Memory, ALargeBlockIsAnAllocationOfItsOwn) {
  const uint64_t small = create(256);
  const uint32_t before = context->n_allocations();
  const uint64_t large = create(kSlab / 8);
  EXPECT_EQ(context->n_allocations(), before + 1);
  EXPECT_EQ(block_of(large).offset, 0u);
  memory.destroy(large, kSlab / 8);
  EXPECT_EQ(context->n_allocations(), before);
  memory.destroy(small, 256);
}

TEST_F(Memory, ASlabThatIsFullIsFollowedByAnother) {
  std::vector<uint64_t> handles;
  for (int i = 0; i < 17; ++i) handles.push_back(create(kSlab / 16));
  EXPECT_EQ(memory.n_slabs(), 2u);
  for (const uint64_t handle : handles) memory.destroy(handle, kSlab / 16);
  EXPECT_EQ(memory.n_slabs(), 0u);
}

TEST_F(Memory, PastTheLargestAllocationIsATypedErrorWithTheLimit) {
  const auto refused = memory.create(context->max_allocation_bytes() + 256);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(refused.error().message.find("maxMemoryAllocationSize"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(memory.n_slabs(), 0u);
}

TEST_F(Memory, PiecesOfARingThatIsFullComeFromBlocksAndAreUsedAgainOncePassed) {
  const auto host = HostMemory::make(context.get(), MemoryUse::Uploads, 4096).or_raise();
  for (Point point = 1; point <= 12; ++point) {
    const auto piece = host->take(1024, point, 0).or_raise();
    ASSERT_NE(piece.mapped, nullptr);
    std::memset(piece.mapped, 1, 1024);
  }
  const uint64_t reserved = host->stats().reserved_bytes;
  EXPECT_GE(reserved, 12u * 1024);
  for (Point point = 13; point <= 24; ++point) host->take(1024, point, 12).or_raise();
  EXPECT_EQ(host->stats().reserved_bytes, reserved);
}

}  // namespace
}  // namespace millrace::vulkan
