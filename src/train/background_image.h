// BackgroundImages: one picture behind every frame, resized to each frame size.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "splat/workspace.h"
#include "tensor/tensor.h"

namespace millrace {

class BackgroundImages {
 public:
  /// None: every frame takes the step block's background.
  BackgroundImages() = default;
  /// Reads `file` and uploads it once per different size. Error: the file's, with its path.
  static Result<BackgroundImages> load(Device& device, const std::string& file,
                                       const std::vector<FrameSize>& sizes);
  /// The same without a picture, for a device that holds none.
  static BackgroundImages sized(Device& device, const std::vector<FrameSize>& sizes);
  /// The picture for a frame of `size`, [3,H,W] U8, or null if there is none.
  const Tensor* of(FrameSize size) const;

 private:
  /// Uploads `pixels_of(size)`, [height, width, 3], once per different size.
  template <class PixelsOf>
  void fill(Device& device, const std::vector<FrameSize>& sizes, const PixelsOf& pixels_of);

  std::map<std::pair<uint32_t, uint32_t>, Tensor> by_size_;
};

}  // namespace millrace
