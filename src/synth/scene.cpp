// Ray intersections of the synthetic scene.
#include "synth/scene.h"

#include <limits>
#include <utility>

namespace millrace::synth {

namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr float kNearest = 1e-4f;  // hits closer than this belong to the surface the ray leaves
// Everything but the floor and the sky lies in this sphere.
constexpr Vec3 kStageCentre = {0, 0, 0.6f};
constexpr float kStageRadius = 2.9f;

bool may_hit_sphere(const Ray& ray, Vec3 centre, float radius) {
  const Vec3 to_centre = centre - ray.origin;
  const float along = dot(to_centre, ray.direction);
  const float distance2 = dot(to_centre, to_centre);
  const float radius2 = radius * radius;
  if (along < 0 && distance2 > radius2) return false;
  return distance2 - along * along <= radius2;
}

bool may_hit_box(const Ray& ray, const Bounds& bounds) {
  float enter = 0, leave = kNever;
  const float origin[3] = {ray.origin.x, ray.origin.y, ray.origin.z};
  const float direction[3] = {ray.direction.x, ray.direction.y, ray.direction.z};
  const float low[3] = {bounds.low.x, bounds.low.y, bounds.low.z};
  const float high[3] = {bounds.high.x, bounds.high.y, bounds.high.z};
  for (int k = 0; k < 3; ++k) {
    const float inverse = 1.0f / direction[k];
    float a = (low[k] - origin[k]) * inverse, b = (high[k] - origin[k]) * inverse;
    if (a > b) std::swap(a, b);
    enter = a > enter ? a : enter;
    leave = b < leave ? b : leave;
  }
  return enter <= leave;
}

float hit_sphere(Vec3 origin, Vec3 direction, float radius) {
  const float b = dot(origin, direction);
  const float c = dot(origin, origin) - radius * radius;
  const float discriminant = b * b - c;
  if (discriminant < 0) return kNever;
  const float root = std::sqrt(discriminant);
  if (-b - root > kNearest) return -b - root;
  return -b + root > kNearest ? -b + root : kNever;
}

float hit_box(Vec3 origin, Vec3 direction, Vec3 half, Vec3& normal) {
  const float o[3] = {origin.x, origin.y, origin.z}, d[3] = {direction.x, direction.y, direction.z};
  const float h[3] = {half.x, half.y, half.z};
  float enter = -kNever, leave = kNever;
  int axis = 0;
  for (int k = 0; k < 3; ++k) {
    const float inverse = 1.0f / d[k];
    const float a = (-std::copysign(h[k], d[k]) - o[k]) * inverse;
    const float b = (std::copysign(h[k], d[k]) - o[k]) * inverse;
    if (a > enter) {
      enter = a;
      axis = k;
    }
    leave = b < leave ? b : leave;
  }
  if (enter > leave || enter < kNearest) return kNever;
  const float sign = d[axis] > 0 ? -1.0f : 1.0f;
  normal = {axis == 0 ? sign : 0, axis == 1 ? sign : 0, axis == 2 ? sign : 0};
  return enter;
}

// A cone cut at z = -half (radius `lower`) and z = +half (radius `upper`); a cylinder when they are
// equal.
float hit_frustum(Vec3 o, Vec3 d, float lower, float upper, float half, Vec3& normal) {
  const float slope = (upper - lower) / (2 * half), middle = 0.5f * (lower + upper);
  float nearest = kNever;
  const float radius_o = middle + slope * o.z, radius_d = slope * d.z;
  const float a = d.x * d.x + d.y * d.y - radius_d * radius_d;
  const float b = o.x * d.x + o.y * d.y - radius_o * radius_d;
  const float c = o.x * o.x + o.y * o.y - radius_o * radius_o;
  const float discriminant = b * b - a * c;
  if (discriminant > 0 && std::fabs(a) > 1e-9f) {
    const float root = std::sqrt(discriminant);
    for (const float t : {(-b - root) / a, (-b + root) / a}) {
      const float z = o.z + t * d.z;
      if (t <= kNearest || t >= nearest || std::fabs(z) > half || middle + slope * z < 0) continue;
      nearest = t;
      const Vec3 side = {o.x + t * d.x, o.y + t * d.y, 0};
      normal = normalize(Vec3{side.x, side.y, -slope * length(side)});
    }
  }
  for (const float end : {-1.0f, 1.0f}) {
    const float t = (end * half - o.z) / d.z;
    const float radius = end < 0 ? lower : upper;
    const float x = o.x + t * d.x, y = o.y + t * d.y;
    if (!(t > kNearest) || t >= nearest || x * x + y * y > radius * radius) continue;
    nearest = t;
    normal = {0, 0, end};
  }
  return nearest;
}

// Sphere tracing; Hart, Sphere tracing, The Visual Computer 12, 1996, section 2.
float hit_torus(Vec3 o, Vec3 d, float ring, float tube, float bound, Vec3& normal) {
  const float middle = -dot(o, d);
  const float reach = bound * bound - (dot(o, o) - middle * middle);
  if (reach < 0) return kNever;
  const float half = std::sqrt(reach);
  float t = std::max(middle - half, kNearest);
  for (int step = 0; step < 64 && t < middle + half; ++step) {
    const Vec3 p = o + d * t;
    const float flat = std::sqrt(p.x * p.x + p.y * p.y);
    const float gap = std::sqrt((flat - ring) * (flat - ring) + p.z * p.z) - tube;
    if (gap < 2e-4f && t > 2 * kNearest) {
      const float scale = (flat - ring) / std::max(flat, 1e-6f);
      normal = normalize(Vec3{p.x * scale, p.y * scale, p.z});
      return t;
    }
    t += std::max(gap, 2e-4f);
  }
  return kNever;
}

// Distance to the solid; fills the local normal of the hit.
float hit_solid(const Solid& solid, Vec3 origin, Vec3 direction, Vec3& normal) {
  switch (solid.shape) {
    case Shape::Sphere: {
      const float t = hit_sphere(origin, direction, solid.size.x);
      if (t < kNever) normal = (origin + direction * t) * (1.0f / solid.size.x);
      return t;
    }
    case Shape::Box:
      return hit_box(origin, direction, solid.size, normal);
    case Shape::Frustum:
      return hit_frustum(origin, direction, solid.size.x, solid.size.y, solid.size.z, normal);
    case Shape::Torus:
      return hit_torus(origin, direction, solid.size.x, solid.size.y, solid.bound_radius, normal);
  }
  return kNever;
}

// The infinite cylinder around the axis first, then the round end that the ray passes.
float hit_capsule(const Ray& ray, const Capsule& capsule) {
  // From the ray's point nearest to the capsule: a wire is a thousandth as thick as the eye is far,
  // and squares of the eye's distance would drown its radius in float.
  const float shift = dot(capsule.from - ray.origin, ray.direction);
  const Vec3 start = ray.origin + ray.direction * shift;
  const float nearest = kNearest - shift;
  const Vec3 axis = capsule.to - capsule.from, offset = start - capsule.from;
  const float axis2 = dot(axis, axis), axis_d = dot(axis, ray.direction);
  const float axis_o = dot(axis, offset), d_o = dot(ray.direction, offset);
  const float radius2 = capsule.radius * capsule.radius;
  const float a = axis2 - axis_d * axis_d;
  const float b = axis2 * d_o - axis_o * axis_d;
  const float c = axis2 * (dot(offset, offset) - radius2) - axis_o * axis_o;
  const float discriminant = b * b - a * c;
  if (discriminant < 0) return kNever;
  const float t = (-b - std::sqrt(discriminant)) / a;
  const float along = axis_o + t * axis_d;
  if (along > 0 && along < axis2) return t > nearest ? t + shift : kNever;
  const Vec3 to_end = along <= 0 ? offset : start - capsule.to;
  const float end_b = dot(ray.direction, to_end);
  const float end_discriminant = end_b * end_b - (dot(to_end, to_end) - radius2);
  if (end_discriminant < 0) return kNever;
  const float end_t = -end_b - std::sqrt(end_discriminant);
  return end_t > nearest ? end_t + shift : kNever;
}

void trace_solids(std::span<const Solid> solids, const Ray& ray, bool distractor, Hit& best) {
  for (size_t i = 0; i < solids.size(); ++i) {
    const Solid& solid = solids[i];
    if (!may_hit_sphere(ray, solid.centre, solid.bound_radius)) continue;
    const Vec3 origin = solid.rotation.to_local(ray.origin - solid.centre);
    const Vec3 direction = solid.rotation.to_local(ray.direction);
    Vec3 normal;
    const float t = hit_solid(solid, origin, direction, normal);
    if (t >= best.distance) continue;
    best.distance = t;
    best.material = solid.material;
    best.solid = distractor ? -1 : static_cast<int>(i);
    best.distractor = distractor;
    best.size = solid.size;
    best.local = origin + direction * t;
    best.local_normal = normal;
    best.normal = solid.rotation.to_world(normal);
  }
}

void trace_capsules(const Scene& scene, const Ray& ray, Hit& best) {
  const bool near_wires = may_hit_box(ray, scene.wire_bounds);
  const Capsule* found = nullptr;
  for (const CapsuleGroup& group : scene.groups) {
    if (group.material == Material::Wire && !near_wires) continue;
    if (!may_hit_box(ray, group.bounds)) continue;
    for (uint32_t i = group.begin; i < group.end; ++i) {
      const float t = hit_capsule(ray, scene.capsules[i]);
      if (t >= best.distance) continue;
      found = &scene.capsules[i];
      best.distance = t;
      best.material = group.material;
      best.index = group.index;
    }
  }
  if (found == nullptr) return;
  best.solid = -1;
  best.distractor = false;
  const Vec3 position = ray.origin + ray.direction * best.distance;
  const Vec3 axis = found->to - found->from;
  const float share = saturate(dot(position - found->from, axis) / dot(axis, axis));
  best.normal = normalize(position - found->from - axis * share);
  best.local = {best.normal.x, best.normal.y, share * length(axis)};
  best.local_normal = best.normal;
}

}  // namespace

