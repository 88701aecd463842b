// Reproducible float images for the tests of io.
#pragma once

#include <cmath>

#include "base/philox.h"
#include "io/image_write.h"

namespace millrace {

/// Independent uniform noise in (low, high).
inline ImageF noise_image(uint32_t width, uint32_t height, uint32_t stream, float low = 0,
                          float high = 1) {
  ImageF image{width, height, {}};
  for (uint32_t i = 0; i < 3 * width * height; ++i) {
    const auto words = philox(11, stream, RandomPurpose::Synthetic, i);
    image.pixels.push_back(low + (high - low) * uniform_open(words[0]));
  }
  return image;
}

/// Smooth colourful waves in 0.1..0.9.
inline ImageF wave_image(uint32_t width, uint32_t height, float phase = 0) {
  ImageF image{width, height, {}};
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const auto fx = static_cast<float>(x), fy = static_cast<float>(y);
      image.pixels.push_back(0.5f + 0.4f * std::sin(0.13f * fx + 0.07f * fy + phase));
      image.pixels.push_back(0.5f + 0.4f * std::cos(0.05f * fx - 0.17f * fy + 2 * phase));
      image.pixels.push_back(0.5f + 0.4f * std::sin(0.11f * (fx + fy) + 1 + 3 * phase));
    }
  }
  return image;
}

}  // namespace millrace
