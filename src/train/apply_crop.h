// apply_crop: removes what lies outside a crop box from a model on disk.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace millrace {

struct ApplyCropOptions {
  std::string model;     // PLY
  std::string crop_box;  // as --crop-box takes it
  std::string output;    // PLY
  bool overwrite = false;
};
struct ApplyCropResult {
  uint64_t n_kept = 0, n_removed = 0;
};

/// Writes `output` with the Gaussians of `model` whose means the box keeps; nothing else of them
/// changes. Training never removes them: it only slows them down. Errors: Usage for the box, and if
/// the output exists or no Gaussian would be left; Dataset for the model; Output.
Result<ApplyCropResult> apply_crop(const ApplyCropOptions& options);

}  // namespace millrace
