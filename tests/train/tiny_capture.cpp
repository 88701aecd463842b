// Making and removing what the training tests share.
#include "train/tiny_capture.h"
#include "train/strategy_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "synth/make_capture.h"
#include "train/open_device.h"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;

// Every device call of every test here is checked.
[[maybe_unused]] const int checked = setenv("MILLRACE_CHECKED", "1", 1);

struct ScratchFolder {
  fs::path path = fs::temp_directory_path() / ("millrace_train_tests_" + std::to_string(getpid()));
  ScratchFolder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~ScratchFolder() {
    std::error_code ec;
    fs::remove_all(path, ec);
  }
};

}  // namespace

const fs::path& scratch_folder() {
  static const ScratchFolder folder;
  return folder.path;
}

const fs::path& tiny_capture() {
  static const fs::path folder = [] {
    CaptureOptions options;
    options.n_views = 12;
    options.width = 64;
    options.height = 48;
    options.n_points = 400;
    options.samples = 2;
    options.text_model = true;
    const fs::path path = scratch_folder() / "capture";
    make_capture(path, options, {}).or_raise();
    return path;
  }();
  return folder;
}

TrainOptions tiny_options(uint32_t iterations) {
  TrainOptions options;
  options.dataset = tiny_capture().string();
  options.iterations = iterations;
  options.eval_steps = {};
  options.save_steps = {};
  options.device = "cpu";
  options.threads = 2;
  set_short_stages(options);
  return options;
}

TrainOptions tiny_mrnf_options(uint32_t iterations) {
  TrainOptions options = tiny_options(iterations);
  use_strategy(options, "mrnf");
  set_short_stages(options);
  return options;
}

void set_short_stages(TrainOptions& options) {
  options.refine_every = 10;
  options.start_refine = 5;
  options.sh_degree_interval = 20;
  options.morton_interval = 25;
  options.max_cap = 2000;
}

const Dataset& tiny_dataset() {
  static const Dataset dataset =
      load_dataset(tiny_capture(), dataset_options(tiny_options(1))).or_raise();
  return dataset;
}

TrainSummary train_or_fail(TrainOptions options, const TrainObserver& observer) {
  static std::atomic<int> n_runs = 0;
  if (options.output.empty()) {
    options.output = (scratch_folder() / ("run" + std::to_string(n_runs++))).string();
  }
  const std::atomic<bool> stop = false;
  auto summary = train(options, observer, stop);
  if (!summary) {
    ADD_FAILURE() << summary.error().message;
    return {};
  }
  return std::move(summary).value();
}

}  // namespace millrace::test
