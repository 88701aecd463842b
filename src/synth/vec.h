// Vec3: the small float vector algebra of the synthetic scene; also holds linear RGB.
#pragma once

#include <algorithm>
#include <cmath>

namespace millrace::synth {

/// Three floats: a position in world units, a direction, or linear RGB.
struct Vec3 {
  float x = 0, y = 0, z = 0;
};

inline Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec3 operator-(Vec3 a) { return {-a.x, -a.y, -a.z}; }
inline Vec3 operator*(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
inline Vec3 operator*(Vec3 a, float s) { return {a.x * s, a.y * s, a.z * s}; }
inline Vec3 operator*(float s, Vec3 a) { return a * s; }
inline Vec3& operator+=(Vec3& a, Vec3 b) { return a = a + b; }
inline float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline float length(Vec3 a) { return std::sqrt(dot(a, a)); }
inline Vec3 normalize(Vec3 a) { return a * (1.0f / length(a)); }

inline float saturate(float x) { return std::clamp(x, 0.0f, 1.0f); }
inline float mix(float a, float b, float t) { return a + (b - a) * t; }
inline Vec3 mix(Vec3 a, Vec3 b, float t) { return a + (b - a) * t; }
/// 0 below `from`, 1 above `to`, cubic between.
inline float smooth_step(float from, float to, float x) {
  const float t = saturate((x - from) / (to - from));
  return t * t * (3.0f - 2.0f * t);
}
/// Largest integer not above `x`, without the library call that baseline x86-64 would need.
inline int floor_int(float x) {
  const int truncated = static_cast<int>(x);
  return truncated - (x < static_cast<float>(truncated) ? 1 : 0);
}
inline float fraction(float x) { return x - static_cast<float>(floor_int(x)); }

/// Rows of a rotation: axis[k] is the k-th local axis in world coordinates.
struct Rotation {
  Vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  Vec3 to_local(Vec3 v) const { return {dot(axis[0], v), dot(axis[1], v), dot(axis[2], v)}; }
  Vec3 to_world(Vec3 v) const { return axis[0] * v.x + axis[1] * v.y + axis[2] * v.z; }
};

}  // namespace millrace::synth
