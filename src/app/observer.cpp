// Reporting of a run to people and programs.
#include "app/observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "train/memory_plan.h"

namespace millrace {
namespace {

constexpr double kImagesInterval = 1;  // s between reports of loading

struct SizeRange {
  uint32_t min_width = 0, max_width = 0, min_height = 0, max_height = 0;
};

SizeRange size_range(const Dataset& dataset) {
  SizeRange range;
  for (const View& view : dataset.views) {
    const uint32_t w = view.camera.width, h = view.camera.height;
    const bool first = range.max_width == 0;
    range.min_width = first ? w : std::min(range.min_width, w);
    range.max_width = std::max(range.max_width, w);
    range.min_height = first ? h : std::min(range.min_height, h);
    range.max_height = std::max(range.max_height, h);
  }
  return range;
}

uint64_t held_out_count(const Dataset& dataset) {
  return static_cast<uint64_t>(std::ranges::count(dataset.views, true, &View::held_out));
}

}  // namespace

std::string absolute_text(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return (error ? path : absolute).lexically_normal().string();
}

std::string dataset_text(const Dataset& dataset) {
  const SizeRange size = size_range(dataset);
  const uint64_t held_out = held_out_count(dataset);
  std::string sizes = fmt::format("{}x{}", size.min_width, size.min_height);
  if (size.min_width != size.max_width || size.min_height != size.max_height) {
    sizes += fmt::format(" to {}x{}", size.max_width, size.max_height);
  }
  return fmt::format("{}, {} views ({} to train on, {} held out), {}{} points, {}", dataset.format,
                     dataset.views.size(), dataset.views.size() - held_out, held_out,
                     with_thousands(dataset.points.count()),
                     dataset.points_are_random ? " random" : "", sizes);
}

std::string device_text(const DeviceInfo& device) {
  std::string text = device.id + ": " + device.name;
  if (!device.driver.empty()) text += ", " + device.driver;
  if (device.threads > 0) text += fmt::format(", {} threads", device.threads);
  if (device.memory_bytes > 0) text += ", " + bytes_text(device.memory_bytes);
  return text;
}

Observer::Observer(Context& context)
    : context_(context), line_pace_(context.console.is_terminal()) {}

TrainObserver Observer::callbacks() {
  TrainObserver observer;
  observer.loaded = [this](const Dataset& dataset, const DeviceInfo& device) {
    on_loaded(dataset, device);
  };
  observer.planned = [this](const MemoryPlan& plan) { on_planned(plan); };
  observer.images_loading = [this](uint32_t done, uint32_t total) { on_images(done, total); };
  observer.step = [this](const StepProgress& progress) { on_step(progress); };
  observer.evaluated = [this](const EvalResult& result) { on_evaluated(result); };
  observer.saved = [this](const std::filesystem::path& path) { on_saved(path); };
  observer.note = [this](const std::string& text) {
    context_.console.info("note: " + text);
    context_.events.emit("note", {{"message", text}});
  };
  observer.warning = [this](const std::string& text) {
    context_.console.warning(text);
    context_.events.emit("warning", {{"message", text}});
  };
  return observer;
}

void Observer::on_loaded(const Dataset& dataset, const DeviceInfo& device) {
  context_.console.info("dataset: " + absolute_text(dataset.root) + ": " + dataset_text(dataset));
  context_.console.info("device: " + device_text(device));
  const SizeRange size = size_range(dataset);
  context_.events.emit("loaded", {{"dataset", absolute_text(dataset.root)},
                                  {"format", dataset.format},
                                  {"views", dataset.views.size()},
                                  {"held_out", held_out_count(dataset)},
                                  {"points", dataset.points.count()},
                                  {"points_are_random", dataset.points_are_random},
                                  {"width", {size.min_width, size.max_width}},
                                  {"height", {size.min_height, size.max_height}},
                                  {"device",
                                   {{"id", device.id},
                                    {"name", device.name},
                                    {"driver", device.driver},
                                    {"memory_bytes", device.memory_bytes},
                                    {"threads", device.threads}}}});
}

void Observer::on_planned(const MemoryPlan& plan) {
  for (const std::string& line : plan_text(plan)) context_.console.info(line);
  context_.events.emit("memory_plan", to_json(plan));
}

void Observer::on_images(uint32_t done, uint32_t total) {
  const double now = context_.events.seconds();
  if (done < total && last_images_s_ >= 0 && now - last_images_s_ < kImagesInterval) return;
  last_images_s_ = now;
  context_.console.progress(fmt::format("images {}/{}", done, total));
  context_.events.emit("images", {{"done", done}, {"total", total}});
}

void Observer::on_step(const StepProgress& p) {
  const double now = context_.events.seconds();
  if (line_pace_.is_due(p, now)) {
    const bool bar = context_.console.is_terminal();
    context_.console.progress(progress_text(p, bar, bar ? context_.console.columns() : 0));
  }
  if (context_.events.is_on() && event_pace_.is_due(p, now)) {
    context_.events.emit("step", {{"step", p.step},
                                  {"iterations", p.iterations},
                                  {"loss", p.loss},
                                  {"l1", p.l1},
                                  {"ssim", p.ssim},
                                  {"train_psnr", p.train_psnr},
                                  {"gaussians", p.gaussians},
                                  {"instances", p.instances},
                                  {"steps_per_second", p.steps_per_second},
                                  {"eta_s", p.eta_seconds}});
  }
}

void Observer::on_evaluated(const EvalResult& r) {
  context_.console.end_progress();
  if (r.n_views == 0) {
    context_.console.warning(
        fmt::format("evaluation after {} steps: no held-out view could be read", r.step));
  } else {
    context_.console.info(fmt::format(
        "evaluation after {} steps: PSNR {:.2f}, SSIM {:.4f} on {} views, {} Gaussians ({:.1f} s)",
        r.step, r.psnr, r.ssim, r.n_views, with_thousands(r.gaussians), r.seconds));
  }
  const auto score = [&](double value) { return r.n_views ? Json(value) : Json(nullptr); };
  context_.events.emit("eval", {{"step", r.step},
                                {"psnr", score(r.psnr)},
                                {"ssim", score(r.ssim)},
                                {"psnr_cc", score(r.psnr_cc)},
                                {"psnr_gain", score(r.psnr_gain)},
                                {"gaussians", r.gaussians},
                                {"views", r.n_views},
                                {"seconds", r.seconds}});
}

void Observer::on_saved(const std::filesystem::path& path) {
  saved_.push_back(absolute_text(path));
  context_.console.debug("saved " + saved_.back().string());
  context_.events.emit("saved", {{"path", saved_.back().string()}});
}

}  // namespace millrace
