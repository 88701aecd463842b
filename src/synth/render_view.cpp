// The camera of the synthetic capture: jittered rays per pixel, more where the first few disagree.
#include "synth/render_view.h"

#include <array>
#include <cmath>

#include "base/parallel.h"
#include "base/philox.h"
#include "synth/material.h"

namespace millrace::synth {

namespace {

// More rays are spent on a pixel whose first four differ by more than this in display luminance.
constexpr float kContrast = 0.035f;

// A cell of the grid of samples^2 over a pixel or over the sun.
struct Cell {
  int i = 0, j = 0;
};

struct Sample {
  Vec3 neutral, photo;  // without and with the distractor
  Material material = Material::Sky;
  bool wire = false, distractor = false, lit = false;
  Vec3 surface;  // just above the hit
};

// Colours of one pixel summed over its rays.
struct Pixel {
  Vec3 neutral, photo;
  int count = 0, wires = 0;
  bool distractor = false;
  bool mixed = false;                 // rays met different materials
  bool lit = true;                    // all of them reached the sun
  Material material = Material::Sky;  // of the first
  Vec3 surface;                       // where the last one ended
  float darkest = 2, brightest = -1;

  void add(const Sample& sample) {
    if (count == 0) material = sample.material;
    mixed |= sample.material != material;
    lit &= sample.lit;
    surface = sample.surface;
    neutral += sample.neutral;
    photo += sample.photo;
    wires += sample.wire ? 1 : 0;
    distractor |= sample.distractor;
    ++count;
    const Vec3 c = sample.photo;
    const float display = std::sqrt(saturate(0.25f * c.x + 0.6f * c.y + 0.15f * c.z));
    darkest = std::min(darkest, display);
    brightest = std::max(brightest, display);
  }
  bool needs_more() const { return mixed || wires > 0 || brightest - darkest > kContrast; }
};

// Bright samples are clipped a little above white, so that one glint does not make its pixel white.
Vec3 clipped(Vec3 c) { return {std::min(c.x, 1.5f), std::min(c.y, 1.5f), std::min(c.z, 1.5f)}; }

class ViewRenderer {
 public:
  ViewRenderer(const Scene& scene, const CaptureOptions& options, const Lens& lens,
               const Vignette& vignette, const Shot& shot, uint32_t view)
      : scene_(scene),
        options_(options),
        lens_(lens),
        vignette_(vignette),
        shot_(shot),
        view_(view),
        eye_(shot.centre()),
        gains_(shot.gains()) {
    if (options.masks) figure_ = build_distractor(options.seed, view, eye_);
    order_samples();
    mark_wires();
  }

  ViewPixels render() const {
    const size_t n_pixels = static_cast<size_t>(lens_.width) * lens_.height;
    ViewPixels out;
    out.photo.resize(3 * n_pixels);
    out.neutral.resize(3 * n_pixels);
    out.depth.resize(n_pixels);
    out.wire.resize(n_pixels);
    if (options_.masks) out.keep.resize(n_pixels);
    parallel_for(lens_.height, 8, [&](uint64_t begin, uint64_t end) {
      for (uint64_t row = begin; row < end; ++row) render_row(static_cast<uint32_t>(row), out);
    });
    return out;
  }

 private:
  std::span<const Solid> figure() const {
    return options_.masks ? std::span<const Solid>(figure_) : std::span<const Solid>();
  }

  Ray ray_at(double x, double y) const {
    const auto direction = unproject(lens_, x, y);
    return {eye_, normalize(shot_.to_world(direction[0], direction[1], 1))};
  }

  // Marks pixels that a wire passes within about a pixel: four rays could all miss it.
  void mark_wires() {
    near_wire_.assign(static_cast<size_t>(lens_.width) * lens_.height, 0);
    for (const CapsuleGroup& group : scene_.groups) {
      if (group.material != Material::Wire) continue;
      for (uint32_t i = group.begin; i < group.end; ++i) mark_capsule(scene_.capsules[i]);
    }
  }

