// Settings: what flags and files may say, the messages, the ranges and the step scaler.
#include "train/options.h"

#include <gtest/gtest.h>

#include <limits>

#include "train/option_values.h"
#include "train/trainer.h"

namespace millrace {
namespace {

/// Options that differ from the defaults in every setting.
TrainOptions unusual_options() {
  TrainOptions o;
  o.dataset = "some \"quoted\" folder/\u00e4";
  visit_options(o, [](const char* key, auto& member, const char*, const char*) {
    using T = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_same_v<T, bool>) {
      member = !member;
    } else if constexpr (std::is_same_v<T, std::string>) {
      member = std::string("value of ") + key;
    } else if constexpr (std::is_same_v<T, double>) {
      member = member * 1.2 + 0.1;
    } else if constexpr (std::is_arithmetic_v<T>) {
      member += 3;
    }
  });
  o.seed = std::numeric_limits<uint64_t>::max();
  o.max_cap = (1ull << 53) + 1;
  o.bg_color = {0.1f, 1.0f / 3, 1};
  o.test_images = {"a,b.jpg", "c/d.png"};
  o.eval_steps = {1, 4294967295u};
  o.exports = {"spz", "html"};
  o.save_steps = {};
  o.test_capacity = {{18446744073709551615ull, 7}, {1, 8}};
  return o;
}

TrainOptions from_json(const std::string& text) {
  return options_from_json(text, "my.json", TrainOptions{}).or_raise();
}

std::string json_error(const std::string& text) {
  const Result<TrainOptions> result = options_from_json(text, "my.json", TrainOptions{});
  if (result.ok()) return "no error";
  EXPECT_EQ(result.error().code, ErrorCode::Usage);
  return result.error().message;
}

std::string check_error(const TrainOptions& options) {
  const Result<TrainOptions> result = checked_options(options);
  if (result.ok()) return "no error";
  EXPECT_EQ(result.error().code, ErrorCode::Usage);
  return result.error().message;
}

/// The member after setting it from texts.
template <class T>
T after_setting(T TrainOptions::*member, const std::string& key, std::vector<std::string> texts) {
  TrainOptions options;
  set_option(options, key, texts).or_raise();
  return options.*member;
}

bool is_refused(const std::string& key, const std::string& text) {
  TrainOptions options;
  const Result<void> result = set_option(options, key, Texts(&text, 1));
  if (result.ok()) return false;
  EXPECT_EQ(result.error().code, ErrorCode::Usage);
  EXPECT_NE(result.error().message.find(flag_of_key(key)), std::string::npos);
  EXPECT_NE(result.error().message.find(text), std::string::npos);
  return true;
}

TEST(OptionsJson, EverySettingSurvivesTheRoundTripExactly) {
  const TrainOptions options = unusual_options();
  const std::string text = options_to_json(options);
  TrainOptions read = from_json(text);
  EXPECT_EQ(options_to_json(read), text);
  EXPECT_EQ(read.dataset, options.dataset);
  EXPECT_EQ(read.seed, options.seed);
  EXPECT_EQ(read.max_cap, options.max_cap);
  EXPECT_EQ(read.bg_color, options.bg_color);
  EXPECT_EQ(read.test_images, options.test_images);
  EXPECT_EQ(read.eval_steps, options.eval_steps);
  EXPECT_TRUE(read.save_steps.empty());
  ASSERT_EQ(read.test_capacity.size(), 2u);
  EXPECT_EQ(read.test_capacity[0].capacity, options.test_capacity[0].capacity);
  EXPECT_EQ(read.test_capacity[1].step, 8u);
  EXPECT_EQ(read.means_lr, options.means_lr);
  // A setting that was not written would come back as its default.
  const std::string defaults = options_to_json(TrainOptions{});
  visit_options(read, [&](const char* key, auto&, const char*, const char*) {
    const std::string line = "\"" + std::string(key) + "\": ";
    ASSERT_NE(text.find(line), std::string::npos) << key;
    const auto value_in = [&](const std::string& all) {
      const size_t at = all.find(line);
      return all.substr(at, all.find("\n  \"", at) - at);
    };
    EXPECT_NE(value_in(text), value_in(defaults)) << key;
  });
}

TEST(OptionsJson, FloatsAreWrittenWithTheFewestDigits) {
  TrainOptions options;
  options.bg_color = {0.1f, 0.2f, 1};
  EXPECT_NE(options_to_json(options).find("0.1,\n    0.2,\n    1.0"), std::string::npos)
      << options_to_json(options);
}

TEST(OptionsJson, KeepsWhatTheFileDoesNotName) {
  TrainOptions base;
  base.iterations = 77;
  const TrainOptions read = options_from_json("{\"max_cap\": 5}", "my.json", base).or_raise();
  EXPECT_EQ(read.iterations, 77u);
  EXPECT_EQ(read.max_cap, 5u);
}

TEST(OptionsJson, TakesTheFriendlyFormsOfFlags) {
  const TrainOptions read = from_json(
      "{ // comments may stand here\n"
      "\"iterations\": 3e4, \"bg_color\": \"#ff8000\", \"image_cache_bytes\": \"512M\",\n"
      "\"resize_factor\": \"auto\", \"eval_steps\": \"10, 20\", \"test_images\": \"a,b\"}");
  EXPECT_EQ(read.iterations, 30000u);
  EXPECT_FLOAT_EQ(read.bg_color[1], 128 / 255.0f);
  EXPECT_EQ(read.image_cache_bytes, 512ull << 20);
  EXPECT_EQ(read.eval_steps, (std::vector<uint32_t>{10, 20}));
  EXPECT_EQ(read.test_images.size(), 2u);
}

TEST(OptionsJson, AnUnknownKeyNamesPlaceAndNearMatches) {
  EXPECT_EQ(json_error("{\n  \"iteratons\": 5}"),
            "my.json:2:3: \"iteratons\": there is no such setting; did you mean iterations?");
}

TEST(OptionsJson, AWrongTypeNamesPlaceKeyAndWhatWasExpected) {
  EXPECT_EQ(
      json_error("{\"seed\": 1,\n\"iterations\": \"many\"}"),
      "my.json:2:1: \"iterations\": expected a whole number from 0 to 4294967295, found \"many\"");
  EXPECT_EQ(json_error("{\"random\": 1}"),
            "my.json:1:2: \"random\": expected true or false, found 1");
  for (const char* bad :
       {"{\"iterations\": -1}", "{\"iterations\": 1.5}", "{\"iterations\": 4294967296}",
        "{\"iterations\": 1e300}", "{\"iterations\": null}", "{\"max_cap\": -1}",
        "{\"max_cap\": 1e19}", "{\"threads\": 3000000000}", "{\"means_lr\": \"1\"}",
        "{\"bg_color\": [0, 1]}", "{\"bg_color\": [0, 1, -1]}", "{\"bg_color\": [0, 1, null]}",
        "{\"eval_steps\": [1, -2]}", "{\"eval_steps\": {\"a\": 1}}", "{\"test_images\": [1]}",
        "{\"test_capacity\": [\"5\"]}", "{\"output\": 5}", "{\"dataset\": []}"}) {
    EXPECT_NE(json_error(bad).find("expected"), std::string::npos)
        << bad << ": " << json_error(bad);
  }
}

TEST(OptionsJson, BrokenJsonNamesLineAndColumn) {
  const std::string message = json_error("{\n  \"seed\": 1,\n  \"max_cap\" 5\n}");
  EXPECT_EQ(message.rfind("my.json:3:13: not valid JSON: ", 0), 0u) << message;
  EXPECT_EQ(json_error("").rfind("my.json:1:1: not valid JSON: ", 0), 0u) << json_error("");
  EXPECT_EQ(json_error("[1]").rfind("my.json: expected an object", 0), 0u) << json_error("[1]");
}

TEST(OptionValues, ColoursHaveFourForms) {
  const auto color = [](const std::string& text) {
    return after_setting(&TrainOptions::bg_color, "bg_color", {text});
  };
  using Color = std::array<float, 3>;
  EXPECT_EQ(color("#ff0080"), (Color{1, 0, 128 / 255.0f}));
  EXPECT_EQ(color("#F08"), (Color{1, 0, 136 / 255.0f}));
  EXPECT_EQ(color("white"), (Color{1, 1, 1}));
  EXPECT_EQ(color("black"), (Color{0, 0, 0}));
  EXPECT_EQ(color("0.5,0,1"), (Color{0.5f, 0, 1}));
  EXPECT_EQ(color("1 1 1"), (Color{1, 1, 1}));
  EXPECT_EQ(color("255,0,51"), (Color{1, 0, 0.2f}));
  for (const char* bad :
       {"#12345", "#gg0000", "1,2", "0.5,2,0", "256,0,0", "-1,0,0", "nan,0,0", "red", ""}) {
    EXPECT_TRUE(is_refused("bg_color", bad)) << bad;
  }
}

TEST(OptionValues, BytesTakeUnits) {
  const auto bytes = [](const std::string& text) {
    return after_setting(&TrainOptions::image_cache_bytes, "image_cache_bytes", {text});
  };
  EXPECT_EQ(bytes("4G"), 4ull << 30);
  EXPECT_EQ(bytes("512M"), 512ull << 20);
  EXPECT_EQ(bytes("64KiB"), 64ull << 10);
  EXPECT_EQ(bytes("1.5gb"), 3ull << 29);
  EXPECT_EQ(bytes("123"), 123u);
  for (const char* bad : {"4X", "G", "-1G", "1.5", "99999999T", "4 gigs", ""}) {
    EXPECT_TRUE(is_refused("image_cache_bytes", bad)) << bad;
  }
}

TEST(OptionValues, ListsTakeCommasBlanksAndRepetition) {
  EXPECT_EQ(after_setting(&TrainOptions::eval_steps, "eval_steps", {"1,2 3", "4"}),
            (std::vector<uint32_t>{1, 2, 3, 4}));
  EXPECT_TRUE(after_setting(&TrainOptions::eval_steps, "eval_steps", {""}).empty());
  EXPECT_EQ(after_setting(&TrainOptions::test_images, "test_images", {"a b.jpg,c.jpg", "d.jpg"}),
            (std::vector<std::string>{"a b.jpg", "c.jpg", "d.jpg"}));
  const auto forced =
      after_setting(&TrainOptions::test_capacity, "test_capacity", {"10@2", "20@3"});
  ASSERT_EQ(forced.size(), 2u);
  EXPECT_EQ(forced[1].capacity, 20u);
  EXPECT_EQ(forced[1].step, 3u);
  EXPECT_TRUE(is_refused("test_capacity", "10"));
  EXPECT_TRUE(is_refused("test_capacity", "@3"));
  EXPECT_TRUE(is_refused("eval_steps", "1,-2"));
}

TEST(OptionValues, NumbersMustBeNumbersToTheirEnd) {
  EXPECT_EQ(after_setting(&TrainOptions::resize_factor, "resize_factor", {"auto"}), 0u);
  EXPECT_EQ(after_setting(&TrainOptions::iterations, "iterations", {"5", "6"}), 6u);
  EXPECT_DOUBLE_EQ(after_setting(&TrainOptions::means_lr, "means_lr", {"1e-3"}), 1e-3);
  for (const char* bad : {"", "5x", "-5", "5.5", "4294967296", "auto"}) {
    EXPECT_TRUE(is_refused("iterations", bad)) << bad;
  }
  EXPECT_TRUE(is_refused("means_lr", "fast"));
  EXPECT_TRUE(is_refused("random", "maybe"));
}

TEST(CheckedOptions, DefaultsAreValidAndUnchanged) {
  const TrainOptions defaults;
  EXPECT_EQ(options_to_json(checked_options(defaults).or_raise()), options_to_json(defaults));
}

TEST(CheckedOptions, EachRangeNamesItsFlag) {
  struct Case {
    const char* key;
    const char* text;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case cases[] = {
      {"resize_factor", "3"},
      {"test_fold", "8"},
      {"bg_mode", "striped"},
      {"iterations", "0"},
      {"steps_scaler", "0"},
      {"steps_scaler", "nan"},
      {"device", ""},
      {"threads", "-1"},
      {"sh_degree", "4"},
      {"sh_degree_interval", "0"},
      {"max_cap", "0"},
      {"max_cap", "4294967296"},
      {"init_num_pts", "0"},
      {"init_opacity", "1"},
      {"init_scaling", "0"},
      {"lambda_dssim", "1.5"},
      {"means_lr", "-1"},
      {"means_lr_final", "0"},
      {"opacity_lr", "nan"},
      {"scaling_lr", "-1"},
      {"rotation_lr", "1e999"},
      {"sh0_lr", "-1"},
      {"sh_rest_divisor", "0"},
      {"opacity_reg", "-1"},
      {"scale_reg", "-1"},
      {"scale_reg_power", "nan"},
      {"erank_reg", "-1"},
      {"dc_reg", "-1"},
      {"sh_rest_reg", "-1"},
      {"mask_mode", "some"},
      {"masks", "folder"},
      {"mask_threshold", "1.1"},
      {"mask_penalty", "-1"},
      {"crop_box_loss_weight", "1.5"},
      {"crop_box_lr_scale", "-0.1"},
      {"thin_structure_weight", "4.1"},
      {"densify_structure_weight", "-1"},
      {"gradient_loss_weight", "9"},
      {"noise_lr", "-1"},
      {"min_opacity", "1"},
      {"refine_every", "0"},
      {"test_capacity", "0@5"},
      {"test_capacity", "1@5,2@5"},
      {"test_capacity_random", "2"},
      {"test_decode_delay_ms", "-1"},
  };
  for (const Case& c : cases) {
    TrainOptions options;
    const std::string text = c.text;
    ASSERT_TRUE(set_option(options, c.key, Texts(&text, 1)).ok()) << c.key;
    const std::string message = check_error(options);
    EXPECT_EQ(message.rfind(flag_of_key(c.key) + " must be ", 0), 0u) << c.key << ": " << message;
  }
  TrainOptions options;
  options.bg_color[2] = static_cast<float>(nan);
  EXPECT_EQ(check_error(options).rfind("--bg-color must be ", 0), 0u);
}

TEST(CheckedOptions, AnUnknownStrategySaysWhatThereIs) {
  TrainOptions options;
  options.strategy = "none-such";
  EXPECT_EQ(check_error(options), "--strategy must be mcmc or mrnf, not 'none-such'");
}

TEST(CheckedOptions, TheScalerMultipliesEveryStepCount) {
  TrainOptions options;
  options.steps_scaler = 0.0501;
  options.eval_steps = {7000, 1};
  options.save_steps = {30000};
  const TrainOptions o = checked_options(options).or_raise();
  EXPECT_EQ(o.iterations, 1503u);
  EXPECT_EQ(o.start_refine, 25u);
  EXPECT_EQ(o.stop_refine, 1253u);  // 1252.5 rounds away from 0
  EXPECT_EQ(o.refine_every, 5u);
  EXPECT_EQ(o.sh_degree_interval, 50u);
  EXPECT_EQ(o.morton_interval, 251u);
  EXPECT_EQ(o.gradient_loss_start, 100u);
  EXPECT_EQ(o.eval_steps, (std::vector<uint32_t>{351, 1}));  // never 0: that step would not come
  EXPECT_EQ(o.save_steps, (std::vector<uint32_t>{1503}));
  EXPECT_EQ(o.steps_scaler, 0.0501);  // the rate of the means needs it
}

TEST(CheckedOptions, TheScalerKeepsZeroAndRefusesOverflow) {
  TrainOptions options;
  options.morton_interval = 0;
  options.steps_scaler = 2;
  EXPECT_EQ(checked_options(options).or_raise().morton_interval, 0u);
  options.steps_scaler = 1e6;
  EXPECT_NE(check_error(options).find("--steps-scaler"), std::string::npos);
}

}  // namespace
}  // namespace millrace
