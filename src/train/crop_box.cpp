// Crop boxes from JSON and from six numbers.
#include "train/crop_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "data/text_fields.h"
#include "train/near_match.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

const std::string kKeys[] = {"min", "max", "world_to_box", "inverse"};

template <size_t kCount>
Result<void> take_numbers(const Json& box, const char* key, const std::string& place,
                          std::array<double, kCount>* numbers) {
  const Json& value = box.at(key);
  const auto is_number = [](const Json& entry) {
    return entry.is_number() && std::isfinite(entry.get<double>());
  };
  if (!value.is_array() || value.size() != kCount || !std::ranges::all_of(value, is_number)) {
    return Error{ErrorCode::Usage, fmt::format("{}: \"{}\" is {}, not an array of {} numbers",
                                               place, key, value.dump(), kCount)};
  }
  for (size_t i = 0; i < kCount; ++i) (*numbers)[i] = value[i].get<double>();
  return {};
}

Result<CropBox> checked(const CropBox& box, const std::string& place) {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (box.min[axis] < box.max[axis]) continue;
    return Error{ErrorCode::Usage,
                 fmt::format("{}: the box is empty: along {} its min is {} and its max {}", place,
                             "xyz"[axis], box.min[axis], box.max[axis])};
  }
  const auto& m = box.world_to_box;
  const bool affine = m[12] == 0 && m[13] == 0 && m[14] == 0 && m[15] == 1;
  const double determinant = m[0] * (m[5] * m[10] - m[6] * m[9]) -
                             m[1] * (m[4] * m[10] - m[6] * m[8]) +
                             m[2] * (m[4] * m[9] - m[5] * m[8]);
  if (affine && std::isnormal(determinant)) return box;
  return Error{ErrorCode::Usage,
               fmt::format("{}: \"world_to_box\" must be 4 rows of 4 numbers that can be inverted, "
                           "the last row 0 0 0 1",
                           place)};
}

/// Six numbers with commas; none if the text is anything else.
std::optional<CropBox> six_numbers(const std::string& text) {
  std::array<double, 6> numbers{};
  size_t n = 0, at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const auto number = parse_double(trim(std::string_view(text).substr(at, comma - at)));
    if (!number || !std::isfinite(*number) || n == numbers.size()) return std::nullopt;
    numbers[n++] = *number;
    at = comma + 1;
  }
  if (n != numbers.size()) return std::nullopt;
  CropBox box;
  std::copy_n(numbers.begin(), 3, box.min.begin());
  std::copy_n(numbers.begin() + 3, 3, box.max.begin());
  return box;
}

}  // namespace

Result<CropBox> parse_crop_box(const std::string& json, const std::string& place) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return Error{ErrorCode::Usage,
                 place +
                     ": a crop box is an object such as {\"min\": [-1, -1, -1], \"max\": [1, 1, "
                     "1]}, with \"world_to_box\" and \"inverse\" where they are needed"};
  }
  for (const auto& [key, value] : parsed.items()) {
    if (std::ranges::find(kKeys, key) != std::end(kKeys)) continue;
    return Error{ErrorCode::Usage, fmt::format("{}: unknown key \"{}\" of a crop box{}", place, key,
                                               did_you_mean(key, kKeys))};
  }
  for (const char* key : {"min", "max"}) {
    if (parsed.contains(key)) continue;
    return Error{ErrorCode::Usage,
                 fmt::format("{}: \"{}\" of the crop box is missing", place, key)};
  }
  CropBox box;
  MILLRACE_TRY(take_numbers(parsed, "min", place, &box.min));
  MILLRACE_TRY(take_numbers(parsed, "max", place, &box.max));
  if (parsed.contains("world_to_box")) {
    MILLRACE_TRY(take_numbers(parsed, "world_to_box", place, &box.world_to_box));
  }
  if (const auto inverse = parsed.find("inverse"); inverse != parsed.end()) {
    if (!inverse->is_boolean()) {
      return Error{ErrorCode::Usage,
                   fmt::format("{}: \"inverse\" is {}, not true or false", place, inverse->dump())};
    }
    box.inverse = inverse->get<bool>();
  }
  return checked(box, place);
}

Result<CropBox> crop_box_of_setting(const std::string& value) {
  if (const auto box = six_numbers(value)) return checked(*box, "--crop-box " + value);
  const Result<std::string> text = read_text_file(value, ErrorCode::Usage);
  if (!text.ok()) {
    return Error{ErrorCode::Usage,
                 fmt::format("--crop-box: {} (or give six numbers: the box's smallest x,y,z, then "
                             "its largest)",
                             text.error().message)};
  }
  return parse_crop_box(text.value(), "--crop-box " + value);
}

bool keeps(const CropBox& box, const float* point) {
  bool inside = true;
  for (size_t axis = 0; axis < 3; ++axis) {
    const double* m = &box.world_to_box[4 * axis];
    const double p = m[0] * point[0] + m[1] * point[1] + m[2] * point[2] + m[3];
    inside = inside && p >= box.min[axis] && p <= box.max[axis];
  }
  return inside != box.inverse;
}

CropStep crop_step(const CropBox& box, double rate_scale) {
  CropStep step = {};
  std::ranges::transform(box.world_to_box.begin(), box.world_to_box.begin() + 12, step.world_to_box,
                         [](double x) { return static_cast<float>(x); });
  for (size_t axis = 0; axis < 3; ++axis) {
    step.min[axis] = static_cast<float>(box.min[axis]);
    step.max[axis] = static_cast<float>(box.max[axis]);
  }
  step.enabled = 1;
  step.inverse = box.inverse ? 1 : 0;
  step.rate_scale = static_cast<float>(rate_scale);
  return step;
}

}  // namespace millrace