  void mark_capsule(const Capsule& capsule) {
    const Vec3 middle = mix(capsule.from, capsule.to, 0.5f);
    const double depth = shot_.to_camera({middle.x, middle.y, middle.z})[2];
    if (depth < 0.1) return;
    const double pixel = depth / lens_.fx;
    const int steps = static_cast<int>(length(capsule.to - capsule.from) / pixel) + 2;
    const int reach = static_cast<int>(capsule.radius / pixel + 1.5);
    for (int step = 0; step <= steps; ++step) {
      const Vec3 p =
          mix(capsule.from, capsule.to, static_cast<float>(step) / static_cast<float>(steps));
      const auto at = project(lens_, shot_.to_camera({p.x, p.y, p.z}));
      // Not a number or far outside: nothing to mark (and no cast that would overflow).
      if (!(std::fabs(at[0]) < 1e6 && std::fabs(at[1]) < 1e6)) continue;
      const int x0 = static_cast<int>(std::floor(at[0])), y0 = static_cast<int>(std::floor(at[1]));
      for (int y = y0 - reach; y <= y0 + reach; ++y) {
        for (int x = x0 - reach; x <= x0 + reach; ++x) {
          if (x < 0 || y < 0 || x >= static_cast<int>(lens_.width) ||
              y >= static_cast<int>(lens_.height)) {
            continue;
          }
          near_wire_[static_cast<size_t>(y) * lens_.width + static_cast<size_t>(x)] = 1;
        }
      }
    }
  }

  // The k-th ray of a pixel: a random point of the k-th cell of the pixel, and the k-th point of
  // the sun. The sun's points are the same for all rays, so shadows have no grain and agree between
  // views.
  Sample take_sample(uint32_t column, uint32_t row, size_t k) const {
    const auto words = philox(options_.seed, view_, RandomPurpose::Synthetic,
                              row * lens_.width + column, static_cast<uint32_t>(k));
    const Cell cell = cells_[k];
    const float inverse = 1.0f / static_cast<float>(options_.samples);
    const double x = column + static_cast<double>(
                                  (static_cast<float>(cell.i) + uniform_open(words[0])) * inverse);
    const double y =
        row + static_cast<double>((static_cast<float>(cell.j) + uniform_open(words[1])) * inverse);
    const Ray ray = ray_at(x, y);
    const Vec3 to_light = sun_[k];

    Sample sample;
    const Hit hit = scene_.trace(ray);
    const Ray to_sun = {hit.position + hit.normal * 1e-3f, to_light};
    const bool faces_sun = hit.material != Material::Sky && dot(hit.normal, to_light) > 0;
    const bool lit = faces_sun && !scene_.blocked(to_sun);
    sample.neutral = sample.photo = clipped(shade(scene_, ray, hit, to_light, lit));
    sample.material = hit.material;
    sample.lit = lit;
    sample.surface = to_sun.origin;
    sample.wire = hit.material == Material::Wire;
    if (options_.masks) add_figure(ray, hit, to_sun, lit, sample);
    return sample;
  }

  // Replaces the photo's colour where the distractor stands or throws its shadow.
  void add_figure(const Ray& ray, const Hit& clean, const Ray& to_sun, bool lit,
                  Sample& sample) const {
    const Hit hit = scene_.trace(ray, figure());
    if (hit.distractor) {
      const Ray shadow = {hit.position + hit.normal * 1e-3f, to_sun.direction};
      const bool faces_sun = dot(hit.normal, shadow.direction) > 0;
      const bool figure_lit = faces_sun && !scene_.blocked(shadow) && !blocked_by(figure(), shadow);
      sample.photo = clipped(shade(scene_, ray, hit, shadow.direction, figure_lit));
      sample.distractor = true;
    } else if (lit && blocked_by(figure(), to_sun)) {
      sample.photo = clipped(shade(scene_, ray, clean, to_sun.direction, false));
      sample.distractor = true;
    }
  }

  Pixel take_pixel(uint32_t column, uint32_t row) const {
    Pixel pixel;
    const size_t n_first = std::min<size_t>(cells_.size(), 4);
    for (size_t k = 0; k < n_first; ++k) pixel.add(take_sample(column, row, k));
    const bool wire = near_wire_[static_cast<size_t>(row) * lens_.width + column] != 0;
    if (!wire && !pixel.needs_more() && !shadow_between(pixel)) return pixel;
    for (size_t k = n_first; k < cells_.size(); ++k) pixel.add(take_sample(column, row, k));
    return pixel;
  }

