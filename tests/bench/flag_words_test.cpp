// Cutting flags into words as a shell does.
#include "bench/flag_words.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text) { return split_flag_words(text).or_raise(); }

TEST(FlagWords, BlanksSeparateWords) {
  EXPECT_EQ(split(""), Words{});
  EXPECT_EQ(split("  "), Words{});
  EXPECT_EQ(split(" --device  cpu:1\t-r 4 "), (Words{"--device", "cpu:1", "-r", "4"}));
}

TEST(FlagWords, QuotesAndBackslashesKeepBlanks) {
  EXPECT_EQ(split("--images 'my photos' x"), (Words{"--images", "my photos", "x"}));
  EXPECT_EQ(split("--images=\"my photos\""), Words{"--images=my photos"});
  EXPECT_EQ(split("my\\ photos"), Words{"my photos"});
  EXPECT_EQ(split("'a\\b' \"a\\\"b\""), (Words{"a\\b", "a\"b"}));
  EXPECT_EQ(split("'' \"\""), (Words{"", ""}));
}

TEST(FlagWords, AnOpenQuoteIsToldWithItsPlace) {
  for (const char* text : {"--images 'my photos", "--images \"my photos"}) {
    const auto words = split_flag_words(text);
    ASSERT_FALSE(words.ok()) << text;
    EXPECT_EQ(words.error().code, ErrorCode::Usage);
    EXPECT_NE(words.error().message.find("is not closed at character 10"), std::string::npos)
        << words.error().message;
  }
  EXPECT_FALSE(split_flag_words("x\\").ok());
}

TEST(FlagWords, WhatIsJoinedSplitsIntoTheSameWords) {
  const Words words = {"--images", "my photos", "", "it's", "a\\b", "$HOME", "\"q\"", "plain"};
  EXPECT_EQ(split(join_flag_words(words)), words);
  EXPECT_EQ(join_flag_words({"-r", "4"}), "-r 4");
}

}  // namespace
}  // namespace millrace
