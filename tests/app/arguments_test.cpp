// Words of a command line to texts of flags.
#include "app/arguments.h"

#include <gtest/gtest.h>

#include <set>

#include "app/commands.h"

namespace millrace {
namespace {

ParsedArguments parsed(const std::vector<std::string>& words) {
  return parse_arguments(train_flags(), words).or_raise();
}

std::string parse_error(const std::vector<std::string>& words) {
  const Result<ParsedArguments> result = parse_arguments(train_flags(), words);
  if (result.ok()) return "no error";
  EXPECT_EQ(result.error().code, ErrorCode::Usage);
  return result.error().message;
}

using Words = std::vector<std::string>;

TEST(Arguments, UnderscoresAndDashesAreTheSameInLongFlags) {
  EXPECT_EQ(with_dashes("--max_cap=a_b"), "--max-cap=a_b");
  EXPECT_EQ(with_dashes("my_folder"), "my_folder");
  EXPECT_EQ(parsed({"--max_cap", "5"}).text("max_cap"), "5");
  EXPECT_EQ(parsed({"--data_dir=my_data"}).text("dataset"), "my_data");
}

TEST(Arguments, AliasesSetTheSameKey) {
  for (const char* alias : {"-i", "--iter", "--iterations", "--num-iters", "--max_steps"}) {
    EXPECT_EQ(parsed({alias, "12"}).text("iterations"), "12") << alias;
  }
  for (const char* alias : {"-s", "--source", "--source_path", "-d", "--data", "--data-path"}) {
    EXPECT_EQ(parsed({alias, "x"}).text("dataset"), "x") << alias;
  }
  EXPECT_EQ(parsed({"-r8"}).text("resize_factor"), "8");
}

TEST(Arguments, TheLastOfRepeatedValuesCountsAndListsKeepAll) {
  EXPECT_EQ(parsed({"--seed", "1", "--seed", "2"}).text("seed"), "2");
  EXPECT_EQ(parsed({"--test-images", "a", "--test-images=b,c"}).values.at("test_images"),
            (Words{"a", "b,c"}));
}

TEST(Arguments, ListsOfNumbersTakeFollowingNumbersButNoDataset) {
  const ParsedArguments arguments = parsed({"--eval-steps", "100", "200", "scene", "-o", "out"});
  EXPECT_EQ(arguments.values.at("eval_steps"), Words{"100,200"});
  EXPECT_EQ(arguments.positionals, Words{"scene"});
  const ParsedArguments color = parsed({"--bg-color", "0", "0.5", "1", "7"});
  EXPECT_EQ(color.values.at("bg_color"), Words{"0,0.5,1"});
  EXPECT_EQ(color.positionals, Words{"7"});
}

TEST(Arguments, NegativeNumbersAreValues) {
  EXPECT_EQ(parsed({"--means-lr", "-1"}).text("means_lr"), "-1");
}

TEST(Arguments, SwitchesAreOnOrTakenBack) {
  EXPECT_TRUE(parsed({"--overwrite"}).is_on("overwrite"));
  EXPECT_FALSE(parsed({"--overwrite=false"}).is_on("overwrite"));
  EXPECT_TRUE(parsed({"--overwrite=false"}).has("overwrite"));
  EXPECT_FALSE(parsed({}).is_on("overwrite"));
  EXPECT_EQ(parsed({"--overwrite", "scene"}).positionals, Words{"scene"});
  EXPECT_NE(parse_error({"--overwrite=maybe"}).find("--overwrite"), std::string::npos);
}

TEST(Arguments, WhatFollowsTwoDashesIsNoFlag) {
  EXPECT_EQ(parsed({"-o", "x", "--", "--help"}).positionals, Words{"--help"});
  EXPECT_FALSE(has_flag({"--", "--help"}, "--help"));
  EXPECT_TRUE(has_flag({"a", "--json_events"}, "--json-events"));
}

TEST(Arguments, AMisspeltFlagSuggestsTheNearest) {
  EXPECT_EQ(parse_error({"scene", "--iteratoins", "5"}),
            "there is no flag --iteratoins; did you mean --iterations?");
  EXPECT_NE(parse_error({"--maxcap=3"}).find("--max-cap"), std::string::npos);
  EXPECT_EQ(parse_error({"-z"}), "there is no flag -z");
}

TEST(Arguments, AMissingValueIsTold) {
  EXPECT_NE(parse_error({"scene", "--iterations"}).find("--iterations"), std::string::npos);
  EXPECT_NE(parse_error({"--output", "--overwrite"}).find("--output needs a value"),
            std::string::npos);
}

TEST(Arguments, ATextIsTakenAsItStands) {
  const std::vector<Flag> flags = bench_flags();
  const auto text = [&](const Words& words) {
    return parse_arguments(flags, words).or_raise().text("a", "none");
  };
  EXPECT_EQ(text({"--a", "--device cpu_x --max_cap 5"}), "--device cpu_x --max_cap 5");
  EXPECT_EQ(text({"--a=--images my_dir"}), "--images my_dir");
  EXPECT_EQ(text({"--a", "--overwrite"}), "--overwrite");
  EXPECT_EQ(text({"--a", ""}), "");
  EXPECT_EQ(text({"scene"}), "none");
  const auto parsed = parse_arguments(flags, {"--a", "-r 4", "scene", "--max_cap", "7"}).or_raise();
  EXPECT_EQ(parsed.positionals, Words{"scene"});
  EXPECT_EQ(parsed.text("max_cap"), "7");
  const auto missing = parse_arguments(flags, {"scene", "--a"});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("--a needs a value"), std::string::npos);
}

TEST(Arguments, NoTwoFlagsOfACommandShareAName) {
  for (const Command& command : commands()) {
    std::vector<Flag> flags = command.flags();
    const std::vector<Flag> common = common_flags();
    flags.insert(flags.end(), common.begin(), common.end());
    std::set<std::string> names = {"-h", "--help"};
    for (const Flag& flag : flags) {
      for (const std::string& name : all_names(flag)) {
        EXPECT_TRUE(names.insert(name).second) << command.name << " " << name;
      }
    }
    EXPECT_TRUE(parse_arguments(flags, {}).ok()) << command.name;
  }
}

}  // namespace
}  // namespace millrace
