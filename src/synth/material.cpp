// Lighting: a sun with soft shadows, a sky that fills them, occlusion near other solids, haze far
// away.
#include "synth/material.h"

#include <algorithm>
#include <cmath>

#include "synth/texture.h"

namespace millrace::synth {

namespace {

constexpr Vec3 kSun = {1.22f, 1.10f, 0.92f};
constexpr Vec3 kSkyFill = {0.24f, 0.29f, 0.36f};     // light from above in shadow
constexpr Vec3 kFloorFill = {0.11f, 0.095f, 0.08f};  // light from below
constexpr Vec3 kHorizon = {0.72f, 0.76f, 0.80f};
// Half the sun's side as a tangent: a hazy sun, so that shadows are soft.
constexpr float kSunReach = 0.035f;
constexpr float kHazeDistance = 17.0f;

struct Gloss {
  float strength = 0;
  float exponent = 1;
};

Gloss gloss_of(Material material) {
  switch (material) {
    case Material::BeachBall:
      return {0.22f, 60};
    case Material::Globe:
      return {0.18f, 50};
    case Material::Can:
      return {0.25f, 40};
    case Material::Donut:
      return {0.2f, 35};
    case Material::GiftBox:
      return {0.1f, 25};
    case Material::Drum:
      return {0.1f, 30};
    default:
      return {0, 1};
  }
}

// Share of the sky hidden by solids near `hit`, each taken as a sphere.
float occlusion(const Scene& scene, const Hit& hit) {
  float hidden = 0;
  for (size_t i = 0; i < scene.solids.size(); ++i) {
    if (static_cast<int>(i) == hit.solid) continue;
    const Solid& solid = scene.solids[i];
    const Vec3 offset = solid.centre - hit.position;
    const float distance2 = dot(offset, offset),
                radius2 = solid.occluder_radius * solid.occluder_radius;
    if (distance2 > 20 * radius2) continue;
    const float facing = dot(hit.normal, offset) / std::sqrt(distance2);
    hidden += saturate(facing + 0.15f) * radius2 / std::max(distance2, radius2);
  }
  // A wall near the floor loses the sky below its horizon, more so close to the ground.
  if (hit.material != Material::Floor) {
    const float near_floor = 1.0f - smooth_step(0.0f, 0.3f, hit.position.z);
    hidden += 0.45f * near_floor * (1.0f - saturate(hit.normal.z));
  }
  return std::min(hidden, 0.8f);
}

}  // namespace

Vec3 sky_radiance(const Noise& noise, Vec3 direction) {
  const float height = std::max(direction.z, 0.0f);
  const Vec3 zenith = {0.10f, 0.24f, 0.58f};
  Vec3 color = mix(kHorizon, zenith, 1.0f - std::exp(-height * 3.6f));
  const float flat = 1.0f / (height + 0.16f);
  const Vec3 p = {direction.x * flat * 0.75f, direction.y * flat * 0.75f, 4.2f};
  const float cloud = smooth_step(0.46f, 0.72f, noise.fractal(p, 3));
  color = mix(color, Vec3{0.9f, 0.9f, 0.9f}, 0.8f * cloud * smooth_step(0.01f, 0.12f, height));
  return color;
}

Vec3 albedo(const Scene& scene, const Hit& hit) {
  if (hit.material == Material::Floor) return floor_texture(scene.noise, hit.position);
  return solid_texture(scene.noise, hit.material, hit.size, hit.local, hit.local_normal, hit.index);
}

bool is_textured(const Scene& scene, const Hit& hit) {
  if (hit.material == Material::Sky || hit.material == Material::Wire) return false;
  const Vec3 normal = hit.local_normal;
  const Vec3 side =
      normalize(cross(normal, std::fabs(normal.z) < 0.9f ? Vec3{0, 0, 1} : Vec3{1, 0, 0}));
  const Vec3 other = cross(normal, side);
  const Vec3 here = albedo(scene, hit);
  float change = 0;
  for (const Vec3 step : {side, -side, other, -other}) {
    Hit near = hit;
    near.local = hit.local + step * 0.03f;
    near.position = hit.position + step * 0.03f;
    const Vec3 difference = albedo(scene, near) - here;
    change = std::max(change, dot(difference, difference));
  }
  const float brightness = 0.05f + (here.x + here.y + here.z) / 3;
  return std::sqrt(change) > 0.16f * brightness;
}

Vec3 sample_sun(const Scene& scene, float u, float v) {
  const Vec3 level = normalize(cross(scene.to_sun, {0, 0, 1}));
  const Vec3 steep = cross(level, scene.to_sun);
  // The square stands at an angle (its tangent 1/4), so that the shadows of a pole from a 4 x 4
  // grid of points fall side by side instead of four on each other.
  const Vec3 side = level * 0.9701f + steep * 0.2425f, up = steep * 0.9701f - level * 0.2425f;
  return normalize(scene.to_sun + side * (kSunReach * (2 * u - 1)) +
                   up * (kSunReach * (2 * v - 1)));
}

Vec3 shade(const Scene& scene, const Ray& ray, const Hit& hit, Vec3 to_light, bool lit) {
  if (hit.material == Material::Sky) return sky_radiance(scene.noise, ray.direction);
  const Vec3 base = albedo(scene, hit);
  const float open = 1.0f - occlusion(scene, hit);
  Vec3 light = mix(kFloorFill, kSkyFill, 0.5f + 0.5f * hit.normal.z) * open;
  Vec3 radiance = {};
  if (lit) {
    light += kSun * std::max(dot(hit.normal, to_light), 0.0f);
    const Gloss gloss = gloss_of(hit.material);
    if (gloss.strength > 0) {
      const Vec3 half_way = normalize(to_light - ray.direction);
      const float shine = std::pow(std::max(dot(half_way, hit.normal), 0.0f), gloss.exponent);
      radiance += kSun * (gloss.strength * shine);
    }
  }
  radiance += base * light;
  const float far = hit.distance / kHazeDistance;
  return mix(kHorizon, radiance, std::exp(-far * far));
}

}  // namespace millrace::synth
