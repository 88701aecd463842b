// Noise: quintic interpolation of a random lattice.
#include "synth/noise.h"

#include "base/philox.h"

namespace millrace::synth {

namespace {

float quintic(float t) { return t * t * t * (t * (t * 6.0f - 15.0f) + 10.0f); }

}  // namespace

Noise::Noise(uint64_t seed) : values_(32 * 32 * 32) {
  for (uint32_t i = 0; i < values_.size(); i += 4) {
    const auto words =
        philox(seed, static_cast<uint32_t>(Stream::kLattice), RandomPurpose::Synthetic, i);
    for (uint32_t k = 0; k < 4; ++k) values_[i + k] = uniform_open(words[k]);
  }
}

float Noise::value(Vec3 p) const {
  const int x = floor_int(p.x), y = floor_int(p.y), z = floor_int(p.z);
  const float u = quintic(p.x - static_cast<float>(x));
  const float v = quintic(p.y - static_cast<float>(y));
  const float w = quintic(p.z - static_cast<float>(z));
  const float near_plane = mix(mix(cell(x, y, z), cell(x + 1, y, z), u),
                               mix(cell(x, y + 1, z), cell(x + 1, y + 1, z), u), v);
  const float far_plane = mix(mix(cell(x, y, z + 1), cell(x + 1, y, z + 1), u),
                              mix(cell(x, y + 1, z + 1), cell(x + 1, y + 1, z + 1), u), v);
  return mix(near_plane, far_plane, w);
}

float Noise::fractal(Vec3 p, int octaves) const {
  float sum = 0, weight = 1, total = 0;
  for (int i = 0; i < octaves; ++i) {
    sum += weight * value(p);
    total += weight;
    weight *= 0.5f;
    // An odd factor and an offset keep the lattices of the octaves from lining up.
    p = p * 2.03f + Vec3{7.3f, 3.1f, 5.7f};
  }
  return sum / total;
}

}  // namespace millrace::synth
