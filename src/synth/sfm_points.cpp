// Candidates are drawn from random pixels, then looked for in every other view by ray casting.
#include "synth/sfm_points.h"

#include <cmath>
#include <optional>

#include "base/parallel.h"
#include "base/philox.h"
#include "synth/material.h"

namespace millrace::synth {

namespace {

constexpr double kPositionNoise = 0.002;  // of the depth
constexpr float kFeatureNoise = 0.3f;     // px
constexpr float kFarthest = 14.0f;        // world units; haze hides features beyond
constexpr float kDetectionRate = 0.85f;
constexpr uint32_t kBatch = 4096;
constexpr uint32_t kMaxCandidatesPerPoint = 60;

// What find_points passes to each candidate.
struct Search {
  const Scene& scene;
  const CaptureOptions& options;
  const Lens& lens;
  const std::vector<Shot>& shots;
  std::vector<Distractor> figures;  // one per shot with masks, else empty

  std::span<const Solid> figure(size_t view) const {
    return figures.empty() ? std::span<const Solid>() : std::span<const Solid>(figures[view]);
  }
};

std::array<uint32_t, 4> random_words(const Search& search, Stream stream, uint32_t row,
                                     uint32_t lane) {
  return philox(search.options.seed, static_cast<uint32_t>(stream), RandomPurpose::Synthetic, row,
                lane);
}

// The feature of the surface point `hit` in one shot, if that shot sees and detects it.
std::optional<Observation> observe(const Search& search, const Hit& hit, uint32_t view,
                                   uint32_t candidate) {
  const Shot& shot = search.shots[view];
  const auto in_camera = shot.to_camera({hit.position.x, hit.position.y, hit.position.z});
  if (in_camera[2] < 0.2) return std::nullopt;
  const auto at = project(search.lens, in_camera);
  const auto words = random_words(search, Stream::kObservation, candidate, view);
  const auto noise = normal_pair(words[0], words[1]);
  const double x = at[0] + static_cast<double>(kFeatureNoise * std::clamp(noise[0], -3.0f, 3.0f));
  const double y = at[1] + static_cast<double>(kFeatureNoise * std::clamp(noise[1], -3.0f, 3.0f));
  const double margin = 1.0;
  if (!(x > margin && y > margin && x < search.lens.width - margin &&
        y < search.lens.height - margin)) {
    return std::nullopt;
  }
  if (uniform_open(words[2]) > kDetectionRate) return std::nullopt;
  const Vec3 eye = shot.centre(), offset = hit.position - eye;
  const float distance = length(offset);
  const Ray ray = {eye, offset * (1.0f / distance)};
  if (dot(hit.normal, ray.direction) > -0.12f) return std::nullopt;
  const Hit seen = search.scene.trace(ray, search.figure(view));
  if (seen.distractor || std::fabs(seen.distance - distance) > 0.004f * distance)
    return std::nullopt;
  return Observation{view, x, y, 0};
}

std::optional<SfmPoint> try_candidate(const Search& search, uint32_t candidate) {
  const auto words = random_words(search, Stream::kPoint, candidate, 0);
  const size_t n_views = search.shots.size();
  const size_t view = std::min(
      n_views - 1, static_cast<size_t>(uniform_open(words[0]) * static_cast<float>(n_views)));
  const Shot& shot = search.shots[view];
  const auto direction =
      unproject(search.lens, static_cast<double>(uniform_open(words[1])) * search.lens.width,
                static_cast<double>(uniform_open(words[2])) * search.lens.height);
  const Ray ray = {shot.centre(), normalize(shot.to_world(direction[0], direction[1], 1))};
  const Hit hit = search.scene.trace(ray);
  if (hit.material == Material::Sky || hit.distance > kFarthest) return std::nullopt;
  if (!is_textured(search.scene, hit)) return std::nullopt;

  SfmPoint point;
  for (uint32_t other = 0; other < n_views; ++other) {
    if (auto seen = observe(search, hit, other, candidate)) point.track.push_back(*seen);
  }
  if (point.track.size() < 3) return std::nullopt;

  // Uniform in a ball, so that no point is farther off than its radius.
  const auto more = random_words(search, Stream::kPoint, candidate, 1);
  const auto last = random_words(search, Stream::kPoint, candidate, 2);
  const auto xy = normal_pair(more[0], more[1]), zw = normal_pair(more[2], more[3]);
  const Vec3 toward = normalize(Vec3{xy[0], xy[1], zw[0]});
  const double depth = search.shots[point.track[0].view].to_camera(
      {hit.position.x, hit.position.y, hit.position.z})[2];
  const double reach =
      kPositionNoise * depth * std::cbrt(static_cast<double>(uniform_open(last[0])));
  point.position = {hit.position.x + reach * toward.x, hit.position.y + reach * toward.y,
                    hit.position.z + reach * toward.z};
  for (const Observation& seen : point.track) {
    const auto at = project(search.lens, search.shots[seen.view].to_camera(point.position));
    point.error_px += std::hypot(at[0] - seen.x, at[1] - seen.y);
  }
  point.error_px /= static_cast<double>(point.track.size());
  return point;
}

}  // namespace

std::array<uint8_t, 3> SfmPoint::color() const {
  std::array<uint8_t, 3> out;
  for (size_t k = 0; k < 3; ++k) {
    out[k] = static_cast<uint8_t>(color_sum[k] / static_cast<double>(track.size()) + 0.5);
  }
  return out;
}

std::vector<SfmPoint> find_points(const Scene& scene, const CaptureOptions& options,
                                  const Lens& lens, const std::vector<Shot>& shots) {
  Search search{scene, options, lens, shots, {}};
  if (options.masks) {
    for (uint32_t view = 0; view < shots.size(); ++view) {
      search.figures.push_back(build_distractor(options.seed, view, shots[view].centre()));
    }
  }
  std::vector<SfmPoint> points;
  const uint64_t last = static_cast<uint64_t>(options.n_points) * kMaxCandidatesPerPoint;
  std::vector<std::optional<SfmPoint>> batch(kBatch);
  for (uint64_t first = 0; first < last && points.size() < options.n_points; first += kBatch) {
    parallel_for(kBatch, 64, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        batch[i] = try_candidate(search, static_cast<uint32_t>(first + i));
      }
    });
    for (auto& found : batch) {
      if (found.has_value() && points.size() < options.n_points)
        points.push_back(std::move(*found));
    }
  }
  return points;
}

