// make-capture: a deterministic synthetic capture that looks like photographs, with its ground
// truth.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace millrace {

struct CaptureOptions {
  uint32_t n_views = 48;
  uint32_t width = 640, height = 480;
  uint64_t seed = 1;
  bool exposure = false;  // per-image exposure and white balance
  bool vignetting = false;
  bool masks = false;  // masks/<name>.png, white = keep; a distractor stands where they are black
  bool distortion = false;  // OPENCV lens instead of PINHOLE
  bool text_model = false;  // cameras.txt and so on instead of .bin
  uint32_t n_points = 6000;
  int samples = 4;  // primary rays per pixel side (samples^2 jittered rays)
  bool overwrite = false;
};

/// What was made, for printing.
struct CaptureReport {
  uint32_t n_views = 0;
  uint64_t n_points = 0;
  double mean_color_psnr =
      0;  // held-out views (index % 8 == 0) predicted by the training views' mean colour
  double seconds = 0;
};

/// Ray-traces the capture into `folder`: images/, sparse/0/, ground_truth/{exposure.json,
/// wire_masks/, depth/, neutral/}. Same options, same bytes. `progress(done, total)` is called from
/// the calling thread. Errors: Usage (folder holds a capture and overwrite is off; absurd sizes),
/// Output.
Result<CaptureReport> make_capture(const std::filesystem::path& folder,
                                   const CaptureOptions& options,
                                   const std::function<void(uint32_t, uint32_t)>& progress);

}  // namespace millrace
