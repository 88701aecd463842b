// Philox4x32-10: random numbers as a pure function of (seed, step, purpose, row).
// Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011, section 3.3.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace millrace {

/// What a random number is for; two purposes never share a stream.
enum class RandomPurpose : uint32_t {
  Sampler = 1,
  McmcNoise = 2,
  McmcRelocate = 3,
  McmcAdd = 4,
  Background = 5,
  InitPoints = 6,
  TestCapacity = 7,
  TensorOp = 8,
  Synthetic = 9,
  MrnfNoise = 16,
  MrnfReplace = 17,
  MrnfGrow = 18,
};

/// Four independent 32-bit words for one (seed, step, purpose, row, lane).
inline std::array<uint32_t, 4> philox(uint64_t seed, uint32_t step, RandomPurpose purpose,
                                      uint32_t row, uint32_t lane = 0) {
  std::array<uint32_t, 4> c = {row, step, static_cast<uint32_t>(purpose), lane};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// A float in the open interval (0, 1).
inline float uniform_open(uint32_t word) {
  return (static_cast<float>(word >> 8) + 0.5f) * (1.0f / 16777216.0f);
}

/// Two independent standard normal numbers (Box-Muller).
inline std::array<float, 2> normal_pair(uint32_t a, uint32_t b) {
  const float radius = std::sqrt(-2.0f * std::log(uniform_open(a)));
  const float angle = 6.28318530717958647f * uniform_open(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace millrace
