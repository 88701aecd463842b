// EditLog: what was changed from outside while training runs, by step, so that a replay (and later
// a checkpoint) reads the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/crop_box.h"
#include "train/options.h"

namespace millrace {

/// Changes that take effect at the boundary before `step` is recorded, and hold from there on.
struct Edit {
  uint32_t step = 0;
  std::optional<std::array<float, 3>> bg_color = {};
  std::optional<uint64_t> max_cap = {};
  std::optional<std::optional<CropBox>> crop_box = {};  // the inner one is empty: no box
  // Once, with the state after `step` steps.
  std::optional<double> pause_seconds = {};  // record nothing for so long
  bool save = false;                         // write the PLY
  bool eval = false;                         // evaluate
  bool stop = false;  // end the run, with the evaluation and the files of an end
};

class EditLog {
 public:
  /// Reads JSON lines such as {"step": 120, "bg_color": "#ffffff", "save": true}, in any order.
  /// Errors: Usage, naming the file, the line and the key: not JSON, an unknown key, a value out of
  /// range, a step beyond `iterations`.
  static Result<EditLog> read(const std::string& path, uint32_t iterations);

  /// The crop box of the settings, from step 0 on, and the file of --commands. Errors: Usage.
  static Result<EditLog> of_settings(const TrainOptions& options);

  /// Adds an edit; its step must not have been recorded yet.
  void add(const Edit& edit);

  /// No edit asks for more Gaussians than `max_cap` any more.
  void limit_max_cap(uint64_t max_cap);

  /// What holds at `step`: the newest edit up to it, or `otherwise`.
  std::array<float, 3> bg_color(uint32_t step, const std::array<float, 3>& otherwise) const;
  uint64_t max_cap(uint32_t step, uint64_t otherwise) const;
  /// The crop box, if there is one then.
  std::optional<CropBox> crop_box(uint32_t step) const;
  /// How long to pause before `step` is recorded for the first time; 0: not at all.
  double pause_seconds(uint32_t step) const;

  /// All edits, by step.
  const std::vector<Edit>& edits() const { return edits_; }

 private:
  std::vector<Edit> edits_;
};

}  // namespace millrace
