// What may follow "cuda:" in a device id. Needs no device.
#include "device/device.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(CudaOptions, NameTheFieldThatIsWrong) {
  for (const char* field : {"x", "-1", "memory=0", "memory=", "staging=100", "waves=0", "depth=0",
                            "batch=zero", "close=-1", "0x", "9999"}) {
    const auto opened = open_device("cuda:0," + std::string(field));
    ASSERT_FALSE(opened.ok()) << field;
    EXPECT_EQ(opened.error().code, ErrorCode::Usage) << field;
    EXPECT_NE(opened.error().message.find("'" + std::string(field) + "'"), std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace millrace
