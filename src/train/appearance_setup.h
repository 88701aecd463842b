// What exposure correction begins with, from the photographs; and what it learnt, as a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "appearance/appearance.h"
#include "data/dataset.h"
#include "train/options.h"

namespace millrace {

/// Which physical camera took each view: views of one size and lens share one. If every view has a
/// lens of its own, as after self-calibration, they all share one camera.
std::vector<uint32_t> physical_cameras(const std::vector<View>& views);

/// The setup that `options` ask for. Exposures are zero until seed_exposures().
AppearanceSetup appearance_setup(const TrainOptions& options, const std::vector<View>& views);

/// Begins with the exposures of the files' EXIF where every view has one: half of the difference
/// from the mean, as powers of two of code values. Returns what to tell the user, or nothing.
std::string seed_exposures(const std::vector<View>& views, AppearanceSetup* setup);

/// What was learnt of each view and camera, as JSON. Waits (reason UserRead). Error: Output.
Result<void> write_exposures_blocking(const std::filesystem::path& path,
                                      const std::vector<View>& views, const Appearance& appearance);

}  // namespace millrace
