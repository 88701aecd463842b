// The event stream: every line is JSON, whatever the numbers and names.
#include "app/events.h"

#include <gtest/gtest.h>

#include <limits>

#include "app/process.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

TEST(Events, EachIsOneJsonLineWithNameAndTime) {
  const TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "events").c_str(), "w");
  ASSERT_NE(file, nullptr);
  Events events(file, true);
  events.emit("step", {{"step", 3}, {"loss", std::numeric_limits<float>::quiet_NaN()}});
  events.emit("saved", {{"path", "caf\xe9\nx"}});  // Latin-1, and a line end within
  std::fclose(file);
  const std::string text = content_of(folder / "events");
  const size_t end = text.find('\n');
  const Json first = Json::parse(text.substr(0, end));
  const Json second = Json::parse(text.substr(end + 1));
  EXPECT_EQ(first["event"], "step");
  EXPECT_GE(first["time_s"].get<double>(), 0);
  EXPECT_EQ(first["step"], 3);
  EXPECT_TRUE(first["loss"].is_null());
  EXPECT_EQ(second["path"], "caf\xef\xbf\xbd\nx");
}

TEST(Events, WritesNothingWhenOff) {
  const TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "events").c_str(), "w");
  ASSERT_NE(file, nullptr);
  Events events(file, false);
  events.emit("step");
  std::fclose(file);
  EXPECT_EQ(content_of(folder / "events"), "");
}

}  // namespace
}  // namespace millrace