  // The first four rays look at the corners of the sun; a pole may hide its middle and none of
  // them.
  bool shadow_between(const Pixel& pixel) const {
    if (!pixel.lit || pixel.material == Material::Sky) return false;
    return scene_.blocked({pixel.surface, scene_.to_sun});
  }

  // The order of the rays of a pixel: a rotated square first, then the rest row by row. The order
  // of the points of the sun: its corners first.
  void order_samples() {
    const int side = options_.samples;
    const int end = side - 1;
    std::vector<Cell> square = {
        {0, side / 4}, {side / 4, 3 * side / 4}, {side / 2, 0}, {3 * side / 4, side / 2}};
    std::vector<Cell> corners = {{0, 0}, {end, end}, {end, 0}, {0, end}};
    if (side <= 2) square = corners = {};
    cells_ = completed(square);
    for (const Cell cell : completed(corners)) {
      const float inverse = 1.0f / static_cast<float>(side);
      sun_.push_back(sample_sun(scene_, (static_cast<float>(cell.i) + 0.5f) * inverse,
                                (static_cast<float>(cell.j) + 0.5f) * inverse));
    }
  }

  std::vector<Cell> completed(std::vector<Cell> cells) const {
    const size_t n_given = cells.size();
    for (int j = 0; j < options_.samples; ++j) {
      for (int i = 0; i < options_.samples; ++i) {
        bool given = false;
        for (size_t k = 0; k < n_given; ++k) given |= cells[k].i == i && cells[k].j == j;
        if (!given) cells.push_back({i, j});
      }
    }
    return cells;
  }

  void render_row(uint32_t row, ViewPixels& out) const {
    for (uint32_t column = 0; column < lens_.width; ++column) {
      const size_t at = static_cast<size_t>(row) * lens_.width + column;
      const Pixel pixel = take_pixel(column, row);
      const float inverse = 1.0f / static_cast<float>(pixel.count);
      const float fall_off = static_cast<float>(vignette_.at(lens_, column + 0.5, row + 0.5));
      const Vec3 photo = pixel.photo * (inverse * fall_off), neutral = pixel.neutral * inverse;
      const float photo_channels[3] = {photo.x, photo.y, photo.z};
      const float neutral_channels[3] = {neutral.x, neutral.y, neutral.z};
      for (size_t k = 0; k < 3; ++k) {
        out.photo[3 * at + k] = to_byte(srgb_from_linear(photo_channels[k] * gains_[k]));
        out.neutral[3 * at + k] = to_byte(srgb_from_linear(neutral_channels[k]));
      }
      out.wire[at] = to_byte(static_cast<float>(pixel.wires) * inverse);
      if (options_.masks) out.keep[at] = pixel.distractor ? 0 : 255;
      out.depth[at] = depth_at(column, row);
    }
  }

  uint16_t depth_at(uint32_t column, uint32_t row) const {
    const Ray ray = ray_at(column + 0.5, row + 0.5);
    const Hit hit = scene_.trace(ray);
    if (hit.material == Material::Sky) return 0;
    const Vec3 p = hit.position;
    const double depth = shot_.to_camera({p.x, p.y, p.z})[2] * static_cast<double>(kDepthScale);
    return depth < 65535.5 ? static_cast<uint16_t>(depth + 0.5) : uint16_t{0};
  }

  static uint8_t to_byte(float x) { return static_cast<uint8_t>(saturate(x) * 255.0f + 0.5f); }

  const Scene& scene_;
  const CaptureOptions& options_;
  const Lens& lens_;
  const Vignette& vignette_;
  const Shot& shot_;
  uint32_t view_;
  Vec3 eye_;
  std::array<float, 3> gains_;
  Distractor figure_;
  std::vector<Cell> cells_;
  std::vector<Vec3> sun_;  // direction to the sun's point of each ray
  std::vector<uint8_t> near_wire_;
};

}  // namespace

float srgb_from_linear(float linear) {
  const float x = saturate(linear);
  return x <= 0.0031308f ? 12.92f * x : 1.055f * std::pow(x, 1.0f / 2.4f) - 0.055f;
}

ViewPixels render_view(const Scene& scene, const CaptureOptions& options, const Lens& lens,
                       const Vignette& vignette, const Shot& shot, uint32_t view) {
  return ViewRenderer(scene, options, lens, vignette, shot, view).render();
}

}  // namespace millrace::synth
