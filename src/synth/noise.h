// Noise: a periodic lattice of random values, and smooth noise made of it.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/vec.h"

namespace millrace::synth {

/// Sub-streams of RandomPurpose::Synthetic, given as Philox's `step`; steps below kLattice are view
/// numbers.
enum class Stream : uint32_t {
  kLattice = 1u << 20,
  kCamera = 2u << 20,
  kExposure = 3u << 20,
  kPoint = 4u << 20,
  kObservation = 5u << 20,
  kUnmatched = 6u << 20,
  kDistractor = 7u << 20,
};

/// Values in (0,1) on a 32^3 lattice, a pure function of the seed. Const and thread-safe once
/// built.
class Noise {
 public:
  explicit Noise(uint64_t seed);

  /// The random value of one cell; coordinates wrap at 32.
  float cell(int x, int y, int z) const {
    return values_[static_cast<size_t>(((z & 31) << 10) | ((y & 31) << 5) | (x & 31))];
  }
  /// Smooth value noise with features of size 1, in (0,1), mean about 0.5.
  float value(Vec3 p) const;
  /// Sum of `octaves` of value(), each twice as fine and half as strong, normalised to (0,1).
  float fractal(Vec3 p, int octaves) const;

 private:
  std::vector<float> values_;
};

}  // namespace millrace::synth
