// The camera models of COLMAP, and which of them are a pinhole with a polynomial lens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/dataset.h"

namespace millrace {

struct CameraModel {
  int id;
  const char* name;
  uint32_t n_params;
};

/// The model with this id or name, or null.
const CameraModel* find_camera_model(int id);
const CameraModel* find_camera_model(std::string_view name);

/// The lens of a camera of `model`. `where` ("cameras.bin: camera 3") opens error messages.
/// Errors: Dataset for models that are neither polynomial nor free of distortion, and for sizes and
/// parameters that no camera has.
Result<Lens> make_lens(const CameraModel& model, std::span<const double> params, uint64_t width,
                       uint64_t height, std::string_view where);

/// Checks the numbers of a lens: finite, focal lengths above zero, sides 1..65500.
Result<void> check_lens(const Lens& lens, std::string_view where);

}  // namespace millrace
