// Area-average and bilinear resizing, separable.
#include <algorithm>
#include <cmath>
#include <vector>

#include "data/image.h"

namespace millrace {
namespace {

/// The source pixels of one target pixel along one axis, and their weights (sum 1).
struct Tap {
  uint32_t first = 0;
  std::vector<float> weights;
};

std::vector<Tap> make_taps(uint32_t from, uint32_t to) {
  std::vector<Tap> taps(to);
  const double ratio = static_cast<double>(from) / to;
  for (uint32_t i = 0; i < to; ++i) {
    Tap& tap = taps[i];
    if (to <= from) {
      const double begin = i * ratio, end = std::min<double>(from, (i + 1) * ratio);
      tap.first = std::min(from - 1, static_cast<uint32_t>(begin));
      for (uint32_t j = tap.first; j < from && (j < end || j == tap.first); ++j) {
        const double share = std::min<double>(end, j + 1) - std::max<double>(begin, j);
        if (share <= 1e-9 * ratio && !tap.weights.empty()) break;
        tap.weights.push_back(static_cast<float>(share / ratio));
      }
    } else {
      const double at = std::clamp((i + 0.5) * ratio - 0.5, 0.0, static_cast<double>(from - 1));
      tap.first = static_cast<uint32_t>(at);
      const float s = static_cast<float>(at - tap.first);
      tap.weights = {1 - s};
      if (tap.first + 1 < from) tap.weights.push_back(s);
    }
  }
  return taps;
}

/// One row of pixels as floats; colours are weighted by alpha where there is one.
void load_row(const Image8& image, uint32_t row, std::vector<float>& values) {
  const size_t n = size_t{image.width} * image.channels;
  const uint8_t* from = image.pixels.data() + n * row;
  for (size_t i = 0; i < n; ++i) values[i] = from[i];
  if (image.channels != 4) return;
  for (size_t i = 0; i < n; i += 4) {
    for (size_t k = 0; k < 3; ++k) values[i + k] *= values[i + 3] / 255.0f;
  }
}

}  // namespace

Image8 resize_image(const Image8& image, uint32_t width, uint32_t height) {
  const size_t channels = image.channels;
  Image8 result{width, height, image.channels, {}};
  result.pixels.resize(size_t{width} * height * channels);
  const std::vector<Tap> across = make_taps(image.width, width),
                         down = make_taps(image.height, height);
  std::vector<float> source(image.width * channels), squeezed(width * channels),
      sum(width * channels);
  for (uint32_t row = 0; row < height; ++row) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (size_t j = 0; j < down[row].weights.size(); ++j) {
      load_row(image, down[row].first + static_cast<uint32_t>(j), source);
      for (uint32_t column = 0; column < width; ++column) {
        const Tap& tap = across[column];
        for (size_t k = 0; k < channels; ++k) {
          float value = 0;
          for (size_t i = 0; i < tap.weights.size(); ++i) {
            value += tap.weights[i] * source[(tap.first + i) * channels + k];
          }
          squeezed[column * channels + k] = value;
        }
      }
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += down[row].weights[j] * squeezed[i];
    }
    uint8_t* to = result.pixels.data() + size_t{row} * width * channels;
    for (size_t i = 0; i < sum.size(); ++i) {
      float value = sum[i];
      if (channels == 4 && i % 4 != 3) {
        const float alpha = sum[i - i % 4 + 3];
        value = alpha > 0 ? value * 255.0f / alpha : 0;
      }
      to[i] = static_cast<uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
    }
  }
  return result;
}

}  // namespace millrace
