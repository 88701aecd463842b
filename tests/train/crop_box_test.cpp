// Crop boxes: what files and flags may say, the messages, and what kernels see.
#include "train/crop_box.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "train/edit_log.h"
#include "train/schedule.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

constexpr SceneScale kScale = {1, 1};

std::string error_of(const std::string& json) {
  const Result<CropBox> box = parse_crop_box(json, "here");
  if (box.ok()) return "no error";
  EXPECT_EQ(box.error().code, ErrorCode::Usage);
  EXPECT_EQ(box.error().message.rfind("here: ", 0), 0u) << box.error().message;
  return box.error().message;
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(CropBox, IsReadWithAndWithoutItsMatrix) {
  const CropBox plain = parse_crop_box(R"({"min":[-1,-2,-3],"max":[1,2,3]})", "").or_raise();
  EXPECT_EQ(plain.min, (std::array<double, 3>{-1, -2, -3}));
  EXPECT_EQ(plain.max, (std::array<double, 3>{1, 2, 3}));
  EXPECT_EQ(plain, crop_box_of_setting("-1,-2, -3,1,2,3").or_raise());
  const CropBox turned = parse_crop_box(R"({"min":[0,0,0],"max":[1,2,3],"inverse":true,
                         "world_to_box":[0,1,0,5, -1,0,0,6, 0,0,1,7, 0,0,0,1]})",
                                        "")
                             .or_raise();
  EXPECT_TRUE(turned.inverse);
  EXPECT_EQ(turned.world_to_box[3], 5);
  const CropStep step = crop_step(turned, 0.25);
  EXPECT_EQ(step.enabled, 1u);
  EXPECT_EQ(step.inverse, 1u);
  EXPECT_EQ(step.rate_scale, 0.25f);
  // (6, -4.5, -6) goes to (0.5, 0, 1): inside, which the inverse rejects.
  const float inside[3] = {6, -4.5f, -6}, outside[3] = {6, -4.5f, 6};
  EXPECT_FALSE(keeps(turned, inside));
  EXPECT_TRUE(keeps(turned, outside));
  EXPECT_EQ(step.world_to_box[4], -1.0f);
  EXPECT_EQ(step.max[2], 3.0f);
}

TEST(CropBox, NamesWhatIsWrong) {
  EXPECT_TRUE(says(error_of("[1]"), "an object such as"));
  EXPECT_TRUE(says(error_of("{"), "an object such as"));
  EXPECT_TRUE(says(error_of(R"({"max":[1,1,1]})"), "\"min\" of the crop box is missing"));
  EXPECT_TRUE(
      says(error_of(R"({"min":[0,0],"max":[1,1,1]})"), "\"min\" is [0,0], not an array of 3"));
  EXPECT_TRUE(says(error_of(R"({"min":[0,0,"0"],"max":[1,1,1]})"), "not an array of 3"));
  EXPECT_TRUE(says(error_of(R"({"min":[0,2,0],"max":[1,1,1]})"), "along y its min is 2"));
  EXPECT_TRUE(
      says(error_of(R"({"min":[0,0,0],"max":[1,1,1],"invers":true})"), "did you mean inverse"));
  EXPECT_TRUE(says(error_of(R"({"min":[0,0,0],"max":[1,1,1],"inverse":1})"), "not true or false"));
  EXPECT_TRUE(says(error_of(R"({"min":[0,0,0],"max":[1,1,1],
                               "world_to_box":[1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,1,1]})"),
                   "last row 0 0 0 1"));
  EXPECT_TRUE(says(error_of(R"({"min":[0,0,0],"max":[1,1,1],
                               "world_to_box":[1,0,0,0, 1,0,0,0, 0,0,1,0, 0,0,0,1]})"),
                   "can be inverted"));
  const auto of_setting = [](const std::string& text) {
    const Result<CropBox> box = crop_box_of_setting(text);
    return box.ok() ? "no error" : box.error().message;
  };
  EXPECT_TRUE(says(of_setting("0,0,0,1,1,0"), "--crop-box 0,0,0,1,1,0: the box is empty: along z"));
  EXPECT_TRUE(says(of_setting("no/such/file.json"), "no/such/file.json"));
  EXPECT_TRUE(says(of_setting("0,0,0,1,1"), "six numbers"));
}

TEST(CropBox, OfTheSettingsHoldsFromTheStartUntilAnEdit) {
  const std::string commands = ::testing::TempDir() + "millrace_crop.jsonl";
  std::ofstream(commands) << "{\"step\": 7, \"crop_box\": null}\n"
                             "{\"step\": 9, \"crop_box\": {\"min\": [0,0,0], \"max\": [2,2,2]}}\n"
                             "{\"step\": 11, \"max_cap\": 5}\n";
  TrainOptions options = tiny_options(20);
  options.crop_box = "-1,-1,-1,1,1,1";
  options.crop_box_loss_weight = 0.3;
  options.crop_box_lr_scale = 0.2;
  options.commands = commands;
  const EditLog edits = EditLog::of_settings(options).or_raise();
  const Schedule schedule(options, kScale, &edits);
  const auto block = [&](uint32_t step) {
    return schedule.block(transaction_id(step, TransactionKind::Step), 0, 0);
  };
  EXPECT_EQ(block(0).crop.enabled, 1u);
  EXPECT_EQ(block(6).crop.max[1], 1.0f);
  EXPECT_EQ(block(6).crop.rate_scale, 0.2f);
  EXPECT_EQ(block(6).loss.outside_weight, 0.3f);
  EXPECT_EQ(block(7).crop.enabled, 0u);
  EXPECT_EQ(block(8).crop.enabled, 0u);
  EXPECT_EQ(block(9).crop.max[1], 2.0f);
  EXPECT_EQ(block(15).crop.enabled, 1u);
  std::ofstream(commands) << "{\"step\": 7, \"crop_box\": {\"min\": [0,0,0]}}\n";
  const Result<EditLog> refused = EditLog::of_settings(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(says(refused.error().message, "line 1: \"crop_box\": \"max\" of the crop box"))
      << refused.error().message;
  std::filesystem::remove(commands);
}

}  // namespace
}  // namespace millrace::test
