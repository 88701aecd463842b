// The progress line and its pace.
#include "app/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/console.h"

namespace millrace {
namespace {

constexpr double kTerminalInterval = 0.1, kLineInterval = 10, kShortestLineInterval = 1;  // s
constexpr uint32_t kEventSteps = 100;
constexpr double kEventInterval = 1;  // s
constexpr uint32_t kBarWidth = 20;

bool is_last(const StepProgress& p) { return p.step + 1 >= p.iterations; }

uint32_t twentieth(const StepProgress& p) {
  return p.iterations == 0 ? 0 : static_cast<uint32_t>(uint64_t{20} * (p.step + 1) / p.iterations);
}

std::string number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "?";
}

}  // namespace

std::string progress_text(const StepProgress& p, bool bar, uint32_t columns) {
  const uint64_t done = uint64_t{p.step} + 1;
  const uint64_t percent = p.iterations == 0 ? 0 : 100 * done / p.iterations;
  const bool has_rate = p.steps_per_second > 0;
  std::string text =
      fmt::format("{}/{} {} % | {} steps/s | ETA {} | loss {} | PSNR {} | {} Gaussians", done,
                  p.iterations, percent, has_rate ? number(p.steps_per_second, 1) : "?",
                  has_rate ? duration_text(p.eta_seconds) : "?", number(p.loss, 4),
                  number(p.train_psnr, 2), with_thousands(p.gaussians));
  if (bar && text.size() + kBarWidth + 4 <= columns) {
    const auto filled =
        static_cast<size_t>(std::min<uint64_t>(kBarWidth, percent * kBarWidth / 100));
    text = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " + text;
  }
  return text;
}

bool ProgressPace::is_due(const StepProgress& progress, double now_s) {
  const double waited = last_s_ ? now_s - *last_s_ : kLineInterval;
  bool due = is_last(progress);
  if (is_terminal_) {
    due = due || waited >= kTerminalInterval;
  } else {
    due = due || waited >= kLineInterval ||
          (twentieth(progress) != last_twentieth_ && waited >= kShortestLineInterval);
  }
  if (due) {
    last_s_ = now_s;
    last_twentieth_ = twentieth(progress);
  }
  return due;
}

bool EventPace::is_due(const StepProgress& progress, double now_s) {
  const bool due = !last_s_ || is_last(progress) || progress.step >= last_step_ + kEventSteps ||
                   now_s - *last_s_ >= kEventInterval;
  if (due) {
    last_s_ = now_s;
    last_step_ = progress.step;
  }
  return due;
}

}  // namespace millrace
