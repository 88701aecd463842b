// Resizing and uploading a background picture.
#include "train/background_image.h"

#include "data/image.h"
#include "loss/photometric.h"

namespace millrace {

Result<BackgroundImages> BackgroundImages::load(Device& device, const std::string& file,
                                                const std::vector<FrameSize>& sizes) {
  MILLRACE_ASSIGN(const Image8 image, read_image(file));
  BackgroundImages out;
  out.fill(device, sizes, [&](FrameSize size) {
    const Image8 resized = resize_image(image, size.width, size.height);
    std::vector<uint8_t> rgb;
    rgb.reserve(size_t{3} * size.width * size.height);
    for (size_t i = 0; i < size_t{size.width} * size.height; ++i) {
      const uint8_t* pixel = &resized.pixels[i * resized.channels];
      rgb.insert(rgb.end(), pixel, pixel + 3);
    }
    return rgb;
  });
  return out;
}

BackgroundImages BackgroundImages::sized(Device& device, const std::vector<FrameSize>& sizes) {
  BackgroundImages out;
  out.fill(device, sizes, [](FrameSize size) {
    return std::vector<uint8_t>(size_t{3} * size.width * size.height);
  });
  return out;
}

template <class PixelsOf>
void BackgroundImages::fill(Device& device, const std::vector<FrameSize>& sizes,
                            const PixelsOf& pixels_of) {
  for (const FrameSize& size : sizes) {
    Tensor& tensor = by_size_[{size.width, size.height}];
    if (tensor.defined()) continue;
    tensor = upload_photograph(device, pixels_of(size), size.width, size.height);
  }
}

const Tensor* BackgroundImages::of(FrameSize size) const {
  const auto found = by_size_.find({size.width, size.height});
  return found == by_size_.end() ? nullptr : &found->second;
}

}  // namespace millrace
