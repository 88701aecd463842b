// millrace train.
#include <fmt/format.h>

#include <cmath>

#include "app/observer.h"
#include "app/stop_signal.h"

namespace millrace {
namespace {

std::string score_text(const TrainSummary& s) {
  if (!std::isfinite(s.psnr)) return "PSNR - (nothing was held out)";
  return fmt::format("PSNR {:.2f}, SSIM {:.4f}", s.psnr, s.ssim);
}

void print_summary(Console& console, const TrainSummary& s, const std::string& trace) {
  const std::string speed =
      s.steps_per_second > 0 ? fmt::format(" ({:.1f} steps/s)", s.steps_per_second) : "";
  console.result(fmt::format("{}, {} Gaussians, {} steps in {}{}", score_text(s),
                             with_thousands(s.gaussians), s.steps, duration_text(s.seconds),
                             speed));
  console.result(fmt::format("host waits per step (pacing excluded): {:.3f}; replays: {}",
                             s.steady_waits_per_step, s.replays));
  const auto file = [&](const char* what, const std::filesystem::path& path) {
    if (!path.empty()) console.result(fmt::format("{}: {}", what, absolute_text(path)));
  };
  file("PLY", s.ply);
  file("report", s.report);
  file("contact sheet", s.contact_sheet);
  file("trace", trace);
  if (!s.why_slow.empty()) console.result("why slow: " + s.why_slow);
}

void emit_done(Events& events, const TrainSummary& s) {
  const auto file = [](const std::filesystem::path& path) -> Json {
    return path.empty() ? Json(nullptr) : Json(absolute_text(path));
  };
  events.emit("done", {{"interrupted", s.interrupted},
                       {"steps", s.steps},
                       {"psnr", s.psnr},
                       {"ssim", s.ssim},
                       {"gaussians", s.gaussians},
                       {"replays", s.replays},
                       {"steps_per_second", s.steps_per_second},
                       {"seconds", s.seconds},
                       {"waits_per_step", s.steady_waits_per_step},
                       {"why_slow", s.why_slow},
                       {"state_sha256", s.state_sha256},
                       {"output", file(s.output)},
                       {"ply", file(s.ply)},
                       {"report", file(s.report)},
                       {"contact_sheet", file(s.contact_sheet)}});
}

}  // namespace

Result<int> run_train(Context& context, const ParsedArguments& arguments) {
  MILLRACE_ASSIGN(const TrainOptions options, train_options(arguments));
  if (options.dataset.empty()) {
    return Error{ErrorCode::Usage, "DATASET is missing: the folder of the capture"};
  }
  // train() checks too; here a wrong flag is told before anything else happens.
  MILLRACE_TRY(checked_options(options));
  context.console.debug("settings: " + options_to_json(options));

  Observer observer(context);
  const StopSignal stop(context.console.level() == LogLevel::Error);
  const Result<TrainSummary> trained = train(options, observer.callbacks(), stop.flag());
  context.console.end_progress();
  if (!trained.ok()) {
    for (const auto& path : observer.saved()) {
      context.console.info("saved before the error: " + path.string());
    }
    return trained.error();
  }
  const TrainSummary& summary = trained.value();
  print_summary(context.console, summary, options.trace);
  emit_done(context.events, summary);
  if (!summary.interrupted) return 0;
  context.console.warning(fmt::format(
      "interrupted after {} of {} steps; the model so far is saved in {}", summary.steps,
      options.iterations, absolute_text(summary.ply.empty() ? summary.output : summary.ply)));
  return static_cast<int>(ErrorCode::Interrupted);
}

}  // namespace millrace
