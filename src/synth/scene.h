// Scene: the solids, poles, wires and floor of the synthetic capture, and rays through them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "synth/noise.h"
#include "synth/vec.h"

namespace millrace::synth {

/// World units: the floor is z = 0, z points up, solids stand within 2 units of the origin.
struct Ray {
  Vec3 origin, direction;  // direction of unit length
};

enum class Shape : uint8_t { Sphere, Box, Frustum, Torus };

/// What a surface looks like; see material.h.
enum class Material : uint8_t {
  Sky,
  Floor,
  BeachBall,
  Globe,
  Crate,
  GiftBox,
  Can,
  Drum,
  TrafficCone,
  Donut,
  Book,
  Pole,
  Wire,
  Coat,
};

/// A solid in its own frame: local = rotation.to_local(world - centre).
/// Sphere: size.x radius. Box: half sizes. Frustum: size.x radius at z = -size.z, size.y radius at
/// z = +size.z. Torus: size.x ring radius, size.y tube radius, axis z.
struct Solid {
  Shape shape = Shape::Sphere;
  Material material = Material::BeachBall;
  Vec3 centre, size;
  Rotation rotation;
  float bound_radius = 0;     // of a sphere around `centre` that holds the solid
  float occluder_radius = 0;  // of the sphere that stands for it in ambient occlusion
};

/// A straight piece of a wire or pole with round ends.
struct Capsule {
  Vec3 from, to;
  float radius = 0;
};

struct Bounds {
  Vec3 low, high;
};

/// A run of capsules with a common box; `wire` counts from 0, poles come before wires.
struct CapsuleGroup {
  Bounds bounds;
  uint32_t begin = 0, end = 0;
  Material material = Material::Wire;
  uint32_t index = 0;  // which pole or wire
};

struct Hit {
  float distance = 0;  // along the ray; meaningless for Sky
  Material material = Material::Sky;
  uint32_t index = 0;  // pole or wire number
  bool distractor = false;
  int solid = -1;  // index into Scene::solids, or -1
  Vec3 size;       // of the solid
  Vec3 position;   // world
  Vec3 normal;     // world, unit, outward
  Vec3 local;  // position in the solid's frame; world for the floor; along the axis in z for poles
  Vec3 local_normal;
};

/// Two solids that stand in one photograph only.
using Distractor = std::array<Solid, 2>;

struct Scene {
  Noise noise;
  std::vector<Solid> solids;
  std::vector<Capsule> capsules;
  std::vector<CapsuleGroup> groups;
  Bounds wire_bounds;  // of all wire groups
  Vec3 to_sun;         // unit

  /// The nearest surface on `ray`; Material::Sky when there is none.
  Hit trace(const Ray& ray, std::span<const Solid> distractor = {}) const;
  /// Whether a solid or a pole stands on `ray`. Wires do not count: their shadows under a wide sun
  /// are too faint to see, and with few rays they would be grain.
  bool blocked(const Ray& ray) const;
};

/// Whether one of `solids` stands on `ray`.
bool blocked_by(std::span<const Solid> solids, const Ray& ray);

/// The scene of a seed: the same arrangement with other patterns, angles and colours.
Scene build_scene(uint64_t seed);

/// A figure that stands between a camera at `camera_centre` and the scene; another place for each
/// `view`.
Distractor build_distractor(uint64_t seed, uint32_t view, Vec3 camera_centre);

}  // namespace millrace::synth
