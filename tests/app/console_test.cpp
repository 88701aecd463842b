// What reaches stderr and stdout at each level, and how the progress line gives way to messages.
#include "app/console.h"

#include <gtest/gtest.h>

#include <cmath>

#include "app/process.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

/// What `use` makes a console write.
template <class Use>
Outcome written(bool is_terminal, LogLevel level, Use use) {
  const TemporaryFolder folder;
  std::FILE* err = std::fopen((folder / "err").c_str(), "w");
  std::FILE* out = std::fopen((folder / "out").c_str(), "w");
  {
    Console console(err, out, is_terminal, 10);
    console.set_level(level);
    use(console);
  }
  std::fclose(err);
  std::fclose(out);
  return {0, content_of(folder / "out"), content_of(folder / "err")};
}

void say_everything(Console& console) {
  console.error("e");
  console.warning("w");
  console.info("i");
  console.debug("d");
  console.result("r");
  console.output("o");
}

TEST(Console, LevelsChooseWhatIsSaid) {
  EXPECT_EQ(written(false, LogLevel::Error, say_everything).err, "error: e\n");
  EXPECT_EQ(written(false, LogLevel::Error, say_everything).out, "o\n");
  EXPECT_EQ(written(false, LogLevel::Warning, say_everything).err, "error: e\nwarning: w\n");
  EXPECT_EQ(written(false, LogLevel::Info, say_everything).err, "error: e\nwarning: w\ni\n");
  EXPECT_EQ(written(false, LogLevel::Info, say_everything).out, "r\no\n");
  EXPECT_EQ(written(false, LogLevel::Debug, say_everything).err, "error: e\nwarning: w\ni\nd\n");
}

TEST(Console, ATerminalKeepsTheProgressLineBelowMessages) {
  const Outcome outcome = written(true, LogLevel::Info, [](Console& console) {
    console.progress("1/2 and more than ten");
    console.info("hello");
    console.progress("2/2");
  });
  EXPECT_EQ(outcome.err, "\r\x1b[K1/2 and m\r\x1b[Khello\n1/2 and m\r\x1b[K2/2\n");
}

TEST(Console, WithoutATerminalProgressIsPlainLines) {
  const auto use = [](Console& console) {
    console.progress("1/2");
    console.progress("2/2");
  };
  EXPECT_EQ(written(false, LogLevel::Info, use).err, "1/2\n2/2\n");
  EXPECT_EQ(written(false, LogLevel::Warning, use).err, "");
}

TEST(Console, TextsOfNumbersAreForPeople) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1234567), "1,234,567");
  EXPECT_EQ(duration_text(0.42), "0.4 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(820), "13:40");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(std::nan("")), "?");
  EXPECT_EQ(bytes_text(4ull << 30), "4.0 GiB");
}

}  // namespace
}  // namespace millrace
