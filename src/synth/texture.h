// Textures: the procedural diffuse patterns of the synthetic scene, in each solid's own frame.
#pragma once

#include "synth/noise.h"
#include "synth/scene.h"

namespace millrace::synth {

/// A cloth of warped checks with motifs and a border around the origin, stone tiles beyond it.
Vec3 floor_texture(const Noise& noise, Vec3 p);

/// The pattern of any other material. `p` and `normal` are local; `index` numbers poles and wires.
Vec3 solid_texture(const Noise& noise, Material material, Vec3 size, Vec3 p, Vec3 normal,
                   uint32_t index);

}  // namespace millrace::synth
