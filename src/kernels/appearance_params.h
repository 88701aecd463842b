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

}  // namespace millrace
