// millrace eval and millrace render.
#include <fmt/format.h>

#include "app/observer.h"
#include "train/option_values.h"

namespace millrace {
namespace {

Error missing(const char* what) { return {ErrorCode::Usage, std::string(what) + " is missing"}; }

}  // namespace

Result<int> run_eval(Context& context, const ParsedArguments& arguments) {
  EvalOptions options;
  MILLRACE_ASSIGN(options.data, train_options(arguments));
  // A run's config.json names the run's own folder; only an -o given here says where to write.
  options.output = arguments.text("output");
  options.overwrite = arguments.is_on("overwrite");
  options.dataset = options.data.dataset;
  options.device = options.data.device;
  options.model = arguments.text("model");
  options.all_views = arguments.is_on("all_views");
  if (options.dataset.empty()) return missing("DATASET");
  if (options.model.empty()) return missing("--model PLY");
  MILLRACE_TRY(checked_options(options.data));

  Observer observer(context);
  MILLRACE_ASSIGN(const EvalResult result, evaluate_model(options, observer.callbacks()));
  context.console.end_progress();
  context.console.result(
      fmt::format("PSNR {:.3f}, SSIM {:.4f}, PSNR after colour fit {:.3f}, after gain {:.3f}; {} "
                  "views ({:.1f} frames/s), {} Gaussians",
                  result.psnr, result.ssim, result.psnr_cc, result.psnr_gain, result.n_views,
                  result.frames_per_second, with_thousands(result.gaussians)));
  if (!options.output.empty()) context.console.result("output: " + absolute_text(options.output));
  context.events.emit("done", {{"psnr", result.psnr},
                               {"ssim", result.ssim},
                               {"psnr_cc", result.psnr_cc},
                               {"psnr_gain", result.psnr_gain},
                               {"views", result.n_views},
                               {"gaussians", result.gaussians},
                               {"seconds", result.seconds},
                               {"frames_per_second", result.frames_per_second}});
  return 0;
}

Result<int> run_render(Context& context, const ParsedArguments& arguments) {
  MILLRACE_TRY(check_positionals(arguments, {"PLY"}));
  TrainOptions settings;
  for (const char* key : {"bg_color", "device"}) {
    if (arguments.has(key)) MILLRACE_TRY(set_option(settings, key, arguments.values.at(key)));
  }
  RenderOptions options;
  options.model = arguments.positionals[0];
  options.cameras = arguments.text("cameras");
  options.output = arguments.text("output");
  options.device = settings.device;
  options.bg_color = settings.bg_color;
  options.overwrite = arguments.is_on("overwrite");
  options.depth = arguments.is_on("depth");
  options.png16 = arguments.is_on("png16");
  if (options.cameras.empty()) return missing("--cameras FILE");
  if (options.output.empty()) return missing("-o DIR");

  Observer observer(context);
  MILLRACE_ASSIGN(const RenderResult result, render_model(options, observer.callbacks()));
  context.console.end_progress();
  context.console.result(fmt::format("{} images ({:.1f} frames/s) in {}", result.n_images,
                                     result.frames_per_second, absolute_text(options.output)));
  context.events.emit("done", {{"images", result.n_images},
                               {"frames_per_second", result.frames_per_second},
                               {"output", absolute_text(options.output)}});
  return 0;
}

}  // namespace millrace
