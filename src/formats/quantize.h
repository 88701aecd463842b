// The small encodings that several splat formats share: bytes of opacity and colour, and unit
// quaternions without their largest component.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <span>
#include <vector>

namespace millrace {

constexpr float kShC0 = 0.28209479177387814f;  // the constant spherical harmonic, 1 / (2 sqrt(pi))

inline float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

/// `x` rounded to 0..255.
inline uint8_t to_byte(float x) {
  return static_cast<uint8_t>(std::clamp(std::round(x), 0.0f, 255.0f));
}
inline uint8_t opacity_byte(float logit) { return to_byte(255.0f * sigmoid(logit)); }

/// The logit of an opacity byte. The ends stand for the middle of what rounds to them, since they
/// have no finite logit of their own.
inline float logit_of_byte(uint8_t byte) {
  const float alpha = std::clamp(static_cast<float>(byte), 0.25f, 254.75f) / 255.0f;
  return std::log(alpha / (1.0f - alpha));
}

/// `value` in [0,1] as an integer of `bits` bits, and back.
inline uint32_t to_unorm(float value, uint32_t bits) {
  const auto most = static_cast<float>((1u << bits) - 1);
  return static_cast<uint32_t>(std::lround(std::clamp(value, 0.0f, 1.0f) * most));
}
inline float from_unorm(uint32_t word, uint32_t bits) {
  const uint32_t mask = (1u << bits) - 1;
  return static_cast<float>(word & mask) / static_cast<float>(mask);
}

/// Whether a row is drawn at all: the renderer skips rows whose quaternion is shorter than 1e-4.
inline bool has_rotation(const float* q) {
  return q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] >= 1e-8f;
}

/// The four components of a unit quaternion but the largest, which is made positive.
struct SmallestThree {
  uint32_t largest = 0;
  std::array<float, 3> others = {};  // in order, each in +-1/sqrt(2)
};
inline SmallestThree smallest_three(std::array<float, 4> q) {
  const float norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  SmallestThree out;
  for (uint32_t i = 1; i < 4; ++i) {
    if (std::abs(q[i]) > std::abs(q[out.largest])) out.largest = i;
  }
  const float factor = (q[out.largest] < 0 ? -1.0f : 1.0f) / norm;
  for (uint32_t i = 0, k = 0; i < 4; ++i) {
    if (i != out.largest) out.others[k++] = q[i] * factor;
  }
  return out;
}
inline std::array<float, 4> from_smallest_three(const SmallestThree& in) {
  std::array<float, 4> q = {};
  float rest = 1.0f;
  for (uint32_t i = 0, k = 0; i < 4; ++i) {
    if (i == in.largest) continue;
    q[i] = in.others[k++];
    rest -= q[i] * q[i];
  }
  q[in.largest] = std::sqrt(std::max(0.0f, rest));
  return q;
}

/// Appends the bytes of `value`, little endian as the machine is.
template <class T>
void append_bytes(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}
/// The T that begins at byte `offset`, which the caller has checked.
template <class T>
T bytes_at(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace millrace
