// Image encoders of the synthetic capture: pixels to the bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace millrace::synth {

/// JPEG without colour subsampling, quality 95. `rgb` is [height, width, 3]. Error: Output.
Result<std::vector<std::byte>> encode_jpeg(std::span<const uint8_t> rgb, uint32_t width,
                                           uint32_t height);

/// PNG of `channels` (1 gray, 3 RGB) with 8 bits each; `pixels` is [height, width, channels].
/// Error: Output.
Result<std::vector<std::byte>> encode_png8(std::span<const uint8_t> pixels, uint32_t width,
                                           uint32_t height, uint32_t channels);

/// Gray PNG with 16 bits; `pixels` is [height, width]. Error: Output.
Result<std::vector<std::byte>> encode_png16(std::span<const uint16_t> pixels, uint32_t width,
                                            uint32_t height);

}  // namespace millrace::synth
