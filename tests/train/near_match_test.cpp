// Suggestions for misspelt names.
#include "train/near_match.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

const std::vector<std::string> kNames = {"--iterations", "--max-cap", "--max-width", "--seed",
                                         "--eval-steps"};

TEST(NearMatch, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("sede", "seed"), 1u);  // a swap is one edit
  EXPECT_EQ(edit_distance("Max_Cap", "max-cap"), 0u);
}

TEST(NearMatch, FindsTheNearestFirst) {
  EXPECT_EQ(near_matches("--iteratons", kNames), (std::vector<std::string>{"--iterations"}));
  EXPECT_EQ(near_matches("--max-cip", kNames).front(), "--max-cap");
  EXPECT_EQ(near_matches("--max", kNames), (std::vector<std::string>{"--max-cap", "--max-width"}));
  EXPECT_EQ(near_matches("--max", kNames, 1).size(), 1u);
}

TEST(NearMatch, HasNoSuggestionForOtherWords) {
  EXPECT_TRUE(near_matches("--zebra", kNames).empty());
  EXPECT_TRUE(near_matches("", kNames).empty());
  EXPECT_EQ(did_you_mean("--zebra", kNames), "");
}

TEST(NearMatch, ReadsAsAQuestion) {
  EXPECT_EQ(did_you_mean("--sed", kNames), "; did you mean --seed?");
  EXPECT_EQ(did_you_mean("--max", kNames), "; did you mean --max-cap or --max-width?");
}

TEST(NearMatch, IsQuickForHugeWords) {
  EXPECT_TRUE(near_matches(std::string(1000000, 'x'), kNames).empty());
}

}  // namespace
}  // namespace millrace
