// Materials: what surfaces and the sky look like, and how light falls on them.
#pragma once

#include <span>

#include "synth/scene.h"

namespace millrace::synth {

/// Radiance of the sky in `direction` (unit), linear RGB, about 0..1.
Vec3 sky_radiance(const Noise& noise, Vec3 direction);

/// Diffuse reflectance at a hit (not the sky), linear RGB.
Vec3 albedo(const Scene& scene, const Hit& hit);

/// Whether a feature detector would find something at `hit`: the albedo changes within a few
/// hundredths of a unit around it.
bool is_textured(const Scene& scene, const Hit& hit);

/// A point of the sun, a square, from two numbers in (0,1): the direction towards it.
Vec3 sample_sun(const Scene& scene, float u, float v);

/// Radiance that leaves `hit` towards the start of `ray`, linear RGB. `lit` says whether the
/// sampled point of the sun is visible from the hit.
Vec3 shade(const Scene& scene, const Ray& ray, const Hit& hit, Vec3 to_light, bool lit);

}  // namespace millrace::synth
