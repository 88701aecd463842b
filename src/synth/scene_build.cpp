// The arrangement of the synthetic scene: solids on a cloth, four poles, and wires hung between
// them.
#include <numbers>

#include "base/philox.h"
#include "synth/scene.h"

namespace millrace::synth {

namespace {

constexpr int kWirePieces = 24;
constexpr int kWireGroup = 6;  // pieces that share a bounding box

Rotation turned(float yaw_deg, float tilt_deg = 0) {
  const float yaw = yaw_deg * std::numbers::pi_v<float> / 180.0f;
  const float tilt = tilt_deg * std::numbers::pi_v<float> / 180.0f;
  const Vec3 forward = {std::cos(yaw), std::sin(yaw), 0};
  const Vec3 side = {-std::sin(yaw), std::cos(yaw), 0};
  const Vec3 up = {0, 0, 1};
  // The tilt leans the top towards `forward`.
  Rotation rotation;
  rotation.axis[0] = forward * std::cos(tilt) - up * std::sin(tilt);
  rotation.axis[1] = side;
  rotation.axis[2] = up * std::cos(tilt) + forward * std::sin(tilt);
  return rotation;
}

Solid make_solid(Shape shape, Material material, Vec3 centre, Vec3 size, Rotation rotation) {
  Solid solid;
  solid.shape = shape;
  solid.material = material;
  solid.centre = centre;
  solid.size = size;
  solid.rotation = rotation;
  switch (shape) {
    case Shape::Sphere:
      solid.bound_radius = size.x;
      solid.occluder_radius = size.x;
      break;
    case Shape::Box:
      solid.bound_radius = length(size);
      solid.occluder_radius = std::cbrt(size.x * size.y * size.z) * 1.15f;
      break;
    case Shape::Frustum: {
      const float widest = std::max(size.x, size.y);
      solid.bound_radius = std::sqrt(widest * widest + size.z * size.z);
      const float middle = 0.5f * (size.x + size.y);
      solid.occluder_radius = std::cbrt(middle * middle * size.z) * 1.1f;
      break;
    }
    case Shape::Torus:
      solid.bound_radius = size.x + size.y;
      solid.occluder_radius = size.x;
      break;
  }
  solid.bound_radius *= 1.001f;
  return solid;
}

void grow(Bounds& bounds, Vec3 p, float radius) {
  bounds.low = {std::min(bounds.low.x, p.x - radius), std::min(bounds.low.y, p.y - radius),
                std::min(bounds.low.z, p.z - radius)};
  bounds.high = {std::max(bounds.high.x, p.x + radius), std::max(bounds.high.y, p.y + radius),
                 std::max(bounds.high.z, p.z + radius)};
}

Bounds nothing() { return {{1e9f, 1e9f, 1e9f}, {-1e9f, -1e9f, -1e9f}}; }

void add_pole(Scene& scene, uint32_t index, Vec3 foot, float height) {
  CapsuleGroup group;
  group.bounds = nothing();
  group.begin = static_cast<uint32_t>(scene.capsules.size());
  group.end = group.begin + 1;
  group.material = Material::Pole;
  group.index = index;
  const Capsule pole = {foot, foot + Vec3{0, 0, height}, 0.032f};
  grow(group.bounds, pole.from, pole.radius);
  grow(group.bounds, pole.to, pole.radius);
  scene.capsules.push_back(pole);
  scene.groups.push_back(group);
}

// A parabola from `from` to `to` that hangs `sag` below (or, negative, arches above) the straight
// line.
void add_wire(Scene& scene, uint32_t index, Vec3 from, Vec3 to, float sag, float radius) {
  const auto at = [&](int piece) {
    const float t = static_cast<float>(piece) / kWirePieces;
    return mix(from, to, t) - Vec3{0, 0, sag * 4 * t * (1 - t)};
  };
  for (int first = 0; first < kWirePieces; first += kWireGroup) {
    CapsuleGroup group;
    group.bounds = nothing();
    group.begin = static_cast<uint32_t>(scene.capsules.size());
    group.index = index;
    for (int piece = first; piece < first + kWireGroup; ++piece) {
      const Capsule capsule = {at(piece), at(piece + 1), radius};
      grow(group.bounds, capsule.from, radius);
      grow(group.bounds, capsule.to, radius);
      scene.capsules.push_back(capsule);
    }
    group.end = static_cast<uint32_t>(scene.capsules.size());
    grow(scene.wire_bounds, group.bounds.low, 0);
    grow(scene.wire_bounds, group.bounds.high, 0);
    scene.groups.push_back(group);
  }
}

}  // namespace

Scene build_scene(uint64_t seed) {
  Scene scene{.noise = Noise(seed),
              .solids = {},
              .capsules = {},
              .groups = {},
              .wire_bounds = nothing(),
              .to_sun = normalize(Vec3{0.45f, -0.62f, 0.85f})};
  const auto turn = [&](int i) { return 50.0f * (scene.noise.cell(i, 3, 9) - 0.5f); };
  using enum Shape;
  scene.solids = {
      make_solid(Sphere, Material::BeachBall, {-0.95f, -0.72f, 0.43f}, {0.43f, 0, 0},
                 turned(20 + turn(0), 28)),
      make_solid(Box, Material::Crate, {0.05f, 0.42f, 0.29f}, {0.42f, 0.34f, 0.29f},
                 turned(14 + 0.3f * turn(1))),
      make_solid(Box, Material::GiftBox, {0.1f, 0.44f, 0.75f}, {0.2f, 0.18f, 0.17f},
                 turned(52 + turn(2))),
      make_solid(Frustum, Material::Can, {1.02f, 0.62f, 0.36f}, {0.25f, 0.25f, 0.36f},
                 turned(turn(3))),
      make_solid(Frustum, Material::Drum, {-1.0f, 0.62f, 0.19f}, {0.44f, 0.44f, 0.19f},
                 turned(turn(4))),
      make_solid(Sphere, Material::Globe, {-0.98f, 0.6f, 0.67f}, {0.29f, 0, 0},
                 turned(turn(5), 23)),
      make_solid(Frustum, Material::TrafficCone, {0.95f, -0.45f, 0.38f}, {0.3f, 0.035f, 0.38f},
                 turned(turn(6))),
      make_solid(Torus, Material::Donut, {0.1f, -0.98f, 0.15f}, {0.33f, 0.15f, 0}, turned(turn(7))),
      make_solid(Box, Material::Book, {-0.15f, -0.22f, 0.075f}, {0.42f, 0.29f, 0.075f},
                 turned(-25 + 0.5f * turn(8))),
  };

  const Vec3 feet[4] = {{1.55f, 1.2f, 0}, {-1.5f, 1.3f, 0}, {-1.62f, -1.25f, 0}, {1.5f, -1.35f, 0}};
  const float heights[4] = {1.3f, 1.42f, 1.2f, 1.36f};
  for (uint32_t i = 0; i < 4; ++i) add_pole(scene, i, feet[i], heights[i]);
  const auto on_pole = [&](int pole, float below_top) {
    return feet[pole] + Vec3{0, 0, heights[pole] - below_top};
  };
  add_wire(scene, 0, on_pole(0, 0.02f), on_pole(1, 0.02f), 0.16f, 0.0048f);
  add_wire(scene, 1, on_pole(1, 0.04f), on_pole(2, 0.02f), 0.22f, 0.0048f);
  add_wire(scene, 2, on_pole(2, 0.04f), on_pole(3, 0.02f), 0.14f, 0.0048f);
  add_wire(scene, 3, on_pole(3, 0.04f), on_pole(0, 0.04f), 0.2f, 0.0048f);
  add_wire(scene, 4, on_pole(0, 0.06f), on_pole(2, 0.06f), 0.1f, 0.0048f);
  add_wire(scene, 5, on_pole(1, 0.5f), on_pole(0, 0.45f), 0.1f, 0.0048f);
  add_wire(scene, 6, on_pole(2, 0.55f), on_pole(3, 0.6f), -0.3f, 0.0048f);
  return scene;
}

Distractor build_distractor(uint64_t seed, uint32_t view, Vec3 camera_centre) {
  const auto words =
      philox(seed, static_cast<uint32_t>(Stream::kDistractor), RandomPurpose::Synthetic, view);
  const float azimuth = std::atan2(camera_centre.y, camera_centre.x);
  const float side = (uniform_open(words[0]) < 0.5f ? -1.0f : 1.0f);
  const float angle = azimuth + side * (0.15f + 0.35f * uniform_open(words[1]));
  const float radius = 1.75f + 0.4f * uniform_open(words[2]);
  const float yaw_deg = 360.0f * uniform_open(words[3]);
  const Vec3 foot = {radius * std::cos(angle), radius * std::sin(angle), 0};
  return {make_solid(Shape::Frustum, Material::Coat, foot + Vec3{0, 0, 0.4f}, {0.2f, 0.11f, 0.4f},
                     turned(yaw_deg)),
          make_solid(Shape::Sphere, Material::Coat, foot + Vec3{0, 0, 0.92f}, {0.14f, 0, 0},
                     turned(yaw_deg))};
}

}  // namespace millrace::synth
