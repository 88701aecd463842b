// PSNR, SSIM and the colour fits of the measuring rules.
#include "io/metrics.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace millrace {
namespace {

constexpr double kLeastMse = 1e-10;  // 100 dB, so that equal images have a mean
constexpr size_t kWindow = 11;
constexpr double kSigma = 1.5;
constexpr double kC1 = 1e-4, kC2 = 9e-4;  // (0.01 L)^2 and (0.03 L)^2 for a range L of 1
constexpr size_t kCellPx = 32;
// Half a 16-bit step, because float32 cannot hold 4/255 exactly.
constexpr double kDarkest = 4.0 / 255.0 + 0.5 / 65535.0;
constexpr double kBrightest = 251.0 / 255.0 - 0.5 / 65535.0;
// Eigenvalues of the mean normal matrix below this share of the largest are noise below 8 bits.
constexpr double kSingular = 1e-9;

// An image clamped to [0,1]: [height, width, 3]. Pixels stay float32, all sums are in double.
struct Pixels {
  size_t width = 0, height = 0;
  std::vector<float> pixels;
  std::vector<float> weights;  // [height, width], or empty

  double weight(size_t i) const { return weights.empty() ? 1.0 : weights[i]; }
  Eigen::Vector3d at(size_t i) const {
    return Eigen::Map<const Eigen::Vector3f>(&pixels[3 * i]).cast<double>();
  }
  size_t n_pixels() const { return width * height; }
};

Pixels clamped(const ImageF& image) {
  Pixels out{image.width, image.height, {}, {}};
  out.pixels.reserve(image.pixels.size());
  for (const float value : image.pixels) {
    out.pixels.push_back(value > 0 ? std::min(value, 1.0f) : 0.0f);
  }
  return out;
}

double psnr_of_mse(double mse) {
  // max() would hide what is not a number.
  return std::isnan(mse) ? mse : -10.0 * std::log10(std::max(mse, kLeastMse));
}

double mse_of(const Pixels& a, const Pixels& b) {
  double sum = 0, total = 0;
  for (size_t i = 0; i < a.n_pixels(); ++i) {
    sum += b.weight(i) * (a.at(i) - b.at(i)).squaredNorm();
    total += b.weight(i);
  }
  return sum / (3.0 * total);
}

// ---- SSIM ----

std::array<double, kWindow> gaussian_taps() {
  std::array<double, kWindow> taps = {};
  double sum = 0;
  constexpr size_t middle = kWindow / 2;
  for (size_t i = 0; i < kWindow; ++i) {
    const double offset = static_cast<double>(i) - static_cast<double>(middle);
    sum += taps[i] = std::exp(-offset * offset / (2 * kSigma * kSigma));
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

// Weighted means of a, b, a^2, b^2 and ab over one window.
using Moments = std::array<double, 5>;

double ssim_of_moments(const Moments& m) {
  const double variance_a = m[2] - m[0] * m[0], variance_b = m[3] - m[1] * m[1];
  const double covariance = m[4] - m[0] * m[1];
  return (2 * m[0] * m[1] + kC1) * (2 * covariance + kC2) /
         ((m[0] * m[0] + m[1] * m[1] + kC1) * (variance_a + variance_b + kC2));
}

// Moments of each window position of row `y` of one channel, along the row only.
void filter_row(const Pixels& a, const Pixels& b, size_t channel, size_t y,
                const std::array<double, kWindow>& taps, std::vector<Moments>& out) {
  const float* row_a = &a.pixels[y * a.width * 3 + channel];
  const float* row_b = &b.pixels[y * b.width * 3 + channel];
  for (size_t x = 0; x < out.size(); ++x) {
    Moments sum = {};
    for (size_t k = 0; k < kWindow; ++k) {
      const double va = row_a[3 * (x + k)], vb = row_b[3 * (x + k)];
      sum[0] += taps[k] * va;
      sum[1] += taps[k] * vb;
      sum[2] += taps[k] * va * va;
      sum[3] += taps[k] * vb * vb;
      sum[4] += taps[k] * va * vb;
    }
    out[x] = sum;
  }
}

// Source: Wang et al., Image quality assessment: from error visibility to structural similarity,
// IEEE TIP 2004, equation 13, windows wholly inside the image, mean over channels.
double ssim_of(const Pixels& a, const Pixels& b) {
  if (a.width < kWindow || a.height < kWindow) return std::numeric_limits<double>::quiet_NaN();
  const std::array<double, kWindow> taps = gaussian_taps();
  const size_t n_columns = a.width - kWindow + 1;
  double sum = 0, total = 0;
  for (size_t channel = 0; channel < 3; ++channel) {
    // The last eleven filtered rows, row y in slot y % 11.
    std::array<std::vector<Moments>, kWindow> rows;
    for (auto& row : rows) row.resize(n_columns);
    for (size_t y = 0; y < a.height; ++y) {
      filter_row(a, b, channel, y, taps, rows[y % kWindow]);
      if (y + 1 < kWindow) continue;
      for (size_t x = 0; x < n_columns; ++x) {
        Moments window = {};
        for (size_t k = 0; k < kWindow; ++k) {
          const Moments& part = rows[(y + 1 + k) % kWindow][x];
          for (size_t i = 0; i < part.size(); ++i) window[i] += taps[k] * part[i];
        }
        constexpr size_t kMiddle = kWindow / 2;
        const double weight = b.weight((y - kMiddle) * b.width + x + kMiddle);
        sum += weight * ssim_of_moments(window);
        total += weight;
      }
    }
  }
  return sum / total;
}

// ---- colour fits ----

// photo = map * (r, g, b, 1).
using ColorMap = Eigen::Matrix<double, 3, 4>;

size_t cell_parity(const Pixels& image, size_t i) {
  return (i % image.width / kCellPx + i / image.width / kCellPx) % 2;
}

// Clipped pixels say nothing about the exposure and would bend the fit.
bool usable_for_fit(const Pixels& image, size_t i) {
  const Eigen::Vector3d pixel = image.at(i);
  return pixel.minCoeff() > kDarkest && pixel.maxCoeff() < kBrightest;
}

// The least-squares map over the usable pixels of the cells of one parity; identity where singular.
ColorMap fit_color_map(const Pixels& render, const Pixels& photo, size_t parity) {
  Eigen::Matrix4d normal = Eigen::Matrix4d::Zero();
  ColorMap target = ColorMap::Zero();
  size_t n_used = 0;
  for (size_t i = 0; i < render.n_pixels(); ++i) {
    if (cell_parity(render, i) != parity || photo.weight(i) <= 0.5) continue;
    if (!usable_for_fit(render, i) || !usable_for_fit(photo, i)) continue;
    const Eigen::Vector4d input = render.at(i).homogeneous();
    normal += input * input.transpose();
    target += photo.at(i) * input.transpose();
    ++n_used;
  }
  ColorMap identity = ColorMap::Identity();
  if (n_used < 4) return identity;
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix4d> eigen(normal);
  const Eigen::Vector4d& values = eigen.eigenvalues();  // ascending
  if (eigen.info() != Eigen::Success || values[0] < kSingular * values[3]) return identity;
  return target * eigen.eigenvectors() * values.cwiseInverse().asDiagonal() *
         eigen.eigenvectors().transpose();
}

struct CrossFit {
  Pixels corrected;
  double mse = 0;  // mean of both halves' MSE
};

// Every cell is corrected by the map fitted on the cells of the other colour, so that a map that
// merely memorises its own pixels gains nothing. All pixels are scored, clipped ones too.
CrossFit cross_fit(const Pixels& render, const Pixels& photo) {
  const std::array<ColorMap, 2> maps = {fit_color_map(render, photo, 1),
                                        fit_color_map(render, photo, 0)};
  CrossFit out{render, 0};
  std::array<double, 2> sums = {};
  std::array<double, 2> counts = {};
  for (size_t i = 0; i < render.n_pixels(); ++i) {
    const size_t parity = cell_parity(render, i);
    const Eigen::Vector3d mapped =
        (maps[parity] * render.at(i).homogeneous()).cwiseMax(0.0).cwiseMin(1.0);
    Eigen::Map<Eigen::Vector3f>(&out.corrected.pixels[3 * i]) = mapped.cast<float>();
    sums[parity] += photo.weight(i) * (mapped - photo.at(i)).squaredNorm();
    counts[parity] += photo.weight(i);
  }
  // An image within one cell has no pixel of the other colour.
  size_t n_halves = 0;
  for (size_t half = 0; half < 2; ++half) {
    if (counts[half] == 0) continue;
    out.mse += sums[half] / (3.0 * counts[half]);
    ++n_halves;
  }
  out.mse /= static_cast<double>(n_halves);
  return out;
}

double mse_after_gain(const Pixels& render, const Pixels& photo) {
  double render_photo = 0, render_render = 0;
  for (size_t i = 0; i < render.n_pixels(); ++i) {
    render_photo += photo.weight(i) * render.at(i).dot(photo.at(i));
    render_render += photo.weight(i) * render.at(i).squaredNorm();
  }
  const double gain = render_render > 0 ? render_photo / render_render : 1.0;
  double sum = 0, total = 0;
  for (size_t i = 0; i < render.n_pixels(); ++i) {
    sum += photo.weight(i) * ((render.at(i) * gain).cwiseMin(1.0) - photo.at(i)).squaredNorm();
    total += photo.weight(i);
  }
  return sum / (3.0 * total);
}

}  // namespace

ImageScore score_image(const ImageF& render, const ImageF& photo,
                       const std::vector<float>& weights) {
  if (render.width != photo.width || render.height != photo.height || render.pixels.empty() ||
      render.pixels.size() != photo.pixels.size() ||
      render.pixels.size() != 3ull * render.width * render.height) {
    raise(
        {ErrorCode::Internal, fmt::format("cannot score a {} x {} render against a {} x {} photo",
                                          render.width, render.height, photo.width, photo.height)});
  }
  if (!weights.empty() && weights.size() != photo.pixels.size() / 3) {
    raise({ErrorCode::Internal, "the weights of a score are not one for each pixel"});
  }
  const Pixels a = clamped(render);
  Pixels b = clamped(photo);
  b.weights = weights;
  const CrossFit fit = cross_fit(a, b);
  ImageScore score;
  score.psnr = psnr_of_mse(mse_of(a, b));
  score.ssim = ssim_of(a, b);
  score.psnr_cc = psnr_of_mse(fit.mse);
  score.ssim_cc = ssim_of(fit.corrected, b);
  score.psnr_gain = psnr_of_mse(mse_after_gain(a, b));
  return score;
}

ImageScore mean_score(const std::vector<FileScore>& scores) {
  ImageScore mean;
  if (scores.empty()) return mean;
  constexpr std::array<double ImageScore::*, 5> kMeasures = {
      &ImageScore::psnr, &ImageScore::ssim, &ImageScore::psnr_cc, &ImageScore::ssim_cc,
      &ImageScore::psnr_gain};
  for (const auto measure : kMeasures) {
    for (const FileScore& file : scores) mean.*measure += file.score.*measure;
    mean.*measure /= static_cast<double>(scores.size());
  }
  return mean;
}

}  // namespace millrace
