// Tests of ray intersections: hits lie on the surfaces, normals face the ray, shadows agree with
// hits.
#include "synth/scene.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/philox.h"

namespace millrace::synth {
namespace {

// Rays from a dome around the scene to random points of it.
Ray random_ray(uint32_t i) {
  const auto a = philox(7, 0, RandomPurpose::Synthetic, i),
             b = philox(8, 0, RandomPurpose::Synthetic, i);
  const float angle = 6.2831853f * uniform_open(a[0]), height = 0.2f + 3 * uniform_open(a[1]);
  const Vec3 from = {4 * std::cos(angle), 4 * std::sin(angle), height};
  const Vec3 to = {3 * uniform_open(b[0]) - 1.5f, 3 * uniform_open(b[1]) - 1.5f,
                   1.4f * uniform_open(b[2])};
  return {from, normalize(to - from)};
}

// How far a local point is from the surface of its solid, by the surface's equation.
float surface_error(const Solid& solid, Vec3 p) {
  const Vec3 size = solid.size;
  switch (solid.shape) {
    case Shape::Sphere:
      return std::fabs(length(p) - size.x);
    case Shape::Box: {
      const float x = std::fabs(p.x) - size.x, y = std::fabs(p.y) - size.y,
                  z = std::fabs(p.z) - size.z;
      return std::fabs(std::max({x, y, z}));
    }
    case Shape::Frustum: {
      const float share = (p.z + size.z) / (2 * size.z);
      const float radius = mix(size.x, size.y, share);
      const float side = std::hypot(p.x, p.y) - radius, end = std::fabs(p.z) - size.z;
      return std::fabs(std::max(side, end));
    }
    case Shape::Torus:
      return std::fabs(std::hypot(std::hypot(p.x, p.y) - size.x, p.z) - size.y);
  }
  return 1;
}

TEST(Scene, HitsLieOnTheSurfaceTheyNameAndNormalsFaceTheRay) {
  const Scene scene = build_scene(1);
  std::map<Material, int> seen;
  for (uint32_t i = 0; i < 40000; ++i) {
    const Ray ray = random_ray(i);
    const Hit hit = scene.trace(ray);
    ++seen[hit.material];
    if (hit.material == Material::Sky) continue;
    EXPECT_NEAR(length(hit.normal), 1.0f, 1e-4f);
    EXPECT_LE(dot(hit.normal, ray.direction), 0.02f);
    if (hit.material == Material::Floor) {
      EXPECT_NEAR(hit.position.z, 0, 1e-5f);
    }
    if (hit.solid >= 0) {
      EXPECT_LT(surface_error(scene.solids[static_cast<size_t>(hit.solid)], hit.local), 1e-3f);
    }
  }
  // Nine solids, the floor, the sky, poles and wires were all met.
  EXPECT_EQ(seen.size(), 13u);
  EXPECT_EQ(seen.count(Material::Coat), 0u);
}

TEST(Scene, NothingStandsBetweenTheEyeAndTheFirstHit) {
  const Scene scene = build_scene(1);
  int blocked = 0;
  for (uint32_t i = 0; i < 5000; ++i) {
    const Ray ray = random_ray(i);
    const Hit hit = scene.trace(ray);
    const bool solid_or_pole = hit.solid >= 0 || hit.material == Material::Pole;
    if (solid_or_pole) {
      EXPECT_TRUE(scene.blocked(ray));
    }
    if (hit.material == Material::Sky) {
      EXPECT_FALSE(scene.blocked(ray));
    }
    blocked += solid_or_pole ? 1 : 0;
  }
  EXPECT_GT(blocked, 500);
}

TEST(Scene, AFloorPointUnderTheBallIsInShadowAndAnOpenOneIsNot) {
  const Scene scene = build_scene(1);
  const Solid& ball = scene.solids[0];
  const float height = ball.centre.z / scene.to_sun.z;
  const Vec3 shaded = ball.centre - scene.to_sun * (height * 0.999f);
  EXPECT_TRUE(scene.blocked({shaded, scene.to_sun}));
  EXPECT_FALSE(scene.blocked({{6, 6, 0.001f}, scene.to_sun}));
}

TEST(Scene, TheDistractorStandsElsewhereInEachView) {
  const Vec3 eye = {4, 0, 2};
  const Distractor first = build_distractor(1, 0, eye), second = build_distractor(1, 1, eye);
  EXPECT_GT(length(first[0].centre - second[0].centre), 0.05f);
  const Scene scene = build_scene(1);
  const Vec3 to = normalize(first[1].centre - eye);
  EXPECT_TRUE(scene.trace({eye, to}, first).distractor);
  EXPECT_FALSE(scene.trace({eye, to}).distractor);
}

}  // namespace
}  // namespace millrace::synth
