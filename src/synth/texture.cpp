// Procedural patterns: large shapes with strong contrast, and finer noise with little.
#include "synth/texture.h"

#include <array>
#include <numbers>

namespace millrace::synth {

namespace {

constexpr float kPi = std::numbers::pi_v<float>;
// Edges of painted shapes are this wide (world units), so that a photograph resolves them.
constexpr float kEdge = 0.008f;

// 1 inside `half` of zero, 0 outside, soft over kEdge.
float band(float x, float half) {
  return 1.0f - smooth_step(half - kEdge, half + kEdge, std::fabs(x));
}
// Distance from x to the nearest multiple of `period`, signed.
float to_multiple(float x, float period) {
  return x - period * static_cast<float>(floor_int(x / period + 0.5f));
}

constexpr std::array<Vec3, 8> kPaints = {Vec3{0.62f, 0.05f, 0.04f}, Vec3{0.78f, 0.74f, 0.66f},
                                         Vec3{0.03f, 0.10f, 0.42f}, Vec3{0.80f, 0.48f, 0.03f},
                                         Vec3{0.04f, 0.28f, 0.09f}, Vec3{0.02f, 0.02f, 0.025f},
                                         Vec3{0.05f, 0.42f, 0.48f}, Vec3{0.55f, 0.16f, 0.36f}};

Vec3 paint(float random) { return kPaints[static_cast<size_t>(random * 7.999f)]; }

Vec3 cloth(const Noise& noise, Vec3 p, float border) {
  const Vec3 cream = {0.74f, 0.66f, 0.50f}, navy = {0.025f, 0.05f, 0.16f};
  const Vec3 red = {0.52f, 0.045f, 0.04f};
  const Vec3 warp = {noise.value(p * 1.7f) - 0.5f, noise.value(p * 1.7f + Vec3{9, 4, 2}) - 0.5f, 0};
  const Vec3 q = p + warp * 0.09f;
  const float cell = 0.36f;
  const int column = floor_int(q.x / cell), row = floor_int(q.y / cell);
  const float u = to_multiple(q.x, cell), v = to_multiple(q.y, cell);
  // A checker with soft edges: the product of two square waves.
  const float sign = ((column + row) & 1) != 0 ? -1.0f : 1.0f;
  const float edge = smooth_step(0, kEdge, std::fabs(u)) * smooth_step(0, kEdge, std::fabs(v));
  Vec3 color = mix(navy, cream, 0.5f + 0.5f * sign * edge);
  // One motif per cell: a disc, a ring, a diamond or nothing, in a paint of its own.
  const Vec3 middle = {q.x - (static_cast<float>(column) + 0.5f) * cell,
                       q.y - (static_cast<float>(row) + 0.5f) * cell, 0};
  const float kind = noise.cell(column, row, 1);
  const float radius = length(middle);
  const Vec3 motif = paint(noise.cell(column, row, 2));
  if (kind < 0.28f) {
    color = mix(color, motif, band(radius, 0.105f));
  } else if (kind < 0.5f) {
    color = mix(color, motif, band(radius - 0.09f, 0.032f));
  } else if (kind < 0.72f) {
    color = mix(color, motif, band(std::fabs(middle.x) + std::fabs(middle.y), 0.12f));
  }
  // The border: a red hem with cream stripes.
  if (border < 0.26f) {
    const float stripe = band(to_multiple(p.x + p.y, 0.2f), 0.045f);
    const Vec3 hem = mix(red, cream, border < 0.04f || border > 0.22f ? 1.0f : stripe);
    color = hem;
  }
  const float folds = 0.72f + 0.5f * noise.fractal(p * 2.3f, 2);
  const float weave = 0.9f + 0.2f * noise.value(p * 26.0f);
  return color * (folds * weave);
}

Vec3 tiles(const Noise& noise, Vec3 p) {
  const float size = 0.95f;
  const int column = floor_int(p.x / size), row = floor_int(p.y / size);
  const float tone = noise.cell(column, row, 5);
  const float stain = noise.fractal(p * 1.9f + Vec3{3, 8, 1}, 4);
  const float patch = noise.fractal(p * 0.45f, 2);
  Vec3 color =
      mix(Vec3{0.10f, 0.095f, 0.10f}, Vec3{0.60f, 0.47f, 0.34f}, smooth_step(0.3f, 0.7f, tone));
  color = color * (0.55f + 0.9f * stain);
  color = mix(color, Vec3{0.09f, 0.15f, 0.05f}, 0.75f * smooth_step(0.52f, 0.7f, patch));
  const float joint =
      std::min(std::fabs(to_multiple(p.x, size)), std::fabs(to_multiple(p.y, size)));
  return mix(Vec3{0.035f, 0.03f, 0.03f}, color, smooth_step(0.012f, 0.03f, joint));
}

Vec3 beach_ball(const Noise& noise, Vec3 p, float radius) {
  const float turn = (std::atan2(p.y, p.x) / kPi + 1.0f) * 3.0f;
  const int panel = std::min(floor_int(turn), 5);
  const std::array<int, 6> order = {0, 1, 2, 3, 1, 4};
  Vec3 color = kPaints[static_cast<size_t>(order[static_cast<size_t>(panel)])];
  const float cap = std::fabs(p.z) / radius;
  color = mix(color, kPaints[1], smooth_step(0.93f, 0.945f, cap));
  return color * (0.75f + 0.4f * noise.fractal(p * 6.0f, 3));
}

Vec3 globe(const Noise& noise, Vec3 p) {
  const float land = noise.fractal(p * 5.0f + Vec3{4, 1, 7}, 3);
  const float dry = noise.fractal(p * 9.0f, 2);
  const Vec3 ocean = mix(Vec3{0.015f, 0.06f, 0.25f}, Vec3{0.04f, 0.2f, 0.42f}, dry);
  const Vec3 ground =
      mix(Vec3{0.07f, 0.25f, 0.05f}, Vec3{0.68f, 0.5f, 0.24f}, smooth_step(0.4f, 0.6f, dry));
  Vec3 color = mix(ocean, ground, smooth_step(0.49f, 0.52f, land));
  return mix(color, Vec3{0.8f, 0.82f, 0.84f}, smooth_step(0.235f, 0.25f, std::fabs(p.z)));
}

Vec3 crate(const Noise& noise, Vec3 p, Vec3 n, Vec3 half) {
  // Planks run along x on the sides and the top, along y on the x faces.
  const bool end_face = std::fabs(n.x) > 0.5f;
  const float along = end_face ? p.y : p.x;
  const float across = std::fabs(n.z) > 0.5f ? p.y : p.z;
  const float width = 0.145f;
  const int plank = floor_int(across / width + 50.0f);
  const int face = static_cast<int>(n.x * 3 + n.y * 5 + n.z * 7);
  const float tone = noise.cell(plank, face, 11);
  const float grain = noise.fractal({along * 2.2f + tone * 30, across * 24.0f, tone * 9}, 3);
  Vec3 color = mix(Vec3{0.16f, 0.075f, 0.028f}, Vec3{0.62f, 0.38f, 0.17f},
                   saturate(0.25f + 0.9f * (grain - 0.3f) + 0.5f * (tone - 0.5f)));
  color = mix(color, Vec3{0.02f, 0.012f, 0.008f}, band(to_multiple(across, width), 0.011f));
  // Dark iron straps near both ends.
  const float reach = end_face ? half.y : half.x;
  const float strap = band(std::fabs(along) - reach * 0.72f, 0.035f);
  const Vec3 iron = Vec3{0.05f, 0.055f, 0.06f} * (0.7f + 0.6f * noise.value(p * 15.0f));
  return mix(color, iron, strap);
}

Vec3 gift_box(const Noise& noise, Vec3 p, Vec3 n) {
  const float u = std::fabs(n.x) > 0.5f ? p.y : p.x;
  const float v = std::fabs(n.z) > 0.5f ? p.y : p.z;
  const float period = 0.095f;
  const float du = to_multiple(u + 0.02f, period), dv = to_multiple(v + 0.01f, period);
  Vec3 color = mix(Vec3{0.82f, 0.55f, 0.05f}, Vec3{0.03f, 0.14f, 0.12f},
                   band(std::sqrt(du * du + dv * dv), 0.028f));
  const float ribbon = std::max(band(u, 0.03f), std::fabs(n.z) > 0.5f ? band(v, 0.03f) : 0.0f);
  color = mix(color, Vec3{0.6f, 0.03f, 0.05f}, ribbon);
  return color * (0.8f + 0.4f * noise.fractal(p * 8.0f, 2));
}

Vec3 can(const Noise& noise, Vec3 p, Vec3 n, Vec3 size) {
  if (std::fabs(n.z) > 0.5f) {
    const float ring = band(to_multiple(length({p.x, p.y, 0}), 0.08f), 0.018f);
    return mix(Vec3{0.5f, 0.5f, 0.52f}, Vec3{0.16f, 0.16f, 0.18f}, ring);
  }
  const float around = std::atan2(p.y, p.x) * size.x, height = p.z / size.z;
  const float zigzag = std::fabs(to_multiple(around, 0.196f)) * 1.6f - 0.08f;
  Vec3 color = kPaints[4];
  color = mix(color, kPaints[1], band(p.z - 0.02f - zigzag, 0.055f));
  color = mix(color, kPaints[0], band(p.z - 0.17f - zigzag, 0.035f));
  color = mix(color, kPaints[3], band(p.z + 0.2f, 0.05f));
  const float blot = noise.value({around * 9.0f, p.z * 9.0f, 3});
  color = color * (0.8f + 0.4f * blot);
  return mix(color, Vec3{0.5f, 0.5f, 0.52f}, smooth_step(0.93f, 0.94f, std::fabs(height)));
}

Vec3 drum(const Noise& noise, Vec3 p, Vec3 n, Vec3 size) {
  if (n.z > 0.5f) {
    const float r = length({p.x, p.y, 0});
    const Vec3 skin =
        mix(Vec3{0.7f, 0.6f, 0.44f}, Vec3{0.4f, 0.26f, 0.13f}, noise.fractal(p * 5.0f, 3));
    return mix(skin, kPaints[5], std::max(band(r - 0.3f, 0.02f), band(r - 0.12f, 0.02f)));
  }
  const float around = std::atan2(p.y, p.x) * size.x;
  const float width = 2 * kPi * size.x / 22.0f;
  const int column = floor_int(around / width), row = floor_int(p.z / 0.127f + 1.5f);
  const Vec3 tile = paint(noise.cell(column, row, 17));
  const float joint = std::max(band(to_multiple(around, width), 0.006f),
                               band(to_multiple(p.z + 0.0635f, 0.127f), 0.006f));
  return mix(tile, Vec3{0.6f, 0.57f, 0.5f}, joint) * (0.8f + 0.4f * noise.value(p * 11.0f));
}

Vec3 traffic_cone(const Noise& noise, Vec3 p) {
  Vec3 color = {0.78f, 0.16f, 0.015f};
  color = mix(color, Vec3{0.82f, 0.8f, 0.76f},
              std::max(band(p.z - 0.1f, 0.06f), band(p.z + 0.14f, 0.06f)));
  color = mix(color, Vec3{0.02f, 0.02f, 0.02f}, band(p.z + 0.37f, 0.045f));
  const float dirt = noise.fractal(p * 7.0f, 3);
  return mix(color, Vec3{0.12f, 0.09f, 0.06f}, 0.8f * smooth_step(0.52f, 0.75f, dirt));
}

Vec3 donut(const Noise& noise, Vec3 p) {
  const float around = std::atan2(p.y, p.x);
  const float drip =
      0.03f * std::sin(around * 7.0f) + 0.05f * (noise.value({around * 3, 1, 2}) - 0.5f);
  const Vec3 dough =
      mix(Vec3{0.42f, 0.2f, 0.06f}, Vec3{0.66f, 0.4f, 0.15f}, noise.fractal(p * 7.0f, 3));
  Vec3 glaze = Vec3{0.68f, 0.2f, 0.36f} * (0.85f + 0.3f * noise.value(p * 9.0f));
  // Sprinkles: one short stroke per cell of a polar grid, of random angle and paint.
  const float ring = length({p.x, p.y, 0});
  const float u = (around / kPi + 1.0f) * 14.0f, v = ring / 0.075f;
  const int column = floor_int(u), row = floor_int(v);
  const float turn = noise.cell(column, row, 21) * kPi;
  const float x = (u - static_cast<float>(column) - 0.5f) * 0.075f;
  const float y = (v - static_cast<float>(row) - 0.5f) * 0.075f;
  const float length_wise = x * std::cos(turn) + y * std::sin(turn);
  const float side_wise = y * std::cos(turn) - x * std::sin(turn);
  const Vec3 sprinkle = paint(noise.cell(column, row, 22));
  glaze = mix(glaze, sprinkle, band(length_wise, 0.026f) * band(side_wise, 0.01f));
  return mix(dough, glaze, smooth_step(-0.006f, 0.006f, p.z - 0.01f - drip));
}

Vec3 book(const Noise& noise, Vec3 p, Vec3 n, Vec3 half) {
  const bool pages = std::fabs(n.z) < 0.5f && n.x > -0.5f && std::fabs(p.z) < half.z - 0.018f;
  if (pages) {
    const float sheet = noise.value({1, 2, p.z * 160.0f});
    return Vec3{0.74f, 0.69f, 0.56f} * (0.7f + 0.3f * sheet);
  }
  Vec3 color = Vec3{0.03f, 0.22f, 0.24f} * (0.7f + 0.6f * noise.fractal(p * 7.0f, 3));
  if (n.z > 0.5f) {
    // A frame, a sun over waves, and two lines of "writing".
    const float frame = std::min(half.x - std::fabs(p.x), half.y - std::fabs(p.y));
    color = mix(color, kPaints[3], band(frame - 0.045f, 0.013f));
    color = mix(color, kPaints[0], band(length({p.x - 0.1f, p.y - 0.04f, 0}), 0.11f));
    const float wave = p.y + 0.11f + 0.022f * std::sin(p.x * 32.0f);
    color = mix(color, kPaints[1], band(wave, 0.02f) * band(p.x, half.x - 0.08f));
    const bool ink = noise.value({p.x * 40.0f, 5, 6}) > 0.42f;
    if (ink && p.x < -0.06f && p.x > -0.32f) {
      color = mix(color, kPaints[1], std::max(band(p.y - 0.13f, 0.02f), band(p.y - 0.05f, 0.02f)));
    }
  }
  return color;
}

Vec3 coat(const Noise& noise, Vec3 p, bool head) {
  if (head) return Vec3{0.5f, 0.27f, 0.17f} * (0.7f + 0.6f * noise.fractal(p * 8.0f, 2));
  const float plaid = std::max(band(to_multiple(p.z, 0.13f), 0.025f),
                               band(to_multiple(std::atan2(p.y, p.x), kPi / 5), 0.12f));
  return mix(Vec3{0.05f, 0.3f, 0.32f}, Vec3{0.85f, 0.75f, 0.1f}, plaid);
}

}  // namespace

Vec3 floor_texture(const Noise& noise, Vec3 p) {
  // The cloth lies at an angle to the tiles.
  const float c = 0.94f, s = 0.3412f;
  const Vec3 q = {c * p.x + s * p.y, c * p.y - s * p.x, 0};
  const float border = 2.2f - std::max(std::fabs(q.x), std::fabs(q.y));
  if (border > 0) return cloth(noise, q, border);
  return tiles(noise, p);
}

Vec3 solid_texture(const Noise& noise, Material material, Vec3 size, Vec3 p, Vec3 normal,
                   uint32_t index) {
  switch (material) {
    case Material::BeachBall:
      return beach_ball(noise, p, size.x);
    case Material::Globe:
      return globe(noise, p);
    case Material::Crate:
      return crate(noise, p, normal, size);
    case Material::GiftBox:
      return gift_box(noise, p, normal);
    case Material::Can:
      return can(noise, p, normal, size);
    case Material::Drum:
      return drum(noise, p, normal, size);
    case Material::TrafficCone:
      return traffic_cone(noise, p);
    case Material::Donut:
      return donut(noise, p);
    case Material::Book:
      return book(noise, p, normal, size);
    case Material::Coat:
      return coat(noise, p, size.z == 0);
    case Material::Pole: {
      const float stripe = band(to_multiple(p.z + 0.05f * static_cast<float>(index), 0.3f), 0.075f);
      return mix(kPaints[0], kPaints[1], stripe);
    }
    case Material::Wire: {
      const std::array<Vec3, 3> sheaths = {Vec3{0.015f, 0.015f, 0.017f}, Vec3{0.82f, 0.8f, 0.74f},
                                           Vec3{0.6f, 0.03f, 0.03f}};
      return sheaths[index % 3];
    }
    case Material::Sky:
    case Material::Floor:
      break;
  }
  return floor_texture(noise, p);
}

}  // namespace millrace::synth
