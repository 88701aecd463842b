// Progress: when a step is worth a line or an event, and how the line reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/trainer.h"

namespace millrace {

/// "[####......] 1200/30000 4 % | 35.2 steps/s | ETA 13:40 | loss 0.0828 | PSNR 24.31 | 109,451
/// Gaussians". The bar is left out where `columns` would not hold it.
std::string progress_text(const StepProgress& progress, bool bar, uint32_t columns);

/// Which steps are shown: on a terminal ten times a second; else every 5 % but at most once a
/// second, or after 10 seconds. The last step always.
class ProgressPace {
 public:
  explicit ProgressPace(bool is_terminal) : is_terminal_(is_terminal) {}
  /// Whether to show `progress`, given the time since the start of the program.
  bool is_due(const StepProgress& progress, double now_s);

 private:
  bool is_terminal_;
  std::optional<double> last_s_;
  uint32_t last_twentieth_ = 0;
};

/// Which steps become events: every 100 steps, after a second, and the first and last.
class EventPace {
 public:
  bool is_due(const StepProgress& progress, double now_s);

 private:
  std::optional<double> last_s_;
  uint32_t last_step_ = 0;
};

}  // namespace millrace
