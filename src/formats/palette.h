// Quantisation to a few values: codebooks of numbers and palettes of vectors. Deterministic.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

/// 256 values in rising order, for numbers (one-dimensional k-means from quantiles).
using Codebook = std::array<float, 256>;
Codebook make_codebook(std::span<const float> values);
/// The index of the entry nearest to `value`.
uint8_t nearest_entry(const Codebook& codebook, float value);

/// Vectors that stand for many: row i is near to centroid labels[i].
struct Palette {
  std::vector<float> centroids;  // [K,D]
  std::vector<uint32_t> labels;  // [N]
};

/// At most `n_most` centroids for `rows` [N,D]: cells are split in half at the mean of their widest
/// axis, the one with the largest squared error first, then improved by `n_rounds` of k-means in
/// which a row chooses among its own cell and the cells beside it.
Palette make_palette(std::span<const float> rows, size_t n_axes, size_t n_most, int n_rounds = 3);

}  // namespace millrace
