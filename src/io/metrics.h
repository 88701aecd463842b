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
  double psnr = 0;       // floats clamped to [0,1]; at most 100 dB
  double ssim = 0;       // 11x11, sigma 1.5, valid windows only; NaN for images below 11 pixels
  double psnr_cc = 0;    // after a 3x4 affine colour map, checkerboard cross-fit
  double ssim_cc = 0;    // SSIM of the colour-mapped render
  double psnr_gain = 0;  // after one gain per image by least squares
};

/// Scores `render` against `photo`. NaN counts as 0. A colour fit whose normal equations are
/// singular (fewer than 4 usable pixels, a render without chroma) is the identity; such an image
/// scores raw. Images of different sizes are a programming error and raise().
///
/// `weights` [H,W], 0 to 1: every mean, SSIM's of windows around a pixel included, is weighted by
/// them, and fits see only pixels above 0.5. Where all are 0 the measures are NaN. Empty: all
/// alike.
ImageScore score_image(const ImageF& render, const ImageF& photo,
                       const std::vector<float>& weights = {});

/// One file of a scored folder.
struct FileScore {
  std::string name;  // relative path of the render
  ImageScore score;
};

/// Scores every image below `renders` with the image of the same relative path (any image
/// extension) below `photos`, resizing nothing. Errors: ErrorCode::Dataset naming renders without a
/// photograph or of another size.
Result<std::vector<FileScore>> score_folders(const std::filesystem::path& renders,
                                             const std::filesystem::path& photos);

/// The mean of each measure; zeros if there are none.
ImageScore mean_score(const std::vector<FileScore>& scores);

}  // namespace millrace
