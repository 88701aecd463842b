// Parameter blocks and layouts of the exposure correction kernels: plain data, the same bytes on
// every device.
#pragma once

#include <cstdint>

namespace millrace {

// PPISP's parameters lie in one array: exposure [F], colour [F,8], vignetting [C,3,5], response
// curve [C,3,4] (F frames, C physical cameras).
constexpr uint32_t kPpispColour = 8;       // latents: blue x y, red x y, green x y, neutral x y
constexpr uint32_t kPpispVignetting = 15;  // of each channel: centre x y, alpha 0 1 2
constexpr uint32_t kPpispCrf = 12;         // of each channel, raw: toe, shoulder, gamma, centre
constexpr uint32_t kPpispGradients = 1 + kPpispColour + kPpispVignetting + kPpispCrf;
// What the backward pass sums over pixels: 1 exposure; 15 vignetting; 8 entries of the homography,
// row-major without the last; of each channel 5 of the response: gain below the centre, toe,
// shoulder, gamma, centre.
constexpr uint32_t kPpispSums = 39;
constexpr uint32_t kPpispBand = 4;  // rows per partial sum

struct PpispParams {
  uint32_t width, height;  // px
  uint32_t n_frames, n_cameras;
};
static_assert(sizeof(PpispParams) == 16);

constexpr uint64_t ppisp_colour_at(const PpispParams& p, uint32_t frame) {
  return p.n_frames + uint64_t{kPpispColour} * frame;
}
constexpr uint64_t ppisp_vignetting_at(const PpispParams& p, uint32_t camera) {
  return ppisp_colour_at(p, p.n_frames) + uint64_t{kPpispVignetting} * camera;
}
constexpr uint64_t ppisp_crf_at(const PpispParams& p, uint32_t camera) {
  return ppisp_vignetting_at(p, p.n_cameras) + uint64_t{kPpispCrf} * camera;
}
constexpr uint64_t ppisp_floats(const PpispParams& p) { return ppisp_crf_at(p, p.n_cameras); }

// ---------------------------------------------------------------------------------------------
// Bilateral grids: per image [C,8,16,16] over luma, height and width (TRAINING.md 5.2).
// ---------------------------------------------------------------------------------------------
constexpr uint32_t kGridLevels = 8, kGridRows = 16, kGridColumns = 16;
constexpr uint32_t kGridCells = kGridLevels * kGridRows * kGridColumns;
constexpr uint32_t kGridAffineChannels = 12;   // the rows of a colour transform [3,4]
constexpr uint32_t kGridExposureChannels = 9;  // exposure, then the latents of ppisp_color.h
constexpr uint32_t kGridMaxChannels = 12;
constexpr float kGridMaxExposure = 16.0f;  // in powers of two, beyond which it is held
/// The pixels between four columns of cells are an area; a GPU sums its gradient in parts.
constexpr uint32_t kGridAreas = (kGridRows - 1) * (kGridColumns - 1);
constexpr uint32_t kGridParts = 4;
constexpr uint32_t kGridPartialFloats = 4 * kGridLevels * kGridMaxChannels;  // of one part

struct GridParams {
  uint32_t width, height;  // of the image, px
  uint32_t channels;       // kGridAffineChannels or kGridExposureChannels
  uint32_t n_images;
};

}  // namespace millrace
