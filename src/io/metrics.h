// Image quality on the host, in double precision: PSNR, SSIM, and both after a colour fit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/image_write.h"

namespace millrace {

/// Measures of one render against one photograph of the same size (CONTRACTS: measuring rules).
struct ImageScore {
  double psnr = 0;       // floats clamped to [0,1]
  double ssim = 0;       // 11x11, sigma 1.5, valid windows only
  double psnr_cc = 0;    // after a 3x4 affine colour map, checkerboard cross-fit
  double ssim_cc = 0;    // SSIM of the colour-mapped render
  double psnr_gain = 0;  // after one gain per image by least squares
};

ImageScore score_image(const ImageF& render, const ImageF& photo);

/// One file of a scored folder.
struct FileScore {
  std::string name;  // relative path of the render
  ImageScore score;
};

/// Scores every image below `renders` with the image of the same relative path (any image extension) below
/// `photos`, resizing nothing. Errors: ErrorCode::Dataset naming renders without a photograph or of another size.
Result<std::vector<FileScore>> score_folders(const std::filesystem::path& renders,
                                             const std::filesystem::path& photos);

/// The mean of each measure.
ImageScore mean_score(const std::vector<FileScore>& scores);

}  // namespace millrace
