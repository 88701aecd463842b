// Removing rows outside a box.
#include "train/apply_crop.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "io/ply.h"
#include "train/crop_box.h"
#include "train/kept_rows.h"

namespace millrace {

Result<ApplyCropResult> apply_crop(const ApplyCropOptions& options) {
  MILLRACE_ASSIGN(const CropBox box, crop_box_of_setting(options.crop_box));
  std::error_code ec;
  if (!options.overwrite && std::filesystem::exists(options.output, ec)) {
    return Error{
        ErrorCode::Usage,
        fmt::format("{} exists; choose another file with -o, or use --overwrite", options.output)};
  }
  MILLRACE_ASSIGN(GaussianCloud cloud, read_gaussian_ply(options.model));
  std::vector<bool> keep(cloud.count());
  for (uint64_t row = 0; row < keep.size(); ++row) {
    keep[row] = keeps(box, &cloud.means[3 * row]);
  }
  const uint64_t n_kept = keep_rows(cloud, keep);
  if (n_kept == 0) {
    return Error{ErrorCode::Usage,
                 fmt::format("none of the {} Gaussians of {} is inside --crop-box {}; check its "
                             "numbers and \"inverse\"",
                             keep.size(), options.model, options.crop_box)};
  }
  MILLRACE_TRY(write_gaussian_ply(options.output, cloud));
  return ApplyCropResult{n_kept, keep.size() - n_kept};
}

}  // namespace millrace