std::vector<std::vector<Keypoint>> make_keypoints(const CaptureOptions& options,
                                                  std::vector<SfmPoint>& points) {
  std::vector<std::vector<Keypoint>> views(options.n_views);
  for (uint64_t i = 0; i < points.size(); ++i) {
    for (Observation& seen : points[i].track) {
      auto& keypoints = views[seen.view];
      seen.slot = static_cast<uint32_t>(keypoints.size());
      keypoints.push_back({seen.x, seen.y, i});
    }
  }
  for (uint32_t view = 0; view < options.n_views; ++view) {
    const size_t n_unmatched = views[view].size() / 4;
    for (uint32_t i = 0; i < n_unmatched; ++i) {
      const auto words = philox(options.seed, static_cast<uint32_t>(Stream::kUnmatched),
                                RandomPurpose::Synthetic, i, view);
      views[view].push_back({static_cast<double>(uniform_open(words[0])) * options.width,
                             static_cast<double>(uniform_open(words[1])) * options.height,
                             kUnmatched});
    }
  }
  return views;
}

void add_colors(const Lens& lens, const ViewPixels& pixels, const std::vector<Keypoint>& keypoints,
                std::vector<SfmPoint>& points) {
  for (const Keypoint& keypoint : keypoints) {
    if (keypoint.point == kUnmatched) continue;
    const size_t column = static_cast<size_t>(keypoint.x), row = static_cast<size_t>(keypoint.y);
    const size_t at = row * lens.width + column;
    for (size_t k = 0; k < 3; ++k) {
      points[keypoint.point].color_sum[k] += pixels.photo[3 * at + k];
    }
  }
}

}  // namespace millrace::synth
