// cameras.json in the INRIA layout: what viewers read and what `millrace render` takes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace millrace {

/// A camera with the name of the image to be rendered from it.
struct NamedCamera {
  std::string name;
  Camera camera;
};

/// [{"id","img_name","width","height","position":[3],"rotation":[3][3]
/// camera-to-world,"fx","fy","cx","cy"}].
Result<void> write_cameras_json(const std::filesystem::path& path,
                                const std::vector<NamedCamera>& cameras);
/// Reads it; cx and cy default to the centre. Errors: ErrorCode::Dataset naming entry and key.
Result<std::vector<NamedCamera>> read_cameras_json(const std::filesystem::path& path);

}  // namespace millrace