Hit Scene::trace(const Ray& ray, std::span<const Solid> distractor) const {
  Hit best;
  best.distance = kNever;
  if (ray.direction.z < 0) {
    const float t = -ray.origin.z / ray.direction.z;
    if (t > kNearest) {
      best.distance = t;
      best.material = Material::Floor;
      best.normal = best.local_normal = {0, 0, 1};
      best.local = ray.origin + ray.direction * t;
      best.local.z = 0;
    }
  }
  if (may_hit_sphere(ray, kStageCentre, kStageRadius)) {
    trace_solids(solids, ray, false, best);
    trace_capsules(*this, ray, best);
  }
  trace_solids(distractor, ray, true, best);
  if (best.material != Material::Sky) best.position = ray.origin + ray.direction * best.distance;
  return best;
}

bool Scene::blocked(const Ray& ray) const {
  if (!may_hit_sphere(ray, kStageCentre, kStageRadius)) return false;
  if (blocked_by(solids, ray)) return true;
  for (const CapsuleGroup& group : groups) {
    if (group.material == Material::Wire) continue;
    if (!may_hit_box(ray, group.bounds)) continue;
    for (uint32_t i = group.begin; i < group.end; ++i) {
      if (hit_capsule(ray, capsules[i]) < kNever) return true;
    }
  }
  return false;
}

bool blocked_by(std::span<const Solid> solids, const Ray& ray) {
  for (const Solid& solid : solids) {
    if (!may_hit_sphere(ray, solid.centre, solid.bound_radius)) continue;
    Vec3 normal;
    if (hit_solid(solid, solid.rotation.to_local(ray.origin - solid.centre),
                  solid.rotation.to_local(ray.direction), normal) < kNever) {
      return true;
    }
  }
  return false;
}

}  // namespace millrace::synth
