// Physical cameras and EXIF exposures of a capture; exposures.json.
#include "train/appearance_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/file.h"
#include "data/exif.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

// A stop of linear light is about this much of a power of two of sRGB code values: the exponent of
// sRGB's curve near mid-gray, 1 / 2.2.
constexpr double kCodeValuesPerStop = 0.46;
constexpr double kSeedShare = 0.5;
constexpr double kMostExposure = 16;

}  // namespace

std::vector<uint32_t> physical_cameras(const std::vector<View>& views) {
  std::map<std::tuple<int, uint32_t, uint32_t, double, double, double, double, double, double,
                      double, double>,
           uint32_t>
      known;
  std::vector<uint32_t> cameras;
  for (const View& view : views) {
    const Lens& l = view.lens;
    const auto key = std::make_tuple(static_cast<int>(l.kind), l.width, l.height, l.fx, l.fy, l.cx,
                                     l.cy, l.k1, l.k2, l.p1, l.p2);
    cameras.push_back(known.try_emplace(key, static_cast<uint32_t>(known.size())).first->second);
  }
  if (known.size() == views.size()) std::fill(cameras.begin(), cameras.end(), 0u);
  return cameras;
}

AppearanceSetup appearance_setup(const TrainOptions& options, const std::vector<View>& views) {
  AppearanceSetup setup;
  const std::string& correction = options.exposure_correction;
  setup.ppisp = correction == "ppisp" || correction == "combined";
  setup.grids = correction == "grid" || correction == "combined";
  setup.grid_mode = setup.ppisp ? GridMode::ExposureChroma : GridMode::Affine;
  if (!setup.is_on()) return setup;
  setup.exposures.assign(views.size(), 0.0f);
  setup.cameras = physical_cameras(views);
  setup.n_cameras = 1 + *std::max_element(setup.cameras.begin(), setup.cameras.end());
  return setup;
}

std::string seed_exposures(const std::vector<View>& views, AppearanceSetup* setup) {
  if (!setup->ppisp) return {};
  std::vector<double> stops;
  double mean = 0;
  for (const View& view : views) {
    const std::optional<double> ev = read_exposure_value(view.image_path);
    if (!ev) return {};
    stops.push_back(*ev);
    mean += *ev / static_cast<double>(views.size());
  }
  const auto [least, most] = std::minmax_element(stops.begin(), stops.end());
  if (*most - *least < 1e-9) return {};
  for (size_t i = 0; i < stops.size(); ++i) {
    const double seed = kSeedShare * kCodeValuesPerStop * (stops[i] - mean);
    setup->exposures[i] = static_cast<float>(std::clamp(seed, -kMostExposure, kMostExposure));
  }
  return fmt::format("exposures begin with the EXIF of the photographs, which spans {:.1f} stops",
                     *most - *least);
}

Result<void> write_exposures_blocking(const std::filesystem::path& path,
                                      const std::vector<View>& views,
                                      const Appearance& appearance) {
  const Ppisp& ppisp = appearance.ppisp();
  Device& device = ppisp.values.device();
  const Ticket ticket = read_later(ppisp.values);
  MILLRACE_TRY(device.wait_blocking(ticket.point(), {WaitReason::UserRead, "trainer.exposures"}));
  const auto* values = reinterpret_cast<const float*>(ticket.bytes().data());
  const PpispParams shape = {0, 0, ppisp.n_frames, ppisp.n_cameras};
  const auto list = [&](uint64_t first, uint32_t n) {
    return std::vector<float>(values + first, values + first + n);
  };
  ordered_json json;
  json["schema"] = 1;
  json["about"] =
      "Per photograph: exposure in powers of two of code values, its gain 2^exposure, physical "
      "camera, and the latents of its colour; per camera: vignetting (per channel: centre x y, "
      "alpha 0 1 2) and the raw response curve (toe, shoulder, gamma, centre).";
  json["photographs"] = ordered_json::array();
  for (uint32_t frame = 0; frame < ppisp.n_frames; ++frame) {
    json["photographs"].push_back({{"name", views[frame].name},
                                   {"exposure", values[frame]},
                                   {"gain", std::exp2(values[frame])},
                                   {"camera", appearance.camera_of(frame)},
                                   {"colour", list(ppisp_colour_at(shape, frame), kPpispColour)}});
  }
  json["cameras"] = ordered_json::array();
  for (uint32_t camera = 0; camera < ppisp.n_cameras; ++camera) {
    json["cameras"].push_back(
        {{"vignetting", list(ppisp_vignetting_at(shape, camera), kPpispVignetting)},
         {"response", list(ppisp_crf_at(shape, camera), kPpispCrf)}});
  }
  return write_file_atomically(path, json.dump(2) + "\n");
}

}  // namespace millrace
