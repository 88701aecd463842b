// Exports that are proven: every file is read again and rendered against the model.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "formats/model_file.h"
#include "io/cameras_json.h"
#include "train/trainer.h"

namespace millrace {

/// How near the views of a format's file must be to those of the model.
struct ExportTolerance {
  double mean_psnr;   // dB, over the views; infinite: every value must be equal
  int sh_degree = 3;  // of the model that it is held against: what the format can express
};
ExportTolerance export_tolerance(ModelFormat format, const WriteOptions& options);

/// Writes files of one model and proves them.
class ProvenExports {
 public:
  /// Views from at most eight of `cameras`, or from a ring around the model if there are none; no
  /// longer than 800 pixels. `cloud` must outlive this.
  ProvenExports(Device& device, const GaussianCloud& cloud, std::vector<NamedCamera> cameras);

  /// Writes `path`, reads it again, and renders both from every view (waiting, reason UserRead). A
  /// file that is not near enough keeps its bytes as `path` + ".bad". Errors: Output naming what
  /// is wrong and that file; those of write_model().
  Result<ExportedFile> write_blocking(const std::filesystem::path& path, ModelFormat format,
                                      const WriteOptions& options);

 private:
  Result<std::vector<std::vector<float>>> render_blocking(const GaussianCloud& cloud);
  Result<ExportedFile> proof_blocking(const std::filesystem::path& path, ModelFormat format,
                                      const WriteOptions& options);

  Device& device_;
  const GaussianCloud& cloud_;
  std::vector<NamedCamera> cameras_;
  double near_plane_;
  std::array<std::vector<std::vector<float>>, 4> references_;  // of the model cut to each SH degree
};

/// "spz: 12.3 MiB in DIR/point_cloud.spz, 52.1 dB from the model's views (least 50.9)".
std::string export_text(const ExportedFile& file);
/// "garden" for a/garden.compressed.ply.
std::string model_stem(const std::filesystem::path& model);

/// Files of `cloud` named `stem` and the format's ending, in `formats`, each proven. What fails is
/// told as a warning and returned as an error after the others are made. Usage: a file is there.
Result<std::vector<ExportedFile>> export_cloud_blocking(Device& device, const GaussianCloud& cloud,
                                                        const std::vector<NamedCamera>& cameras,
                                                        const std::filesystem::path& stem,
                                                        const std::vector<ModelFormat>& formats,
                                                        const ExportOptions& options,
                                                        const TrainObserver& observer);

}  // namespace millrace
