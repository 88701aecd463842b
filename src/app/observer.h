// Observer: what a run reports, turned into console lines and events.
#pragma once

#include <filesystem>
#include <vector>

#include "app/commands.h"
#include "app/progress.h"
#include "train/trainer.h"

namespace millrace {

/// Must outlive the run that it observes.
class Observer {
 public:
  explicit Observer(Context& context);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// The callbacks; they refer to this object.
  TrainObserver callbacks();
  /// Files saved so far, in order, as absolute paths.
  const std::vector<std::filesystem::path>& saved() const { return saved_; }

 private:
  void on_loaded(const Dataset& dataset, const DeviceInfo& device);
  void on_planned(const MemoryPlan& plan);
  void on_images(uint32_t done, uint32_t total);
  void on_step(const StepProgress& progress);
  void on_evaluated(const EvalResult& result);
  void on_saved(const std::filesystem::path& path);

  Context& context_;
  ProgressPace line_pace_;
  EventPace event_pace_;
  double last_images_s_ = -1;
  std::vector<std::filesystem::path> saved_;
};

/// "COLMAP binary (sparse/0), 48 views (42 to train on, 6 held out), 6,000 points, 640x480".
std::string dataset_text(const Dataset& dataset);
/// "cpu: NAME, avx2, 2 threads, 8.0 GiB".
std::string device_text(const DeviceInfo& device);
/// The path from the root, without "." and "..".
std::string absolute_text(const std::filesystem::path& path);

}  // namespace millrace
