// millrace devices, make-capture, apply-crop and score.
#include <fmt/format.h>

#include <optional>

#include "app/observer.h"
#include "data/text_fields.h"
#include "device/device.h"
#include "io/metrics.h"
#include "synth/make_capture.h"
#include "train/apply_crop.h"
#include "train/option_values.h"

namespace millrace {
namespace {

constexpr double kProgressInterval = 1;  // s

/// Sets `value` if the flag `key` was given. Error: Usage.
template <class T>
Result<void> take_number(const ParsedArguments& arguments, const char* key, T& value) {
  if (!arguments.has(key)) return {};
  const std::string text = arguments.text(key);
  const auto number = parse_integer<T>(trim(text));
  if (!number || *number < 1) {
    return Error{ErrorCode::Usage, fmt::format("{}: expected a whole number from 1 up, found '{}'",
                                               flag_of_key(key), text)};
  }
  value = *number;
  return {};
}

Result<void> take_size(const ParsedArguments& arguments, CaptureOptions& options) {
  if (!arguments.has("size")) return {};
  const std::string text = arguments.text("size");
  const size_t x = text.find_first_of("xX");
  const auto width = parse_integer<uint32_t>(std::string_view(text).substr(0, x));
  const auto height = x == std::string::npos
                          ? std::nullopt
                          : parse_integer<uint32_t>(std::string_view(text).substr(x + 1));
  if (!width || !height || *width < 1 || *height < 1) {
    return Error{ErrorCode::Usage,
                 fmt::format("--size: expected WIDTHxHEIGHT such as 640x480, found '{}'", text)};
  }
  options.width = *width;
  options.height = *height;
  return {};
}

Result<CaptureOptions> capture_options(const ParsedArguments& arguments) {
  CaptureOptions options;
  MILLRACE_TRY(take_number(arguments, "views", options.n_views));
  MILLRACE_TRY(take_size(arguments, options));
  MILLRACE_TRY(take_number(arguments, "points", options.n_points));
  MILLRACE_TRY(take_number(arguments, "samples", options.samples));
  if (arguments.has("seed")) {
    const std::string text = arguments.text("seed");
    if (!value_from_texts("seed", Texts(&text, 1), options.seed)) {
      return Error{ErrorCode::Usage,
                   fmt::format("--seed: expected a whole number from 0 up, found '{}'", text)};
    }
  }
  options.exposure = arguments.is_on("exposure");
  options.vignetting = arguments.is_on("vignetting");
  options.masks = arguments.is_on("masks");
  options.distortion = arguments.is_on("distortion");
  options.text_model = arguments.is_on("text");
  options.overwrite = arguments.is_on("overwrite");
  return options;
}

Json score_json(const ImageScore& score) {
  return {{"psnr", score.psnr},
          {"ssim", score.ssim},
          {"psnr_cc", score.psnr_cc},
          {"ssim_cc", score.ssim_cc},
          {"psnr_gain", score.psnr_gain}};
}

std::string score_row(const std::string& name, const ImageScore& score) {
  return fmt::format("{:8.3f} {:8.4f} {:8.3f} {:8.4f} {:9.3f}  {}", score.psnr, score.ssim,
                     score.psnr_cc, score.ssim_cc, score.psnr_gain, name);
}

}  // namespace

Result<int> run_devices(Context& context, const ParsedArguments& arguments) {
  MILLRACE_TRY(check_positionals(arguments, {}));
  for (const DeviceInfo& device : list_devices()) {
    std::string line = fmt::format("{:<10} {}", device.id, device.name);
    if (!device.driver.empty()) line += "  " + device.driver;
    if (device.threads > 0) line += fmt::format("  {} threads", device.threads);
    if (device.memory_bytes > 0) line += "  " + bytes_text(device.memory_bytes);
    if (device.software) line += "  (software; never chosen by auto)";
    if (!context.events.is_on()) context.console.output(line);
    context.events.emit("device", {{"id", device.id},
                                   {"name", device.name},
                                   {"driver", device.driver},
                                   {"memory_bytes", device.memory_bytes},
                                   {"threads", device.threads},
                                   {"software", device.software}});
  }
  return 0;
}

Result<int> run_make_capture(Context& context, const ParsedArguments& arguments) {
  MILLRACE_TRY(check_positionals(arguments, {"DIR"}));
  MILLRACE_ASSIGN(const CaptureOptions options, capture_options(arguments));
  const std::filesystem::path folder = arguments.positionals[0];
  double last_s = -kProgressInterval;
  const auto progress = [&](uint32_t done, uint32_t total) {
    const double now = context.events.seconds();
    if (done < total && now - last_s < kProgressInterval) return;
    last_s = now;
    context.console.progress(fmt::format("photograph {}/{}", done, total));
    context.events.emit("images", {{"done", done}, {"total", total}});
  };
  MILLRACE_ASSIGN(const CaptureReport report, make_capture(folder, options, progress));
  context.console.end_progress();
  MILLRACE_ASSIGN(const double points_psnr,
                  evaluate_initial_points(std::filesystem::path(folder).string(), "cpu"));
  context.console.result(fmt::format("capture: {}", absolute_text(folder)));
  context.console.result(fmt::format("{} views of {}x{}, {} points, {}", report.n_views,
                                     options.width, options.height, with_thousands(report.n_points),
                                     duration_text(report.seconds)));
  context.console.result(fmt::format("PSNR of the mean colour: {:.2f}", report.mean_color_psnr));
  context.console.result(fmt::format("PSNR of the initial points: {:.2f}", points_psnr));
  Json done = {{"capture", absolute_text(folder)},   {"views", report.n_views},
               {"points", report.n_points},          {"mean_color_psnr", report.mean_color_psnr},
               {"initial_points_psnr", points_psnr}, {"seconds", report.seconds}};
  context.events.emit("done", done);
  return 0;
}

Result<int> run_apply_crop(Context& context, const ParsedArguments& arguments) {
  MILLRACE_TRY(check_positionals(arguments, {"PLY"}));
  ApplyCropOptions options;
  options.model = arguments.positionals[0];
  options.crop_box = arguments.text("crop_box");
  options.output = arguments.text("output");
  options.overwrite = arguments.is_on("overwrite");
  if (options.crop_box.empty()) return Error{ErrorCode::Usage, "--crop-box BOX is missing"};
  if (options.output.empty()) return Error{ErrorCode::Usage, "-o PLY is missing"};
  MILLRACE_ASSIGN(const ApplyCropResult result, apply_crop(options));
  context.console.result(
      fmt::format("{} Gaussians kept, {} removed: {}", with_thousands(result.n_kept),
                  with_thousands(result.n_removed), absolute_text(options.output)));
  context.events.emit("done", {{"kept", result.n_kept},
                               {"removed", result.n_removed},
                               {"output", absolute_text(options.output)}});
  return 0;
}

Result<int> run_score(Context& context, const ParsedArguments& arguments) {
  MILLRACE_TRY(check_positionals(arguments, {"RENDERS", "PHOTOS"}));
  MILLRACE_ASSIGN(const std::vector<FileScore> scores,
                  score_folders(arguments.positionals[0], arguments.positionals[1]));
  const ImageScore mean = mean_score(scores);
  Json files = Json::array();
  for (const FileScore& file : scores) {
    Json row = {{"name", file.name}};
    row.update(score_json(file.score));
    files.push_back(row);
  }
  const Json result = {{"images", scores.size()}, {"mean", score_json(mean)}, {"files", files}};
  context.events.emit("done", result);
  if (context.events.is_on()) return 0;
  if (arguments.is_on("json")) {
    context.console.output(json_line(result));
    return 0;
  }
  context.console.output("    PSNR     SSIM  PSNR cc  SSIM cc PSNR gain");
  for (const FileScore& file : scores) context.console.output(score_row(file.name, file.score));
  context.console.output(score_row(fmt::format("mean of {} images", scores.size()), mean));
  return 0;
}

}  // namespace millrace
