// millrace convert and export.
#include <fmt/format.h>

#include <filesystem>

#include "app/observer.h"
#include "data/text_fields.h"
#include "formats/model_file.h"
#include "train/option_values.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

Result<void> take_integer(const ParsedArguments& arguments, const char* key, const char* flag,
                          int least, int most, int& value) {
  if (!arguments.has(key)) return {};
  const auto number = parse_integer<int>(trim(arguments.text(key)));
  if (!number || *number < least || *number > most) {
    return Error{ErrorCode::Usage, fmt::format("{}: expected a whole number from {} to {}, found "
                                               "'{}'",
                                               flag, least, most, arguments.text(key))};
  }
  value = *number;
  return {};
}

}  // namespace

Result<WriteOptions> write_options(const ParsedArguments& arguments) {
  WriteOptions options;
  MILLRACE_TRY(take_integer(arguments, "spz_version", "--spz-version", 3, 4, options.spz.version));
  MILLRACE_TRY(take_integer(arguments, "spz_sh_bits", "--spz-sh-bits", 1, 8, options.spz.sh_bits));
  return options;
}

Result<int> run_convert(Context& context, const ParsedArguments& arguments) {
  MILLRACE_TRY(check_positionals(arguments, {"IN", "OUT"}));
  MILLRACE_ASSIGN(const WriteOptions options, write_options(arguments));
  const fs::path in = arguments.positionals[0], out = arguments.positionals[1];
  ModelFormat format = ModelFormat::Ply;
  if (arguments.has("to")) {
    MILLRACE_ASSIGN(const auto formats, formats_of_names({arguments.text("to")}));
    format = formats.front();
  } else {
    MILLRACE_ASSIGN(format, format_of_path(out));
  }
  std::error_code ec;
  if (!arguments.is_on("overwrite") && fs::exists(out, ec)) {
    return Error{ErrorCode::Usage,
                 fmt::format("{} exists; choose another name, or use --overwrite", out.string())};
  }
  MILLRACE_ASSIGN(const GaussianCloud cloud, read_model(in));
  MILLRACE_TRY(write_model(out, cloud, format, options));
  const uint64_t bytes = fs::is_regular_file(out, ec) ? fs::file_size(out, ec) : 0;
  context.console.result(fmt::format("{}: {} Gaussians, SH degree {}, {}", absolute_text(out),
                                     with_thousands(cloud.count()), cloud.sh_degree,
                                     format_name(format)));
  context.events.emit("done", {{"output", absolute_text(out)},
                               {"format", format_name(format)},
                               {"gaussians", cloud.count()},
                               {"sh_degree", cloud.sh_degree},
                               {"bytes", bytes}});
  return 0;
}

Result<int> run_export(Context& context, const ParsedArguments& arguments) {
  MILLRACE_TRY(check_positionals(arguments, {"MODEL"}));
  TrainOptions settings;
  if (arguments.has("device")) {
    MILLRACE_TRY(set_option(settings, "device", arguments.values.at("device")));
  }
  ExportOptions options;
  options.model = arguments.positionals[0];
  options.output = arguments.text("output");
  options.cameras = arguments.text("cameras");
  options.device = settings.device;
  options.overwrite = arguments.is_on("overwrite");
  MILLRACE_ASSIGN(options.write, write_options(arguments));
  const std::string names = arguments.text("to");
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    options.formats.emplace_back(trim(std::string_view(names).substr(at, end - at)));
    at = end + 1;
  }
  if (options.formats.empty()) return Error{ErrorCode::Usage, "--to FORMATS is missing"};
  if (options.output.empty()) return Error{ErrorCode::Usage, "-o DIR is missing"};

  Observer observer(context);
  MILLRACE_ASSIGN(const std::vector<ExportedFile> files,
                  export_model(options, observer.callbacks()));
  Json rows = Json::array();
  for (const ExportedFile& file : files) {
    context.console.result(fmt::format(
        "{}: {}, {} Gaussians, {:.1f} dB (least {:.1f})", absolute_text(file.path),
        bytes_text(file.bytes), with_thousands(file.gaussians), file.mean_psnr, file.least_psnr));
    rows.push_back({{"path", absolute_text(file.path)},
                    {"format", file.format},
                    {"bytes", file.bytes},
                    {"gaussians", file.gaussians},
                    {"psnr", file.mean_psnr},
                    {"psnr_least", file.least_psnr}});
  }
  context.events.emit("done", {{"files", rows}});
  return 0;
}

}  // namespace millrace
