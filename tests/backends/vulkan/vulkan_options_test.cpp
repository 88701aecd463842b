// Vulkan device ids.
#include "backends/vulkan/vulkan_options.h"

#include <gtest/gtest.h>

namespace millrace::vulkan {
namespace {

TEST(VulkanOptions, TakeFieldsInAnyOrder) {
  const auto options =
      parse_options("memory=1000,unmapped,2,validate,staging=8192,batch=7,close=50").or_raise();
  EXPECT_EQ(options.index, 2);
  EXPECT_EQ(options.memory_bytes, 1000u);
  EXPECT_EQ(options.staging_bytes, 8192u);
  EXPECT_EQ(options.commands_per_batch, 7u);
  EXPECT_EQ(options.close_bound.count(), 50);
  EXPECT_TRUE(options.validate && options.unmapped);
  EXPECT_FALSE(options.lazy);
}

TEST(VulkanOptions, LetHeldWorkGoCommandByCommand) {
  EXPECT_EQ(parse_options("lazy,batch=9").or_raise().commands_per_batch, 1u);
}

TEST(VulkanOptions, NameTheFieldThatIsWrong) {
  for (const char* text : {"-1", "many", "0,,1", "memory=0", "memory=", "staging=1", "batch=0",
                           "close=x", "lazily", "lazy,validate"}) {
    const auto options = parse_options(text);
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_EQ(options.error().code, ErrorCode::Usage);
    EXPECT_NE(options.error().message.find(std::string("vulkan:") + text), std::string::npos);
  }
}

}  // namespace
}  // namespace millrace::vulkan
