// The mask of a photograph as trained.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "data/image.h"

namespace millrace {

/// The mask file of `view`, resized, undistorted and cropped as its photograph: [H,W] of
/// view.camera's size, 0 to 255. Of a file with alpha that is not opaque everywhere that alpha,
/// else the mean of its colours. Error: Dataset, naming the file.
Result<std::vector<uint8_t>> load_view_mask(const View& view);

/// The alpha channel of a decoded photograph, in the same way; all 255 if it has none.
std::vector<uint8_t> mask_of_alpha(const Image8& image, const View& view);

/// Host memory that load_view_mask() takes while it runs, its result included; 0 without a mask.
uint64_t load_mask_bytes(const View& view);

}  // namespace millrace
